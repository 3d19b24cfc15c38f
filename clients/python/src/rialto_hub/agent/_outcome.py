"""How a job ended, and what a handler raises or yields to say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .. import _json
from ._convert import to_json

OutcomeKind: TypeAlias = Literal["done", "failed", "declined", "invalid_input", "refused"]

#: The longest output in bytes: the largest body that a hub takes, without room for what is around it.
OUTPUT_MAX = (1 << 20) - (64 << 10)
#: The longest text about a failure, in characters.
TEXT_MAX = 4_096
# Levels that an output may have. Any protocol has some around it.
_DEPTH_MAX = 60


@dataclass(frozen=True)
class Outcome:
    """The end of a job."""

    kind: OutcomeKind
    #: The output as JSON text, or the reason.
    text: str

    @property
    def is_done(self) -> bool:
        """Whether the job succeeded."""
        return self.kind == "done"


def reason(text: str) -> str:
    """Return a text that the hub takes: neither too long nor with half characters."""
    return text.encode("utf-8", "replace").decode()[:TEXT_MAX]


def failed(text: str) -> Outcome:
    """Return a failure. An empty reason is none for the hub."""
    return Outcome("failed", reason(text) or "the handler failed")


def output_of(value: Any) -> Any:
    """Return an output as JSON. A value that is not an object becomes the member ``result``.

    Raises ``ValueError`` or ``TypeError``.
    """
    output = to_json(value)
    return output if isinstance(output, dict) else {"result": output}


def done(output: Any) -> Outcome:
    """Return a success with an output that is an object."""
    try:
        text = _json.write(output)
        size = len(text.encode())
    except (ValueError, TypeError, RecursionError) as error:
        return failed(f"the output cannot be written as JSON: {error}")
    if size > OUTPUT_MAX:
        return failed(f"the output is longer than {OUTPUT_MAX} bytes")
    if _depth(output) > _DEPTH_MAX:
        return failed(f"the output is nested more than {_DEPTH_MAX} levels deep")
    return Outcome("done", text)


def _depth(value: Any) -> int:
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        one, level = waiting.pop()
        if isinstance(one, dict | list):
            deepest = max(deepest, level)
            items = one.values() if isinstance(one, dict) else one
            waiting.extend((item, level + 1) for item in items)
    return deepest


class HandlerEnd(Exception):
    """Raised by a handler to end its job in a certain way."""

    kind: OutcomeKind = "failed"

    def outcome(self) -> Outcome:
        """Return the outcome."""
        return Outcome(self.kind, reason(str(self)) or f"the handler raised {type(self).__name__}")


class Fail(HandlerEnd):
    """The job has failed. The requester reads the message."""


class Decline(HandlerEnd):
    """The agent does not take the job. The hub looks for another worker."""

    kind = "declined"


class Refuse(HandlerEnd):
    """The agent refuses the job for good. That is not a failure of the worker."""

    kind = "refused"


class InvalidInput(HandlerEnd):
    """The input is not valid. That is not a failure of the worker."""

    kind = "invalid_input"


class JobCancelled(Exception):
    """The work is not wanted any more."""


@dataclass(frozen=True)
class Progress:
    """Yielded by a handler: how far it is, from 0 to 1, and what it does now."""

    fraction: float | None = None
    text: str | None = None


@dataclass(frozen=True)
class Part:
    """Yielded by a handler: a part of the result. ``append`` continues the part before it."""

    artifact: Mapping[str, Any]
    append: bool = False


@dataclass(frozen=True)
class Question:
    """Yielded by a handler: a question to the requester. The value of the ``yield`` is the answer."""

    text: str
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Result:
    """Yielded by an async generator: the output, which ends the job."""

    output: Any


@dataclass(frozen=True)
class Answer:
    """What the requester sent: the answer to a question, or a later message."""

    #: The content as an object; ``{"text": …}`` if it is only a text.
    input: dict[str, Any]
    #: The content, if it is only a text.
    text: str | None
    #: Members that the requester's protocol does not define.
    meta: Any = None

    def __str__(self) -> str:
        return self.text if self.text is not None else _json.write(self.input)
