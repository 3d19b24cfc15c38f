"""The directory of an agent: its key, its journal, and a lock that keeps other programs out."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from pathlib import Path

from .. import _files
from .._context import hub_slug
from .._errors import AgentError, UsageError
from .._keys import KeyFile
from ._journal import Journal

_PARENT = ".rialto"
_LOCK = "lock"
_KEY = "agent.key"
_ARCHIVED_KEY = "agent-until-"
_OWNER = "owner"
_ID = "agent_id"
_INSTANCE = "instance"
_JOURNAL = "journal"
_NAME_MAX = 40


def agent_slug(name: str) -> str:
    """Turn the name of an agent into one for a directory and an owner."""
    plain = re.sub("[^a-z0-9_]", "-", name.lower())[:_NAME_MAX].strip("-")
    return plain or "agent"


def _directory_name(name: str, apart: str | None) -> str:
    """Return the name of a directory. Names with the same plain form get different ones."""
    slug = agent_slug(name)
    if apart is None and slug == name:
        return slug
    digest = hashlib.sha256((name if apart is None else apart).encode()).hexdigest()
    return f"{slug}-{digest[:8]}"


class StateDir:
    """An agent's directory, locked until it is closed or the process ends."""

    def __init__(
        self,
        folder: Path,
        hub: str,
        name: str,
        *,
        key: str | None = None,
        key_file: Path | None = None,
    ) -> None:
        """Lock the directory, and create it if needed.

        A key from outside is used as it is and not saved. A key file is used in place of the one in the
        directory, and written if it does not exist.
        """
        apart = key if key is not None else (str(key_file.absolute()) if key_file else None)
        parent = folder / _PARENT
        self.path = parent / hub_slug(hub) / _directory_name(name, apart)
        self._hub = hub
        self._outside = key
        self._key_path = key_file if key_file is not None else self.path / _KEY
        try:
            _files.create_dir(self.path)
            # Keys must not get into a repository.
            _files.write_new(parent / ".gitignore", "*\n")
            self._lock = _files.FileLock(self.path / _LOCK)
        except OSError as error:
            raise self._unwritable(error) from None
        if not self._lock.acquire(wait=False):
            raise AgentError(
                f"another program already runs the agent in {self.path}",
                code="already_running",
                hint="stop it, or give this one another name",
            )

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    def open_journal(self) -> Journal:
        """Open the journal."""
        try:
            return Journal(self.path / _JOURNAL)
        except OSError as error:
            raise self._unwritable(error) from None

    def instance(self) -> str:
        """Return the id of this program at the hub; a copy of the directory has another one."""
        path = self.path / _INSTANCE
        number = (self._read(path) or "").strip()
        if not number:
            number = secrets.token_hex(16)
            self._write(path, f"{number}\n")
        place = os.fsencode(self.path.resolve())
        return hashlib.sha256(number.encode() + place).hexdigest()[:32]

    @property
    def outside_key(self) -> str | None:
        """The key that is kept elsewhere."""
        return self._outside

    def load_key(self) -> KeyFile | None:
        """Return the saved key."""
        if self._outside is not None:
            return None
        try:
            keys = KeyFile.load(self._key_path)
        except FileNotFoundError:
            return None
        if keys.hub is not None and keys.hub.rstrip("/") != self._hub:
            raise UsageError(
                f"{self._key_path} is for {keys.hub}, not for {self._hub}",
                code="other_hub",
                hint="use another key file, or the key's hub",
            )
        return keys

    def save_key(self, keys: KeyFile) -> None:
        """Save the key. A replaced one is kept, because its hub may come back."""
        if self._outside is not None:
            return
        try:
            old = KeyFile.load(self._key_path)
        except (FileNotFoundError, UsageError):
            old = None
        if old is not None and old.key != keys.key:
            aside = self.path / f"{_ARCHIVED_KEY}{time.time_ns()}.key"
            self._write(aside, old.text())
        self._write(self._key_path, keys.text())

    def previous_keys(self) -> list[KeyFile]:
        """Return the replaced keys, newest first."""
        keys = []
        for path in sorted(self.path.glob(f"{_ARCHIVED_KEY}*"), reverse=True):
            try:
                keys.append(KeyFile.load(path))
            except (OSError, UsageError):
                # One that cannot be read cannot be tried.
                continue
        return keys

    def saved_id(self) -> str | None:
        """Return the id of the agent of a key from outside."""
        return (self._read(self.path / _ID) or "").strip() or None

    def save_id(self, agent_id: str) -> None:
        """Save the id of the agent of a key from outside."""
        if self._outside is not None:
            self._write(self.path / _ID, f"{agent_id}\n")

    def saved_owner(self) -> str | None:
        """Return the owner that is paid."""
        return (self._read(self.path / _OWNER) or "").strip() or None

    def save_owner(self, owner: str) -> None:
        """Save the owner that is paid."""
        self._write(self.path / _OWNER, f"{owner}\n")

    def _read(self, path: Path) -> str | None:
        try:
            return _files.read_optional(path)
        except OSError as error:
            raise AgentError(f"cannot read {path}: {error}", code="state") from None

    def _write(self, path: Path, text: str) -> None:
        try:
            _files.write_atomically(path, text)
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> AgentError:
        return AgentError(
            f"cannot write {self.path}: {error}",
            code="state",
            hint="make it writable, or choose another folder",
        )
