"""Agents and hubs that are killed: no job is lost, none is done twice."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rialto_hub import Hub, JobView, RialtoError

from .kit import BINARY, LOGGING, AgentProcess, HubProcess, clean_environment, eventually

# SIGKILLs of agents; every fifth one also kills the hub.
ROUNDS = int(os.environ.get("RIALTO_TEST_KILL_ROUNDS", "25"))

PROGRAM = """
import os, time
from pathlib import Path
from rialto_hub import Agent, Job

agent = Agent({name!r}, hub={hub!r}, concurrency=8)

def note(text):
    # One write, so that lines of several threads do not mix.
    with open("notes", "ab", buffering=0) as file:
        file.write(f"{{text}}\\n".encode())

@agent.skill("once-{name}", price="0.01")
def once(job: Job, seconds: float = 0.0):
    note(f"once {{job.id}} {{job.is_repeat}}")
    time.sleep(seconds)
    return {{"ran": True}}

@agent.skill("again-{name}", price="0.01", repeatable=True)
def again(job: Job, seconds: float = 0.0):
    note(f"again {{job.id}} {{job.is_repeat}}")
    job.part({{"of": job.id}})
    time.sleep(seconds)
    return {{"repeat": job.is_repeat}}

@agent.skill("ask-{name}", price="0.01")
def ask(job: Job, wait: float = 0.0):
    note(f"ask {{job.id}} {{job.is_repeat}}")
    job.part({{"text": "before"}})
    first = job.ask("first?")
    note(f"first {{first.text}}")
    time.sleep(wait)
    second = job.ask("second?")
    note(f"second {{second.text}}")
    return {{"answers": [first.text, second.text]}}

