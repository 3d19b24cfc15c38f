"""Event streams: the format, and reading across lost connections."""

from __future__ import annotations

import json
import random
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest

from rialto_hub import Hub, HubError, Notice, Unreadable
from rialto_hub._sse import Parser

from .kit import Answer, Heard, HubProcess, Server


def frame(position: int, **more: Any) -> str:
    notice = {"position": position, "kind": "message", "at": "2026-01-01T00:00:00Z", **more}
    return f"id: {position}\nevent: message\ndata: {json.dumps(notice)}\n\n"


def stream(*texts: str) -> Answer:
    return Answer(200, "".join(texts).encode(), {"content-type": "text/event-stream"})


def test_events_are_read_however_their_bytes_are_cut() -> None:
    text = (
        "\ufeffretry: 50\n\n: ping\n\nid: 1\r\nevent: a\r\ndata: one\r\n\r\n"
        "data:two\rdata: 2\rid: 2\r\rdata\n\nid: x\n\nevent: é\ndata: ü\nignored: 1\n\ndata: half"
    ).encode()
    expected = [("1", "a", "one"), ("2", "message", "two\n2"), (None, "message", ""),
                (None, "é", "ü")]  # fmt: skip
    for seed in range(50):
        randomness, parser, found, at = random.Random(seed), Parser(), [], 0
        while at < len(text):
            size = randomness.randint(1, 9)
            found += parser.push(text[at : at + size])
            at += size
        assert [(event.id, event.name, event.data) for event in found] == expected
        assert parser.retry_wait == 0.05


def test_an_event_without_end_is_not_collected() -> None:
    for data in (b"data: " + b"x" * 100, b"data: x\n" * 20):
        with pytest.raises(Unreadable, match="longer than 64 bytes"):
            Parser(64).push(data)


def test_every_notice_comes_once_and_in_order_across_connections() -> None:
    def answer(heard: Heard, number: int) -> Answer:
        return [
            stream("retry: 50\n\n", frame(1), frame(2), "id: 3\nevent: mess"),
            Answer(503, b""),
            stream(frame(2), frame(3)),
            Answer(403, {"code": "suspended"}),
            stream(frame(4)),
            Answer(401, {"code": "unauthorized"}),
        ][number]

    with Server(answer) as server, Hub(server.url, key="rk_1") as hub:
        events = hub.events()
        assert [next(events).position for _ in range(4)] == [1, 2, 3, 4]
        with pytest.raises(HubError) as caught:
            next(events)
        assert caught.value.status == 401
        resumed = [heard.headers.get("last-event-id") for heard in server.heard]
        assert resumed == [None, "2", "2", "3", "3", "4"]
        assert {heard.headers["authorization"] for heard in server.heard} == {"Bearer rk_1"}


def test_a_stream_begins_where_it_is_told_to_and_is_closed_by_its_reader() -> None:
    with Server(lambda *_: stream(frame(8), frame(9))) as server, Hub(server.url, key="k") as hub:
        events = hub.events(after=8)
        assert next(events) == Notice(9, "message", next(hub.events(after=8)).at)
        events.close()  # type: ignore[attr-defined]
        assert server.heard[0].headers["last-event-id"] == "8"


def test_a_hub_that_is_not_there_at_first_is_an_error() -> None:
    with Server(lambda *_: Answer(401, {"code": "unauthorized"})) as server:
        with Hub(server.url, key="k") as hub, pytest.raises(HubError):
            next(hub.events())
        assert len(server.heard) == 1


def test_a_stream_survives_a_hub_that_is_killed(tmp_path: Path) -> None:
    process = HubProcess(tmp_path / "data")
    with process.requester() as sender, process.requester("reader") as reader:
        me, token = reader.me().agent.id, uuid.uuid4().hex
        heard: list[Any] = []

        def read() -> None:
            for notice in reader.events():
                heard.append(notice.body)
                if len(heard) == 30:
                    return

        thread = threading.Thread(target=read)
        thread.start()
        for number in range(30):
            sender.send_message(me, f"{token} {number}")
            if number in (10, 20):
                process.restart()
        thread.join(60)
        assert heard == [f"{token} {number}" for number in range(30)]
    process.kill()


def test_a_watched_job_survives_a_hub_that_is_killed(tmp_path: Path) -> None:
    process = HubProcess(tmp_path / "data")
    with process.requester() as boss, process.requester("worker") as worker:
        owner = worker.me().agent.owner
        worker.register("w", owner, [{"skill_name": "slow", "cost_per_call": 0}])  # type: ignore[typeddict-item]
        worker.set_status("online")
        job = boss.open_job("slow", budget=0)
        (item,) = worker.work(wait=5).jobs
        events: list[Any] = []
        thread = threading.Thread(target=lambda: events.extend(boss.watch(job)))
        thread.start()
        for number in range(6):
            worker.add_part(item.id, {"n": number}, epoch=item.epoch)
            if number in (2, 4):
                process.restart()
        worker.submit_result(item.id, output={"n": 6}, epoch=item.epoch)
        thread.join(60)
        parts = [event.artifact for event in events if event.kind == "part"]
        assert parts == [{"n": number} for number in range(6)]
        assert events[-1].job.output == {"n": 6}
    process.kill()
