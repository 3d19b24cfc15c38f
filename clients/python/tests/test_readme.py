"""The README's Python runs as printed, from top to bottom."""

from __future__ import annotations

import contextlib
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from rialto_hub import Agent

from .kit import HubProcess, variables

README = Path(__file__).parent.parent / "README.md"


def test_the_readme_runs_as_printed(
    hub_process: HubProcess,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len(blocks) == 7
    module = types.ModuleType("readme")
    monkeypatch.setitem(sys.modules, "readme", module)
    names: dict[str, Any] = module.__dict__
    started: set[int] = set()
    with variables(RIALTO_HUB=hub_process.url), contextlib.ExitStack() as agents:
        for block in blocks:
            exec(block, names)
            for value in list(names.values()):
                if isinstance(value, Agent) and id(value) not in started:
                    started.add(id(value))
                    agents.enter_context(value.start())
        names["hub"].close()
    printed = capsys.readouterr().out
    for line in (
        "{'text': 'HELLO'}",
        "Ada came to a good end.",
        "{'number': 2}",
        "{'went_on': False}",
        "no_such_skill 422",
        "completed",
    ):
        assert line in printed.splitlines(), printed
