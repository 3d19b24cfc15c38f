"""Reads event streams: the format, and what is known of a stream across its connections."""

from __future__ import annotations

import time
from dataclasses import dataclass

from . import _json
from ._codec import decode
from ._errors import RialtoError, Unreadable
from ._retry import ENDLESS, RetryPolicy, ends_stream
from ._wire import Notice

#: The longest event: one message and what is around it.
EVENT_MAX = 2 << 20
# How long to wait before a new connection, unless the hub says something else.
_RETRY_WAIT = 1.0
_RETRY_WAIT_MIN, _RETRY_WAIT_MAX = 0.01, 60.0
_RETRY_DIGITS_MAX = 9
# Connections that may fail before one has succeeded.
_FIRST_ATTEMPTS_MAX = 4


@dataclass
class Event:
    """One event of a stream."""

    id: str | None
    name: str
    data: str


class Parser:
    """Parses the bytes of one connection."""

    def __init__(self, event_max: int = EVENT_MAX) -> None:
        self._event_max = event_max
        self._rest = bytearray()
        self._lines: list[bytes] = []
        self._size = 0
        self._is_first = True
        #: The delay that the server asks for, in seconds.
        self.retry_wait: float | None = None

    def push(self, data: bytes) -> list[Event]:
        """Add bytes and return the events that they complete."""
        self._rest += data
        if self._is_first and len(self._rest) >= 3:
            self._is_first = False
            if self._rest.startswith(b"\xef\xbb\xbf"):
                del self._rest[:3]
        events: list[Event] = []
        while (line := self._next_line()) is not None:
            if line:
                self._lines.append(line)
                self._size += len(line)
            else:
                event = self._complete()
                if event is not None:
                    events.append(event)
        if self._size + len(self._rest) > self._event_max:
            raise Unreadable(f"an event is longer than {self._event_max} bytes")
        return events

    def _next_line(self) -> bytes | None:
        ends = [at for at in (self._rest.find(b"\n"), self._rest.find(b"\r")) if at >= 0]
        if not ends:
            return None
        end = min(ends)
        after = end + 1
        if self._rest[end] == 0x0D:
            if after == len(self._rest):
                # A line feed may follow with the next bytes.
                return None
            after += self._rest[after] == 0x0A
        line = bytes(self._rest[:end])
        del self._rest[:after]
        return line

    def _complete(self) -> Event | None:
        event_id, name, data = None, "message", []
        for line in self._lines:
            label, _, value = line.decode("utf-8", "replace").partition(":")
            value = value.removeprefix(" ")
            if label == "data":
                data.append(value)
            elif label == "event":
                name = value
            elif label == "id" and "\0" not in value:
                event_id = value
            elif label == "retry" and value.isascii() and value.isdigit():
                seconds = int(value[:_RETRY_DIGITS_MAX]) / 1000
                self.retry_wait = min(max(seconds, _RETRY_WAIT_MIN), _RETRY_WAIT_MAX)
        self._lines, self._size = [], 0
        return Event(event_id, name, "\n".join(data)) if data else None


class StreamState:
    """The position of a stream, and when to connect again."""

    def __init__(self, after: int | None, *, exact: bool) -> None:
        self.position = after
        self._exact = exact
        self._failures = 0
        self._was_open = False
        self._retry_wait = _RETRY_WAIT
        self._parser = Parser()

    @property
    def last_event_id(self) -> str | None:
        """The id to resume after."""
        return None if self.position is None else str(self.position)

    def opened(self) -> None:
        """Begin a new connection. An unfinished event is sent again."""
        self._was_open = True
        self._parser = Parser()

    def push(self, data: bytes) -> list[Notice]:
        """Add bytes and return the notices that are new."""
        notices = []
        for event in self._parser.push(data):
            # Events about the stream itself have no position.
            if event.id is None or not (event.id.isascii() and event.id.isdigit()):
                continue
            position = int(event.id)
            if self.position is None or position > self.position:
                try:
                    value = _json.read(event.data)
                except (ValueError, RecursionError) as error:
                    raise Unreadable(f"an event is not JSON: {error}") from None
                notices.append(decode(Notice, value, exact=self._exact))
                self.position = position
                self._failures = 0
        if self._parser.retry_wait is not None:
            self._retry_wait = self._parser.retry_wait
        return notices

    def delay(self, error: RialtoError | None) -> float:
        """Return how long to wait before the next connection. Raises an error that ends the stream."""
        self._failures += 1
        if error is not None:
            is_first = not self._was_open and self._failures >= _FIRST_ATTEMPTS_MAX
            if is_first or ends_stream(error):
                raise error
        policy = RetryPolicy(None, self._retry_wait * 2, ENDLESS.max_delay)
        asked = error.retry_after if error is not None else None
        return max(policy.delay(self._failures), min(asked or 0.0, _RETRY_WAIT_MAX))


class Ticker:
    """Says when something is due again."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._last = time.monotonic()

    def is_due(self) -> bool:
        """Whether the interval has passed since this was true last."""
        now = time.monotonic()
        if now - self._last < self._interval:
            return False
        self._last = now
        return True
