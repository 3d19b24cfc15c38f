"""The journal of an agent: which jobs it has begun, and how they ended.

With it a program that is killed and started again neither loses a job nor does it twice. The format is
described in ``clients/README.md``.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import queue
import struct
import threading
import time
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast, get_args

from .. import _files
from .._errors import AgentError
from .._wire import WorkItem
from ._outcome import Outcome, OutcomeKind

#: The file is rewritten after this many bytes were appended.
COMPACT_AFTER = 4 << 20
_DIGEST_LENGTH = 16
_SUM_LENGTH = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_KINDS: tuple[str, ...] = get_args(OutcomeKind)


class AssignmentRef(NamedTuple):
    """One assignment of a job."""

    job: str
    epoch: int


@dataclass
class Entry:
    """What the journal has of an assignment."""

    digest: str
    skill: str = ""
    at: int = 0
    #: The newest question, and the newest whose answer the handler got.
    asked: int = 0
    resumed: int = 0
    outcome: Outcome | None = None
    took_ms: int = 0

    @property
    def was_asking(self) -> bool:
        """Whether the handler waited for an answer."""
        return self.asked > self.resumed


Record: TypeAlias = dict[str, Any]
_Waiter: TypeAlias = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class _Line(NamedTuple):
    """A record that is to be written, and what waits until it is on disk."""

    record: Record
    data: bytes
    waiter: _Waiter | None


def digest_of(item: WorkItem) -> str:
    """Return what tells apart jobs of two hubs that have the same id."""
    opened_at = (item.opened_at - _EPOCH) // timedelta(milliseconds=1)
    sha = hashlib.sha256()
    for part in (item.skill, item.requester, str(opened_at)):
        data = part.encode()
        sha.update(struct.pack(">Q", len(data)) + data)
    return sha.hexdigest()[:_DIGEST_LENGTH]


class Journal:
    """The journal in a file. Records of several jobs are synced together, by a thread of its own."""

    def __init__(self, path: Path) -> None:
        """Open the journal and rewrite it with only the open entries."""
        self._path = path
        self._lock = threading.Lock()
        self._entries = _load(path)
        self._broken: str | None = None
        self._size = self._appended = 0
        self._descriptor = self._rewrite()
        self._queue: queue.SimpleQueue[_Line | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="rialto-journal", daemon=True)
        self._thread.start()

    def find(self, assignment: AssignmentRef) -> Entry | None:
        """Return what the journal has of an assignment."""
        with self._lock:
            return self._entries.get(assignment)

    def open_assignments(self) -> list[AssignmentRef]:
        """Return the assignments that are not closed."""
        with self._lock:
            return list(self._entries)

    async def start(self, assignment: AssignmentRef, digest: str, skill: str) -> None:
        """A handler is about to begin."""
        at = time.time_ns() // 1_000_000
        await self._sync(assignment, {"t": "start", "digest": digest, "skill": skill, "at": at})

    async def ask(self, assignment: AssignmentRef, number: int) -> None:
        """A question is about to be asked."""
        await self._sync(assignment, {"t": "ask", "n": number})

    async def resume(self, assignment: AssignmentRef, number: int) -> None:
        """A handler is about to go on with an answer."""
        await self._sync(assignment, {"t": "resume", "n": number})

    async def end(
        self, assignment: AssignmentRef, digest: str, outcome: Outcome, took_ms: int
    ) -> None:
        """An outcome is about to be reported."""
        record = {"t": "end", "digest": digest, "outcome": {outcome.kind: outcome.text}}
        await self._sync(assignment, {**record, "took_ms": took_ms})

    def close_entry(self, assignment: AssignmentRef) -> None:
        """The hub has the outcome, or the assignment is lost. If this is lost, it is reported again."""
        if self.find(assignment) is not None:
            record = _record(assignment, {"t": "close"})
            self._queue.put(_Line(record, _line(record), None))

    def close(self) -> None:
        """Write what is waiting and close the file."""
        self._queue.put(None)
        self._thread.join()
        os.close(self._descriptor)

    async def _sync(self, assignment: AssignmentRef, record: Record) -> None:
        """Append a record and wait until it is on disk. Raises ``OSError``."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        record = _record(assignment, record)
        self._queue.put(_Line(record, _line(record), (loop, waiter)))
        # A record that is being written is not taken back.
        await asyncio.shield(waiter)

    def _write_all(self) -> None:
        is_open = True
        while is_open:
            batch, is_open = self._next_batch()
            error = self._append(batch)
            for line in batch:
                if line.waiter is not None:
                    _resolve(line.waiter, error)

    def _next_batch(self) -> tuple[list[_Line], bool]:
        """Wait for records, and take all that are there."""
        batch: list[_Line] = []
        item = self._queue.get()
        while item is not None:
            batch.append(item)
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _append(self, batch: list[_Line]) -> OSError | None:
        if self._broken is not None:
            return OSError(self._broken)
        data = b"".join(line.data for line in batch)
        try:
            _write(self._descriptor, data)
        except OSError as error:
            # What was written of it must not stand before later lines.
            try:
                os.ftruncate(self._descriptor, self._size)
                os.lseek(self._descriptor, self._size, os.SEEK_SET)
            except OSError as worse:
                self._broken = str(worse)
            return error
        self._size += len(data)
        self._appended += len(data)
        if any(line.waiter is not None for line in batch):
            try:
                _sync(self._descriptor)
            except OSError as error:
                # After a failed sync it is not known what is on disk.
                self._broken = str(error)
                return error
        with self._lock:
            for line in batch:
                _apply(self._entries, line.record)
        if self._appended > COMPACT_AFTER:
            self._compact()
        return None

    def _compact(self) -> None:
        self._appended = 0
        # The old file is complete: if this fails, it is tried again later.
        with contextlib.suppress(OSError):
            old, self._descriptor = self._descriptor, self._rewrite()
            os.close(old)

    def _rewrite(self) -> int:
        """Write the open entries to a new file, put it in place, and return it open."""
        new = self._path.with_name(f"{self._path.name}.new")
        descriptor = _files.open_private(new, os.O_RDWR | os.O_TRUNC)
        try:
            with self._lock:
                lines = [_line(record) for record in _records(self._entries)]
            data = b"".join(lines)
            _write(descriptor, data)
            _sync(descriptor)
            new.replace(self._path)
            _files.sync_dir(self._path.parent)
        except BaseException:
            os.close(descriptor)
            raise
        self._size = len(data)
        return descriptor


