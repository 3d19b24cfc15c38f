"""The examples run as they are printed. None needs a model."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rialto_hub import Agent, Hub

from .kit import HubProcess, clean_environment, variables

EXAMPLES = Path(__file__).parent.parent / "examples"


def agent_of(name: str) -> Agent:
    """Import an example and return its agent."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # The SDKs of others may warn about themselves.
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    agent = module.agent
    assert isinstance(agent, Agent)
    return agent


@pytest.fixture(autouse=True)
def hub_variable(hub_process: HubProcess) -> Iterator[None]:
    with variables(RIALTO_HUB=hub_process.url):
        yield


def test_an_agent_is_hired_in_three_lines(hub_process: HubProcess) -> None:
    with agent_of("shout").start():
        ran = subprocess.run(
            [sys.executable, EXAMPLES / "hire.py"],
            env=clean_environment(RIALTO_HUB=hub_process.url),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.stdout == "{'text': 'HELLO'} 0.05\n", ran.stderr


def test_the_asyncio_agent_asks_and_hires_others(boss: Hub) -> None:
    with agent_of("asyncio_agent").start():
        job = boss.hire("spell", {"text": "Ab"}, budget="0.05", on_question=lambda _: "upper")
        assert job.output == {"text": "A-B"}
        assert [part.artifact for part in job.parts] == [{"letter": "A"}, {"letter": "B"}]
        counted = boss.hire("count", {"texts": ["a b", "c", "c"]}, budget="0.05")
        assert counted.output == {"words": 4}


def test_the_langgraph_agent_writes(boss: Hub) -> None:
    with agent_of("langgraph_agent").start():
        job = boss.hire(
            "article", {"topic": "a bridge"}, budget="0.20", on_question=lambda _: "plain"
        )
        assert job.output == {"text": "The bridge crosses the river."}
        assert [list(part.artifact) for part in job.parts] == [["outline"], ["text"]]


def test_the_openai_agents_agent_hires_another_as_its_tool(boss: Hub) -> None:
    with agent_of("openai_agents_agent").start() as running:
        job = boss.hire("judge", {"text": "one two three"}, budget="0.30")
        assert job.output == {"judgement": "I asked a colleague, who counted the words."}
        with Hub(key_file=next(Path(".rialto").rglob("agent.key"))) as own:
            (hired,) = own.jobs(state="ended")
            assert (hired.skill, hired.state) == ("count_words", "completed")
            assert running.owner == own.account().owner


def test_the_throughput_is_printed_as_a_ratio(hub_process: HubProcess) -> None:
    ran = subprocess.run(
        [sys.executable, EXAMPLES / "throughput.py", "--jobs", "20", "--rounds", "1"],
        env=clean_environment(RIALTO_HUB=hub_process.url),
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(r"^ratio +[0-9.]+ ", ran.stdout, re.M), ran.stdout + ran.stderr


def test_every_example_is_run() -> None:
    names: Any = {path.stem for path in EXAMPLES.glob("*.py")}
    text = Path(__file__).read_text()
    assert {name for name in names if name not in text} == set()
