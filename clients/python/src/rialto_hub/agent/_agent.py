"""The agent: its skills, its state, and the hub it works for."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import inspect
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from .._context import find_caller, variable
from .._errors import AgentError, HubError, UsageError
from .._keys import check_key
from .._money import Amount
from ._events import AgentEvent, Reporter
from ._messages import Message, MessageHandler
from ._register import Registrar, agent_error
from ._skill import TIME_LIMIT, Skill, make_skill
from ._state import StateDir
from ._worker import Worker, WorkerHubs

H = TypeVar("H", bound=Callable[..., Any])

#: How many handlers run at a time.
CONCURRENCY = 4
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Agent:
    """An agent: skills with handlers, working for a hub.

    ::

        agent = Agent("shout")

        @agent.skill(price="0.05")
        def shout(text: str) -> dict:
            return {"text": text.upper()}

        agent.run()

    It registers by itself and keeps its id and key in its directory, so a restarted agent is the same
    agent. Each job is on disk before its handler runs, and its outcome before it is reported, so the
    program can be killed at any time. ``accepts`` are the media types that it takes as input, such as
    ``text/*``; without any these are JSON and plain text.
    """

    def __init__(
        self,
        name: str,
        *,
        owner: str | None = None,
        hub: str | None = None,
        key: str | None = None,
        key_file: str | Path | None = None,
        context: str | None = None,
        folder: str | Path = ".",
        concurrency: int = CONCURRENCY,
        accepts: Sequence[str] = (),
        on_event: Callable[[AgentEvent], None] | None = None,
        exact_numbers: bool = False,
    ) -> None:
        if concurrency < 1:
            raise UsageError("concurrency must be above zero", field="concurrency")
        self.name = _checked_name(name)
        self._owner = owner
        self._hub, self._context = hub, context
        self._key, self._key_file = key, None if key_file is None else Path(key_file)
        self._folder = Path(folder)
        self._concurrency = concurrency
        self._accepts = tuple(accepts)
        self._on_event = on_event
        self._exact = exact_numbers
        self._skills: dict[str, Skill] = {}
        self._on_message: MessageHandler | None = None

    def skill(
        self,
        name: str | None = None,
        *,
        price: Amount,
        about: str | None = None,
        timeout: float = TIME_LIMIT,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        per_kib: Amount = 0,
        repeatable: bool = False,
    ) -> Callable[[H], H]:
        """Make a function the handler of a skill, which has its name unless one is given.

        The function gets the members of the input. The first line of its documentation describes the
        skill, and its type hints are the schemas, unless they are given. ``timeout`` is in seconds.
        ``repeatable`` lets a handler run again that was interrupted by the end of the program.
        """
        frame = inspect.currentframe()
        caller = frame.f_back if frame is not None else None
        names = dict(caller.f_locals) if caller is not None else {}

        def add(handler: H) -> H:
            skill = make_skill(
                handler,
                name=name,
                price=price,
                about=about,
                timeout=timeout,
                input_schema=input_schema,
                output_schema=output_schema,
                per_kib=per_kib,
                repeatable=repeatable,
                names=names,
                exact=self._exact,
            )
            if skill.name in self._skills:
                raise AgentError(f"skill {skill.name} is defined twice", code="bad_skill")
            self._skills[skill.name] = skill
            return handler

        return add

    def on_message(self, function: Callable[[Message], Any]) -> Callable[[Message], Any]:
        """Make a function the handler of messages to the agent."""
        self._on_message = MessageHandler(function)
        return function

    def copy(self, name: str, *, folder: str | Path | None = None) -> Agent:
        """Return another agent with the same skills, for example to test one beside the one that runs.

        It has a key of its own.
        """
        other = copy.copy(self)
        other.name, other._key, other._key_file = _checked_name(name), None, None
        other._folder = self._folder if folder is None else Path(folder)
        other._skills = dict(self._skills)
        return other

    def run(self) -> None:
        """Work until SIGTERM or SIGINT; then finish or return all jobs, within five seconds."""
        asyncio.run(self._run_with_signals())

    async def run_async(self, stop: asyncio.Event | None = None) -> None:
        """Work until ``stop`` is set, or for ever. Cancelling it stops the agent, too."""
        await self._work(stop if stop is not None else asyncio.Event(), self._on_event)

    def start(self) -> RunningAgent:
        """Work in the background, and return when the hub lists the agent."""
        return RunningAgent(self)

    async def _run_with_signals(self) -> None:
        stop = asyncio.Event()
        # Only the main thread gets signals.
        is_main = threading.current_thread() is threading.main_thread()
        with _stop_on_signals(stop) if is_main else contextlib.nullcontext():
            await self._work(stop, self._on_event)

    async def _work(
        self, stop: asyncio.Event, on_event: Callable[[AgentEvent], None] | None
    ) -> None:
        if not self._skills:
            raise AgentError("the agent has no skill", code="bad_skill")
        url, key = self._find_hub()
        reporter = Reporter(on_event)
        state = StateDir(self._folder, url, self.name, key=key, key_file=self._key_file)
        try:
            journal = state.open_journal()
            hub = Registrar.hub_for(url)
            registrar = Registrar(
                hub,
                state,
                self.name,
                self._owner,
                [skill.registration() for skill in self._skills.values()],
                self._accepts,
                state.instance(),
                reporter,
            )
            try:
                while await self._work_once(registrar, journal, reporter, stop):
                    reporter.emit(AgentEvent("reregistering"))
            finally:
                await hub.close()
                journal.close()
        finally:
            state.close()

    async def _work_once(
        self, registrar: Registrar, journal: Any, reporter: Reporter, stop: asyncio.Event
    ) -> bool:
        """Register and work; whether that is to be done again."""
        registering = asyncio.ensure_future(registrar.register())
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({registering, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not registering.done():
                return False
            agent = registering.result()
        finally:
            registering.cancel()
            stopping.cancel()
        url = registrar.hub.url
        hubs = WorkerHubs(url, agent.key, reporter, exact=self._exact)
        started = AgentEvent(
            "started", agent=self.name, agent_id=agent.agent_id, owner=agent.owner, hub=url
        )
        worker = Worker(
            hubs,
            self._skills,
            journal,
            reporter,
            instance=registrar.instance,
            concurrency=self._concurrency,
            exact=self._exact,
            started=started,
            on_message=self._on_message,
        )
        try:
            await worker.work(stop)
        except HubError as error:
            # A hub that was set up again does not know the key. The next registration finds out
            # whether it knows the agent; if it does, the key is not valid.
            if error.status == 401:
                return True
            raise agent_error(error) from None
        finally:
            await hubs.close()
        return False

    def _find_hub(self) -> tuple[str, str | None]:
        """Return the hub, and the key from outside the agent's directory if there is one."""
        key = self._key
        if key is None and self._key_file is None:
            key = variable("RIALTO_KEY")
        if key is not None:
            key = check_key(key, "the agent's key")
        # The agent's key is its own, never that of the context.
        existing = self._key_file if self._key_file and self._key_file.exists() else None
        caller = find_caller(self._hub, key, existing, self._context)
        return caller.url, key


def _checked_name(name: str) -> str:
    if not name.strip():
        raise UsageError("the name of an agent must not be empty", field="name")
    return name


class RunningAgent:
    """An agent that works in a thread of this program, for example in a test."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started: AgentEvent | None = None
        self._error: BaseException | None = None
        self._is_settled = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rialto-agent", daemon=True)
        self._thread.start()
        self._is_settled.wait()
        if self._error is not None:
            raise self._error

    @property
    def agent_id(self) -> str:
        """The agent's id."""
        return self._member("agent_id")

    @property
    def owner(self) -> str:
        """The owner that is paid."""
        return self._member("owner")

    @property
    def hub_url(self) -> str:
        """The hub's address."""
        return self._member("hub")

    def stop(self) -> None:
        """Finish or return all jobs, and go off the lists. Raises what stopped the agent before."""
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> RunningAgent:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _member(self, name: str) -> str:
        value = getattr(self._started, name, None)
        return value if isinstance(value, str) else ""

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as error:
            self._error = error
        finally:
            self._is_settled.set()

    async def _work(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await self._agent._work(self._stop, self._on_event)

    def _on_event(self, event: AgentEvent) -> None:
        if event.kind == "started":
            self._started = event
            self._is_settled.set()
        if self._agent._on_event is not None:
            self._agent._on_event(event)


@contextlib.contextmanager
def _stop_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """Set ``stop`` on the first signal. A second one ends the program as usual."""
    loop = asyncio.get_running_loop()
    before: dict[signal.Signals, Any] = {}

    def restore() -> None:
        while before:
            number, handler = before.popitem()
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, handler)

    def on_signal() -> None:
        restore()
        stop.set()

    for number in _SIGNALS:
        before[number] = signal.getsignal(number)
        try:
            loop.add_signal_handler(number, on_signal)
        except NotImplementedError:  # pragma: no cover
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(on_signal))
    try:
        yield
    finally:
        restore()
