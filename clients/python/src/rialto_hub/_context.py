"""Contexts of the ``rialto`` command: a hub, and the caller's key there.

A key stays with its hub: a context's key is sent only to the context's own hub.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from . import _files
from ._errors import UsageError
from ._keys import KeyFile, check_key

#: The address of a local hub.
DEFAULT_HUB = "http://127.0.0.1:7425"
_DEFAULT = "default"
_NAME_MAX = 64
_NAME = re.compile(f"[a-z0-9_-]{{1,{_NAME_MAX}}}")
_HUB_LINE = re.compile(r"""^hub\s*=\s*(?:("(?:[^"\\]|\\.)*")|'([^']*)')\s*(?:#.*)?$""", re.M)
_PORTS = {"http": 80, "https": 443}


def variable(name: str) -> str | None:
    """Return the value of a variable, unless it is empty."""
    value = os.environ.get(name, "")
    return value if value.strip() else None


def normalize_url(text: str) -> str:
    """Check the address of a hub and return it in one form."""
    wrong = UsageError(
        f"{text!r} is not a hub URL", field="hub", hint=f"write it like {DEFAULT_HUB}"
    )
    try:
        url = urlsplit(text.strip())
        host, port = url.hostname, url.port
        if host is not None:
            host = host.encode("idna").decode() if not host.isascii() else host
    except (ValueError, UnicodeError):
        raise wrong from None
    is_plain = not (url.query or url.fragment or url.username or url.password)
    if url.scheme not in _PORTS or not host or not is_plain or any(map(str.isspace, text.strip())):
        raise wrong
    name = f"[{host}]" if ":" in host else host
    place = name if port is None or port == _PORTS[url.scheme] else f"{name}:{port}"
    return f"{url.scheme}://{place}{url.path}".rstrip("/")


def hub_slug(url: str) -> str:
    """Turn the address of a hub into a name for a directory."""
    address = url.split("://", 1)[-1].rstrip("/")
    plain = re.sub("[^a-z0-9]", "-", address.lower()).strip("-")
    return plain[:_NAME_MAX] or "hub"


@contextlib.contextmanager
def _home_is_usable() -> Iterator[None]:
    """Turn errors of files into errors of this package."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"cannot use {error.filename}: {error.strerror}",
            hint="make it readable and writable, or set RIALTO_HOME to another directory",
        ) from None


@dataclass(frozen=True)
class Context:
    """One context, saved or not."""

    name: str
    hub: str
    #: The directory of all contexts, if this machine has one.
    home: Path | None

    @property
    def _directory(self) -> Path | None:
        return self.home / "contexts" / self.name if self.home else None

    def load_key(self) -> KeyFile | None:
        """Return the caller's key, if one is saved."""
        if self._directory is None:
            return None
        try:
            keys = KeyFile.load(self._directory / "me.key")
        except FileNotFoundError:
            return None
        if keys.hub is not None and normalize_url(keys.hub) != self.hub:
            raise UsageError(
                f"context {self.name} is for {self.hub}, its key for {keys.hub}",
                code="other_hub",
                hint=f"`rialto context add {self.name} --hub {self.hub} --key-file FILE` sets it",
            )
        return keys.with_hub(self.hub)

    @_home_is_usable()
    def prepare(self) -> Path:
        """Create the directory of the context, so that a key can be saved, and return it."""
        if self.home is None or self._directory is None:
            raise UsageError("no home directory is set", hint="set RIALTO_HOME")
        directory, file = self._directory, self._directory / "context.toml"
        if not file.exists():
            _files.create_dir(directory)
            _files.write_atomically(file, f"hub = {json.dumps(self.hub)}\n")
            if self.name == _DEFAULT and not (self.home / "current").exists():
                _files.write_atomically(self.home / "current", f"{self.name}\n")
        return directory

    @_home_is_usable()
    def save_key_if_none(self, keys: KeyFile) -> KeyFile:
        """Save the key unless there is one, and return the saved one."""
        path = self.prepare() / "me.key"
        keys = keys.with_hub(self.hub)
        return keys if _files.write_new(path, keys.text()) else KeyFile.load(path)

    @_home_is_usable()
    def replace_key(self, keys: KeyFile) -> None:
        """Save a key in place of the previous one."""
        keys.with_hub(self.hub).save(self.prepare() / "me.key")

    @_home_is_usable()
    def archive_key(self, refused: KeyFile) -> None:
        """Keep a key that the hub does not know under another name: a hub that does may come back."""
        directory = self.prepare()
        lock = _files.FileLock(directory / "me.lock")
        try:
            # If several programs notice at once, only one archives the key.
            lock.acquire(wait=True)
            saved = self.load_key()
            if saved is not None and saved.key == refused.key:
                aside = directory / f"me-until-{time.time_ns()}.key"
                (directory / "me.key").rename(aside)
        finally:
            lock.close()


