"""The worker behind the agent that the A2A test kit (TCK) talks to.

Run by `rialto agent run --exec`: reads one job as JSON on standard input and prints its result as JSON.
It obeys the prefix of the client's `messageId`; the longest prefix that matches counts.
"""

import json
import sys
import time
from typing import Any

FILE = {"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"}
LINK = {"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}
RESUBSCRIBE_SECONDS = 4


def artifact(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"artifacts": [{"artifactId": "a1", "parts": list(parts)}]}


DONE: dict[str, Any] = {"text": "done"}
RESULTS: dict[str, dict[str, Any]] = {
    "tck-complete-task": {"text": "Hello from TCK"},
    "tck-artifact-text": artifact({"text": "Generated text content"}),
    "tck-artifact-file": artifact(FILE),
    "tck-artifact-file-url": artifact(LINK),
    "tck-artifact-data": artifact({"data": {"key": "value", "count": 42}}),
    "tck-message-response": {"message": {"parts": [{"text": "Direct message response"}]}},
    # A program cannot ask yet; see README.md.
    "tck-input-required": {"question": "What else?"},
    "tck-stream-001": artifact({"text": "Stream hello from TCK"}),
    "tck-stream-002": DONE,
    "tck-stream-003": artifact({"text": "Stream task lifecycle"}),
    "tck-stream-ordering-001": artifact({"text": "Ordered output"}),
    "tck-stream-artifact-text": artifact({"text": "Streamed text content"}),
    "tck-stream-artifact-file": artifact(FILE),
    # A program cannot hand over chunks yet, so they are parts of one artifact.
    "tck-stream-artifact-chunked": artifact({"text": "chunk-1 "}, {"text": "chunk-2"}),
    "": DONE,
}
REJECT = "tck-reject-task"
RESUBSCRIBE = "test-resubscribe"
# The exit status by which a program declines a job.
DECLINED = 75


def main() -> int:
    try:
        job = json.load(sys.stdin)
    except ValueError as error:
        sys.exit(f"the job on standard input is not JSON: {error}")
    meta = job.get("meta") or {}
    message_id = str(meta.get("messageId", ""))
    if message_id.startswith(REJECT):
        return DECLINED
    if message_id.startswith(RESUBSCRIBE):
        time.sleep(RESUBSCRIBE_SECONDS)
    prefix = max((one for one in RESULTS if message_id.startswith(one)), key=len)
    print(json.dumps(RESULTS[prefix]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
