"""Agents at a real hub: what handlers can do, and how their jobs end."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rialto_hub import (
    Agent,
    AgentEvent,
    AsyncJob,
    Decline,
    Fail,
    Hub,
    HubError,
    InvalidInput,
    Job,
    JobCancelled,
    JobView,
    Message,
    Part,
    Progress,
    Question,
    Refuse,
    Result,
)

from .kit import HubProcess, eventually


class Bench:
    """An agent with skills of its own, and a requester."""

    def __init__(self, hub_process: HubProcess, boss: Hub, **options: Any):
        self.name = f"bench-{uuid.uuid4().hex[:8]}"
        self.events: list[AgentEvent] = []
        self.agent = Agent(self.name, hub=hub_process.url, on_event=self.events.append, **options)
        self.boss = boss

    def skill(self, name: str, **options: Any) -> Callable[[Any], Any]:
        return self.agent.skill(f"{name}-{self.name}", **{"price": "0.05", **options})

    def hire(self, name: str, input: Any = None, **options: Any) -> JobView:
        options = {"budget": "0.05", **options}
        return self.boss.hire(f"{name}-{self.name}", input, **options)

    def open(self, name: str, input: Any = None, **options: Any) -> JobView:
        options = {"budget": "0.05", **options}
        return self.boss.open_job(f"{name}-{self.name}", input, **options)

    def event(self, kind: str) -> AgentEvent | None:
        return next((event for event in self.events if event.kind == kind), None)


@pytest.fixture
def bench(hub_process: HubProcess, boss: Hub) -> Bench:
    return Bench(hub_process, boss)


def test_every_kind_of_function_is_a_handler(bench: Bench) -> None:
    @bench.skill("plain")
    def plain(n: int) -> int:
        return n + 1

    @bench.skill("coroutine")
    async def coroutine(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    @bench.skill("generator")
    def generator(n: int) -> Generator[Any, Any, int]:
        yield Progress(0.5, "half")
        yield Part({"n": n})
        yield {"m": n}
        return n + 1

    @bench.skill("asyncgenerator")
    async def async_generator(n: int) -> AsyncIterator[Any]:
        yield Part({"n": n})
        yield Part({"n": n + 1}, append=True)
        yield Result(n + 1)

    @bench.skill("wrapped")
    def wrapped(n: int) -> Any:
        return coroutine(n)

    with bench.agent.start():
        for name in ("plain", "coroutine", "generator", "asyncgenerator", "wrapped"):
            job = bench.hire(name, {"n": 1})
            assert job.output == {"result": 2}, name
            if "generator" in name:
                assert job.parts[0].artifact == {"n": 1}
                assert len(job.parts) == 2


def test_a_handler_ends_its_job_as_it_says(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    @bench.skill("end")
    def end(how: str) -> Any:
        kinds: dict[str, BaseException] = {
            "fail": Fail("it rains"),
            "invalid": InvalidInput("no number"),
            "refuse": Refuse("not for you"),
            "decline": Decline("not today"),
            "error": ValueError("the password is 1234"),
            "exit": SystemExit(3),
            "stop": StopIteration(),
            "empty": Fail(),
            "half": Fail("half a \ud800 character"),
        }
        raise kinds[how]

    @bench.skill("aend")
    async def aend(how: str) -> Any:
        end(how)

    @bench.skill("gend")
    def gend(how: str) -> Any:
        yield end(how)

    @bench.skill("yields")
    def yields() -> Any:
        yield 5

    with bench.agent.start():
        for name in ("end", "aend", "gend"):
            for how, cause, reason in (
                ("fail", "execution", "it rains"),
                ("invalid", "policy", "no number"),
                ("refuse", "policy", "not for you"),
                ("error", "execution", "the handler failed: ValueError"),
                ("exit", "execution", "the handler failed: RuntimeError"),
                ("stop", "execution", "the handler failed: RuntimeError"),
                ("empty", "execution", "the handler raised Fail"),
                ("half", "execution", "half a ? character"),
            ):
                job = bench.hire(name, {"how": how})
                assert (job.state, job.cause, job.failure_reason) == ("failed", cause, reason), how
            job = bench.hire(name, {"how": "decline"})
            assert (job.state, job.cause) == ("failed", "nobody_left")
        assert bench.hire("yields").failure_reason == (
            "the handler yielded int, which is no part, progress or question"
        )
        # The reputation counts failures only.
        me = next(bench.boss.agents(f"end-{bench.name}"))
        failures = bench.boss.reputation(me.id).scores["registry"]["failures"]
        assert failures == 3 * 6 + 1
    assert "the password is 1234" in caplog.text, "the log of the agent has the whole error"
    assert bench.boss.account().available == 100


def test_a_handler_that_takes_too_long_is_stopped_and_told(bench: Bench) -> None:
    told: list[Any] = []

    @bench.skill("plain", timeout=0.3)
    def plain(job: Job) -> None:
        while not job.cancelled:
            time.sleep(0.01)
        with pytest.raises(JobCancelled):
            job.progress(0.5)
        told.append(job.cancel_reason)

    @bench.skill("coroutine", timeout=0.3)
    async def coroutine(job: AsyncJob) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            told.append(job.cancel_reason)

    @bench.skill("generator", timeout=0.3)
    def generator() -> Iterator[Any]:
        try:
            while True:
                time.sleep(0.01)
                yield Progress(0.5)
        except GeneratorExit:
            told.append("closed")
            raise

    @bench.skill("asyncgenerator", timeout=0.3)
    async def async_generator() -> AsyncIterator[Any]:
        try:
            while True:
                await asyncio.sleep(0.01)
                yield Progress(0.5)
        finally:
            told.append("finally")

    with bench.agent.start():
        for name, word in (
            ("plain", "time_limit"),
            ("coroutine", "time_limit"),
            ("generator", "closed"),
            ("asyncgenerator", "finally"),
        ):
            job = bench.hire(name)
            assert job.failure_reason == "the job exceeded its time limit of 0.3 s", name
            assert told.pop() == word


def test_the_deadline_of_a_job_counts_like_the_time_limit(bench: Bench) -> None:
    left: list[float] = []

    @bench.skill("slow")
    async def slow(job: AsyncJob) -> None:
        left.append(job.time_left())
        await asyncio.sleep(60)

    with bench.agent.start():
        job = bench.hire("slow", deadline=1.5)
        assert job.state in ("failed", "expired")
        assert 0 < left[0] <= 1.5
        ends = ("job_ended", "job_cancelled", "result_refused")
        eventually(lambda: any(bench.event(kind) for kind in ends))


def test_a_requester_that_cancels_stops_the_handler(bench: Bench) -> None:
    told: list[str] = []

    @bench.skill("plain")
    def plain(job: Job) -> None:
        try:
            job.ask("go on?")
        except JobCancelled as error:
            told.append(f"{error} {job.cancelled} {job.cancel_reason}")
            raise

    @bench.skill("coroutine")
    async def coroutine(job: AsyncJob) -> None:
        try:
            await job.ask("go on?")
        except asyncio.CancelledError:
            told.append(f"CancelledError {job.cancelled}")
            raise

    @bench.skill("generator")
    def generator() -> Iterator[Any]:
        try:
            yield Question("go on?")
        finally:
            told.append("closed")

    with bench.agent.start():
        for name, word in (
            ("plain", "cancelled True cancelled"),
            ("coroutine", "CancelledError True"),
            ("generator", "closed"),
        ):
            job = bench.hire(name)
            assert job.state == "asking"
            bench.boss.cancel(job)
            assert eventually(lambda: told and told.pop()) == word
        assert bench.event("job_cancelled")
        assert bench.event("job_ended") is None


def test_a_job_that_was_given_to_others_stops_the_handler(
    hub_process: HubProcess, bench: Bench
) -> None:
    told = threading.Event()

    @bench.skill("slow")
    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            told.set()
            raise

    with bench.agent.start():
        job = bench.open("slow")
        eventually(lambda: bench.boss.job(job).state == "running" or bench.event("job_started"))
        with hub_process.operator() as operator:
            eventually(lambda: bench.event("job_started"))
            operator.call("POST", f"/v1/operator/jobs/{job.id}/requeue")
        assert told.wait(30)


def test_signs_of_life_keep_the_lease_of_a_long_job(tmp_path: Path) -> None:
    process = HubProcess(tmp_path / "data", settings={"jobs.lease": "2s"})
    try:
        with process.requester() as boss:
            bench = Bench(process, boss)

            @bench.skill("long")
            async def long() -> str:
                await asyncio.sleep(6)
                return "done"

            with bench.agent.start():
                job = bench.hire("long")
                assert (job.output, job.epoch) == ({"result": "done"}, 1)
    finally:
        process.kill()


def test_no_more_handlers_run_than_are_wanted(hub_process: HubProcess, boss: Hub) -> None:
    bench = Bench(hub_process, boss, concurrency=2)
    running, most = [0], [0]
    lock = threading.Lock()

    @bench.skill("count")
    def count() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.2)
        with lock:
            running[0] -= 1

    with bench.agent.start():
        jobs = [bench.open("count") for _ in range(8)]
        assert all(boss.wait(job).state == "completed" for job in jobs)
    assert most[0] == 2


def test_an_agent_that_stays_full_is_busy_until_it_has_room(
    hub_process: HubProcess, boss: Hub
) -> None:
    bench = Bench(hub_process, boss, concurrency=1)
    go = threading.Event()

    @bench.skill("wait")
    def wait() -> None:
        go.wait(30)

    def status() -> Any:
        (agent,) = boss.agents(f"wait-{bench.name}")
        path = f"/openclaw/agents/{agent.names['openclaw']}/status"
        return boss.call("GET", path)["status_update"]["current_status"]

    with bench.agent.start():
        assert status() == "idle"
        job = bench.open("wait")
        eventually(lambda: status() == "busy")
        go.set()
        assert boss.wait(job).state == "completed"
        eventually(lambda: status() == "idle")


def test_questions_progress_and_parts_reach_the_requester(bench: Bench) -> None:
    @bench.skill("plain")
    def plain(job: Job) -> dict[str, Any]:
        job.progress(0.25, "thinking")
        job.part({"text": "a"})
        job.part({"text": "b"}, append=True)
        first = job.ask("which?", {"type": "object", "required": ["n"]})
        second = job.ask("and?")
        return {"first": first.input, "second": second.text, "shown": str(second)}

    @bench.skill("coroutine")
    async def coroutine(job: AsyncJob) -> dict[str, Any]:
        await job.progress(0.25, "thinking")
        await job.part({"text": "a"})
        await job.part({"text": "b"}, append=True)
        first = await job.ask("which?", {"type": "object", "required": ["n"]})
        second = await job.ask("and?")
        return {"first": first.input, "second": second.text, "shown": str(second)}

    with bench.agent.start():
        for name in ("plain", "coroutine"):
            job = bench.hire(name)
            assert job.progress is not None and job.question is not None
            assert (job.progress.fraction, job.progress.text) == (0.25, "thinking")
            assert [(part.artifact["text"], part.append) for part in job.parts] == [
                ("a", False),
                ("b", True),
            ]
            assert job.question.schema == {"type": "object", "required": ["n"]}
            bench.boss.answer(job, {"n": 1.5})
            job = bench.boss.wait(job)
            bench.boss.answer(job, "yes")
            output = bench.boss.wait(job).output
            assert output == {"first": {"n": 1.5}, "second": "yes", "shown": "yes"}


def test_the_time_limit_rests_while_a_question_is_open(bench: Bench) -> None:
    @bench.skill("ask", timeout=1)
    def ask(job: Job) -> str:
        return str(job.ask("which?"))

    with bench.agent.start():
        job = bench.hire("ask")
        time.sleep(1.5)
        bench.boss.answer(job, "this")
        assert bench.boss.wait(job).output == {"result": "this"}


def test_many_progress_reports_become_few(bench: Bench) -> None:
    @bench.skill("chatty")
    def chatty(job: Job) -> None:
        for step in range(2_000):
            job.progress(step / 2_000, f"step {step}")

    with bench.agent.start():
        job = bench.hire("chatty")
        assert job.progress is not None
        assert 1 <= job.progress.reports < 100


def test_a_guest_that_is_asked_ends_the_job_and_the_handler(
    hub_process: HubProcess, bench: Bench
) -> None:
    told = threading.Event()

    @bench.skill("ask", price=0)
    def ask(job: Job) -> None:
        try:
            job.ask("who are you?")
        except JobCancelled:
            told.set()
            raise

    with bench.agent.start(), Hub(hub_process.url, key="") as guest:
        body = {
            "orchestrator_id": "guest", "skill_name": f"ask-{bench.name}", "input_data": {},
            "budget": 0,
        }  # fmt: skip
        guest.call("POST", "/jobs", body)
        assert told.wait(30)
        event = bench.event("job_started")
        assert event is not None
        with hub_process.operator() as operator:
            job = operator.call("GET", f"/v1/jobs/{event.job}")
        assert (job["state"], job["cause"]) == ("failed", "no_answer")


def test_a_requester_that_follows_its_job_signs_in_and_sends_messages(
    hub_process: HubProcess, bench: Bench
) -> None:
    signed_in = threading.Event()

    @bench.skill("talk", price=0)
    def talk(job: Job) -> dict[str, Any]:
        job.ask_to_sign_in("sign in at https://example.org")
        assert job.next_message(timeout=0.05) is None
        assert signed_in.wait(30)
        job.go_on()
        first = job.next_message()
        assert first is not None
        return {"message": first.text, "all": [one.text for one in job.messages]}

    with bench.agent.start() as running, Hub(hub_process.url, key="") as anyone:
        client = anyone.call("POST", "/a2a/agents", {"name": f"{bench.name}-client"})
        with Hub(hub_process.url, key=client["api_key"]) as requester:
            name = requester.agent(running.agent_id).names["a2a"]

            def rpc(method: str, params: Any) -> Any:
                body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                answer = requester.call("POST", f"/a2a/agents/{name}", body)
                assert "error" not in answer, answer
                return answer["result"]

            def send(text: str, **more: Any) -> Any:
                message = {
                    "messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": text}],
                    **more,
                }  # fmt: skip
                hire = {"urn:rialto:a2a:hire:v1": {"skill": f"talk-{bench.name}"}}
                return rpc(
                    "SendMessage",
                    {"message": message, "metadata": hire,
                     "configuration": {"returnImmediately": True}},
                )  # fmt: skip

            task = send("begin")["task"]

            def state() -> str:
                found = rpc("GetTask", {"id": task["id"]})
                return str(found["status"]["state"])

            eventually(lambda: state() == "TASK_STATE_AUTH_REQUIRED")
            signed_in.set()
            eventually(lambda: state() == "TASK_STATE_WORKING")
            send("hello", taskId=task["id"], contextId=task["contextId"])
            eventually(lambda: state() == "TASK_STATE_COMPLETED")
            output = str(rpc("GetTask", {"id": task["id"]}))
            assert "hello" in output


def test_a_handler_hires_others_as_its_agent(bench: Bench) -> None:
    @bench.skill("count")
    def count(job: Job, text: str) -> Any:
        own = job.uuid("words")
        jobs = [
            job.hub.hire("count_words", {"text": text}, budget="0.05", id=own) for _ in range(2)
        ]
        assert jobs[0].id == jobs[1].id
        return jobs[0].output

    @bench.skill("acount")
    async def acount(job: AsyncJob, text: str) -> Any:
        hired = await job.hub.hire("count_words", {"text": text}, budget="0.05")
        return hired.output

    with bench.agent.start():
        for name in ("count", "acount"):
            assert bench.hire(name, {"text": "a b c"}).output == {"words": 3}


def test_messages_to_the_agent_are_handled_in_order_or_stay(
    hub_process: HubProcess, bench: Bench
) -> None:
    heard: list[Any] = []

    @bench.skill("none")
    def none() -> None: ...

    @bench.agent.on_message
    def handle(message: Message) -> None:
        if message.body == "bad":
            raise ValueError("not this one")
        heard.append((message.body, message.sender, message.position))

    with bench.agent.start() as running:
        me, agent = bench.boss.me().agent.id, bench.boss.agent(running.agent_id).id
        for body in ("one", {"two": 2}):
            bench.boss.send_message(agent, body)
        eventually(lambda: len(heard) == 2)
        assert heard == [("one", me, 1), ({"two": 2}, me, 2)]
        bench.boss.send_message(agent, "bad")
        bench.boss.send_message(agent, "three")
        eventually(lambda: len(heard) == 3)
        # What a handler failed on is not acknowledged, so it comes again with the next start.
        keys = next(Path(".rialto").rglob("agent.key"))
        with Hub(key_file=keys) as own:
            assert [notice.body for notice in own.inbox()] == ["bad", "three"]
            assert own.me().inbox.acked == 2


def test_what_an_agent_tells_has_no_key_and_no_content(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "rialto_hub")

    @bench.skill("echo")
    def echo(text: str) -> str:
        if text == "bad-secret":
            raise Fail("bad-secret")
        return text

    with bench.agent.start():
        bench.hire("echo", {"text": "own-secret"})
        bench.hire("echo", {"text": "bad-secret"})
    key = next(Path(".rialto").rglob("agent.key")).read_text().split()[0]
    shown = caplog.text + "".join(str(event) for event in bench.events)
    assert "own-secret" not in shown and "bad-secret" not in shown and key not in shown
    kinds = [event.kind for event in bench.events]
    assert kinds == ["started", "job_started", "job_ended", "job_started", "job_ended"]
    ended = bench.events[2]
    assert (ended.amount, ended.repeated) == ("0.05", False)
    assert ended.outcome is not None and ended.outcome.is_done


def test_a_callback_that_fails_does_not_stop_the_agent(
    hub_process: HubProcess, boss: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    kinds: list[str] = []

    def fail(event: AgentEvent) -> None:
        kinds.append(event.kind)
        raise ValueError(event.kind)

    name = f"calls-{uuid.uuid4().hex[:8]}"
    agent = Agent(name, hub=hub_process.url, on_event=fail)

    @agent.skill(f"one-{name}", price=0)
    def one() -> int:
        return 1

    async def run() -> None:
        stop = asyncio.Event()
        working = asyncio.create_task(agent.run_async(stop))
        await asyncio.to_thread(eventually, lambda: "started" in kinds)
        job = await asyncio.to_thread(boss.hire, f"one-{name}", budget=0)
        assert job.output == {"result": 1}
        stop.set()
        await working

    asyncio.run(run())
    assert "on_event failed" in caplog.text


def test_an_output_that_the_hub_does_not_take_is_a_failure(bench: Bench) -> None:
    @bench.skill("many")
    def many() -> dict[str, Any]:
        # More members than a body may have.
        return {str(n): n for n in range(20_000)}

    with bench.agent.start():
        job = bench.hire("many")
        assert job.state == "failed"
        assert (job.failure_reason or "").startswith("the hub did not accept the output")
        assert bench.hire("many").state == "failed"


def test_numbers_of_any_size_do_no_harm(bench: Bench) -> None:
    @bench.skill("echo")
    def echo(n: int, x: Any = None) -> dict[str, Any]:
        return {"n": n, "x": x}

    with bench.agent.start():
        for number in ("1e400", "-1E+1000000000", "1e99999999999999999999", "9" * 10_000):
            for member in ("n", "x"):
                given = {"n": 1, member: Decimal(number) if len(number) < 20 else 5}
                try:
                    job = bench.hire("echo", given)
                except HubError as error:
                    assert error.status in (400, 422)
                else:
                    assert job.has_ended
        assert bench.hire("echo", {"n": 10**30}).output == {"n": 10**30, "x": None}


def test_prices_schemas_and_media_types_are_registered(hub_process: HubProcess, boss: Hub) -> None:
    bench = Bench(hub_process, boss, accepts=["text/*", "image/png"])

    @bench.skill("typed", price="1.25", about="Adds.")
    def typed(terms: list[int], scale: float = 1.0) -> dict[str, float]:
        return {"sum": sum(terms) * scale}

    with bench.agent.start():
        agent = next(bench.boss.agents(f"typed-{bench.name}"))
        (skill,) = agent.skills
        assert (skill.price, skill.description) == (Decimal("1.25"), "Adds.")
        entry = bench.boss.call("GET", f"/registry/agents/{agent.names['registry']}")
        (registered,) = entry["skills"]
        assert registered["input_schema"] == {"terms": "array"}
        card = bench.boss.call("GET", f"/a2a/agents/{agent.names['a2a']}")
        assert card["defaultInputModes"] == ["text/*", "image/png"]
