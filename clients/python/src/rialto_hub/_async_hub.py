"""The hub, called from tasks of an event loop."""

from __future__ import annotations

import asyncio
import copy
import inspect
import logging
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from . import _flows
from ._context import find_caller
from ._errors import RialtoError
from ._flows import (
    PAGE_MAX,
    AnswerInput,
    Deadline,
    Flow,
    Invoke,
    JobRef,
    NewJob,
    Pause,
    Step,
)
from ._money import Amount
from ._retry import Retry, RetryPolicy
from ._sse import StreamState, Ticker
from ._transport import AsyncTransport, Request
from ._watch import CHECK_INTERVAL, JobEvent, JobWatcher
from ._wire import (
    Account,
    AgentView,
    Asked,
    Availability,
    BriefOffer,
    Declined,
    Delivery,
    DeliveryState,
    FailureCause,
    InboxPositions,
    JobView,
    LedgerEntry,
    Me,
    NewKey,
    NewWebhookSecret,
    Notice,
    Offer,
    OpenQuestion,
    Registration,
    Reported,
    Reputation,
    ResultReceipt,
    Revoked,
    Select,
    Side,
    SkillBody,
    Stage,
    Status,
    TestCall,
    Trace,
    TransferReceipt,
    Work,
)

T = TypeVar("T")
_log = logging.getLogger("rialto_hub")


