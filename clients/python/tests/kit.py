"""Shared by the tests: hubs as processes, agents as processes, and a small HTTP server."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rialto_hub import AsyncHub, Hub

# Long enough for a busy machine.
DEADLINE = 60.0
BINARY = os.environ.get("RIALTO_TEST_BINARY", "")
SOURCES = Path(__file__).parent.parent / "src"


def eventually(is_so: Callable[[], Any], what: str = "it did not happen in time") -> Any:
    """Wait until something is so, and return it."""
    until = time.monotonic() + DEADLINE
    while not (found := is_so()):
        assert time.monotonic() < until, what
        time.sleep(0.02)
    return found


class HubProcess:
    """The hub in a process of its own, at an address that it keeps."""

    def __init__(self, data: Path, verb: str = "dev", *, settings: Mapping[str, Any] | None = None):
        self.data, self.verb = data, verb
        self.settings = {"limits.writes_per_minute": 0, "limits.registrations_per_minute": 0}
        self.settings.update(settings or {})
        self.url = ""
        self.operator_key = ""
        self._process: subprocess.Popen[str] | None = None
        self._reader = threading.Thread()
        try:
            self.start()
        except BaseException:
            self.kill()
            raise

    def start(self) -> None:
        address = self.url.removeprefix("http://") or "127.0.0.1:0"
        command = [BINARY, self.verb, "--listen", address, "--data", str(self.data)]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        if self.verb == "dev":
            command.append("--quiet")
        log = (self.data.parent / f"{self.data.name}.log").open("ab")
        with log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=clean_environment()
            )
        assert self._process.stdout is not None
        url, is_first = "", not self.operator_key
        for line in self._process.stdout:
            if line.startswith("operator key"):
                self.operator_key = line.split()[-1]
            addresses = [word for word in line.split() if word.startswith("http://127.0.0.1:")]
            url = url or (addresses[0].rstrip(",") if addresses else "")
            if url and (self.operator_key or not is_first):
                break
        assert url, "the hub ended early"
        self.url = url
        # The rest is read, so that the hub never waits for a reader.
        self._reader = threading.Thread(target=self._process.stdout.read, daemon=True)
        self._reader.start()
        with Hub(self.url, key="") as hub:
            eventually(lambda: _answers(hub), "the hub does not answer")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._reader.ident is not None:
                self._reader.join()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def restart(self) -> None:
        """Kill the hub and start it again at the same address."""
        self.kill()
        self.start()

    def requester(self, name: str = "boss") -> Hub:
        """A new agent with 100 credits, as a caller."""
        return Hub(self.url, key=self.register(name))

    def register(self, name: str = "boss") -> str:
        """Register an agent and return its key."""
        with Hub(self.url, key="") as hub:
            owner = f"{name}-{os.urandom(6).hex()}"
            key = hub.register(name, owner, as_new=True).api_key
        assert key is not None
        if self.verb == "serve":
            with self.operator() as operator:
                grant = {"owner": owner, "amount": 100, "create": True}
                operator.call("POST", "/v1/operator/grants", grant)
        return key

    def operator(self) -> Hub:
        return Hub(self.url, key=self.operator_key)


def _answers(hub: Hub) -> bool:
    try:
        hub.call("GET", "/v1/agents?limit=1")
    except Exception:
        return False
    return True


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without what a user has set for the hub."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RIALTO_")}
    return {
        **kept,
        "PYTHONPATH": f"{SOURCES}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        **more,
    }


class AgentProcess:
    """A Python program that runs an agent."""

    def __init__(self, program: str, folder: Path, **environment: str):
        self.folder = folder
        self._log = folder / "log"
        self._path = folder / "program.py"
        self._path.write_text(program)
        self._environment = environment
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._offset = log.tell()
            self.process = subprocess.Popen(
                [sys.executable, str(self._path)],
                cwd=self.folder,
                env=clean_environment(**self._environment),
                stdout=log,
                stderr=log,
            )

    def wait_until_online(self) -> None:
        def is_online() -> bool:
            assert self.process.poll() is None, self.log()
            return "started  agent=" in self.log()[self._offset :]

        eventually(is_online, "the agent is not online")

    def log(self) -> str:
        return self._log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()

    def terminate(self) -> int:
        """Send SIGTERM, and return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=DEADLINE)


LOGGING = """
import logging, sys
logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(message)s", level=logging.INFO)
logging.getLogger("httpx").setLevel(logging.WARNING)
"""


@dataclass
class Heard:
    """One request that a test server got."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    """What a test server answers. ``None`` as status breaks the connection."""

    status: int | None = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


class Server:
    """An HTTP server whose answers a test decides."""

    def __init__(self, answer: Callable[[Heard, int], Answer]):
        self.heard: list[Heard] = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                length = int(self.headers.get("content-length", 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                heard = Heard(self.command, self.path, headers, self.rfile.read(length))
                server.heard.append(heard)
                given = answer(heard, len(server.heard) - 1)
                if given.status is None:
                    self.close_connection = True
                    return
                is_bytes = isinstance(given.body, bytes)
                body = given.body if is_bytes else json.dumps(given.body).encode()
                self.send_response(given.status)
                for name, value in given.headers.items():
                    self.send_header(name, value)
                if "transfer-encoding" not in given.headers:
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(body)

            do_GET = do_POST = do_DELETE = handle_any

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Threading(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self._server = Threading(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def variables(**values: str | None) -> Iterator[None]:
    """Set variables of the environment, and remove those that are ``None``."""
    before = {name: os.environ.get(name) for name in values}
    try:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


__all__ = ["AsyncHub", "Hub"]