agent.run()
"""


class Bench:
    """A hub and an agent as processes, and a requester."""

    def __init__(self, folder: Path):
        self.name = f"k{uuid.uuid4().hex[:8]}"
        self.folder = folder
        self.hub = HubProcess(folder / "data")
        self.boss = self.hub.requester()
        program = LOGGING + PROGRAM.format(name=self.name, hub=self.hub.url)
        self.agent = AgentProcess(program, folder)
        self.agent.wait_until_online()

    def open(self, skill: str, **given: Any) -> JobView:
        return self.boss.open_job(f"{skill}-{self.name}", given, budget="0.01")

    def notes(self) -> list[str]:
        path = self.folder / "notes"
        return path.read_text().splitlines() if path.exists() else []

    def wait_for_note(self, start: str) -> None:
        eventually(lambda: [note for note in self.notes() if note.startswith(start)])

    def journal(self) -> str:
        (path,) = (self.folder / ".rialto").rglob("journal")
        return path.read_text()

    def close(self) -> None:
        self.agent.kill()
        self.boss.close()
        self.hub.kill()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


def test_a_handler_that_was_interrupted_does_not_run_again(bench: Bench) -> None:
    job = bench.open("once", seconds=60)
    bench.wait_for_note("once")
    bench.agent.restart()
    ended = bench.boss.wait(job)
    assert (ended.state, ended.failure_reason) == ("failed", "the agent was interrupted")
    assert bench.notes() == [f"once {job.id} False"]
    assert bench.boss.account().available == 100


def test_a_repeatable_handler_runs_again_and_hands_over_its_parts_once(bench: Bench) -> None:
    job = bench.open("again", seconds=1)
    bench.wait_for_note("again")
    eventually(lambda: bench.boss.job(job).parts)
    bench.agent.restart()
    ended = bench.boss.wait(job)
    assert (ended.output, ended.paid) == ({"repeat": True}, Decimal("0.01"))
    assert bench.notes() == [f"again {job.id} False", f"again {job.id} True"]
    assert [part.artifact for part in ended.parts] == [{"of": job.id}]


def test_a_result_that_was_not_reported_is_reported_after_a_restart(bench: Bench) -> None:
    job = bench.open("once", seconds=0.5)
    bench.wait_for_note("once")
    bench.hub.kill()
    eventually(lambda: '"t":"end"' in bench.journal())
    bench.agent.kill()
    bench.hub.start()
    bench.agent.start()
    ended = bench.boss.wait(job)
    assert (ended.output, ended.paid) == ({"ran": True}, Decimal("0.01"))
    assert bench.notes() == [f"once {job.id} False"]


def test_a_result_that_was_reported_but_not_noted_is_paid_once(bench: Bench) -> None:
    job = bench.open("once")
    assert bench.boss.wait(job).state == "completed"
    bench.agent.kill()
    # As if the program had been killed before it noted that the hub has the result.
    (path,) = (bench.folder / ".rialto").rglob("journal")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b'"t":"close"' not in line))
    bench.agent.start()
    bench.agent.wait_until_online()
    eventually(lambda: "job ended" in bench.agent.log().split("started  agent=")[-1])
    assert bench.boss.account().available == Decimal("99.99")
    assert bench.notes() == [f"once {job.id} False"]


def test_a_question_is_asked_once_whoever_is_killed_while_it_is_open(bench: Bench) -> None:
    job = bench.open("ask")
    assert bench.boss.wait(job).question
    bench.agent.kill()
    bench.hub.restart()
    bench.agent.start()
    bench.agent.wait_until_online()
    bench.hub.restart()
    bench.boss.answer(job, "one", question=1)
    asked = bench.boss.wait(job)
    assert asked.question is not None and asked.question.number == 2
    # Both are down when the second answer comes: the hub for a moment, the agent after it.
    bench.agent.kill()
    bench.hub.restart()
    bench.boss.answer(job, "two", question=2)
    bench.agent.start()
    ended = bench.boss.wait(job)
    assert ended.output == {"answers": ["one", "two"]}
    assert [(one.number, one.text) for one in ended.questions] == [(1, "first?"), (2, "second?")]
    assert [part.artifact for part in ended.parts] == [{"text": "before"}]
    runs = [note for note in bench.notes() if note.startswith("ask")]
    assert runs == [f"ask {job.id} {repeat}" for repeat in (False, True, True)]


def test_a_requester_that_is_killed_goes_on_with_its_job(bench: Bench, tmp_path: Path) -> None:
    job_id, key = str(uuid.uuid4()), bench.hub.register()
    program = f"""
import sys, time
from rialto_hub import Hub

def answer(question):
    print(question.text, flush=True)
    time.sleep(60)

