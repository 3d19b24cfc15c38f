"""A requester at a real hub."""

from __future__ import annotations

import asyncio
import inspect
import threading
import uuid
from decimal import Decimal
from typing import Any

import pytest

from rialto_hub import (
    Agent,
    AsyncHub,
    Decline,
    Fail,
    Hub,
    HubError,
    Job,
    JobError,
    Progress,
    UsageError,
)

from .kit import HubProcess, eventually


def add_worker(hub_process: HubProcess, name: str) -> Agent:
    agent = Agent(name, hub=hub_process.url)

    @agent.skill(f"shout-{name}", price="0.05", per_kib="0.01")
    def shout(text: str) -> dict[str, str]:
        if not text:
            raise Fail("there is nothing to shout")
        return {"text": text.upper()}

    @agent.skill(f"ask-{name}", price="0.05")
    def ask(job: Job, thing: str) -> dict[str, Any]:
        colour = job.ask(f"which {thing}?")
        size = job.ask("which size?", {"type": "object", "required": ["size"]})
        return {"colour": colour.text, "size": size.input["size"]}

    @agent.skill(f"steps-{name}", price="0.05")
    def steps(count: int) -> Any:
        for step in range(count):
            yield Progress(step / count, f"step {step}")
            yield {"step": step}
        return {"count": count}

    @agent.skill(f"decline-{name}", price="0.05")
    def decline() -> None:
        raise Decline("not today")

    return agent


def unique(name: str = "w") -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def test_a_job_is_hired_done_and_paid(hub_process: HubProcess, boss: Hub) -> None:
    name = unique()
    with add_worker(hub_process, name).start() as worker:
        job = boss.hire(f"shout-{name}", {"text": "hello"}, budget="0.10")
        assert (job.state, job.output) == ("completed", {"text": "HELLO"})
        assert (job.paid, job.budget, job.held) == (Decimal("0.05"), Decimal("0.10"), 0)
        assert boss.account().available == Decimal("99.95")
        kinds = [(entry.kind, entry.amount) for entry in boss.ledger(limit=3)]
        assert kinds == [
            ("release", Decimal("0.05")),
            ("capture", Decimal("0.05")),
            ("hold", Decimal("0.10")),
        ]
        failed = boss.hire(f"shout-{name}", {"text": ""}, budget="0.10")
        assert failed.failure_reason == "there is nothing to shout"
        with pytest.raises(JobError, match="the job is failed") as caught:
            failed.output  # noqa: B018
        assert (caught.value.code, caught.value.job) == ("job_failed", failed)
        unfit = boss.hire(f"shout-{name}", {}, budget="0.10", to=worker.agent_id)
        assert (unfit.cause, unfit.failure_reason) == (
            "policy",
            "the input does not match the skill's input schema: text is required",
        )
        declined = boss.hire(f"decline-{name}", budget="0.10", to=worker.agent_id)
        assert declined.state == "failed"
        scores = boss.reputation(boss.agent(worker.agent_id).id).scores
        # One success and one failure count; an invalid input and a declined job do not.
        registry = scores["registry"]
        assert (registry["successes"], registry["failures"]) == (1, 1)
    assert boss.account().available == Decimal("99.95")


def test_the_same_id_is_the_same_job(hub_process: HubProcess, boss: Hub) -> None:
    name, job_id = unique(), uuid.uuid4()
    with add_worker(hub_process, name).start():
        jobs = [
            boss.hire(f"shout-{name}", {"text": "once"}, budget="0.10", id=job_id) for _ in range(3)
        ]
        assert len({job.id for job in jobs}) == 1
        assert boss.account().available == Decimal("99.95")
        with pytest.raises(HubError) as caught:
            boss.open_job(f"shout-{name}", {"text": "twice"}, budget="0.10", id=job_id)
        assert (caught.value.status, caught.value.code) == (422, "other_content")
        assert boss.job(str(job_id)).id == jobs[0].id


def test_questions_are_answered_while_a_job_is_awaited(hub_process: HubProcess, boss: Hub) -> None:
    name = unique()
    with add_worker(hub_process, name).start():
        asked = []

        def answer(question: Any) -> Any:
            asked.append((question.number, question.text))
            return "red" if question.number == 1 else {"size": 5}

        job = boss.hire(f"ask-{name}", {"thing": "colour"}, budget="0.10", on_question=answer)
        assert job.output == {"colour": "red", "size": 5}
        assert asked == [(1, "which colour?"), (2, "which size?")]
        job = boss.hire(f"ask-{name}", {"thing": "one"}, budget="0.10")
        assert (job.state, job.question and job.question.text) == ("asking", "which one?")
        with pytest.raises(JobError) as early:
            job.output  # noqa: B018
        assert early.value.code == "job_not_ended"
        boss.answer(job, "blue")
        job = boss.wait(job)
        assert job.question is not None
        with pytest.raises(HubError) as caught:
            boss.answer(job, {"none": 1})
        assert caught.value.code == "refused"
        # The answer to the first question again is a repeat, and not one to the second.
        assert boss.answer(job, "blue", question=1).state == "asking"
        boss.answer(job, {"size": 7}, question=2)
        assert boss.wait(job).output == {"colour": "blue", "size": 7}
        with pytest.raises(UsageError):
            boss.answer(job, 5)  # type: ignore[arg-type]


