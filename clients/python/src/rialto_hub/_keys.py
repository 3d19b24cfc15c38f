"""Key files. The ``rialto`` command reads and writes the same ones.

The key is alone on the first line, and related data is on the following lines. A file with only a key is
valid too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from . import _files
from ._errors import UsageError

_BYTES_MAX = 64 << 10


@dataclass(frozen=True)
class KeyFile:
    """What a key file holds."""

    key: str = field(repr=False)
    #: The id of the agent that the key belongs to.
    agent_id: str | None = None
    #: The hub that the key is for.
    hub: str | None = None
    #: The secret with which that hub signs its webhooks.
    webhook_secret: str | None = field(default=None, repr=False)

    @staticmethod
    def parse(text: str) -> KeyFile | None:
        """Read the text of a file; ``None`` if its first line is not a key."""
        lines = text.splitlines()
        key = lines[0].strip() if lines else ""
        if not is_key(key):
            return None
        named = dict(line.strip().split(" ", 1) for line in lines[1:] if " " in line.strip())
        return KeyFile(
            key,
            agent_id=named.get("agent_id"),
            hub=named.get("hub"),
            webhook_secret=named.get("webhook_secret"),
        )

    @staticmethod
    def load(path: Path) -> KeyFile:
        """Read a file. Raises ``UsageError``; ``FileNotFoundError`` if there is none."""
        try:
            with path.open("rb") as file:
                text = file.read(_BYTES_MAX).decode()
        except FileNotFoundError:
            raise
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {path}: {error}", code="bad_key") from None
        keys = KeyFile.parse(text)
        if keys is None:
            raise UsageError(
                f"the first line of {path} is not a key",
                code="bad_key",
                hint=f"`rialto agent register NAME --key-out {path}` creates a key file",
            )
        return keys

    def text(self) -> str:
        """Return the text of the file, with the key."""
        members = (
            ("agent_id", self.agent_id),
            ("hub", self.hub),
            ("webhook_secret", self.webhook_secret),
        )
        lines = [self.key, *(f"{name} {value}" for name, value in members if value)]
        return "\n".join(lines) + "\n"

    def save(self, path: Path) -> None:
        """Write or replace a file."""
        _files.write_atomically(path, self.text())

    def with_hub(self, hub: str) -> KeyFile:
        """Return the same key for this hub."""
        return replace(self, hub=hub)


def is_key(text: str) -> bool:
    """Whether a text is a key: one word that can be sent in a header."""
    return bool(text) and all("!" <= letter <= "~" for letter in text)


def check_key(text: str, source: str) -> str:
    """Return a key, without the space around it."""
    key = text.strip()
    if not is_key(key):
        raise UsageError(
            f"{source} is not a key",
            code="bad_key",
            hint="a key is one word like ca_… or rk_…; look for a line break in it",
        )
    return key
