"""The job as its handler has it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Mapping
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .._async_hub import AsyncHub
    from .._hub import Hub
    from ._outcome import Answer
    from ._run import CancelReason, JobRun

T = TypeVar("T")


class _AnyJob:
    """What both kinds of jobs have."""

    def __init__(self, run: JobRun) -> None:
        self._run = run

    @property
    def id(self) -> str:
        """The hub's id of the job; the same for every attempt."""
        return self._run.item.id

    @property
    def epoch(self) -> int:
        """The number of the assignment, counted from 1."""
        return self._run.item.epoch

    @property
    def skill(self) -> str:
        """The requested skill."""
        return self._run.item.skill

    @property
    def input(self) -> dict[str, Any]:
        """The whole input."""
        return self._run.input

    @property
    def requester(self) -> str:
        """The requester's name."""
        return self._run.item.requester

    @property
    def protocol(self) -> str:
        """The protocol of the request."""
        return self._run.item.protocol

    @property
    def budget(self) -> Decimal:
        """The maximum price."""
        return self._run.item.budget

    @property
    def price(self) -> Decimal:
        """The agreed price."""
        return self._run.item.price

    @property
    def deadline(self) -> datetime:
        """When the result must be there, by this machine's clock."""
        return self._run.deadline

    @property
    def meta(self) -> Any:
        """Members of the request that the requester's protocol does not define."""
        return self._run.meta

    @property
    def messages(self) -> list[Answer]:
        """What the requester has sent after the request, apart from answers."""
        return list(self._run.messages)

    @property
    def is_repeat(self) -> bool:
        """Whether an earlier run of this handler was interrupted."""
        return self._run.is_repeat

    @property
    def cancelled(self) -> bool:
        """Whether the work is not wanted any more."""
        return self._run.cancel_reason is not None

    @property
    def cancel_reason(self) -> CancelReason | None:
        """Why the work is not wanted any more."""
        return self._run.cancel_reason

    def time_left(self) -> float:
        """Return the seconds until the time limit or the deadline."""
        return self._run.time_left()

    def uuid(self, name: str) -> uuid.UUID:
        """Return an id that is the same in every run of this job, for example for jobs it opens."""
        return uuid.uuid5(uuid.UUID(self.id), f"{self.epoch}/{name}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, epoch={self.epoch})"


class Job(_AnyJob):
    """The job in a plain handler, which runs in a thread of its own."""

    @property
    def hub(self) -> Hub:
        """The hub, called as this agent."""
        return self._run.hubs.sync_hub()

    def progress(self, fraction: float | None = None, text: str | None = None) -> None:
        """Report how far the work is, from 0 to 1, and what is done now.

        It is sent in the background; of reports that follow each other quickly the newest is sent.
        """
        self._wait_for(self._run.progress(fraction, text))

    def part(self, artifact: Mapping[str, Any], *, append: bool = False) -> None:
        """Hand over a part of the result; ``append`` continues the part before it."""
        self._wait_for(self._run.part(artifact, append=append))

    def ask(self, text: str, schema: Mapping[str, Any] | None = None) -> Answer:
        """Ask the requester and wait for the answer.

        After a restart the handler runs again from its beginning, and this returns the answer that was
        given. So what stands before it must be safe to repeat.
        """
        return self._wait_for(self._run.ask(text, schema))

    def ask_to_sign_in(self, text: str) -> None:
        """Ask the requester to sign in elsewhere, as the text says.

        There is no answer: the handler finds out by itself, and its next report says that it goes on.
        The time limit rests until then.
        """
        self._wait_for(self._run.ask_to_sign_in(text))

    def go_on(self) -> None:
        """Say that the work goes on, for example after a sign-in."""
        self._wait_for(self._run.go_on())

    def next_message(self, timeout: float | None = None) -> Answer | None:
        """Wait for the next message that this did not return yet; ``None`` after ``timeout`` seconds."""
        return self._wait_for(self._run.next_message(timeout))

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        guarded = self._run.unless_cancelled(work)
        return asyncio.run_coroutine_threadsafe(guarded, self._run.loop).result()


class AsyncJob(_AnyJob):
    """The job in an async handler."""

    @property
    def hub(self) -> AsyncHub:
        """The hub, called as this agent."""
        return self._run.hubs.async_hub

    async def progress(self, fraction: float | None = None, text: str | None = None) -> None:
        """Report how far the work is, from 0 to 1, and what is done now.

        It is sent in the background; of reports that follow each other quickly the newest is sent.
        """
        await self._run.progress(fraction, text)

    async def part(self, artifact: Mapping[str, Any], *, append: bool = False) -> None:
        """Hand over a part of the result; ``append`` continues the part before it."""
        await self._run.part(artifact, append=append)

    async def ask(self, text: str, schema: Mapping[str, Any] | None = None) -> Answer:
        """Ask the requester and wait for the answer.

        After a restart the handler runs again from its beginning, and this returns the answer that was
        given. So what stands before it must be safe to repeat.
        """
        return await self._run.ask(text, schema)

    async def ask_to_sign_in(self, text: str) -> None:
        """Ask the requester to sign in elsewhere, as the text says.

        There is no answer: the handler finds out by itself, and its next report says that it goes on.
        The time limit rests until then.
        """
        await self._run.ask_to_sign_in(text)

    async def go_on(self) -> None:
        """Say that the work goes on, for example after a sign-in."""
        await self._run.go_on()

    async def next_message(self, timeout: float | None = None) -> Answer | None:
        """Wait for the next message that this did not return yet; ``None`` after ``timeout`` seconds."""
        return await self._run.next_message(timeout)
