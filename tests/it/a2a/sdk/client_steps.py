"""Shared by the clients: options, one JSON line per step, and a receiver of push notifications."""

import argparse
import asyncio
import json
import sys
import threading
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOOK_HEADERS = ("authorization", "content-type", "x-a2a-notification-token", "webhook-id")
NOTIFIED_WITHIN_SECONDS = 30


def arguments(about: str, groups: list[str]) -> argparse.ArgumentParser:
    """`URL KEY BINDING SCENARIO` and what every client can be told besides."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("url", help="the base URL of an agent")
    parser.add_argument("key", nargs="?", default="", help="the caller's key, may be empty")
    parser.add_argument("binding", nargs="?", default="JSONRPC", choices=["JSONRPC", "HTTP+JSON"])
    parser.add_argument(
        "scenario", nargs="?", default="all", help=f"`all`, or some of {','.join(groups)} with commas between"
    )
    parser.add_argument("--text", default="hello", help="the text of plain messages")
    parser.add_argument("--metadata", type=json.loads, default={}, help="JSON, the metadata of every message")
    return parser


class Expectation(Exception):
    """The answer was read, but is not the expected one."""


def expect(condition: object, why: str) -> None:
    if not condition:
        raise Expectation(why)


def describe(error: BaseException) -> dict[str, Any]:
    """An error as the SDK shows it."""
    described: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    inner = getattr(error, "error", None)
    for source in (error, inner):
        for name in ("code", "data", "status_code"):
            value = getattr(source, name, None)
            if value is not None:
                described[name] = value
    return described


class Steps:
    """Runs steps and prints one JSON line for each."""

    def __init__(self) -> None:
        self.failures = 0

    async def run(self, step: str, action: Callable[[], Awaitable[Any]]) -> Any:
        """Runs a step that must succeed, and prints and returns its result: what it shows, what it keeps."""
        try:
            shown, kept = await action()
        except Exception as error:
            self._print({"step": step, "ok": False, "error": describe(error)})
            raise
        self._print({"step": step, "ok": True, "got": shown})
        return kept

    async def refused(self, step: str, types: tuple[str, ...], action: Callable[[], Awaitable[Any]]) -> None:
        """Runs a step that must raise one of the named errors."""
        try:
            shown, _ = await action()
        except Exception as error:
            described = describe(error)
            is_expected = type(error).__name__ in types or str(described.get("code")) in types
            self._print({"step": step, "ok": is_expected, "error": described})
            return
        self._print({"step": step, "ok": False, "got": shown, "error": {"message": "it was not refused"}})

    def _print(self, line: dict[str, Any]) -> None:
        self.failures += not line["ok"]
        print(json.dumps(line, default=str), flush=True)


async def run_groups(
    groups: dict[str, Callable[[], Awaitable[None]]],
    scenario: str,
    steps: Steps,
    check_bodies: Callable[[], int],
) -> None:
    """Runs the chosen groups of steps, then checks all answers. A failed step ends its group only."""
    names = list(groups) if scenario == "all" else scenario.split(",")
    unknown = [name for name in names if name not in groups]
    if unknown:
        sys.exit(f"unknown scenario {unknown[0]}; known are all, {', '.join(groups)}")
    for name in names:
        before = steps.failures
        try:
            await groups[name]()
        except Exception as error:
            if steps.failures == before:
                steps.failures += 1
                line = {"step": name, "ok": False, "error": describe(error)}
                print(json.dumps(line, default=str), flush=True)

    async def bodies() -> tuple[Any, None]:
        return {"checked": check_bodies()}, None

    try:
        await steps.run("bodies", bodies)
    except Expectation:
        pass
    if steps.failures:
        sys.exit(f"{steps.failures} steps failed")


class Hook:
    """A receiver of push notifications on this machine."""

    def __init__(self) -> None:
        received: list[dict[str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name: self.headers[name] for name in HOOK_HEADERS if name in self.headers}
                received.append({"headers": headers, "body": json.loads(body)})
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.received = received
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    async def until(self, is_last: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Waits for a notification whose body is the last one."""
        for _ in range(NOTIFIED_WITHIN_SECONDS * 10):
            if any(is_last(one["body"]) for one in self.received):
                return self.received
            await asyncio.sleep(0.1)
        raise Expectation(f"no last notification within {NOTIFIED_WITHIN_SECONDS} s, but {self.received}")

