"""How an agent stops: it finishes or hands back its jobs, and goes off the lists, within five seconds."""

from __future__ import annotations

import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rialto_hub import Hub

from .kit import LOGGING, AgentProcess, HubProcess, eventually

PROGRAM = """
import asyncio, time
from rialto_hub import Agent, AsyncJob, Job

agent = Agent({name!r}, hub={hub!r})
# The first agent would take so long that nobody waits for it.
FACTOR = 100 if {name!r}.startswith("one-") else 0

def note(text):
    with open("notes", "ab", buffering=0) as file:
        file.write(f"{{text}}\\n".encode())

@agent.skill("sleep-{skill}", price="0.01")
async def sleep(seconds: float, is_long: bool = False):
    note("begins")
    seconds *= FACTOR if is_long else 1
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    note("ends")
    return {{"by": {name!r}}}

@agent.skill("block-{skill}", price="0.01")
def block(job: Job, seconds: float):
    note("begins")
    until = time.monotonic() + seconds * FACTOR
    while time.monotonic() < until and not job.cancelled:
        time.sleep(0.01)
    note(f"{{job.cancel_reason}}")
    return {{"by": {name!r}}}

@agent.skill("deaf-{skill}", price="0.01")
def deaf(seconds: float):
    note("begins")
    time.sleep(seconds * FACTOR)
    return {{"by": {name!r}}}

agent.run()
"""


class Bench:
    def __init__(self, hub_process: HubProcess, folder: Path):
        self.hub_process = hub_process
        self.skill = uuid.uuid4().hex[:8]
        self.folder = folder
        self.agents: list[AgentProcess] = []

    def start(self, name: str) -> AgentProcess:
        folder = self.folder / name
        folder.mkdir()
        text = PROGRAM.format(
            name=f"{name}-{self.skill}", skill=self.skill, hub=self.hub_process.url
        )
        agent = AgentProcess(LOGGING + text, folder)
        self.agents.append(agent)
        agent.wait_until_online()
        return agent

    def wait_for(self, agent: AgentProcess, note: str) -> None:
        path = agent.folder / "notes"
        eventually(lambda: path.exists() and note in path.read_text().split())


@pytest.fixture
def bench(hub_process: HubProcess, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(hub_process, tmp_path)
    yield made
    for agent in made.agents:
        agent.kill()


def listed(boss: Hub, bench: Bench) -> list[str]:
    return [agent.name for agent in boss.agents(f"sleep-{bench.skill}")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_jobs_that_end_soon_are_finished(bench: Bench, boss: Hub, number: int) -> None:
    agent = bench.start("one")
    job = boss.open_job(f"sleep-{bench.skill}", {"seconds": 0.7}, budget="0.01")
    bench.wait_for(agent, "begins")
    agent.process.send_signal(number)
    assert agent.process.wait(30) == 0, agent.log()
    assert boss.job(job).state == "completed"
    assert listed(boss, bench) == []


@pytest.mark.parametrize("kind", ["sleep", "block", "deaf"])
def test_other_jobs_are_handed_back_and_done_by_others(bench: Bench, boss: Hub, kind: str) -> None:
    first = bench.start("one")
    given = {"seconds": 8, **({"is_long": True} if kind == "sleep" else {})}
    job = boss.open_job(f"{kind}-{bench.skill}", given, budget="0.01")
    bench.wait_for(first, "begins")
    second = bench.start("two")
    assert first.terminate() == 0, first.log()
    told = {"sleep": "cancelled", "block": "stopping"}.get(kind)
    if told is not None:
        bench.wait_for(first, told)
    bench.wait_for(second, "begins")
    assert f"one-{bench.skill}" not in listed(boss, bench)
    assert boss.wait(job).output == {"by": f"two-{bench.skill}"}


def test_an_agent_whose_hub_is_gone_stops_all_the_same(tmp_path: Path) -> None:
    process = HubProcess(tmp_path / "data")
    bench = Bench(process, tmp_path)
    agent = bench.start("one")
    with process.requester() as boss:
        boss.open_job(f"sleep-{bench.skill}", {"seconds": 60}, budget="0.01")
        bench.wait_for(agent, "begins")
    process.kill()
    assert agent.terminate() == 0, agent.log()


def test_jobs_that_had_not_begun_are_handed_back(bench: Bench, boss: Hub) -> None:
    first = bench.start("one")
    # Four run, and four wait for their turn.
    jobs: list[Any] = [
        boss.open_job(f"sleep-{bench.skill}", {"seconds": 4, "is_long": True}, budget="0.01")
        for _ in range(8)
    ]
    notes = first.folder / "notes"
    eventually(lambda: notes.exists() and notes.read_text().count("begins") == 4)
    second = bench.start("two")
    assert first.terminate() == 0
    assert {boss.wait(job).output["by"] for job in jobs} == {f"two-{bench.skill}"}
    assert notes.read_text().count("begins") == 4
    assert (second.folder / "notes").read_text().count("ends") == 8


def test_a_second_signal_ends_the_program_at_once(bench: Bench, boss: Hub) -> None:
    agent = bench.start("one")
    boss.open_job(f"sleep-{bench.skill}", {"seconds": 60}, budget="0.01")
    bench.wait_for(agent, "begins")
    agent.process.send_signal(signal.SIGTERM)
    while agent.process.poll() is None:
        agent.process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
    assert agent.process.returncode == -signal.SIGTERM
