"""One run of a handler: its time, its reports, its questions, and how it learns that it is not wanted."""

from __future__ import annotations

import asyncio
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
from .._wire import AskedQuestion, Reported, WorkAnswer, WorkItem, WorkMessage
from ._convert import to_json
from ._events import AgentEvent, Reporter, log
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
    reason,
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
    reporter: Reporter
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
        # The answers that came or are waited for, by the number of their question.
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._is_asking = False
        self._signs_in = False
        self.messages: list[Answer] = []
        self._newest_message = 0
        self._read_messages = 0
        self._message_came = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        for message in item.messages:
            self._add_message(message)

    @property
    def hubs(self) -> Hubs:
        """The hub, called as the agent."""
        return self._settings.hubs

    @property
    def input(self) -> dict[str, Any]:
        """The input, with numbers as the user wants them."""
        value: dict[str, Any] = self._plain(self.item.input)
        return value

    @property
    def meta(self) -> Any:
        """Members of the request that the requester's protocol does not define."""
        return self._plain(self.item.meta)

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
        if self.cancel_reason is not None:
            on_end()
            return None
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
        if self.cancel_reason is not None or not handler.done():
            # Whatever it returned then, it may have stopped half-way.
            _ignore(handler)
            return failed(f"the job exceeded its time limit of {self.skill.timeout:g} s")
        if handler.cancelled():
            return failed("the handler failed: CancelledError")
        error = handler.exception()
        if error is None:
            return self.skill.finish(handler.result())
        if isinstance(error, HandlerEnd):
            return error.outcome()
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
        is_due = self.item.followed
        while True:
            # A requester that follows the job is told that the work has started.
            if not is_due:
                left = (self.deadline - utc_now()).total_seconds()
                await asyncio.sleep(max(left / 2, _SIGN_INTERVAL_MIN))
            is_due = False
            # The lease rests while the requester has to act, and a sign would say that it has.
            if self._is_asking or self._signs_in:
                continue
            try:
                await self._report(self._sign_of_life())
            except RialtoError:
                # The assignment is lost; the next list of work says so.
                return

    # What the handler reports.

    async def progress(self, fraction: float | None, text: str | None) -> None:
        """Report progress in the background."""
        await self._go_on()
        if fraction is not None and not 0 <= fraction <= 1:
            raise Fail(f"the fraction {fraction} is not between 0 and 1")
        if fraction is None and text is None:
            return
        before = self._pending or Progress()
        self._pending = Progress(
            before.fraction if fraction is None else fraction,
            before.text if text is None else reason(text),
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
        await self._go_on()
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
        count, earlier = await self._begin_question(text, auth=False)
        self._pause_limit()
        self._is_asking = True
        try:
            if earlier is None:
                number = await self._ask_hub(text, schema, count, auth=False)
                answer = await self._wait_for_answer(number)
            elif isinstance(earlier.answer, dict):
                answer = self._answer_of(earlier.answer, earlier.answer_meta)
            else:
                answer = await self._wait_for_answer(earlier.number)
        finally:
            self._is_asking = False
            self._resume_limit()
        await self._resume(count)
        return answer

    async def ask_to_sign_in(self, text: str) -> None:
        """Ask the requester to sign in elsewhere."""
        count, earlier = await self._begin_question(text, auth=True)
        if earlier is None:
            await self._ask_hub(text, None, count, auth=True)
        self._pause_limit()
        self._signs_in = True

    async def go_on(self) -> None:
        """Say that the work goes on."""
        await self._go_on()
        async with self._report_lock:
            await self._flush()
            await self._report(self._sign_of_life())

    def _sign_of_life(self) -> _flows.Flow[Reported]:
        return _flows.report_progress(self.item.id, self.item.epoch, None, None, _key())

    async def _begin_question(self, text: str, *, auth: bool) -> tuple[int, AskedQuestion | None]:
        """Count a question, and find it among those that an earlier run asked."""
        await self._go_on()
        self._asked += 1
        count = self._asked
        entry = self._settings.journal.find(self.assignment)
        if entry is None or entry.asked < count:
            await self._settings.journal.ask(self.assignment, count)
        earlier = self._questions[count - 1] if count <= len(self._questions) else None
        is_same = earlier is not None and (earlier.text, earlier.auth) == (text, auth)
        return count, earlier if is_same else None

    async def _resume(self, count: int) -> None:
        entry = self._settings.journal.find(self.assignment)
        if entry is None or entry.resumed < count:
            await self._settings.journal.resume(self.assignment, count)

    async def _go_on(self) -> None:
        """The handler goes on, also if it waited for a sign-in."""
        self._check_wanted()
        if self._signs_in:
            self._signs_in = False
            self._resume_limit()
            await self._resume(self._asked)

    async def _ask_hub(
        self, text: str, schema: Mapping[str, Any] | None, count: int, *, auth: bool
    ) -> int:
        async with self._report_lock:
            await self._flush()
            asked = await self._once(
                f"ask/{count}",
                lambda key: _flows.ask(self.item.id, text, self.item.epoch, schema, auth, key),
            )
        if asked.question is None:
            # The requester has no way to answer: the job has ended, or another worker has it.
            self.cancel("cancelled")
            raise JobCancelled("cancelled")
        event = AgentEvent("question_asked", job=self.item.id, question=text)
        self._settings.reporter.emit(event)
        return asked.question.number

    async def _wait_for_answer(self, number: int) -> Answer:
        waiter = self._answers.setdefault(number, self.loop.create_future())
        self._check_wanted()
        try:
            return await waiter
        finally:
            self._answers.pop(number, None)

    def answered(self, answer: WorkAnswer) -> None:
        """Take an answer that the hub listed."""
        given = {"text": answer.text} if answer.text is not None else answer.input
        waiter = self._answers.setdefault(answer.question, self.loop.create_future())
        if not waiter.done():
            waiter.set_result(self._answer_of(given, answer.meta))
        if answer.lease_until is not None:
            self._lease_until = answer.lease_until

    async def message(self, message: WorkMessage) -> None:
        """Take a message that the hub listed."""
        async with self._message_came:
            self._add_message(message)
            self._message_came.notify_all()

    def _add_message(self, message: WorkMessage) -> None:
        if message.message > self._newest_message:
            self._newest_message = message.message
            given = {"text": message.text} if message.text is not None else message.input
            self.messages.append(self._answer_of(given, message.meta))

    async def next_message(self, timeout: float | None) -> Answer | None:
        """Wait for the next message that was not returned yet."""
        self._check_wanted()
        async with self._message_came:
            waiting = self._message_came.wait_for(lambda: len(self.messages) > self._read_messages)
            try:
                await asyncio.wait_for(waiting, timeout)
            except (asyncio.TimeoutError, TimeoutError):
                return None
        self._read_messages += 1
        return self.messages[self._read_messages - 1]

    def _answer_of(self, given: dict[str, Any], meta: Any) -> Answer:
        text = given.get("text")
        is_text = len(given) == 1 and isinstance(text, str)
        return Answer(self._plain(given), text if is_text else None, self._plain(meta))

    def _plain(self, value: Any) -> Any:
        """Return JSON with numbers as the user wants them."""
        return value if self._settings.exact else _json.with_floats(value)

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


def invalid_input(wrong: str) -> Outcome:
    """Return the outcome for an input that does not match."""
    return InvalidInput(f"the input does not match the skill's input schema: {wrong}").outcome()
