"""An agent belongs to its folder: its key, its lock, its registration."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest

from rialto_hub import (
    Agent,
    AgentError,
    AgentEvent,
    Hub,
    HubError,
    KeyFile,
    RialtoError,
    RunningAgent,
    UsageError,
)
from rialto_hub._context import hub_slug
from rialto_hub.agent._state import StateDir, agent_slug

from .kit import BINARY, LOGGING, AgentProcess, HubProcess, clean_environment, eventually, variables


def unique(name: str = "me") -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def one(name: str, hub: str, **options: Any) -> Agent:
    agent = Agent(name, hub=hub, **options)

    @agent.skill(f"one-{name}", price="0.05")
    def handler() -> int:
        return 1

    return agent


def state_of(folder: Path, hub: str, name: str) -> Path:
    return folder / ".rialto" / hub_slug(hub) / name


def test_names_become_names_of_directories(tmp_path: Path) -> None:
    for name, slug in (("Shout It!", "shout-it"), ("a_b-1", "a_b-1"), ("../..", "agent"),
                       ("", "agent"), ("x" * 99, "x" * 40)):  # fmt: skip
        assert agent_slug(name) == slug
    names = ["shout", "Shout", "shout!", "ŝhout"]
    opened = [StateDir(tmp_path, "http://h:1", name) for name in names]
    assert len({state.path for state in opened}) == len(names)
    assert opened[0].path == tmp_path / ".rialto" / "h-1" / "shout"
    for state in opened:
        state.close()


def test_a_restarted_agent_is_the_same_and_its_files_are_its_owners_alone(
    hub_process: HubProcess, tmp_path: Path
) -> None:
    name = unique()
    os.umask(0o022)
    with one(name, hub_process.url, folder=tmp_path).start() as first:
        pass
    with one(name, hub_process.url, folder=tmp_path).start() as second:
        assert (second.agent_id, second.owner) == (first.agent_id, first.owner)
    with pytest.raises(HubError) as caught:
        one(name, hub_process.url, folder=tmp_path, owner=unique("owner")).start()
    assert caught.value.status == 403
    state = state_of(tmp_path, hub_process.url, name)
    keys = KeyFile.load(state / "agent.key")
    assert (keys.agent_id, keys.hub) == (first.agent_id, hub_process.url)
    for path in (tmp_path / ".rialto").rglob("*"):
        if path.name != ".gitignore":
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o700 if path.is_dir() else 0o600), path
    assert (tmp_path / ".rialto" / ".gitignore").read_text() == "*\n"
    shown = subprocess.run(
        [BINARY, "wallet", "balance", "--hub", hub_process.url, "--key-file", state / "agent.key"],
        env=clean_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    # The key of an agent that left works again with its next registration.
    assert shown.returncode == 4, shown.stdout


def test_one_program_at_a_time_runs_an_agent(hub_process: HubProcess, tmp_path: Path) -> None:
    name = unique()
    with one(name, hub_process.url, folder=tmp_path).start():
        with pytest.raises(AgentError) as caught:
            one(name, hub_process.url, folder=tmp_path).start()
        assert caught.value.code == "already_running"
        with one(unique(), hub_process.url, folder=tmp_path).start():
            pass


def test_a_copy_of_the_folder_is_another_program_and_refused(
    hub_process: HubProcess, tmp_path: Path
) -> None:
    name = unique()
    with one(name, hub_process.url, folder=tmp_path / "a").start():
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        with pytest.raises(AgentError) as caught:
            one(name, hub_process.url, folder=tmp_path / "b").start()
        assert caught.value.code == "other_instance"


def test_the_same_directory_is_the_same_instance(tmp_path: Path) -> None:
    def instance(folder: str) -> str:
        state = StateDir(tmp_path / folder, "http://h", "n")
        try:
            return state.instance()
        finally:
            state.close()

    first = instance("a")
    assert instance("a") == first
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert instance("b") != first


def test_an_agent_that_its_owner_removes_stops_and_does_not_come_back(
    hub_process: HubProcess, tmp_path: Path
) -> None:
    name = unique()
    running = one(name, hub_process.url, folder=tmp_path).start()
    with Hub(key_file=state_of(tmp_path, hub_process.url, name) / "agent.key") as own:
        own.unregister()
    with pytest.raises(AgentError) as caught:
        eventually(lambda: not running._thread.is_alive())
        running.stop()
    assert caught.value.code == "unregistered"
    # Started again it registers again, under its old id.
    with one(name, hub_process.url, folder=tmp_path).start() as again:
        assert again.agent_id == running.agent_id


def test_a_hub_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    process = HubProcess(tmp_path / "data")
    process.kill()
    name, events = unique(), []
    agent = one(name, process.url, folder=tmp_path, on_event=events.append)
    started: list[RunningAgent] = []
    thread = threading.Thread(target=lambda: started.append(agent.start()))
    thread.start()
    eventually(lambda: [event for event in events if event.kind == "waiting_for_hub"])
    process.start()
    thread.join(60)
    with process.requester() as boss:
        assert boss.hire(f"one-{name}", budget="0.05").output == {"result": 1}
    started[0].stop()
    process.kill()


def test_an_agent_that_waits_for_its_hub_can_be_stopped(tmp_path: Path) -> None:
    process = HubProcess(tmp_path / "data")
    process.kill()

    async def run() -> None:
        stop = asyncio.Event()
        working = asyncio.create_task(one(unique(), process.url, folder=tmp_path).run_async(stop))
        await asyncio.sleep(0.2)
        stop.set()
        await working

    asyncio.run(run())


def test_a_hub_with_new_data_gets_the_agent_again_under_its_id(tmp_path: Path) -> None:
    process = HubProcess(tmp_path / "first")
    name = unique()
    events: list[AgentEvent] = []
    running = one(name, process.url, folder=tmp_path, on_event=events.append).start()
    process.kill()
    old_data, process.data, process.operator_key = process.data, tmp_path / "second", ""
    process.start()
    eventually(lambda: [event.kind for event in events].count("started") == 2)
    assert [event.kind for event in events].count("reregistering") == 1
    starts = [event for event in events if event.kind == "started"]
    assert {event.agent_id for event in starts} == {running.agent_id}
    with process.requester() as boss:
        assert boss.hire(f"one-{name}", budget="0.05").output == {"result": 1}
    running.stop()
    # The first hub comes back, and so does the key that was replaced.
    process.kill()
    process.data = old_data
    process.start()
    with one(name, process.url, folder=tmp_path).start() as again:
        assert again.agent_id == running.agent_id
    process.kill()


def test_a_key_that_the_hub_does_not_take_is_an_error_and_stays(
    hub_process: HubProcess, tmp_path: Path
) -> None:
    name = unique()
    program = f"""{LOGGING}
