"""The package builds, installs into a fresh environment, and is typed for its users."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import Any

import rialto_hub

ROOT = Path(__file__).parent.parent


def run(*command: Any, **environment: str) -> str:
    ran = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def python_path() -> str:
    """Where the packages of this program are, for programs that it starts."""
    return os.pathsep.join([str(ROOT / "src"), *(path for path in sys.path if path)])


def test_it_installs_into_a_fresh_environment(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    # Built elsewhere, so that nothing is left here.
    for name in ("src", "tests", "examples", "README.md", "pyproject.toml"):
        (sources).mkdir(exist_ok=True)
        (sources / name).symlink_to(ROOT / name)
    built = tmp_path / "built"
    run(
        sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index",
        "--wheel-dir", built, sources, PYTHONPATH=python_path(),
    )  # fmt: skip
    (wheel,) = built.glob("*.whl")
    assert wheel.name == "rialto_hub-0.1.0-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert "rialto_hub/py.typed" in names
    assert {name.split("/")[0] for name in names} == {"rialto_hub", "rialto_hub-0.1.0.dist-info"}
    venv.create(tmp_path / "fresh", with_pip=True)
    fresh = tmp_path / "fresh" / "bin" / "python"
    run(fresh, "-m", "pip", "install", "--no-deps", "--no-index", wheel)
    # Its one dependency, and what that needs, are those of this program.
    packages = os.pathsep.join(path for path in sys.path if path)
    program = """
import rialto_hub, sys
print(rialto_hub.__file__)
hub = rialto_hub.Hub("http://127.0.0.1:1", key="")
hub.close()
"""
    shown = run(fresh, "-c", program, PYTHONPATH=packages.replace(str(ROOT / "src"), "."))
    assert str(tmp_path / "fresh") in shown


def test_httpx_is_the_one_dependency() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert 'dependencies = ["httpx>=0.27,<1"]' in text
    assert importlib.metadata.version("httpx") >= "0.27"
    program = """
import sys, rialto_hub
foreign = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
print(sorted(name for name in foreign if not name.startswith("_")))
"""
    shown = run(sys.executable, "-c", program, PYTHONPATH=python_path())
    assert "pydantic" not in shown


def test_every_public_name_is_listed_and_documented() -> None:
    assert rialto_hub.__all__ == sorted(rialto_hub.__all__)
    for name in rialto_hub.__all__:
        value = getattr(rialto_hub, name)
        if isinstance(value, type):
            assert value.__doc__, name
            assert not value.__doc__.startswith(f"{name}("), name


def test_the_common_description_names_what_there_is() -> None:
    text = (ROOT.parent / "README.md").read_text()

    def table(after: str) -> str:
        blocks = text.split(after, 1)[1].split("\n\n")
        return next(block for block in blocks if block.startswith("|"))

    methods = re.findall(r"`(\w+)(?:\([^`]*\))?`", table("## The hub"))
    assert len(methods) > 35
    assert [name for name in methods if not hasattr(rialto_hub.Hub, name)] == []
    documented = set(methods) | {"close", "url", "hire", "run_flow", "stream", "with_retry"}
    public = {name for name in dir(rialto_hub.Hub) if not name.startswith("_")}
    assert public - documented == set()
    for name in re.findall(r"^\| `(\w+)` \|", table("## Errors"), re.M):
        assert hasattr(rialto_hub, name), name
    members = re.findall(r"`(\w+)(?:\([^`]*\))?`", table("### The job in a handler"))
    for name in set(members) - {"time_limit", "stopping", "text", "input", "meta"}:
        assert hasattr(rialto_hub.AsyncJob, name), name


def test_the_types_are_sound() -> None:
    run(sys.executable, "-m", "mypy", "--cache-dir", os.devnull, PYTHONPATH=python_path())
    run(
        sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull,
        "examples/hire.py", "examples/shout.py", "examples/asyncio_agent.py",
        "examples/throughput.py", PYTHONPATH=python_path(), MYPYPATH=str(ROOT / "src"),
    )  # fmt: skip


def test_the_code_is_formatted_and_clean() -> None:
    for command in (["format", "--check"], ["check"]):
        run(
            sys.executable, "-m", "ruff", *command, "--no-cache", "src", "tests", "examples",
            PYTHONPATH=python_path(),
        )  # fmt: skip
