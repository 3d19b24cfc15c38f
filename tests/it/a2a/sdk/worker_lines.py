"""A worker for `rialto agent run --lines`, which obeys the first word of a message as the A2A workers do."""

import json
import sys
import time
from typing import Any


def say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def part(artifact_id: str, content: dict[str, Any], append: bool = False, last: bool = True) -> None:
    artifact = {"artifactId": artifact_id, "parts": [content], "lastChunk": last}
    say({"part": artifact, "append": append})


def text(words: str) -> dict[str, Any]:
    return {"parts": [{"text": words}]}


def main() -> None:
    given = json.loads(sys.stdin.readline())["input"]
    words = str(given.get("text", "")).split() or [""]
    if words[0] == "ask":
        say({"ask": "Which city?"})
        answer = json.loads(sys.stdin.readline())["answer"]
        say({"output": {"text": f"You said {answer['text']}"}})
    elif words[0] == "fail":
        say({"error": "failed as asked"})
    elif words[0] == "reject":
        say({"refuse": "rejected as asked"})
    elif words[0] == "message":
        say({"output": {"message": text("a bare message")}})
    elif words[0] == "slow":
        for second in range(int(words[1])):
            say({"progress": f"working, {second} of {words[1]} s"})
            time.sleep(1)
        say({"output": {"text": "done slowly"}})
    elif words[0] == "chunks":
        for number in range(3):
            part("chunks", {"text": f"chunk {number + 1} "}, append=number > 0, last=number == 2)
        say({"output": {"artifacts": []}})
    elif words[0] == "file":
        content = {"raw": "ZmlsZSBjb250ZW50", "filename": "out.txt", "mediaType": "text/plain"}
        say({"output": {"artifacts": [{"artifactId": "file", "parts": [content]}]}})
    else:
        say({"output": given})


if __name__ == "__main__":
    main()