def _home() -> Path | None:
    own = os.environ.get("RIALTO_HOME")
    if own:
        return Path(own)
    for name, below in (("XDG_CONFIG_HOME", "rialto"), ("HOME", ".config/rialto")):
        path = Path(os.environ.get(name, ""))
        # A relative path is ignored, as the XDG specification says.
        if path.is_absolute():
            return path / below
    return None


@_home_is_usable()
def _load(home: Path | None, name: str) -> Context | None:
    if home is None:
        return None
    path = home / "contexts" / name / "context.toml"
    text = _files.read_optional(path)
    if text is None:
        return None
    line = _HUB_LINE.search(text)
    try:
        hub = "" if line is None else line[2] if line[1] is None else json.loads(line[1])
        return Context(name, normalize_url(hub), home)
    except (UsageError, ValueError):
        raise UsageError(
            f'{path} has no line `hub = "URL"`',
            code="unknown_context",
            hint=f"`rialto context add {name} --hub URL` rewrites it",
        ) from None


@_home_is_usable()
def _current(explicit: str | None) -> Context:
    home = _home()
    name = explicit
    if name is None and home is not None:
        name = (_files.read_optional(home / "current") or "").strip() or None
    name = name or _DEFAULT
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not the name of a context",
            code="unknown_context",
            hint="write 1 to 64 of a-z, 0-9, - and _",
        )
    saved = _load(home, name)
    if saved is None and name != _DEFAULT:
        raise UsageError(
            f"context {name} not found",
            code="unknown_context",
            hint=f"`rialto context ls` lists contexts; `rialto context add {name} --hub URL` adds it",
        )
    return saved or Context(name, DEFAULT_HUB, home)


def _context_of_hub(hub: str) -> Context:
    home, name = _home(), hub_slug(hub)
    saved = _load(home, name)
    if saved is not None and saved.hub != hub:
        raise UsageError(
            f"context {name} is for {saved.hub}, not for {hub}",
            code="unknown_context",
            hint=f"`rialto context add NAME --hub {hub}` creates one for it",
        )
    return saved or Context(name, hub, home)


@dataclass
class Caller:
    """Which hub is called, with which key, and where that key comes from."""

    url: str
    keys: KeyFile | None
    #: The context that the key is from, or into which a new one is saved.
    context: Context | None = None
    #: The file that the key is from.
    key_file: Path | None = None

    @property
    def key(self) -> str | None:
        """The key."""
        return self.keys.key if self.keys else None

    def save(self, keys: KeyFile) -> None:
        """Use other keys, and save them where the old ones were."""
        self.keys = keys
        if self.key_file is not None:
            keys.save(self.key_file)
        elif self.context is not None:
            self.context.replace_key(keys)


def find_caller(
    url: str | None,
    key: str | None,
    key_file: str | Path | None,
    context: str | None,
) -> Caller:
    """Find hub and key as the ``rialto`` command does. An empty key means that none is sent."""
    if key is not None and key_file is not None:
        raise UsageError("give either a key or a key file", field="key")
    hub = url if url is not None else variable("RIALTO_HUB")
    hub = normalize_url(hub) if hub is not None else None
    named = context if context is not None else variable("RIALTO_CONTEXT")
    given: KeyFile | None = None
    path = None if key_file is None else Path(key_file)
    if path is not None:
        given = _load_key_file(path)
    elif key == "":
        return Caller(hub if hub is not None else _current(named).hub, None)
    elif key is not None:
        given = KeyFile(check_key(key, "the given key"))
    elif (value := variable("RIALTO_KEY")) is not None:
        given = KeyFile(check_key(value, "the value of RIALTO_KEY"))
    if given is not None and given.hub is not None:
        own = normalize_url(given.hub)
        if hub is not None and hub != own:
            raise UsageError(
                f"the key file belongs to {own}, not to {hub}",
                code="other_hub",
                hint="use another key file, or the key's hub",
            )
        return Caller(own, given, key_file=path)
    if given is not None and hub is not None:
        return Caller(hub, given, key_file=path)
    found = _current(named)
    if hub is not None and found.hub != hub:
        found = _context_of_hub(hub)
    if given is not None:
        return Caller(found.hub, given, key_file=path)
    return Caller(found.hub, found.load_key(), found)


def _load_key_file(path: Path) -> KeyFile:
    try:
        return KeyFile.load(path)
    except FileNotFoundError:
        raise UsageError(
            f"cannot read {path}: there is no such file",
            code="bad_key",
            hint=f"`rialto agent register NAME --key-out {path}` creates a key file",
        ) from None
