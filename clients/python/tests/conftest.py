"""Fixtures: a hub that all tests share, and an environment without the user's own settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rialto_hub import Hub

from .kit import BINARY, HubProcess


@pytest.fixture(scope="session")
def hub_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """A hub for all tests that do not stop it."""
    assert BINARY, "RIALTO_TEST_BINARY must name the rialto binary"
    process = HubProcess(tmp_path_factory.mktemp("hub") / "data")
    yield process
    process.kill()


@pytest.fixture
def boss(hub_process: HubProcess) -> Iterator[Hub]:
    """A requester with 100 credits."""
    with hub_process.requester() as hub:
        yield hub


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory for contexts, and no variables of the user's."""
    for name in ("HUB", "KEY", "CONTEXT", "HOME"):
        monkeypatch.delenv(f"RIALTO_{name}", raising=False)
    path = tmp_path / "rialto-home"
    monkeypatch.setenv("RIALTO_HOME", str(path))
    monkeypatch.chdir(tmp_path)
    return path
