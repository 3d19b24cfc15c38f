"""HTTP: one request and its whole answer, with limits on time and size.

Requests go to the hub's origin only: redirects are not followed, and no proxy is used.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote

import httpx

from . import _json
from ._codec import decode
from ._errors import HubError, TimedOut, Unreachable, Unreadable, UsageError, refusal

T = TypeVar("T")

_CONNECT_TIMEOUT = 10.0
#: Servers send a sign of life every 15 to 30 seconds on a stream.
_SILENCE_MAX = 90.0
#: The largest answer. Longer than the longest page of a hub.
ANSWER_MAX = 64 << 20
_REFUSAL_MAX = 64 << 10
_HEADERS = {"accept-encoding": "identity", "user-agent": "rialto-hub-python"}
_RETRY_AFTER_DIGITS_MAX = 9


#: Reads an answer as whatever JSON it is.
ANY_JSON: type[Any] = cast("type[Any]", Any)


@dataclass(frozen=True)
class Reply:
    """A whole answer with a status of 2xx."""

    status: int
    body: bytes
    exact: bool = False

    def json(self) -> Any:
        """Return the parsed body; ``None`` if it is empty."""
        if not self.body:
            return None
        try:
            return _json.read(self.body)
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"it is not JSON: {error}") from None

    def decode(self, kind: type[T]) -> T:
        """Return the body as a type."""
        return decode(kind, self.json(), exact=self.exact)


@dataclass(frozen=True)
class Request(Generic[T]):
    """One call of the hub, and what its answer is read as."""

    method: str
    path: str
    answer: type[T]
    body: Any = None
    #: Makes a repeat have one effect.
    idempotency_key: str | None = None
    #: Whether it may be sent again when it is not known whether the hub got it.
    is_repeatable: bool = True
    #: Whether the call can be made without a key.
    is_public: bool = False
    #: A key to use in place of the caller's.
    key: str | None = field(default=None, repr=False)

    def content(self) -> bytes | None:
        """Return the body as bytes."""
        if self.body is None:
            return None
        try:
            return _json.write_bytes(self.body)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"the body cannot be written as JSON: {error}") from None


def path_of(*parts: str | int) -> str:
    """Return a path below ``/v1``, with escaped names."""
    return "/v1/" + "/".join(quote(str(part), safe="~") for part in parts)


def with_query(path: str, **values: str | int | bool | None) -> str:
    """Add the query values that are given. Names end with ``_`` where Python reserves them."""
    pairs = []
    for name, value in values.items():
        if value is None:
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        pairs.append(f"{name.rstrip('_')}={quote(text, safe='~.,')}")
    return f"{path}?{'&'.join(pairs)}" if pairs else path


def headers_of(request: Request[Any], key: str | None) -> dict[str, str]:
    """Return the headers of a request."""
    headers = {}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    if request.body is not None:
        headers["content-type"] = "application/json"
    if request.idempotency_key is not None:
        headers["idempotency-key"] = request.idempotency_key
    return headers


def _retry_after(headers: httpx.Headers) -> float | None:
    """Read ``Retry-After``. Hubs send seconds."""
    text = headers.get("retry-after", "").strip()
    is_number = text.isascii() and text.isdigit() and len(text) <= _RETRY_AFTER_DIGITS_MAX
    return float(text) if is_number else None


def _refusal(response: httpx.Response, body: bytes) -> HubError:
    try:
        parsed = _json.read(body)
    except (ValueError, RecursionError):
        parsed = None
    request_id = response.headers.get("x-request-id")
    return refusal(response.status_code, parsed, _retry_after(response.headers), request_id)


def _reply(response: httpx.Response, body: bytes, exact: bool) -> Reply:
    if not response.is_success:
        raise _refusal(response, body)
    return Reply(response.status_code, body, exact)


def _append(body: bytearray, piece: bytes) -> None:
    if len(body) + len(piece) > ANSWER_MAX:
        raise Unreadable(f"it is longer than {ANSWER_MAX} bytes")
    body += piece


def _transport_error(url: str, error: httpx.HTTPError | httpx.InvalidURL) -> Exception:
    if isinstance(error, httpx.ConnectTimeout):
        text = f"cannot reach {url}: the connection was not accepted in time"
        return Unreachable(text, was_sent=False)
    if isinstance(error, httpx.TimeoutException):
        return TimedOut(f"{url} did not answer before the timeout")
    if isinstance(error, httpx.LocalProtocolError | httpx.InvalidURL | httpx.UnsupportedProtocol):
        return UsageError("the key or the address has characters that cannot be sent")
    reason = str(error) or type(error).__name__
    was_sent = not isinstance(error, httpx.ConnectError)
    return Unreachable(f"cannot reach {url}: {reason}", was_sent=was_sent)


def _timeouts(limit: float) -> httpx.Timeout:
    return httpx.Timeout(limit, connect=min(_CONNECT_TIMEOUT, limit))


class SyncTransport:
    """Calls a hub from a thread."""

    def __init__(self, url: str, timeout: float) -> None:
        self.url = url
        self._timeout = timeout
        self._client = httpx.Client(headers=_HEADERS, trust_env=False, follow_redirects=False)

    def send(self, request: Request[Any], key: str | None, exact: bool) -> Reply:
        """Send a request once and return the whole answer."""
        url, content = f"{self.url}{request.path}", request.content()
        until = time.monotonic() + self._timeout
        try:
            with self._client.stream(
                request.method,
                url,
                content=content,
                headers=headers_of(request, key),
                timeout=_timeouts(self._timeout),
            ) as response:
                body = bytearray()
                for piece in response.iter_raw():
                    _append(body, piece)
                    if time.monotonic() > until:
                        raise TimedOut(f"{self.url} did not answer before the timeout")
                return _reply(response, bytes(body), exact)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _transport_error(self.url, error) from None

    @contextmanager
    def open_events(
        self, path: str, key: str | None, last_event_id: str | None
    ) -> Iterator[Iterator[bytes]]:
        """Open an event stream."""
        try:
            with self._client.stream(
                "GET",
                f"{self.url}{path}",
                headers=_stream_headers(key, last_event_id),
                timeout=httpx.Timeout(_SILENCE_MAX, connect=_CONNECT_TIMEOUT),
            ) as response:
                if not response.is_success:
                    body = bytearray()
                    for piece in response.iter_raw():
                        body += piece[:_REFUSAL_MAX]
                        if len(body) > _REFUSAL_MAX:
                            break
                    raise _refusal(response, bytes(body))
                yield response.iter_raw()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _transport_error(self.url, error) from None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class AsyncTransport:
    """Calls a hub from a task."""

    def __init__(self, url: str, timeout: float) -> None:
        self.url = url
        self._timeout = timeout
        self._client = httpx.AsyncClient(headers=_HEADERS, trust_env=False, follow_redirects=False)

    async def send(self, request: Request[Any], key: str | None, exact: bool) -> Reply:
        """Send a request once and return the whole answer."""
        content = request.content()
        until = time.monotonic() + self._timeout
        try:
            async with self._client.stream(
                request.method,
                f"{self.url}{request.path}",
                content=content,
                headers=headers_of(request, key),
                timeout=_timeouts(self._timeout),
            ) as response:
                body = bytearray()
                async for piece in response.aiter_raw():
                    _append(body, piece)
                    if time.monotonic() > until:
                        raise TimedOut(f"{self.url} did not answer before the timeout")
                return _reply(response, bytes(body), exact)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _transport_error(self.url, error) from None

    @asynccontextmanager
    async def open_events(
        self, path: str, key: str | None, last_event_id: str | None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open an event stream."""
        try:
            async with self._client.stream(
                "GET",
                f"{self.url}{path}",
                headers=_stream_headers(key, last_event_id),
                timeout=httpx.Timeout(_SILENCE_MAX, connect=_CONNECT_TIMEOUT),
            ) as response:
                if not response.is_success:
                    body = bytearray()
                    async for piece in response.aiter_raw():
                        body += piece[:_REFUSAL_MAX]
                        if len(body) > _REFUSAL_MAX:
                            break
                    raise _refusal(response, bytes(body))
                yield response.aiter_raw()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _transport_error(self.url, error) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _stream_headers(key: str | None, last_event_id: str | None) -> dict[str, str]:
    headers = {"accept": "text/event-stream"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    if last_event_id is not None:
        headers["last-event-id"] = last_event_id
    return headers