def test_a_watched_job_tells_everything_once_and_in_order(
    hub_process: HubProcess, boss: Hub
) -> None:
    name = unique()
    with add_worker(hub_process, name).start():
        job = boss.open_job(f"steps-{name}", {"count": 3}, budget="0.10")
        events = list(boss.watch(job))
        parts = [event.artifact for event in events if event.kind == "part"]
        assert parts == [{"step": 0}, {"step": 1}, {"step": 2}]
        numbers = [event.number for event in events if event.number is not None]
        assert numbers == sorted(set(numbers))
        assert [event.kind for event in events].count("assigned") == 1
        last = events[-1]
        assert (last.kind, last.job and last.job.output) == ("ended", {"count": 3})
        # Watched after its end, it tells what is left of it.
        again = list(boss.watch(job.id))
        assert [event.artifact for event in again if event.kind == "part"] == parts
        assert again[-1].kind == "ended"
        # Watching reads the inbox and acknowledges nothing.
        assert boss.me().inbox.acked == 0

        asking = boss.open_job(f"ask-{name}", {"thing": "pen"}, budget="0.10")
        kinds = []
        for event in boss.watch(asking):
            kinds.append(event.kind)
            if event.question is not None:
                boss.answer(asking, "x" if event.question.number == 1 else {"size": 1})
        assert [kind for kind in kinds if kind != "progress"] == [
            "assigned", "question", "answered", "question", "answered", "ended",
        ]  # fmt: skip


def test_a_job_is_cancelled_before_it_is_begun_or_while_its_worker_asks(
    hub_process: HubProcess, boss: Hub
) -> None:
    name = unique()
    with add_worker(hub_process, name).start():
        asking = boss.hire(f"ask-{name}", {"thing": "pen"}, budget="0.10")
        assert boss.cancel(asking, reason="never mind").state == "cancelled"
        ended = boss.hire(f"shout-{name}", {"text": "a"}, budget="0.10")
        with pytest.raises(HubError) as caught:
            boss.cancel(ended)
        assert caught.value.code == "wrong_state"
        waiting = boss.open_job(f"shout-{name}", {"text": "a"}, budget="1", select="offers")
        assert boss.cancel(waiting).state == "cancelled"
    assert boss.account().held == 0


def test_an_offer_is_made_by_length_and_accepted(hub_process: HubProcess, boss: Hub) -> None:
    name = unique()
    with add_worker(hub_process, name).start():
        text = {"text": "x" * 1_500}
        job = boss.open_job(f"shout-{name}", text, budget="1", select="offers")
        (offer,) = eventually(lambda: boss.offers(job))
        assert (offer.price, offer.accepted) == (Decimal("0.07"), False)
        assert boss.accept(job, offer).price == Decimal("0.07")
        assert boss.wait(job).paid == Decimal("0.07")
        with pytest.raises(HubError):
            boss.accept(job, 99)


def test_agents_are_found_by_skill_and_by_name(hub_process: HubProcess, boss: Hub) -> None:
    name = unique()
    with add_worker(hub_process, name).start() as worker:
        (found,) = boss.agents(f"shout-{name}")
        skill = next(one for one in found.skills if one.name == f"shout-{name}")
        assert (skill.price, found.owner, found.name) == (Decimal("0.05"), worker.owner, name)
        assert boss.agent(worker.agent_id).id == found.id
        assert [one.id for one in boss.agents(q=name)] == [found.id]
        with pytest.raises(HubError) as caught:
            boss.agent("nobody-of-this-name")
        assert (caught.value.status, caught.value.code) == (404, "not_found")
        assert caught.value.request_id
    assert list(boss.agents(f"shout-{name}", online=True)) == []


def test_lists_are_read_page_by_page(hub_process: HubProcess, boss: Hub) -> None:
    name = unique()
    with add_worker(hub_process, name).start():
        ids = [boss.hire(f"shout-{name}", {"text": str(n)}, budget="0.05").id for n in range(5)]
        assert [job.id for job in boss.jobs(state="ended")] == ids[::-1]
        assert [job.id for job in boss.jobs(state="ended", limit=2)] == ids[:2:-1]
        assert list(boss.jobs()) == []
        pages = _pages(boss, "/v1/ledger?limit=2")
        assert sum(map(len, pages)) == len(list(boss.ledger()))