class AsyncHub:
    """A hub, with the key of its caller.

    Without arguments, hub and key are found as the ``rialto`` command finds them; an empty key means
    that none is sent. It belongs to one event
    loop.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        key_file: str | Path | None = None,
        context: str | None = None,
        timeout: float = 45.0,
        retry: Retry | None = None,
        exact_numbers: bool = False,
    ) -> None:
        self._caller = find_caller(url, key, key_file, context)
        self._transport = AsyncTransport(self._caller.url, timeout)
        self._retry: Retry = retry if retry is not None else RetryPolicy()
        self._exact = exact_numbers

    def with_retry(self, retry: Retry) -> AsyncHub:
        """Return the same hub with other retries. It shares the connections."""
        other = copy.copy(self)
        other._retry = retry
        return other

    @property
    def url(self) -> str:
        """The hub's address."""
        return self._caller.url

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def __aenter__(self) -> AsyncHub:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    # Jobs, as their requester.

    async def hire(
        self,
        skill: str,
        input: Mapping[str, Any] | None = None,  # noqa: A002
        *,
        budget: Amount,
        to: str | int | AgentView | None = None,
        select: Select | None = None,
        deadline: Deadline | None = None,
        callback: str | None = None,
        id: str | uuid.UUID | None = None,  # noqa: A002
        timeout: float = 60.0,
        on_question: Callable[[OpenQuestion], AnswerInput | Awaitable[AnswerInput]] | None = None,
    ) -> JobView:
        """Open a job, wait for its end, and return it.

        The job is returned as it is when the time is over, and when it waits for an answer and there is
        no ``on_question``.
        """
        job = NewJob.make(
            skill,
            input,
            budget=budget,
            to=to,
            select=select,
            deadline=deadline,
            callback=callback,
            id=id,
        )
        return await self.run_flow(_flows.hire(self._caller, job, timeout, on_question))

    async def open_job(
        self,
        skill: str,
        input: Mapping[str, Any] | None = None,  # noqa: A002
        *,
        budget: Amount,
        to: str | int | AgentView | None = None,
        select: Select | None = None,
        deadline: Deadline | None = None,
        callback: str | None = None,
        id: str | uuid.UUID | None = None,  # noqa: A002
    ) -> JobView:
        """Open a job and return it at once."""
        job = NewJob.make(
            skill,
            input,
            budget=budget,
            to=to,
            select=select,
            deadline=deadline,
            callback=callback,
            id=id,
        )
        return await self.run_flow(_flows.open_job(self._caller, job))

    async def job(self, job: JobRef) -> JobView:
        """Return a job, by the hub's id of it or the caller's own."""
        return await self.run_flow(_flows.job(job))

    def jobs(
        self, *, side: Side = "asked", state: Stage = "live", limit: int | None = None
    ) -> AsyncIterator[JobView]:
        """Yield the caller's jobs: live ones oldest first, then ended ones newest first."""
        return self._items(lambda at, n: _flows.jobs_page(side, state, at, n), limit)

    async def wait(
        self,
        job: JobRef,
        *,
        timeout: float = 60.0,
        on_question: Callable[[OpenQuestion], AnswerInput | Awaitable[AnswerInput]] | None = None,
    ) -> JobView:
        """Wait until a job ends or asks, and return it; as it is when the time is over."""
        return await self.run_flow(_flows.wait(job, timeout, on_question))

    async def watch(self, job: JobRef) -> AsyncIterator[JobEvent]:
        """Yield what happens to a job, from what has happened so far to its end."""
        head = (await self.me()).inbox.head
        found = await self.job(job)
        watcher = JobWatcher(found)
        for event in watcher.snapshot(found, catch_up=True):
            yield event
        ticker = Ticker(CHECK_INTERVAL)
        async with aclosing(self.stream(head)) as notices:
            while not watcher.has_ended:
                notice = await anext(notices)
                events = watcher.notice(notice) if notice is not None else []
                if events is None or (notice is None and ticker.is_due()):
                    events = watcher.snapshot(await self.job(found), catch_up=False)
                for event in events:
                    yield event

    async def answer(
        self, job: JobRef, answer: AnswerInput, *, question: int | None = None
    ) -> JobView:
        """Answer a question of the worker, by default the open one, with text or an object."""
        return await self.run_flow(_flows.answer(job, answer, question))

    async def cancel(self, job: JobRef, *, reason: str | None = None) -> JobView:
        """Cancel a job that no worker has begun, or whose worker asks."""
        return await self.run_flow(_flows.cancel(job, reason))

    async def offers(self, job: JobRef) -> list[Offer]:
        """Return the offers for a job."""
        return await self.run_flow(_flows.offers(job))

    async def accept(self, job: JobRef, offer: Offer | BriefOffer | int) -> JobView:
        """Accept an offer."""
        return await self.run_flow(_flows.accept(job, offer))

    async def trace(self, job: JobRef) -> Trace:
        """Return how a job was translated between protocols."""
        return await self.run_flow(_flows.trace(job))

    # Agents.

    def agents(
        self,
        skill: str | None = None,
        *,
        q: str | None = None,
        protocol: str | None = None,
        online: bool | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[AgentView]:
        """Yield agents; those that could do a job of a skill now, best first, if one is given."""
        return self._items(
            lambda at, n: _flows.agents_page(skill, q, protocol, online, at, n), limit
        )

    async def agent(self, name: str | int) -> AgentView:
        """Return an agent, by its number or any of its names."""
        return await self.run_flow(_flows.agent(name))

    async def reputation(self, agent: str | int) -> Reputation:
        """Return an agent's scores and what they are computed from."""
        return await self.run_flow(_flows.reputation(agent))

    # The caller.

    async def me(self) -> Me:
        """Return the caller: its agent, account, inbox and work."""
        return await self.run_flow(_flows.me())

    async def account(self, owner: str | None = None) -> Account:
        """Return an account; by default the caller's."""
        return await self.run_flow(_flows.account(owner))

    def ledger(
        self, *, owner: str | None = None, limit: int | None = None
    ) -> AsyncIterator[LedgerEntry]:
        """Yield ledger entries, newest first; by default the caller's."""
        return self._items(lambda at, n: _flows.ledger_page(owner, at, n), limit)

    async def transfer(
        self,
        to: str,
        amount: Amount,
        *,
        job: JobRef | None = None,
        id: str | uuid.UUID | None = None,  # noqa: A002
    ) -> TransferReceipt:
        """Pay another owner. With the same id it is one payment, however often it is made."""
        checked, transfer_id = _flows.new_transfer(amount, id)
        return await self.run_flow(_flows.transfer(to, checked, job, transfer_id))

    async def send_message(self, to: str | int | AgentView, body: Any) -> int:
        """Send a message, any JSON, and return its position in the receiver's inbox."""
        return await self.run_flow(_flows.send_message(to, body))

    def inbox(self, *, after: int | None = None, limit: int | None = None) -> AsyncIterator[Notice]:
        """Yield the notices after a position; by default those that are not acknowledged."""
        return self._items(lambda at, n: _flows.inbox_page(after, at, n), limit)

    async def ack(self, up_to: int | Notice) -> InboxPositions:
        """Acknowledge all notices up to a position."""
        return await self.run_flow(
            _flows.ack(up_to.position if isinstance(up_to, Notice) else up_to)
        )

    async def events(self, *, after: int | None = None) -> AsyncIterator[Notice]:
        """Yield notices as they come, each once and in order, across lost connections.

        Reading does not acknowledge; ``ack`` does. Without ``after`` it begins with the first notice
        that is not acknowledged.
        """
        async for notice in self.stream(after):
            if notice is not None:
                yield notice

    def deliveries(
        self, *, state: DeliveryState | None = None, limit: int | None = None
    ) -> AsyncIterator[Delivery]:
        """Yield webhook deliveries to the caller; by default those that are not completed."""
        return self._items(lambda at, n: _flows.deliveries_page(state, at, n), limit)

    async def resend(self, delivery: Delivery | int) -> Delivery:
        """Try a delivery again now."""
        return await self.run_flow(_flows.resend(delivery))

    async def test_webhook(self) -> TestCall:
        """Make the hub call the caller's endpoint once, and return what that answered."""
        return await self.run_flow(_flows.test_webhook())

    async def rotate_webhook_secret(self) -> NewWebhookSecret:
        """Make a new webhook secret. The previous one is valid for a day."""
        return await self.run_flow(_flows.rotate_webhook_secret(self._caller))

    async def rotate_key(self) -> NewKey:
        """Make a new key, use it from now on, and save it where the old one was."""
        return await self.run_flow(_flows.rotate_key(self._caller))

    async def revoke_keys(self) -> Revoked:
        """Revoke all keys of the caller."""
        return await self.run_flow(_flows.revoke_keys())

    async def set_status(self, status: Availability) -> Status:
        """Set the caller's availability."""
        return await self.run_flow(_flows.set_status(status))

    async def unregister(self) -> Status:
        """Unregister the caller until it registers again with its key."""
        return await self.run_flow(_flows.unregister())

    async def register(
        self,
        name: str,
        owner: str,
        skills: Sequence[SkillBody] = (),
        *,
        agent_id: str | None = None,
        endpoint: str | None = None,
        accepts: Sequence[str] = (),
        as_new: bool = False,
    ) -> Registration:
        """Update the caller's registration, or register a new agent if there is no key.

        ``accepts`` are the media types that it takes, which protocols that have them show. ``as_new``
        registers a new agent in any case. Its key is in the answer, and nowhere else.
        """
        if as_new:
            flow = _flows.register(name, owner, skills, agent_id, endpoint, accepts, None)
        else:
            flow = _flows.register_caller(
                self._caller, name, owner, skills, agent_id, endpoint, accepts
            )
        return await self.run_flow(flow)

    # Jobs, as their worker.

    async def work(
        self,
        *,
        wait: int = 0,
        limit: int | None = None,
        known: Sequence[str] = (),
        instance: str | None = None,
    ) -> Work:
        """Return what changed in the caller's assignments; waits up to 30 seconds for a change.

        ``known`` names assignments as ``id.epoch``, or ``id.epoch.question.message`` with the numbers
        of the last question whose answer is known, and of the last message.
        """
        return await self.run_flow(_flows.work(wait, limit, known, instance))

    async def report_progress(
        self,
        job: JobRef,
        *,
        fraction: float | None = None,
        text: str | None = None,
        epoch: int | None = None,
    ) -> Reported:
        """Report how far the work is."""
        flow = _flows.report_progress(job, epoch, fraction, text, _flows.new_key())
        return await self.run_flow(flow)

    async def add_part(
        self,
        job: JobRef,
        artifact: Mapping[str, Any],
        *,
        append: bool = False,
        epoch: int | None = None,
    ) -> Reported:
        """Hand over a part of the result."""
        return await self.run_flow(_flows.add_part(job, artifact, epoch, append, _flows.new_key()))

    async def ask(
        self,
        job: JobRef,
        text: str,
        *,
        schema: Mapping[str, Any] | None = None,
        auth: bool = False,
        epoch: int | None = None,
    ) -> Asked:
        """Ask the requester. The answer comes with ``work``.

        With ``auth`` it has to sign in elsewhere, as the text says, and there is no answer.
        """
        return await self.run_flow(_flows.ask(job, text, epoch, schema, auth, _flows.new_key()))

    async def submit_result(
        self,
        job: JobRef,
        *,
        output: Mapping[str, Any] | None = None,
        message: str | None = None,
        cause: FailureCause | None = None,
        took_ms: int | None = None,
        epoch: int | None = None,
    ) -> ResultReceipt:
        """Report a result; without ``output`` a failure, for the reason in ``message``."""
        return await self.run_flow(
            _flows.submit_result(job, epoch, output, message, cause, took_ms)
        )

    async def decline(
        self, job: JobRef, *, reason: str | None = None, epoch: int | None = None
    ) -> Declined:
        """Decline a job; the hub looks for another worker."""
        return await self.run_flow(_flows.decline(job, epoch, reason))

    async def make_offer(
        self, job: JobRef, price: Amount, *, valid_for: str | None = None
    ) -> Offer:
        """Make an offer for a job that asks for offers. ``valid_for`` is a duration like ``5m``."""
        return await self.run_flow(_flows.make_offer(job, price, valid_for))

    async def call(
        self, method: str, path: str, body: Any = None, *, idempotency_key: str | None = None
    ) -> Any:
        """Make any other call of the hub and return its answer as JSON."""
        return await self.run_flow(_flows.call(method, path, body, idempotency_key))

    # How flows, lists and streams are run.

    async def run_flow(self, flow: Flow[T]) -> T:
        """Run a sequence of calls. Used by this package."""
        try:
            step = next(flow)
            while True:
                try:
                    result = await self._perform(step)
                except RialtoError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(result)
        except StopIteration as end:
            value: T = end.value
            return value

    async def _perform(self, step: Step) -> Any:
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        if isinstance(step, Invoke):
            value = step.function(step.argument)
            return await value if inspect.isawaitable(value) else value
        return await self._send(step)

    async def _send(self, request: Request[T]) -> T:
        """Send a request, again if that may help."""
        attempts = 0
        while True:
            key = self._caller.key if request.key is None else request.key or None
            if key is None and not request.is_public:
                raise _flows.no_key()
            try:
                reply = await self._transport.send(request, key, self._exact)
                return reply.decode(request.answer)
            except RialtoError as error:
                attempts += 1
                delay = self._retry.delay_after(
                    error, attempts, is_repeatable=request.is_repeatable
                )
                if delay is None:
                    raise
                _log.info("%s %s: %s; again in %.1f s", request.method, request.path, error, delay)
            await asyncio.sleep(delay)

    async def _items(
        self, page: Callable[[str | None, int], Request[Any]], limit: int | None
    ) -> AsyncIterator[Any]:
        """Yield the items of a list, page by page."""
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            found = await self._send(
                page(cursor, PAGE_MAX if left is None else min(left, PAGE_MAX))
            )
            for item in found.items[:left]:
                yield item
            left = None if left is None else left - len(found.items)
            if found.next_cursor is None or found.next_cursor == cursor:
                return
            cursor = found.next_cursor

    async def stream(self, after: int | None) -> AsyncGenerator[Notice | None, None]:
        """Yield notices, and ``None`` whenever bytes came. Used by this package."""
        if self._caller.key is None:
            raise _flows.no_key()
        stream = StreamState(after, exact=self._exact)
        while True:
            failure: RialtoError | None = None
            try:
                async with self._transport.open_events(
                    "/v1/events", self._caller.key, stream.last_event_id
                ) as chunks:
                    stream.opened()
                    async for chunk in chunks:
                        for notice in stream.push(chunk):
                            yield notice
                        yield None
            except RialtoError as error:
                failure = error
            await asyncio.sleep(stream.delay(failure))