from rialto_hub import Agent
agent = Agent({name!r}, hub={hub_process.url!r})
agent.skill("one-{name}", price="0.05")(lambda: 1)
agent.run()
"""
    process = AgentProcess(program, tmp_path)
    process.wait_until_online()
    process.kill()
    path = state_of(tmp_path, hub_process.url, name) / "agent.key"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["rk_wrong", *lines[1:]]) + "\n")
    before = path.read_text()
    with pytest.raises(HubError) as caught:
        one(name, hub_process.url, folder=tmp_path).start()
    assert caught.value.status == 401
    assert path.read_text() == before
    path.write_text("two words\n")
    with pytest.raises(UsageError) as bad:
        one(name, hub_process.url, folder=tmp_path).start()
    assert bad.value.code == "bad_key"


def test_a_key_from_outside_is_used_and_not_saved(hub_process: HubProcess, tmp_path: Path) -> None:
    key, name = hub_process.register(), unique()
    with Hub(hub_process.url, key=key) as hub:
        me = hub.me().agent
    with variables(RIALTO_KEY=key), one(name, hub_process.url, folder=tmp_path).start() as running:
        assert (running.agent_id, running.owner) == (me.names["registry"], me.owner)
    with one(name, hub_process.url, folder=tmp_path, key=key).start() as again:
        assert again.agent_id == running.agent_id
    assert list(tmp_path.rglob("agent.key")) == []


def test_a_key_file_is_written_where_it_is_wanted(hub_process: HubProcess, tmp_path: Path) -> None:
    path, name = tmp_path / "own.key", unique()
    options: Any = {"folder": tmp_path, "key_file": path}
    with one(name, hub_process.url, **options).start() as running:
        assert KeyFile.load(path).agent_id == running.agent_id
    with one(name, hub_process.url, **options).start() as again:
        assert again.agent_id == running.agent_id
    with pytest.raises(UsageError) as caught:
        one(name, "http://127.0.0.1:1", **options).start()
    assert caught.value.code == "other_hub"
    assert list(tmp_path.rglob("agent.key")) == []


def test_the_hub_of_an_agent_is_found_like_that_of_a_caller(hub_process: HubProcess) -> None:
    with variables(RIALTO_HUB=hub_process.url):
        agent = Agent(unique())
        agent.skill(f"x-{agent.name}", price=0)(lambda: None)
        with agent.start() as running:
            assert running.hub_url == hub_process.url


def test_an_agent_that_cannot_work_says_why(tmp_path: Path) -> None:
    for make, code in (
        (lambda: Agent(" "), "invalid"),
        (lambda: Agent("a", concurrency=0), "invalid"),
        (lambda: Agent("a", hub="http://127.0.0.1:1").start(), "bad_skill"),
        (lambda: one("a", "no address").start(), "invalid"),
        (lambda: Agent("a").skill(price="0.001")(lambda: None), "invalid"),
        (lambda: Agent("a").skill("a", price=0, timeout=0)(lambda: None), "bad_skill"),
        (lambda: Agent("a").skill("x" * 129, price=0)(lambda: None), "bad_skill"),
    ):
        with pytest.raises(RialtoError) as caught:
            make()
        assert caught.value.code == code
    (tmp_path / "file").write_text("")
    with pytest.raises(AgentError) as unwritable:
        one("a", "http://127.0.0.1:1", folder=tmp_path / "file").start()
    assert unwritable.value.code == "state"


def test_an_agent_of_a_strict_hub_is_paid_and_found(tmp_path: Path) -> None:
    process = HubProcess(tmp_path / "data", "serve")
    try:
        name = unique()
        with one(name, process.url, folder=tmp_path).start() as running:
            with process.requester() as boss:
                job = boss.hire(f"one-{name}", budget="0.05")
                assert job.output == {"result": 1}
            with Hub(key_file=state_of(tmp_path, process.url, name) / "agent.key") as own:
                assert own.account().available == job.paid
                assert own.me().agent.names["registry"] == running.agent_id
    finally:
        process.kill()