def _pages(hub: Hub, path: str) -> list[Any]:
    pages, cursor = [], ""
    while True:
        page = hub.call("GET", f"{path}{cursor}")
        pages.append(page["items"])
        if page["next_cursor"] is None:
            return pages
        cursor = f"&cursor={page['next_cursor']}"


def test_messages_arrive_and_are_acknowledged(hub_process: HubProcess, boss: Hub) -> None:
    with hub_process.requester("reader") as reader:
        me = reader.me().agent
        assert boss.send_message(me, {"n": 1.5}) == 1
        assert boss.send_message(me.id, "two") == 2
        notices = list(reader.inbox())
        assert [(one.position, one.kind, one.body) for one in notices] == [
            (1, "message", {"n": 1.5}),
            (2, "message", "two"),
        ]
        assert notices[0].from_ == boss.me().agent.id
        assert reader.ack(notices[0]).acked == 1
        assert [one.position for one in reader.inbox()] == [2]
        assert [one.position for one in reader.inbox(after=0, limit=1)] == [1]
        stream = reader.events()
        assert next(stream).body == "two"
        boss.send_message(me, ["three"])
        assert next(stream).body == ["three"]
        stream.close()  # type: ignore[attr-defined]
        resumed = reader.events(after=1)
        assert [next(resumed).position for _ in range(2)] == [2, 3]
        resumed.close()  # type: ignore[attr-defined]


def test_a_transfer_with_one_id_is_paid_once(hub_process: HubProcess, boss: Hub) -> None:
    with hub_process.requester("payee") as payee:
        owner, transfer_id = payee.account().owner, uuid.uuid4()
        for _ in range(2):
            receipt = boss.transfer(owner, "1.25", id=transfer_id)
            assert receipt.sender_balance == Decimal("98.75")
        assert payee.account().available == Decimal("101.25")
        with pytest.raises(HubError) as caught:
            boss.transfer(owner, 1_000)
        assert caught.value.status == 402
        for wrong in ("0", "-1", 0.5):
            with pytest.raises(UsageError):
                boss.transfer(owner, wrong)  # type: ignore[arg-type]


def test_a_trace_tells_what_became_of_the_fields(hub_process: HubProcess, boss: Hub) -> None:
    name = unique()
    with add_worker(hub_process, name).start():
        job = boss.hire(f"shout-{name}", {"text": "a"}, budget="0.10")
        trace = boss.trace(job)
        assert (trace.job, trace.state, trace.money.paid) == (job.id, "completed", Decimal("0.05"))
        assert [hop.what for hop in trace.hops] == ["request", "result"]


def test_numbers_keep_their_digits_where_that_is_wanted(hub_process: HubProcess) -> None:
    name, key = unique(), hub_process.register()
    agent = Agent(name, hub=hub_process.url, exact_numbers=True)

    @agent.skill(f"echo-{name}", price=0)
    def echo(input: dict[str, Any]) -> dict[str, Any]:
        return input

    number = {"a": Decimal("1.10"), "b": 10**30, "c": [Decimal("1E+30")]}
    with agent.start():
        with Hub(hub_process.url, key=key, exact_numbers=True) as hub:
            assert str(hub.hire(f"echo-{name}", number, budget=0).output) == str(number)
        with Hub(hub_process.url, key=key) as hub:
            output = hub.hire(f"echo-{name}", number, budget=0).output
            assert output == {"a": 1.1, "b": 10**30, "c": [1e30]}
            assert type(output["a"]) is float


def test_a_key_is_rotated_saved_and_revoked(hub_process: HubProcess, tmp_path: Any) -> None:
    path = tmp_path / "boss.key"
    path.write_text(hub_process.register() + "\n")
    with Hub(hub_process.url, key_file=path) as hub:
        new = hub.rotate_key()
        assert new.key is not None
        assert path.read_text().splitlines()[0] == new.key
        assert new.key not in repr(new)
        secret = hub.rotate_webhook_secret()
        assert f"webhook_secret {secret.webhook_secret}" in path.read_text()
        assert hub.me().account.available == 100
        assert hub.revoke_keys().revoked
        with pytest.raises(HubError) as caught:
            hub.me()
        assert (caught.value.status, caught.value.code) == (401, "unauthorized")


