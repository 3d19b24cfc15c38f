"""The worker at a hub: go online, poll for work, report results, go off the lists."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import _json
from .._async_hub import AsyncHub
from .._errors import HubError, RialtoError
from .._hub import Hub
from .._retry import RetryPolicy, worker_delay
from .._time import utc_now
from .._wire import (
    Availability,
    FailureCause,
    Notice,
    ResultReceipt,
    Work,
    WorkAnswer,
    WorkItem,
    WorkMessage,
)
from ._events import AgentEvent, Reporter, log
from ._journal import AssignmentRef, Journal, digest_of
from ._messages import MessageHandler
from ._outcome import Outcome, failed
from ._run import JobRun, RunSettings, invalid_input
from ._skill import Skill

# How long a poll waits, in seconds. It is also the heartbeat.
_POLL_WAIT = 25
# Assignments that are named as known; the hub keeps the rest and may give it to others.
_KNOWN_MAX = 150
_LISTED_MAX = 50
# The delay after an answer that came at once and changed nothing, in seconds.
_IDLE_PAUSE = 1.0
# How long a change of availability must last before it is reported, in seconds.
_DEBOUNCE = 1.0
# The parts of a shutdown, in seconds.
_FINISH_TIME = 1.5
_CLEANUP_TIME = 1.0
_SHUTDOWN_TIME = 4.5
_CALL_TIME = 0.5
# What the hub refuses if an assignment was taken away, or an outcome cannot be read.
_REFUSED = frozenset({400, 404, 409, 413, 422})
_BAD_OUTPUT = frozenset({400, 413, 422})
_INTERRUPTED = failed("the agent was interrupted")
_NO_RETRY = RetryPolicy(max_attempts=1)


class _UntilAnswered:
    """Repeats calls until the hub answers them, and tells of each failure."""

    def __init__(self, reporter: Reporter, action: str) -> None:
        self._reporter = reporter
        self._action = action
        self.failures = 0

    def delay_after(
        self, error: RialtoError, attempts: int, *, is_repeatable: bool = True
    ) -> float | None:
        del is_repeatable
        delay = worker_delay(error, attempts)
        if delay is not None:
            self.failures += 1
            self._reporter.retrying(self._action, error)
        return delay


class WorkerHubs:
    """The hub of a worker, for the runtime and for handlers."""

    def __init__(self, url: str, key: str, reporter: Reporter, *, exact: bool) -> None:
        self._url, self._key, self._exact = url, key, exact
        self._reporter = reporter
        self.async_hub = AsyncHub(url, key=key, exact_numbers=exact)
        # Amounts and numbers of inputs keep their digits until a handler gets them.
        self._own = AsyncHub(url, key=key, exact_numbers=True)
        self._sync: Hub | None = None
        self._lock = threading.Lock()

    def worker_hub(self, action: str) -> AsyncHub:
        """Return the hub that repeats calls until there is an answer."""
        return self._own.with_retry(_UntilAnswered(self._reporter, action))

    def single_hub(self) -> AsyncHub:
        """Return the hub that makes each call once."""
        return self._own.with_retry(_NO_RETRY)

    def polling_hub(self) -> tuple[AsyncHub, _UntilAnswered]:
        """Return the hub for polls, and what counts their failures."""
        retry = _UntilAnswered(self._reporter, "cannot poll for work")
        return self._own.with_retry(retry), retry

    def sync_hub(self) -> Hub:
        """Return the hub for threads."""
        with self._lock:
            if self._sync is None:
                self._sync = Hub(self._url, key=self._key, exact_numbers=self._exact)
            return self._sync

    async def close(self) -> None:
        """Close the connections."""
        await self.async_hub.close()
        await self._own.close()
        if self._sync is not None:
            self._sync.close()


@dataclass
class _Assigned:
    """An assignment that the worker has."""

    #: Set while the handler runs.
    run: JobRun | None = None
    #: Whether its outcome is decided, so that it ends by itself.
    is_finished: bool = False
    #: The number of the newest question whose answer is known.
    newest_answer: int = 0
    #: The number of the newest message of the requester that is known.
    newest_message: int = 0
    #: Answers and messages that came before the handler began.
    early: list[WorkAnswer | WorkMessage] = field(default_factory=list)
    task: asyncio.Task[None] | None = None


@dataclass
class _Capacity:
    """How many handlers run."""

    limit: int
    running: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    is_closed: bool = False

    @property
    def is_full(self) -> bool:
        return self.running >= self.limit

    async def acquire(self) -> bool:
        """Wait until there is room; ``False`` if no more handlers are started."""
        while self.is_full and not self.is_closed:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                # What woke this one up is for the next one.
                if waiter.done() and not waiter.cancelled():
                    self._wake(1)
                raise
            finally:
                if waiter in self.waiting:
                    self.waiting.remove(waiter)
        if self.is_closed:
            return False
        self.running += 1
        self.changed.set()
        return True

    def release(self) -> None:
        self.running -= 1
        self.changed.set()
        self._wake(1)

    def close(self) -> None:
        """Start no more handlers."""
        self.is_closed = True
        self._wake(len(self.waiting))

    def _wake(self, count: int) -> None:
        for waiter in self.waiting[:count]:
            self.waiting.remove(waiter)
            if not waiter.done():
                waiter.set_result(None)


class Worker:
    """Does the jobs of one agent until it is stopped."""

    def __init__(
        self,
        hubs: WorkerHubs,
        skills: Mapping[str, Skill],
        journal: Journal,
        reporter: Reporter,
        *,
        instance: str,
        concurrency: int,
        exact: bool,
        started: AgentEvent,
        on_message: MessageHandler | None,
    ) -> None:
        self._hubs = hubs
        self._skills = skills
        self._journal = journal
        self._reporter = reporter
        self._instance = instance
        self._capacity = _Capacity(concurrency)
        self._started = started
        self._on_message = on_message
        self._settings = RunSettings(hubs, journal, reporter, exact)
        self._assigned: dict[AssignmentRef, _Assigned] = {}
        self._is_changed = False
        self._orphans_closed = False

    async def work(self, stop: asyncio.Event) -> None:
        """Work until ``stop``. Raises when the hub refuses the agent for good."""
        stopping = asyncio.ensure_future(stop.wait())
        polling = asyncio.ensure_future(self._poll())
        duties = [
            asyncio.ensure_future(_quietly(self._read_inbox())),
            asyncio.ensure_future(_quietly(self._report_availability())),
        ]
        error: BaseException | None = None
        try:
            await asyncio.wait({stopping, polling}, return_when=asyncio.FIRST_COMPLETED)
            if polling.done():
                error = polling.exception()
        finally:
            for task in (stopping, polling, *duties):
                task.cancel()
            await asyncio.gather(stopping, polling, *duties, return_exceptions=True)
            await self._shut_down(is_known=error is None)
        if error is not None:
            raise error

    # Work.

    async def _poll(self) -> None:
        """Go online, and take up work as it comes."""
        await self._hubs.worker_hub("cannot go online").set_status("online")
        self._reporter.emit(self._started)
        self._recover()
        # The first answer comes at once: it tells what an earlier run of this program still has.
        wait, is_immediate = 0, False
        while True:
            # An answer that came at once and changed nothing would come again.
            if is_immediate and not self._is_changed:
                await asyncio.sleep(_IDLE_PAUSE)
            self._is_changed = False
            hub, retry = self._hubs.polling_hub()
            began = time.monotonic()
            known = [
                f"{at.job}.{at.epoch}.{assigned.newest_answer}.{assigned.newest_message}"
                for at, assigned in list(self._assigned.items())[:_KNOWN_MAX]
            ]
            room = max(0, min(_KNOWN_MAX - len(self._assigned), _LISTED_MAX))
            work = await hub.work(wait=wait, limit=room, known=known, instance=self._instance)
            is_immediate = wait > 0 and time.monotonic() - began < _IDLE_PAUSE
            wait = _POLL_WAIT
            if retry.failures:
                self._reporter.emit(AgentEvent("recovered"))
            await self._take(work)

    def _recover(self) -> None:
        """Report the outcomes that an earlier run of this program may not have reported."""
        for assignment in self._journal.open_assignments():
            entry = self._journal.find(assignment)
            if entry is not None and entry.outcome is not None and assignment not in self._assigned:
                assigned = self._add(assignment)
                assigned.is_finished = True
                self._spawn(assigned, self._report(assignment, entry.outcome, entry.took_ms))

    async def _take(self, work: Work) -> None:
        """Apply the hub's list."""
        self._settings.clock_ahead = utc_now() - work.now
        gone = set(work.gone)
        for assignment in [one for one in self._assigned if one.job in gone]:
            self._lose(assignment)
        for answer in work.answers:
            assigned = self._assigned.get(AssignmentRef(answer.job_id, answer.epoch))
            if assigned is not None and answer.question > assigned.newest_answer:
                assigned.newest_answer = answer.question
                self._is_changed = True
                await _tell(assigned, answer)
        for message in work.messages:
            assigned = self._assigned.get(AssignmentRef(message.job_id, message.epoch))
            if assigned is not None and message.message > assigned.newest_message:
                assigned.newest_message = message.message
                self._is_changed = True
                await _tell(assigned, message)
        self._close_orphans(work)
        for item in work.jobs:
            assignment = AssignmentRef(item.id, item.epoch)
            if assignment not in self._assigned:
                self._reporter.emit(AgentEvent("job_started", job=item.id, skill=item.skill))
                assigned = self._add(assignment)
                answered = [one.number for one in item.questions if one.answer is not None]
                assigned.newest_answer = max(answered, default=0)
                messages = [one.message for one in item.messages]
                assigned.newest_message = max(messages, default=0)
                self._spawn(assigned, self._do(item, assigned))

    def _add(self, assignment: AssignmentRef) -> _Assigned:
        assigned = self._assigned[assignment] = _Assigned()
        self._is_changed = True
        return assigned

    def _spawn(self, assigned: _Assigned, work: Coroutine[Any, Any, None]) -> None:
        assigned.task = asyncio.get_running_loop().create_task(_quietly(work))

    def _lose(self, assignment: AssignmentRef) -> None:
        """The hub took an assignment away, or has its outcome."""
        assigned = self._assigned.pop(assignment)
        self._is_changed = True
        if assigned.is_finished:
            return
        if assigned.run is not None:
            assigned.run.cancel("cancelled")
        elif assigned.task is not None:
            assigned.task.cancel()
        self._journal.close_entry(assignment)
        self._reporter.emit(AgentEvent("job_cancelled", job=assignment.job))

    def _close_orphans(self, work: Work) -> None:
        """Close, once, what an earlier run of this program began and the hub gave to others."""
        # An assignment that was not listed may still be ours.
        if self._orphans_closed or work.more:
            return
        self._orphans_closed = True
        listed = {AssignmentRef(item.id, item.epoch) for item in work.jobs}
        for assignment in self._journal.open_assignments():
            if assignment not in listed and assignment not in self._assigned:
                self._journal.close_entry(assignment)

    async def _do(self, item: WorkItem, assigned: _Assigned) -> None:
        """Do one job and report its outcome."""
        assignment = AssignmentRef(item.id, item.epoch)
        began = time.monotonic()
        try:
            outcome = await self._outcome(item, assigned)
        except Exception:
            # Its requester waits for an answer, whatever went wrong here.
            log.exception("job %s", item.id)
            outcome = failed("the agent failed to do this job")
        if outcome is None:
            return
        assigned.is_finished = True
        took_ms = int((time.monotonic() - began) * 1000)
        entry = self._journal.find(assignment)
        if entry is not None and entry.outcome is None:
            try:
                await self._journal.end(assignment, entry.digest, outcome, took_ms)
            except OSError as error:
                self._job_error(assignment, "cannot write the result to disk", str(error))
        await self._report(assignment, outcome, took_ms)

    async def _outcome(self, item: WorkItem, assigned: _Assigned) -> Outcome | None:
        """Run the handler, unless the journal or the input decide; ``None`` if it was cancelled."""
        assignment, digest = AssignmentRef(item.id, item.epoch), digest_of(item)
        entry = self._journal.find(assignment)
        if entry is not None and entry.digest != digest:
            entry = None
        if entry is not None and entry.outcome is not None:
            return entry.outcome
        skill = self._skills.get(item.skill)
        if skill is None:
            return Outcome("declined", "this agent does not have that skill")
        if entry is not None and not (skill.repeatable or entry.was_asking):
            return _INTERRUPTED
        try:
            arguments = skill.load(item.input)
        except (ValueError, ArithmeticError, RecursionError) as error:
            return invalid_input(str(error))
        if not await self._capacity.acquire():
            return None
        try:
            run = JobRun(item, skill, self._settings, is_repeat=entry is not None)
            if run.time_left() <= 0:
                self._capacity.release()
                return Outcome("declined", "the deadline has passed")
            if entry is None:
                await self._journal.start(assignment, digest, item.skill)
        except OSError as error:
            self._capacity.release()
            # Work without a record is not started, because it might be done twice.
            self._job_error(assignment, "cannot write the journal", str(error))
            return Outcome("declined", f"the agent cannot write its journal: {error.strerror}")
        except BaseException:
            self._capacity.release()
            raise
        assigned.run = run
        for sent in assigned.early:
            await _tell(assigned, sent)
        try:
            return await run.execute(arguments, self._capacity.release)
        finally:
            assigned.run = None

    async def _report(self, assignment: AssignmentRef, outcome: Outcome, took_ms: int) -> None:
        """Report an outcome until the hub answers, and close its entry."""
        hub = self._hubs.worker_hub("cannot report a result")
        try:
            try:
                receipt = await report(hub, assignment, outcome, took_ms)
            except HubError as error:
                if not outcome.is_done or error.status not in _BAD_OUTPUT:
                    raise
                # The requester waits, so an output that cannot be used is reported as a failure.
                outcome = failed(f"the hub did not accept the output: {error.message}")
                receipt = await report(hub, assignment, outcome, took_ms)
        except RialtoError as error:
            if error.status in _REFUSED:
                self._journal.close_entry(assignment)
                self._reporter.emit(
                    AgentEvent("result_refused", job=assignment.job, reason=str(error))
                )
            else:
                # Kept: the key may work again after the next start.
                self._job_error(assignment, "the hub did not accept a result", str(error))
            return
        self._journal.close_entry(assignment)
        paid = receipt.paid if receipt is not None else None
        self._reporter.emit(
            AgentEvent(
                "job_ended",
                job=assignment.job,
                outcome=outcome,
                amount=None if paid is None else f"{paid:f}",
                repeated=receipt is not None and receipt.repeated,
            )
        )

    def _job_error(self, assignment: AssignmentRef, action: str, reason: str) -> None:
        self._reporter.emit(
            AgentEvent("job_error", job=assignment.job, action=action, reason=reason)
        )

    # Beside the work.

    async def _report_availability(self) -> None:
        """Say when the agent is full for a while, and when it has room again."""
        reported = False
        while True:
            is_full = self._capacity.is_full
            if is_full != reported:
                status: Availability = "busy" if is_full else "online"
                await self._hubs.worker_hub("cannot report availability").set_status(status)
                reported = is_full
                continue
            self._capacity.changed.clear()
            await self._capacity.changed.wait()
            await asyncio.sleep(_DEBOUNCE)

    async def _read_inbox(self) -> None:
        """Make offers for jobs that ask for them, and hand over messages."""
        after: int | None = None
        # Messages stay in the inbox if nothing reads them, and so does what comes after them.
        has_unread = False
        failures = 0
        while True:
            try:
                async with contextlib.aclosing(self._hubs.async_hub.stream(after)) as notices:
                    async for notice in notices:
                        failures = 0
                        if notice is None:
                            continue
                        has_unread |= not await self._handle(notice)
                        if not has_unread:
                            hub = self._hubs.worker_hub("cannot acknowledge a notice")
                            await hub.ack(notice.position)
                        after = notice.position
            except RialtoError as error:
                failures += 1
                delay = worker_delay(error, failures)
                if delay is None:
                    raise
                await asyncio.sleep(delay)

    async def _handle(self, notice: Notice) -> bool:
        """Handle a notice; ``False`` if it is to stay in the inbox."""
        if notice.kind == "offers_wanted" and notice.job is not None:
            await self._offer(notice.job)
        elif notice.kind == "message":
            return self._on_message is not None and await self._on_message.handle(notice)
        return True

    async def _offer(self, job_id: str) -> None:
        """Make an offer for a job that the agent can do."""
        hub = self._hubs.worker_hub("cannot make an offer")
        try:
            job = await hub.job(job_id)
            skill = self._skills.get(job.skill)
            if skill is None:
                return
            skill.load(job.input)
            price = skill.price_for(len(_json.write_bytes(job.input)))
            await hub.make_offer(job_id, price)
        except (RialtoError, ValueError, ArithmeticError, RecursionError) as error:
            log.info("no offer for job %s: %s", job_id, error)
            return
        self._reporter.emit(AgentEvent("offer_sent", job=job_id, amount=f"{price:f}"))

    # The end.

    async def _shut_down(self, *, is_known: bool) -> None:
        """Finish what can be finished soon, return the rest, and go off the lists."""
        until = time.monotonic() + _SHUTDOWN_TIME
        self._capacity.close()
        hub = self._hubs.single_hub()
        if is_known:
            # First of all: a returned job must not come to this agent again.
            await _soon(hub.set_status("offline"))
            await self._wait_for_tasks(_FINISH_TIME)
        for assigned in self._assigned.values():
            if assigned.run is not None:
                assigned.run.cancel("stopping")
        await self._wait_for_tasks(_CLEANUP_TIME)
        unfinished = []
        for assignment, assigned in self._assigned.items():
            # What has ended without an outcome waited for its turn, or was cancelled just now.
            if assigned.task is not None and not assigned.task.done():
                assigned.task.cancel()
                unfinished.append(assignment)
            elif not assigned.is_finished:
                unfinished.append(assignment)
        if is_known:
            with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                left = max(0.1, until - time.monotonic())
                await asyncio.wait_for(self._return_all(hub, unfinished), left)

    async def _wait_for_tasks(self, seconds: float) -> None:
        tasks = {one.task for one in self._assigned.values() if one.task is not None}
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def _return_all(self, hub: AsyncHub, unfinished: list[AssignmentRef]) -> None:
        """Return the assignments that are left, and what the hub has given meanwhile; then leave."""
        for assignment in unfinished:
            await _soon(self._return(hub, assignment))
        while True:
            try:
                work = await hub.work(instance=self._instance)
            except RialtoError:
                return
            if not work.jobs:
                # Leaving would fail the jobs that are left, so then being offline is enough.
                await _soon(hub.unregister())
                return
            for item in work.jobs:
                await _soon(self._return(hub, AssignmentRef(item.id, item.epoch)))

    async def _return(self, hub: AsyncHub, assignment: AssignmentRef) -> None:
        """Report the outcome of an assignment, or decline it."""
        entry = self._journal.find(assignment)
        outcome = entry.outcome if entry is not None else None
        declined = Outcome("declined", "the agent is shutting down")
        took_ms = entry.took_ms if entry is not None else 0
        await report(hub, assignment, outcome or declined, took_ms)
        self._journal.close_entry(assignment)


