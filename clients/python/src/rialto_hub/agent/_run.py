"""One run of a handler: its time, its reports, its questions, and how it learns that it is not wanted."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from .. import _flows, _json
from .._async_hub import AsyncHub
from .._errors import HubError, RialtoError
from .._hub import Hub
from .._time import utc_now
from .._wire import AskedQuestion, JobView, Reported, WorkAnswer, WorkItem
from ._convert import to_json
from ._events import log
from ._job import AsyncJob, Job
from ._journal import AssignmentRef, Journal
from ._outcome import (
    Answer,
    Fail,
    HandlerEnd,
    InvalidInput,
    JobCancelled,
    Outcome,
    Part,
    Progress,
    Question,
    Result,
    failed,
)
from ._skill import Skill
from ._threads import in_thread

T = TypeVar("T")
CancelReason: TypeAlias = Literal["cancelled", "time_limit", "stopping"]

#: How long a handler that is not wanted any more may clean up, in seconds.
CLEANUP_TIME = 5.0
# The least time between two progress reports of a job, in seconds.
_PROGRESS_INTERVAL = 0.25
# The least time between two signs of life of a job, in seconds.
_SIGN_INTERVAL_MIN = 1.0


class Hubs(Protocol):
    """The hub, called as the agent."""

    @property
    def async_hub(self) -> AsyncHub:
        """For tasks."""
        ...

    def worker_hub(self, action: str) -> AsyncHub:
        """For the runtime: repeats calls until there is an answer. ``action`` is what then failed."""
        ...

    def sync_hub(self) -> Hub:
        """For threads."""
        ...


@dataclass
class RunSettings:
    """What all runs of an agent have in common."""

    hubs: Hubs
    journal: Journal
    exact: bool
    #: This machine's clock minus the hub's.
    clock_ahead: timedelta = timedelta(0)


class JobRun:
    """A job while its handler runs."""

    def __init__(
        self, item: WorkItem, skill: Skill, settings: RunSettings, *, is_repeat: bool
    ) -> None:
        self.item = item
        self.skill = skill
        self.assignment = AssignmentRef(item.id, item.epoch)
        self.is_repeat = is_repeat
        self.cancel_reason: CancelReason | None = None
        self.loop = asyncio.get_running_loop()
        self._settings = settings
        self._lease_until = item.lease_until
        self._limit_left = skill.timeout
        self._limit_since: float | None = None
        self._cancelled = asyncio.Event()
        self._report_lock = asyncio.Lock()
        self._pending: Progress | None = None
        self._is_flushing = False
        self._parts = 0
        self._questions: list[AskedQuestion] = sorted(item.questions, key=lambda one: one.number)
        self._asked = 0
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def hubs(self) -> Hubs:
        """The hub, called as the agent."""
        return self._settings.hubs

    @property
    def input(self) -> dict[str, Any]:
        """The input, with numbers as the user wants them."""
        value: dict[str, Any] = self.item.input
        return value if self._settings.exact else _json.with_floats(value)

    @property
    def deadline(self) -> datetime:
        """When the hub must have the result, by this machine's clock."""
        return self._lease_until + self._settings.clock_ahead

    def time_left(self) -> float:
        """Return the seconds until the time limit or the deadline."""
        limit = self._limit_left
        if self._limit_since is not None:
            limit -= time.monotonic() - self._limit_since
        return min(limit, (self.deadline - utc_now()).total_seconds())

    def cancel(self, reason: CancelReason) -> None:
        """Tell the handler that its work is not wanted any more."""
        if self.cancel_reason is None:
            self.cancel_reason = reason
            self._cancelled.set()
            for waiter in self._waiting.values():
                if not waiter.done():
                    waiter.set_exception(JobCancelled(reason))

    async def unless_cancelled(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for what a thread wants, but not longer than it is wanted."""
        task, cancelled = self.loop.create_task(work), self.loop.create_task(self._cancelled.wait())
        try:
            await asyncio.wait({task, cancelled}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self._check_wanted()
            return await task
        finally:
            cancelled.cancel()
            task.cancel()

    # How the handler runs.

    async def execute(
        self, arguments: dict[str, Any], on_end: Callable[[], None]
    ) -> Outcome | None:
        """Run the handler. ``None`` if the job was cancelled, so that no outcome is wanted.

        ``on_end`` is called when the handler has really ended, which may be later.
        """
        self._limit_since = time.monotonic()
        handler: asyncio.Future[Any] = asyncio.ensure_future(self._handle(arguments))
        handler.add_done_callback(lambda _: on_end())
        watch = [
            asyncio.ensure_future(self._watch_time()),
            asyncio.ensure_future(self._give_signs_of_life()),
        ]
        cancelled = asyncio.ensure_future(self._cancelled.wait())
        try:
            await asyncio.wait({handler, cancelled}, return_when=asyncio.FIRST_COMPLETED)
            if not handler.done():
                self._interrupt(handler)
                await asyncio.wait({handler}, timeout=CLEANUP_TIME)
        finally:
            for task in (*watch, cancelled, *self._tasks):
                task.cancel()
            if not handler.done():
                self._interrupt(handler)
        if self.cancel_reason in ("cancelled", "stopping"):
            _ignore(handler)
            return None
        return self._outcome_of(handler)

    def _interrupt(self, handler: asyncio.Future[Any]) -> None:
        # A plain handler is in a thread, which cannot be interrupted: it learns of it by itself.
        if self.skill.is_async:
            handler.cancel()

    def _outcome_of(self, handler: asyncio.Future[Any]) -> Outcome:
        late = failed(f"the job exceeded its time limit of {self.skill.timeout:g} s")
        if not handler.done():
            _ignore(handler)
            return late
        if handler.cancelled():
            own = failed("the handler failed: CancelledError")
            return own if self.cancel_reason is None else late
        error = handler.exception()
        if error is None:
            return self.skill.finish(handler.result())
        if isinstance(error, HandlerEnd):
            return error.outcome()
        if isinstance(error, JobCancelled) and self.cancel_reason is not None:
            return late
        # The text of an unexpected error may hold what is not for others.
        log.error("job %s: the handler failed", self.item.id, exc_info=error)
        return failed(f"the handler failed: {type(error).__name__}")

    async def _handle(self, arguments: dict[str, Any]) -> Any:
        try:
            return await self._call_handler(arguments)
        except (SystemExit, KeyboardInterrupt) as error:
            # A handler ends its job, not the agent.
            raise RuntimeError(f"the handler raised {type(error).__name__}") from error

    async def _call_handler(self, arguments: dict[str, Any]) -> Any:
        handler, name = self.skill.handler, self.skill.job_parameter
        if self.skill.is_async:
            if name is not None:
                arguments = {**arguments, name: AsyncJob(self)}
            made = handler(**arguments)
            return await (self._drive_async(made) if inspect.isasyncgen(made) else made)
        if name is not None:
            arguments = {**arguments, name: Job(self)}
        result = await in_thread(lambda: self._call(handler, arguments))
        return await result if inspect.isawaitable(result) else result

    def _call(self, handler: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Call a plain handler, in a thread."""
        made = handler(**arguments)
        return self._drive(made) if inspect.isgenerator(made) else made

    def _drive(self, steps: Generator[Any, Any, Any]) -> Any:
        """Run a generator to its end."""
        given: Any = None
        try:
            while True:
                try:
                    step = steps.send(given)
                except StopIteration as end:
                    return end.value
                if isinstance(step, Result):
                    return step.output
                work = self.unless_cancelled(self._take(step))
                given = asyncio.run_coroutine_threadsafe(work, self.loop).result()
        finally:
            steps.close()

    async def _drive_async(self, steps: AsyncGenerator[Any, Any]) -> Any:
        """Run an async generator to its end, or to its result."""
        given: Any = None
        try:
            while True:
                try:
                    step = await steps.asend(given)
                except StopAsyncIteration:
                    return None
                if isinstance(step, Result):
                    return step.output
                given = await self._take(step)
        finally:
            await steps.aclose()

    async def _take(self, step: Any) -> Answer | None:
        """Do what a generator yielded."""
        if isinstance(step, Progress):
            await self.progress(step.fraction, step.text)
        elif isinstance(step, Part):
            await self.part(step.artifact, append=step.append)
        elif isinstance(step, Question):
            return await self.ask(step.text, step.schema)
        elif isinstance(step, Mapping):
            await self.part(step, append=False)
        else:
            kind = type(step).__name__
            raise Fail(f"the handler yielded {kind}, which is no part, progress or question")
        return None

    async def _watch_time(self) -> None:
        while self.cancel_reason is None:
            left = self.time_left()
            if left <= 0:
                self.cancel("time_limit")
                return
            # The time may become longer or shorter meanwhile.
            await asyncio.sleep(min(left, 1.0) + 0.001)

    async def _give_signs_of_life(self) -> None:
        """Keep the lease while the handler runs."""
        while True:
            left = (self.deadline - utc_now()).total_seconds()
            await asyncio.sleep(max(left / 2, _SIGN_INTERVAL_MIN))
            if self._waiting:
                # The lease rests while a question is open.
                continue
            before = self._lease_until
            try:
                await self._report(
                    _flows.report_progress(self.item.id, self.item.epoch, None, None, _key())
                )
            except (RialtoError, JobCancelled):
                return
            if self._lease_until <= before:
                # The deadline of the job is reached, and no lease goes beyond it.
                return

    # What the handler reports.

    async def progress(self, fraction: float | None, text: str | None) -> None:
        """Report progress in the background."""
        self._check_wanted()
        if fraction is not None and not 0 <= fraction <= 1:
            raise Fail(f"the fraction {fraction} is not between 0 and 1")
        if fraction is None and text is None:
            return
        before = self._pending or Progress()
        self._pending = Progress(
            before.fraction if fraction is None else fraction,
            before.text if text is None else text,
        )
        if not self._is_flushing:
            self._is_flushing = True
            self._spawn(self._flush_in_background())

    async def _flush_in_background(self) -> None:
        """Send the newest progress, and wait after each report, so that there are not too many."""
        while self._pending is not None:
            async with self._report_lock:
                await self._flush()
            await asyncio.sleep(_PROGRESS_INTERVAL)
        self._is_flushing = False

    async def _flush(self) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        try:
            await self._report(
                _flows.report_progress(
                    self.item.id, self.item.epoch, pending.fraction, pending.text, _key()
                )
            )
        except RialtoError as error:
            # Progress is not worth a job.
            log.warning("job %s: cannot report progress: %s", self.item.id, error)

    async def part(self, artifact: Mapping[str, Any], *, append: bool) -> None:
        """Hand over a part of the result."""
        self._check_wanted()
        try:
            content = to_json(artifact)
        except (TypeError, ValueError) as error:
            raise Fail(f"a part cannot be written as JSON: {error}") from None
        async with self._report_lock:
            await self._flush()
            self._parts += 1
            place = f"part/{self._parts}"
            await self._once(
                place,
                lambda key: _flows.add_part(self.item.id, content, self.item.epoch, append, key),
            )

    async def ask(self, text: str, schema: Mapping[str, Any] | None) -> Answer:
        """Ask the requester and wait for the answer; a question that was asked is not asked again."""
        self._check_wanted()
        self._asked += 1
        count = self._asked
        earlier = self._questions[count - 1] if count <= len(self._questions) else None
        if earlier is not None and earlier.text == text:
            number, given = earlier.number, earlier.answer
        else:
            number, given = None, None
        entry = self._settings.journal.find(self.assignment)
        if entry is None or entry.asked < count:
            await self._settings.journal.ask(self.assignment, count)
        self._pause_limit()
        try:
            if number is None:
                number = await self._ask_hub(text, schema, count)
            answer = self._answer_of(given) if isinstance(given, dict) else None
            if answer is None:
                answer = await self._wait_for_answer(number)
        finally:
            self._resume_limit()
        if entry is None or entry.resumed < count:
            await self._settings.journal.resume(self.assignment, count)
        return answer

    async def _ask_hub(self, text: str, schema: Mapping[str, Any] | None, count: int) -> int:
        async with self._report_lock:
            await self._flush()
            asked = await self._once(
                f"ask/{count}",
                lambda key: _flows.ask(self.item.id, text, self.item.epoch, schema, key),
            )
        if asked.question is None:
            # The job has ended or gone to another worker, because nobody can answer.
            self.cancel("cancelled")
            raise JobCancelled("cancelled")
        return asked.question.number

    async def _wait_for_answer(self, number: int) -> Answer:
        waiter = self._waiting.setdefault(number, self.loop.create_future())
        self._check_wanted()
        try:
            return await waiter
        finally:
            self._waiting.pop(number, None)

    def answered(self, answer: WorkAnswer) -> None:
        """Take an answer that the hub listed."""
        given = {"text": answer.text} if answer.text is not None else answer.input
        waiter = self._waiting.setdefault(answer.question, self.loop.create_future())
        if not waiter.done():
            waiter.set_result(self._answer_of(given))
        # The lease begins anew.
        self._spawn(self._refresh_lease())

    def _answer_of(self, given: dict[str, Any]) -> Answer:
        text = given.get("text")
        is_text = len(given) == 1 and isinstance(text, str)
        value = given if self._settings.exact else _json.with_floats(given)
        return Answer(value, text if is_text else None)

    async def _refresh_lease(self) -> None:
        with contextlib.suppress(RialtoError):
            job: JobView = await self._settings.hubs.async_hub.job(self.item.id)
            if job.lease_until is not None:
                self._lease_until = job.lease_until

    async def _once(self, place: str, flow: Callable[[str], _flows.Flow[T]]) -> T:
        """Make a call that has one effect, also if an earlier run of this handler made it."""
        own = f"{self.item.id}/{self.item.epoch}/{place}"
        try:
            return await self._report(flow(hashlib.sha256(own.encode()).hexdigest()))
        except HubError as error:
            # The earlier run did something else at this place.
            if error.code != "other_content":
                raise
            return await self._report(flow(_key()))

    async def _report(self, flow: _flows.Flow[T]) -> T:
        """Make a call about the job, until the hub answers."""
        hub = self._settings.hubs.worker_hub("cannot report on a job")
        answer = await hub.run_flow(flow)
        if isinstance(answer, Reported) and answer.lease_until is not None:
            self._lease_until = answer.lease_until
        return answer

    def _check_wanted(self) -> None:
        if self.cancel_reason is not None:
            raise JobCancelled(self.cancel_reason)

    def _pause_limit(self) -> None:
        if self._limit_since is not None:
            self._limit_left -= time.monotonic() - self._limit_since
            self._limit_since = None

    def _resume_limit(self) -> None:
        if self._limit_since is None:
            self._limit_since = time.monotonic()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _key() -> str:
    return _flows.new_key()


def _ignore(handler: asyncio.Future[Any]) -> None:
    """Take note of an error that does not matter any more."""

    def ended(done: asyncio.Future[Any]) -> None:
        if not done.cancelled() and done.exception() is not None:
            log.debug("a handler that was cancelled ended with an error", exc_info=done.exception())

    handler.add_done_callback(ended)


def invalid_input(reason: str) -> Outcome:
    """Return the outcome for an input that does not match."""
    return InvalidInput(f"the input does not match the skill's input schema: {reason}").outcome()
