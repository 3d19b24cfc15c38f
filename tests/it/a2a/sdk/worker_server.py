"""Shared by the workers: options, the record of what arrived, and the server itself."""

import argparse
import hmac
import json
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CARD_PATH = "/.well-known/agent-card.json"
OWNER_EXTENSION = "urn:rialto:a2a:owner:v1"
HEADERS_KEPT = (
    "a2a-version",
    "a2a-extensions",
    "x-a2a-extensions",
    "authorization",
    "accept",
    "content-type",
    "last-event-id",
)


def arguments(about: str) -> argparse.ArgumentParser:
    """The options that every worker has."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--name", default="worker", help="the card's name")
    parser.add_argument("--bearer", default="", help="the token that all calls but GET of the card need")
    parser.add_argument("--no-streaming", action="store_true", help="the card does not offer streams")
    parser.add_argument("--no-push", action="store_true", help="the card does not offer push notifications")
    return parser


class Recorder:
    """Records every request, also those that the SDK refuses, and shows them at `GET /seen`.

    `PUT /owner` with a token as its body puts that token into the card from then on.
    """

    def __init__(self, bearer: str) -> None:
        self.app: App | None = None
        self.owner_token = ""
        self._bearer = bearer
        self._requests: list[dict[str, Any]] = []
        self._message_ids: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.app is not None, "the application is set before the server starts"
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        route = (scope["method"], scope["path"])
        if route == ("GET", "/seen"):
            seen = {"messageIds": self._message_ids, "requests": self._requests}
            await answer(send, 200, seen)
            return
        body = await read_body(receive)
        if route == ("PUT", "/owner"):
            self.owner_token = body.decode().strip()
            await answer(send, 200, {"token": self.owner_token})
            return
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        self._record(route, headers, body)
        if self._bearer and route != ("GET", CARD_PATH):
            wanted = f"Bearer {self._bearer}"
            if not hmac.compare_digest(headers.get("authorization", ""), wanted):
                await answer(send, 401, {"error": "a bearer token is needed"})
                return
        await self.app(scope, replay(body, receive), send)

    def _record(self, route: tuple[str, str], headers: dict[str, str], body: bytes) -> None:
        try:
            content = json.loads(body) if body else None
        except ValueError:
            content = body.decode("utf-8", "replace")
        request: dict[str, Any] = {
            "method": route[0],
            "path": route[1],
            "headers": {name: headers[name] for name in HEADERS_KEPT if name in headers},
            "body": content,
        }
        self._requests.append(request)
        if not isinstance(content, dict):
            return
        params = content.get("params") if "jsonrpc" in content else content
        message = params.get("message") if isinstance(params, dict) else None
        if isinstance(message, dict) and "messageId" in message:
            self._message_ids.append(message["messageId"])


async def read_body(receive: Receive) -> bytes:
    body = b""
    while True:
        event = await receive()
        if event["type"] != "http.request":
            return body
        body += event.get("body", b"")
        if not event.get("more_body"):
            return body


def replay(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was already read to the application, and then what comes after it."""
    events: list[Event] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_event() -> Event:
        return events.pop() if events else await receive()

    return next_event


async def answer(send: Send, status: int, content: Any) -> None:
    body = json.dumps(content).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def bind(port: int) -> tuple[socket.socket, str]:
    """Listens on a port of this machine only. The URL has no final slash."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


def serve(recorder: Recorder, app: App, listener: socket.socket, url: str) -> None:
    """Prints the URL and serves until the process is ended."""
    recorder.app = app
    print(url, flush=True)
    config = uvicorn.Config(recorder, log_level="warning", timeout_graceful_shutdown=1, lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])