def test_a_registration_is_updated_and_removed(hub_process: HubProcess, boss: Hub) -> None:
    name = unique()
    me = boss.me().agent
    boss.register(name, me.owner, [{"skill_name": f"s-{name}", "cost_per_call": Decimal(1)}])
    assert boss.set_status("online").status == "online"
    assert [agent.id for agent in boss.agents(f"s-{name}")] == [me.id]
    assert boss.set_status("offline").status == "offline"
    assert boss.unregister().status == "unregistered"
    with pytest.raises(HubError):
        boss.me()


def test_the_calls_of_a_worker_make_a_loop_of_ones_own(hub_process: HubProcess, boss: Hub) -> None:
    name = unique()
    with hub_process.requester("own") as worker:
        me = worker.me().agent
        skills: Any = [{"skill_name": f"s-{name}", "cost_per_call": Decimal("0.05")}]
        worker.register(name, me.owner, skills)
        worker.set_status("online")
        job = boss.open_job(f"s-{name}", {"a": 1}, budget="0.10")
        (item,) = worker.work(wait=5).jobs
        assert (item.id, item.input, item.price) == (job.id, {"a": 1}, Decimal("0.05"))
        worker.report_progress(item.id, fraction=0.5, epoch=item.epoch)
        worker.add_part(item.id, {"text": "a"}, epoch=item.epoch)
        asked = worker.ask(item.id, "which?", epoch=item.epoch)
        assert asked.question is not None
        boss.answer(job, "this")
        known = f"{item.id}.{item.epoch}.0"
        (answer,) = worker.work(wait=5, known=[known]).answers
        assert (answer.text, answer.question) == ("this", 1)
        receipt = worker.submit_result(item.id, output={"b": 2}, epoch=item.epoch)
        assert (receipt.paid, receipt.repeated) == (Decimal("0.05"), False)
        assert worker.submit_result(item.id, output={"b": 2}, epoch=item.epoch).repeated
        assert worker.work(known=[f"{item.id}.{item.epoch}"]).gone == [item.id]
        other = boss.open_job(f"s-{name}", {"a": 2}, budget="0.10")
        (item,) = worker.work(wait=5).jobs
        worker.decline(item.id, reason="no", epoch=item.epoch)
        assert boss.job(other).state == "failed"


def test_a_caller_without_a_key_is_told_so(hub_process: HubProcess) -> None:
    with Hub(hub_process.url, key="") as hub:
        for call in (hub.me, hub.account, lambda: next(hub.events()), lambda: hub.job("a")):
            with pytest.raises(UsageError) as caught:
                call()  # type: ignore[operator]
            assert caught.value.code == "no_key"
        assert list(hub.agents("count_words"))


def test_one_hub_is_used_from_several_threads(hub_process: HubProcess, boss: Hub) -> None:
    name = unique()
    outputs: list[Any] = []
    with add_worker(hub_process, name).start():

        def hire(text: str) -> None:
            outputs.append(boss.hire(f"shout-{name}", {"text": text}, budget="0.05").output)

        threads = [threading.Thread(target=hire, args=(str(n),)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(output["text"] for output in outputs) == [str(n) for n in range(8)]


def test_both_hubs_have_the_same_methods() -> None:
    def methods(kind: type[Any]) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(method).parameters)
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_")
        }

    assert methods(Hub) == methods(AsyncHub)
    assert len(methods(Hub)) > 40


def test_a_hub_is_called_from_tasks(hub_process: HubProcess) -> None:
    name, key = unique(), hub_process.register()

    async def run() -> None:
        async with AsyncHub(hub_process.url, key=key) as hub:
            jobs = await asyncio.gather(
                *(hub.hire(f"shout-{name}", {"text": str(n)}, budget="0.05") for n in range(5))
            )
            assert [job.output["text"] for job in jobs] == [str(n) for n in range(5)]
            assert len([job async for job in hub.jobs(state="ended")]) == 5
            assert len([entry async for entry in hub.ledger(limit=4)]) == 4

            async def answer(question: Any) -> Any:
                await asyncio.sleep(0)
                return "red" if question.number == 1 else {"size": 5}

            job = await hub.hire(f"ask-{name}", {"thing": "c"}, budget="1", on_question=answer)
            assert job.output == {"colour": "red", "size": 5}
            job = await hub.open_job(f"steps-{name}", {"count": 2}, budget="0.10")
            events = [event async for event in hub.watch(job)]
            assert [one.artifact for one in events if one.kind == "part"] == [
                {"step": 0},
                {"step": 1},
            ]
            position = await hub.send_message((await hub.me()).agent, "hello")
            stream = hub.events(after=position - 1)
            notice = await anext(stream)
            assert (notice.position, notice.body) == (position, "hello")
            await stream.aclose()  # type: ignore[attr-defined]
            assert (await hub.ack(notice)).acked == position
            assert (await hub.account()).held == 0

    with add_worker(hub_process, name).start():
        asyncio.run(run())
