"""The worker of an agent that the official test kit of A2A (TCK) talks to.

A program for `rialto agent run --lines`: it gets its job as one line of JSON, and writes reports, questions
and its result as such lines. What it does follows from the beginning of the client's `messageId`; the longest
known beginning counts, and a later message is obeyed like the first. docs/protocols/a2a-tck.md says how to
point the kit at it.

With --ask-always it asks back on every message, as the kit for A2A 0.3 wants it.
"""

import json
import select
import sys
from typing import Any, Iterator

FILE = {"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"}
LINK = {"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}
RESUBSCRIBE_SECONDS = 4

Line = dict[str, Any]


def say(line: Line) -> None:
    print(json.dumps(line), flush=True)


def part(artifact_id: str, content: Line, append: bool = False, last: bool = True) -> Line:
    artifact = {"artifactId": artifact_id, "parts": [content], "lastChunk": last}
    return {"part": artifact, "append": True} if append else {"part": artifact}


def complete(text: str = "") -> Line:
    """Completes the task without an artifact of its own, with this text in its last status."""
    message = {"message": {"parts": [{"text": text}]}} if text else {}
    return {"output": {"artifacts": [], **message}}


ASK: Line = {"ask": "What else?"}
SLEEP: Line = {"sleep": RESUBSCRIBE_SECONDS}

BEHAVIOURS: dict[str, list[Line]] = {
    "tck-complete-task": [complete("Hello from TCK")],
    "tck-artifact-text": [part("a1", {"text": "Generated text content"}), complete()],
    "tck-artifact-file": [part("a1", FILE), complete()],
    "tck-artifact-file-url": [part("a1", LINK), complete()],
    "tck-artifact-data": [part("a1", {"data": {"key": "value", "count": 42}}), complete()],
    "tck-message-response": [{"output": {"message": {"parts": [{"text": "Direct message response"}]}}}],
    "tck-input-required": [ASK],
    "tck-reject-task": [{"refuse": "rejected, as the message asks"}],
    "tck-stream-001": [part("a1", {"text": "Stream hello from TCK"}), complete()],
    "tck-stream-002": [complete()],
    "tck-stream-003": [part("a1", {"text": "Stream task lifecycle"}), complete()],
    "tck-stream-ordering-001": [part("a1", {"text": "Ordered output"}), complete()],
    "tck-stream-artifact-text": [part("a1", {"text": "Streamed text content"}), complete()],
    "tck-stream-artifact-file": [part("a1", FILE), complete()],
    "tck-stream-artifact-chunked": [
        part("a1", {"text": "chunk-1 "}, last=False),
        part("a1", {"text": "chunk-2"}, append=True),
        complete(),
    ],
    "test-resubscribe": [SLEEP, complete()],
    "": [complete()],
}


def behaviour(line: Line, ask_always: bool) -> list[Line]:
    """What the sender of a line wants."""
    if ask_always:
        return [ASK]
    message_id = str((line.get("meta") or {}).get("messageId", ""))
    return BEHAVIOURS[max((one for one in BEHAVIOURS if message_id.startswith(one)), key=len)]


def has_line(seconds: float) -> bool:
    """Waits this long for the next line."""
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def obey(line: Line, ask_always: bool) -> bool:
    """Does what a line wants, and says whether the job has ended by it."""
    for step in behaviour(line, ask_always):
        if "sleep" in step:
            # A message that comes meanwhile is obeyed instead.
            if has_line(step["sleep"]):
                return False
            continue
        say(step)
        if "output" in step or "refuse" in step:
            return True
    return False


def lines() -> Iterator[Line]:
    # Unbuffered, so that `has_line` sees every line that was not read.
    stdin = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    while text := stdin.readline():
        yield json.loads(text)


def main() -> None:
    ask_always = "--ask-always" in sys.argv[1:]
    for line in lines():
        if obey(line, ask_always):
            return


if __name__ == "__main__":
    main()
