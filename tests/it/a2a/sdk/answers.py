"""Records what a server answers, so that an SDK's own types can check every body."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx

from client_steps import Expectation, expect


class Exchange:
    """A request and the body of its answer, as far as it was read."""

    def __init__(self, request: httpx.Request, response: httpx.Response) -> None:
        self.method, self.path = request.method, request.url.path
        self.headers = request.headers
        self.status = response.status_code
        self.is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        self.call = json.loads(request.content or b"null")
        self.body = bytearray()

    def bodies(self) -> Iterator[Any]:
        """The body, or the body of each whole event."""
        if not self.is_stream:
            yield json.loads(self.body or b"null")
            return
        for block in self.body.decode().split("\n\n")[:-1]:
            lines = [line.removeprefix("data: ") for line in block.split("\n") if line.startswith("data: ")]
            yield json.loads("\n".join(lines))


class Copied(httpx.AsyncByteStream):
    """The body of an answer, copied while the SDK reads it."""

    def __init__(self, exchange: Exchange, stream: httpx.AsyncByteStream) -> None:
        self._exchange, self._stream = exchange, stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self._exchange.body += part
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


class Recording(httpx.AsyncHTTPTransport):
    """What an SDK's HTTP client sends its requests with."""

    def __init__(self) -> None:
        super().__init__()
        self.exchanges: list[Exchange] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        expect("content-encoding" not in response.headers, "the answer is compressed")
        exchange = Exchange(request, response)
        self.exchanges.append(exchange)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = Copied(exchange, response.stream)
        return response

    def check(self, check: Callable[[Exchange, Any], None]) -> int:
        """Checks every body, and returns how many there were."""
        checked = 0
        for exchange in self.exchanges:
            for body in exchange.bodies():
                try:
                    check(exchange, body)
                except Exception as error:
                    told = f"{type(error).__name__}: {error} {getattr(error, 'data', None) or ''}".strip()
                    raise Expectation(f"{exchange.method} {exchange.path}: {told} in {json.dumps(body)}") from error
                checked += 1
        return checked