Hub({bench.hub.url!r}, key={key!r}).hire(
    "ask-{bench.name}", budget="0.01", id={job_id!r}, on_question=answer
)
"""
    requester = subprocess.Popen(
        [sys.executable, "-c", program], env=clean_environment(), stdout=subprocess.PIPE, text=True
    )
    assert requester.stdout is not None
    assert requester.stdout.readline() == "first?\n"
    requester.kill()
    requester.wait()
    requester.stdout.close()
    with Hub(bench.hub.url, key=key) as hub:
        # The same id is the same job, with the question that it asked.
        job = hub.hire(
            f"ask-{bench.name}", budget="0.01", id=job_id, on_question=lambda one: one.text
        )
        assert job.output == {"answers": ["first?", "second?"]}
        assert len(job.questions) == 2
        assert hub.account().available == Decimal("99.99")


def test_a_handler_that_went_on_after_an_answer_does_not_run_again(bench: Bench) -> None:
    job = bench.open("ask", wait=60)
    assert bench.boss.wait(job).question
    bench.boss.answer(job, "one")
    bench.wait_for_note("first one")
    bench.agent.restart()
    ended = bench.boss.wait(job)
    assert (ended.state, ended.failure_reason) == ("failed", "the agent was interrupted")
    assert len([note for note in bench.notes() if note.startswith("ask")]) == 1


def test_a_hub_that_is_killed_while_jobs_run_gets_their_results(bench: Bench) -> None:
    jobs = [bench.open("once", seconds=0.5) for _ in range(4)]
    bench.wait_for_note("once")
    bench.hub.restart()
    assert [bench.boss.wait(job).state for job in jobs] == ["completed"] * 4
    assert len(bench.notes()) == 4


def test_a_job_that_others_got_meanwhile_is_closed(bench: Bench) -> None:
    job = bench.open("once", seconds=60)
    bench.wait_for_note("once")
    bench.agent.kill()
    with bench.hub.operator() as operator:
        operator.call("POST", f"/v1/operator/jobs/{job.id}/requeue")
    bench.agent.start()
    bench.agent.wait_until_online()
    closed = f'"job":"{job.id}","epoch":1,"t":"close"'
    eventually(lambda: closed in bench.journal() or '"epoch":1' not in bench.journal())


def test_an_agent_with_a_damaged_journal_does_not_start(bench: Bench) -> None:
    bench.open("once", seconds=60)
    bench.wait_for_note("once")
    bench.agent.kill()
    (path,) = (bench.folder / ".rialto").rglob("journal")
    path.write_bytes(b"x" + path.read_bytes()[1:] + path.read_bytes())
    bench.agent.start()
    assert bench.agent.process.wait(60) != 0
    assert "is damaged" in bench.agent.log()


def test_many_kills_under_load_lose_no_job_and_do_none_twice(bench: Bench) -> None:
    randomness = random.Random(7)
    opened: list[tuple[str, str]] = []
    is_over = threading.Event()

    def post(skill: str) -> None:
        while not is_over.is_set():
            job_id = str(uuid.uuid4())
            # Posted until the hub has it, with the id it had at first.
            while True:
                try:
                    job = bench.boss.open_job(
                        f"{skill}-{bench.name}", {"seconds": 0.02}, budget="0.01", id=job_id
                    )
                    break
                except RialtoError as error:
                    assert error.retryable, error
            opened.append((skill, job.id))
            time.sleep(0.02)

    posting = [threading.Thread(target=post, args=(skill,)) for skill in ("once", "again")]
    for thread in posting:
        thread.start()
    for number in range(ROUNDS):
        time.sleep(randomness.uniform(0.05, 0.6))
        bench.agent.kill()
        if number % 5 == 4:
            bench.hub.restart()
        bench.agent.start()
        bench.agent.wait_until_online()
    is_over.set()
    for thread in posting:
        thread.join()
    jobs = {job_id: bench.boss.wait(job_id, timeout=120) for _, job_id in opened}
    assert len(jobs) == len(opened) > ROUNDS
    runs = Counter(note.rsplit(" ", 1)[0] for note in bench.notes())
    completed = 0
    for skill, job_id in opened:
        job, count = jobs[job_id], runs[f"{skill} {job_id}"]
        if skill == "again":
            assert (job.state, count >= 1) == ("completed", True), job
            assert len(job.parts) == 1
        else:
            assert count <= 1, f"{job_id} ran {count} times"
            assert job.state == "completed" or job.failure_reason == "the agent was interrupted"
            assert job.state != "completed" or count == 1
        completed += job.state == "completed"
        assert job.paid == (Decimal("0.01") if job.state == "completed" else 0)
    account = bench.boss.account()
    assert (account.available, account.held) == (100 - completed * Decimal("0.01"), 0)
    captured = [entry.amount for entry in bench.boss.ledger() if entry.kind == "capture"]
    assert (len(captured), sum(captured)) == (completed, completed * Decimal("0.01"))
    interrupted = sum(job.state == "failed" for job in jobs.values())
    print(f"{ROUNDS} kills, {len(jobs)} jobs, {interrupted} interrupted")
    bench.hub.kill()
    audit = subprocess.run(
        [BINARY, "audit", "--data", str(bench.hub.data), "--json"],
        env=clean_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert audit.returncode == 0, audit.stdout + audit.stderr