async def _tell(assigned: _Assigned, sent: WorkAnswer | WorkMessage) -> None:
    """Hand what the requester sent to the handler, or keep it until there is one."""
    if assigned.run is None:
        assigned.early.append(sent)
    elif isinstance(sent, WorkAnswer):
        assigned.run.answered(sent)
    else:
        await assigned.run.message(sent)


async def report(
    hub: AsyncHub, assignment: AssignmentRef, outcome: Outcome, took_ms: int
) -> ResultReceipt | None:
    """Report an outcome; ``None`` for a declined job."""
    job, epoch = assignment
    if outcome.kind == "declined":
        await hub.decline(job, reason=outcome.text, epoch=epoch)
        return None
    if outcome.kind == "done":
        output = _json.read(outcome.text)
        return await hub.submit_result(job, output=output, took_ms=took_ms, epoch=epoch)
    cause: FailureCause = "execution" if outcome.kind == "failed" else outcome.kind
    return await hub.submit_result(
        job, message=outcome.text, cause=cause, took_ms=took_ms, epoch=epoch
    )


async def _soon(call: Coroutine[Any, Any, Any]) -> None:
    """Make a call that may fail and may not hang."""
    with contextlib.suppress(RialtoError, asyncio.TimeoutError, TimeoutError):
        await asyncio.wait_for(call, _CALL_TIME)


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    """Log the error of a task that nothing waits for."""
    try:
        await work
    except RialtoError as error:
        log.info("%s", error)
    except Exception:
        log.exception("a task of the agent failed")
