"""Small private files: written atomically, readable by their owner only."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def create_dir(path: Path) -> None:
    """Create a directory and its parents, accessible only to the owner."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        if path.parent == path:
            break
        path = path.parent
    for directory in reversed(missing):
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)


def read_optional(path: Path) -> str | None:
    """Return the text of a file, if there is one."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def write_atomically(path: Path, text: str) -> None:
    """Write or replace a file: a reader sees either the old or the new text."""
    # Of a link, the target is replaced.
    target = Path(os.path.realpath(path))
    new = _temporary(target)
    try:
        _write_synced(new, text)
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    sync_dir(target.parent)


def write_new(path: Path, text: str) -> bool:
    """Write a file that must not exist yet; ``False`` if it does."""
    new = _temporary(path)
    try:
        _write_synced(new, text)
        # Unlike a rename, a link never replaces.
        os.link(new, path)
    except FileExistsError:
        return False
    finally:
        new.unlink(missing_ok=True)
    sync_dir(path.parent)
    return True


def open_private(path: Path, flags: int) -> int:
    """Open or create a file that only its owner can read, whatever the umask is."""
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    return os.open(path, flags | os.O_CREAT, 0o600)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")


def _write_synced(path: Path, text: str) -> None:
    descriptor = open_private(path, os.O_WRONLY | os.O_EXCL)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def sync_dir(path: Path) -> None:
    """Sync a directory, so that a new name in it survives a power cut."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FileLock:
    """A lock that the operating system releases when the process dies."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = open_private(path, os.O_RDWR)

    def acquire(self, *, wait: bool) -> bool:
        """Take the lock; ``False`` if another process has it and ``wait`` is not set."""
        assert self._descriptor is not None  # noqa: S101
        try:
            _lock(self._descriptor, wait)
        except OSError:
            if wait:
                raise
            self.close()
            return False
        return True

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


if os.name == "posix":
    import fcntl

    def _lock(descriptor: int, wait: bool) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))

else:  # pragma: no cover
    import msvcrt

    def _lock(descriptor: int, wait: bool) -> None:
        mode = msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK  # type: ignore[attr-defined]
        msvcrt.locking(descriptor, mode, 1)  # type: ignore[attr-defined]
