"""The journal: what it keeps, through kills, damage and full disks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import zlib
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rialto_hub import AgentError, Outcome, WorkItem
from rialto_hub.agent import _journal
from rialto_hub.agent._journal import AssignmentRef, Journal, digest_of

from .kit import clean_environment

ONE, TWO = AssignmentRef("11c02dbe-4d04-4e2f-a736-4ce4ad1e4e9a", 1), AssignmentRef("b", 2)


def entries(path: Path) -> dict[AssignmentRef, Any]:
    journal = Journal(path)
    journal.close()
    return {at: journal.find(at) for at in journal.open_assignments()}


def write(path: Path, *calls: Any) -> None:
    async def run() -> None:
        journal = Journal(path)
        try:
            for call in calls:
                made = call(journal)
                if made is not None:
                    await made
        finally:
            journal.close()

    asyncio.run(run())


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    outcome = Outcome("done", '{"text":"äöü\\n"}')
    write(
        path,
        lambda journal: journal.start(ONE, "d1", "shout"),
        lambda journal: journal.start(TWO, "d2", "ask"),
        lambda journal: journal.ask(TWO, 1),
        lambda journal: journal.resume(TWO, 1),
        lambda journal: journal.ask(TWO, 2),
        lambda journal: journal.end(ONE, "d1", outcome, 12),
    )
    for _ in range(2):
        found = entries(path)
        assert (found[ONE].outcome, found[ONE].took_ms, found[ONE].skill) == (outcome, 12, "shout")
        assert (found[TWO].asked, found[TWO].resumed, found[TWO].was_asking) == (2, 1, True)
    write(path, lambda journal: journal.close_entry(ONE))
    assert list(entries(path)) == [TWO]


def test_the_format_is_the_one_that_is_described(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    write(path, lambda journal: journal.end(ONE, "d1", Outcome("failed", "why"), 5))
    (line,) = path.read_bytes().splitlines()
    text = (
        b'{"job":"11c02dbe-4d04-4e2f-a736-4ce4ad1e4e9a","epoch":1,"t":"end","digest":"d1",'
        b'"outcome":{"failed":"why"},"took_ms":5}'
    )
    assert line == b"%08x " % zlib.crc32(text) + text
    item = WorkItem(
        id="a", epoch=1, skill="shout", input={}, requester="boss", protocol="registry",
        budget=Decimal(1), price=Decimal(1), deadline=datetime.now(timezone.utc),
        lease_until=datetime.now(timezone.utc),
        opened_at=datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=timezone.utc),
    )  # fmt: skip
    # SHA-256 over 5 shout 4 boss 13 1767323045678, each length in 8 bytes.
    assert digest_of(item) == "f08f567493d35d5a"


def test_another_job_of_the_same_id_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    write(
        path,
        lambda journal: journal.start(ONE, "old", "a"),
        lambda journal: journal.end(ONE, "old", Outcome("done", "{}"), 1),
        lambda journal: journal.start(ONE, "new", "a"),
    )
    assert (entries(path)[ONE].digest, entries(path)[ONE].outcome) == ("new", None)


def test_a_line_that_was_being_written_is_dropped_wherever_it_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    write(
        path,
        lambda journal: journal.start(ONE, "d1", "a"),
        lambda journal: journal.start(TWO, "d2", "b"),
    )
    data = path.read_bytes()
    first = data.index(b"\n") + 1
    for cut in range(first, len(data)):
        path.write_bytes(data[:cut])
        assert list(entries(path)) == [ONE], cut
        # What was dropped is gone, so later lines stand behind whole ones.
        assert path.read_bytes() == data[:first]
    path.write_bytes(data[:-20] + b"x" * 19 + b"\n")
    assert list(entries(path)) == [ONE]


def test_a_damaged_line_is_an_error_and_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    write(
        path,
        lambda journal: journal.start(ONE, "d1", "a"),
        lambda journal: journal.start(TWO, "d2", "b"),
    )
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    path.write_bytes(data)
    with pytest.raises(AgentError, match="line 1 of .* is damaged") as caught:
        Journal(path)
    assert caught.value.code == "state"
    assert path.read_bytes() == data


def test_lines_of_later_versions_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    text = b'{"job":"a","epoch":1,"t":"of tomorrow"}'
    path.write_bytes(b"%08x %s\n" % (zlib.crc32(text), text))
    assert entries(path) == {}


def test_the_file_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_journal, "COMPACT_AFTER", 20_000)
    path = tmp_path / "journal"
    outcome = Outcome("done", '{"text":"' + "x" * 500 + '"}')

    async def run() -> None:
        journal = Journal(path)
        await journal.start(TWO, "kept", "a")
        for number in range(200):
            at = AssignmentRef(f"job-{number}", 1)
            await journal.start(at, "d", "a")
            await journal.end(at, "d", outcome, 1)
            journal.close_entry(at)
            assert path.stat().st_size < 25_000
        journal.close()

    asyncio.run(run())
    assert list(entries(path)) == [TWO]


def test_records_of_many_jobs_are_all_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "journal"

    async def run() -> None:
        journal = Journal(path)
        jobs = [AssignmentRef(f"job-{number}", 1) for number in range(500)]
        await asyncio.gather(*(journal.start(at, "d", "a") for at in jobs))
        # Read as after a kill: the file is not closed.
        copy = tmp_path / "copy"
        copy.write_bytes(path.read_bytes())
        assert set(entries(copy)) == set(jobs)
        journal.close()

    asyncio.run(run())


def test_a_disk_that_is_full_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    """The limit on the size of files makes writes fail in the middle, as a full disk does."""
    program = """
import asyncio, resource, signal, sys
from pathlib import Path
from rialto_hub.agent._journal import AssignmentRef, Journal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

async def run():
    journal = Journal(Path(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    written = failed = 0
    for number in range(30):
        try:
            await journal.start(AssignmentRef(f"job-{number}", 1), "d", "a")
            assert not failed
            written += 1
        except OSError:
            failed += 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await journal.start(AssignmentRef("later", 1), "d", "a")
    journal.close()
    print(written, failed)

asyncio.run(run())
"""
    path = tmp_path / "journal"
    ran = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env=clean_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    written, failed = map(int, ran.stdout.split())
    assert written > 3 and failed > 3
    wanted = {AssignmentRef(f"job-{number}", 1) for number in range(written)}
    assert set(entries(path)) == wanted | {AssignmentRef("later", 1)}