def _record(assignment: AssignmentRef, members: Record) -> Record:
    return {"job": assignment.job, "epoch": assignment.epoch, **members}


def _line(record: Record) -> bytes:
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync(descriptor: int) -> None:
    sync_data = getattr(os, "fdatasync", os.fsync)
    sync_data(descriptor)


def _resolve(waiter: _Waiter, error: OSError | None) -> None:
    loop, future = waiter

    def resolve() -> None:
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(OSError(error.errno, str(error)))

    # The loop may be closed by now.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(resolve)


def _load(path: Path) -> dict[AssignmentRef, Entry]:
    """Read the open entries of a file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise AgentError(f"cannot read {path}: {error}", code="state") from None
    entries: dict[AssignmentRef, Entry] = {}
    lines = data.split(b"\n")
    # Behind the last line end is nothing, or a line that was being written.
    lines.pop()
    for number, line in enumerate(lines, 1):
        record = _parse(line)
        if record is None:
            if number == len(lines):
                break
            raise AgentError(
                f"line {number} of {path} is damaged",
                code="state",
                hint="jobs could run twice; remove the file only if that does no harm",
            )
        _apply(entries, record)
    return entries


def _parse(line: bytes) -> Record | None:
    text = line[_SUM_LENGTH + 1 :]
    if line[: _SUM_LENGTH + 1] != b"%08x " % zlib.crc32(text):
        return None
    try:
        record = json.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _apply(entries: dict[AssignmentRef, Entry], record: Record) -> None:
    """Apply a record. Records of later versions are ignored."""
    assignment = AssignmentRef(str(record.get("job")), int(record.get("epoch", 0)))
    kind, entry = record.get("t"), entries.get(assignment)
    if kind == "close":
        entries.pop(assignment, None)
    elif kind == "start":
        digest, skill = str(record.get("digest")), str(record.get("skill", ""))
        if entry is None or entry.digest != digest:
            entries[assignment] = Entry(digest, skill, int(record.get("at", 0)))
    elif kind == "end":
        if entry is None:
            entry = entries[assignment] = Entry(str(record.get("digest")))
        ((name, text),) = record["outcome"].items()
        if name in _KINDS:
            entry.outcome = Outcome(cast("OutcomeKind", name), str(text))
            entry.took_ms = int(record.get("took_ms", 0))
    elif kind == "ask" and entry is not None:
        entry.asked = max(entry.asked, int(record["n"]))
    elif kind == "resume" and entry is not None:
        entry.resumed = max(entry.resumed, int(record["n"]))


def _records(entries: dict[AssignmentRef, Entry]) -> list[Record]:
    """Return the records that make these entries."""
    records = []
    for assignment, entry in entries.items():
        start = {"t": "start", "digest": entry.digest, "skill": entry.skill, "at": entry.at}
        records.append(_record(assignment, start))
        if entry.asked:
            records.append(_record(assignment, {"t": "ask", "n": entry.asked}))
        if entry.resumed:
            records.append(_record(assignment, {"t": "resume", "n": entry.resumed}))
        if entry.outcome is not None:
            outcome = {entry.outcome.kind: entry.outcome.text}
            end = {"t": "end", "digest": entry.digest, "outcome": outcome}
            records.append(_record(assignment, {**end, "took_ms": entry.took_ms}))
    return records
