"""Which calls are repeated, and that each has one effect."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from rialto_hub import (
    AsyncHub,
    Hub,
    HubError,
    RetryPolicy,
    RialtoError,
    TimedOut,
    Unreachable,
    Unreadable,
    UsageError,
)
from rialto_hub._errors import refusal
from rialto_hub._retry import ends_stream, min_retry_delay, worker_delay
from rialto_hub._transport import ANSWER_MAX

from .kit import Answer, Heard, Server

FAST = RetryPolicy(initial_delay=0.001)
JOB = {
    "id": "11c02dbe-4d04-4e2f-a736-4ce4ad1e4e9a", "protocol": "registry", "foreign_id": "a",
    "skill": "s", "state": "open", "requester": 1, "worker": None, "epoch": 0, "price": None,
    "paid": None, "cause": None, "opened_at": "2026-01-01T00:00:00.000Z", "assigned_at": None,
    "lease_until": None, "deadline": "2026-01-01T00:00:00.000Z", "ended_at": None,
}  # fmt: skip
BUSY = Answer(503, {"code": "unavailable", "retryable": True})


def refused(status: int, code: str, retryable: bool, retry_after: float | None = None) -> HubError:
    body = {"code": code, "detail": "no", "retryable": retryable}
    return refusal(status, body, retry_after, None)


@pytest.mark.parametrize(
    ("error", "again", "for_a_worker", "ends"),
    [
        (Unreachable("x"), True, True, False),
        (TimedOut("x"), True, True, False),
        (Unreadable("x"), False, False, True),
        (UsageError("x"), False, False, True),
        (refused(503, "unavailable", True), True, True, False),
        (refused(503, "agent_unavailable", False), False, True, False),
        (refused(502, "unknown", False), True, True, False),
        (refused(429, "rate_limited", True, 1), True, True, False),
        (refused(404, "not_found", False), False, False, True),
        (refused(302, "unknown", False), False, False, True),
        (refused(401, "unauthorized", False), False, False, True),
        (refused(403, "suspended", False), False, True, False),
        (refused(409, "still_running", True, 1), True, True, False),
        (refused(409, "wrong_state", False), False, False, True),
        (refused(500, "internal", True), False, True, False),
    ],
)
def test_only_temporary_errors_are_retried(
    error: RialtoError, again: bool, for_a_worker: bool, ends: bool
) -> None:
    assert (min_retry_delay(error) is not None) == again
    assert (worker_delay(error, 1) is not None) == for_a_worker
    assert ends_stream(error) == ends


def test_delays_double_up_to_the_longest_and_spread_over_half() -> None:
    policy = RetryPolicy()
    for failures, least, most in (
        (1, 0.25, 0.5),
        (2, 0.5, 1),
        (3, 1, 2),
        (9, 15, 30),
        (10**9, 15, 30),
    ):
        delays = [policy.delay(failures) for _ in range(200)]
        assert least <= min(delays) and max(delays) <= most
        assert max(delays) - min(delays) > (most - least) / 2
    assert policy.delay_after(Unreachable("x"), 4) is None
    assert policy.delay_after(refused(429, "rate_limited", True, 7), 1) == 7
    assert policy.delay_after(refused(429, "rate_limited", True, 31), 1) is None
    assert worker_delay(refused(429, "rate_limited", True, 1e9), 1) == 60


def test_a_call_is_repeated_until_it_works_or_often_enough() -> None:
    answers = [BUSY, Answer(None), Answer(200, JOB)]
    with (
        Server(lambda _, number: answers[number] if number < 3 else BUSY) as server,
        Hub(server.url, key="rk_1", retry=FAST) as hub,
    ):
        assert hub.job("a").state == "open"
        assert len(server.heard) == 3
        with pytest.raises(HubError) as caught:
            hub.job("a")
        assert (caught.value.status, caught.value.code) == (503, "unavailable")
        assert len(server.heard) == 7


@pytest.mark.parametrize(
    "call",
    [
        lambda hub: hub.open_job("s", {"a": 1}, budget="0.10"),
        lambda hub: hub.transfer("o", "1"),
        lambda hub: hub.cancel("a"),
        lambda hub: hub.accept("a", 0),
        lambda hub: hub.send_message(1, "x"),
        lambda hub: hub.make_offer("a", "1"),
        lambda hub: hub.ask("a", "x"),
        lambda hub: hub.add_part("a", {}),
        lambda hub: hub.report_progress("a", fraction=0.5),
        lambda hub: hub.resend(1),
        lambda hub: hub.test_webhook(),
        lambda hub: hub.rotate_key(),
        lambda hub: hub.rotate_webhook_secret(),
        lambda hub: hub.call("POST", "/v1/x", {}),
        lambda hub: hub.answer("a", "x", question=3),
        lambda hub: hub.submit_result("a", output={}, epoch=1),
        lambda hub: hub.decline("a", epoch=1),
        lambda hub: hub.ack(5),
        lambda hub: hub.set_status("online"),
    ],
)
def test_a_repeated_write_has_one_effect(call: Any) -> None:
    """The same bytes and the same key are sent again, or what is sent has one effect by itself."""
    me = {"account": {"owner": "o"}}

    def answer(heard: Heard, _: int) -> Answer:
        return Answer(200, me) if heard.method == "GET" else Answer(None)

    natural = (
        "/v1/jobs",
        "/registry/transfer",
        "/answer",
        "/result",
        "/decline",
        "/ack",
        "/status",
    )
    with Server(answer) as server, Hub(server.url, key="rk_1", retry=FAST) as hub:
        me.update(_me())
        with pytest.raises(Unreachable):
            call(hub)
        writes = [heard for heard in server.heard if heard.method == "POST"]
        assert len(writes) == 4
        first = writes[0]
        keys = {heard.headers.get("idempotency-key") for heard in writes}
        assert len({(heard.path, heard.body) for heard in writes}) == 1
        if not any(first.path.endswith(end) for end in natural):
            assert len(keys) == 1 and None not in keys
        if first.path in ("/v1/jobs", "/registry/transfer"):
            assert first.json().get("id") or first.json().get("transfer_id")
        with pytest.raises(Unreachable):
            call(hub)
        other = [heard for heard in server.heard if heard.method == "POST"][-1]
        # Another call is another write.
        if None not in keys:
            assert other.headers["idempotency-key"] not in keys
        elif first.path in ("/v1/jobs", "/registry/transfer"):
            assert other.body != first.body


def _me() -> dict[str, Any]:
    account = {"owner": "o", "available": 1, "held": 0, "opened_at": "2026-01-01T00:00:00Z"}
    agent = {
        "id": 1, "name": "a", "owner": "o", "protocol": "registry", "names": {}, "skills": [],
        "score": 50, "rank_score": 50, "jobs_settled": 0, "counterparties": 0, "credits_paid": 0,
        "owner_failures": 0, "age_seconds": 1, "online": True,
        "registered_at": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    inbox = {"head": 0, "acked": 0}
    return {"agent": agent, "account": account, "inbox": inbox, "jobs_in_hand": 0}


def test_what_cannot_be_repeated_is_sent_again_only_if_it_was_not_done() -> None:
    with Server(lambda *_: Answer(None)) as server, Hub(server.url, key="k", retry=FAST) as hub:
        for call in (
            lambda: hub.register("a", "o", as_new=True),
            hub.unregister,
            hub.revoke_keys,
            lambda: hub.call("DELETE", "/v1/x"),
        ):
            before = len(server.heard)
            with pytest.raises(Unreachable):
                call()  # type: ignore[operator]
            assert len(server.heard) == before + 1
    with Server(lambda *_: BUSY) as server, Hub(server.url, key="k", retry=FAST) as hub:
        with pytest.raises(HubError):
            hub.register("a", "o", as_new=True)
        assert len(server.heard) == 4


def test_a_key_whose_answer_was_lost_is_made_once_more() -> None:
    answers = [Answer(None), Answer(200, {"others_until": None})]

    def answer(_: Heard, number: int) -> Answer:
        new = {"others_until": None, "key": "rk_new"}
        return answers[number] if number < len(answers) else Answer(200, new)

    with Server(answer) as server, Hub(server.url, key="rk_old", retry=FAST) as hub:
        assert hub.rotate_key().key == "rk_new"
        keys = [heard.headers["idempotency-key"] for heard in server.heard]
        assert len(keys) == 3
        assert keys[0] == keys[1] != keys[2]
        with pytest.raises(Unreadable):
            hub.me()
        assert server.heard[-1].headers["authorization"] == "Bearer rk_new"


def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    long = b'"' + b"x" * ANSWER_MAX + b'"'
    with Server(lambda *_: Answer(200, long)) as server, Hub(server.url, key="k") as hub:
        with pytest.raises(Unreadable, match="longer than"):
            hub.call("GET", "/x")


def test_an_answer_that_is_not_what_it_should_be_is_an_error() -> None:
    for body in (b"no json", b"[" * 100_000, b"{}", b"", b"\xff"):
        with Server(lambda *_, b=body: Answer(200, b)) as server, Hub(server.url, key="k") as hub:
            with pytest.raises(Unreadable):
                hub.job("a")


def test_a_hub_that_is_not_there_or_does_not_answer_is_said_to_be() -> None:
    with Server(lambda *_: Answer()) as server:
        url = server.url
    with Hub(url, key="k", retry=FAST) as hub:
        with pytest.raises(Unreachable, match="cannot reach http://127.0.0.1") as caught:
            hub.me()
        assert (caught.value.code, caught.value.was_sent) == ("unreachable", False)
    slow = Answer(200, b"", {"content-length": "5"})
    slow.headers = {"transfer-encoding": "chunked"}
    with Server(lambda *_: slow) as server:
        once = RetryPolicy(max_attempts=1)
        with Hub(server.url, key="k", timeout=0.3, retry=once) as hub:
            with pytest.raises(TimedOut) as late:
                hub.me()
            assert late.value.code == "timed_out"

        async def run() -> None:
            async with AsyncHub(server.url, key="k", timeout=0.3, retry=once) as hub:
                with pytest.raises(TimedOut):
                    await hub.me()

        asyncio.run(run())


def test_an_error_has_what_the_hub_says_in_any_form() -> None:
    forms = [
        {"code": "malformed", "detail": "must be a number", "field": "/budget", "example": 0.1,
         "retryable": False, "request_id": "r1"},
        {"error": {"code": "malformed", "message": "must be a number", "field": "/budget",
                   "example": 0.1, "retryable": False}, "request_id": "r1"},
        {"error_code": "malformed", "error_message": "must be a number"},
    ]  # fmt: skip
    for number, body in enumerate(forms):
        answer = Answer(400, body, {"x-request-id": "r1", "retry-after": "3"})
        with Server(lambda *_, a=answer: a) as server, Hub(server.url, key="k") as hub:
            with pytest.raises(HubError) as caught:
                hub.me()
        error = caught.value
        assert (error.status, error.code, error.message) == (400, "malformed", "must be a number")
        assert (error.retry_after, error.request_id) == (3, "r1")
        if number < 2:
            assert (error.field, error.hint) == ("/budget", "for example 0.1")
    with Server(lambda *_: Answer(502, b"<html>")) as server:
        with Hub(server.url, key="k", retry=RetryPolicy(max_attempts=1)) as hub:
            with pytest.raises(HubError) as proxied:
                hub.me()
    assert (proxied.value.code, proxied.value.status) == ("unknown", 502)


def test_a_redirect_is_not_followed_and_a_key_goes_to_its_hub_only() -> None:
    with Server(lambda *_: Answer()) as other:
        redirect = Answer(302, {}, {"location": f"{other.url}/v1/me"})
        with Server(lambda *_: redirect) as server, Hub(server.url, key="rk_1") as hub:
            with pytest.raises(HubError):
                hub.me()
        assert other.heard == []


def test_no_key_and_no_content_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "rialto_hub")
    with Server(lambda *_: BUSY) as server, Hub(server.url, key="rk_secret", retry=FAST) as hub:
        with pytest.raises(HubError):
            hub.open_job("s", {"text": "confidential"}, budget=0)
        assert "rk_secret" not in repr(hub)
    assert len(caplog.records) == 3
    assert "rk_secret" not in caplog.text and "confidential" not in caplog.text


def test_bad_arguments_are_refused_before_anything_is_sent() -> None:
    with Server(lambda *_: Answer()) as server, Hub(server.url, key="k") as hub:
        for call in (
            lambda: hub.hire("s", budget=0.1),  # type: ignore[arg-type]
            lambda: hub.hire("s", budget=0, id="no uuid"),
            lambda: hub.hire("s", {"a": float("nan")}, budget=0),
            lambda: hub.hire("s", {"a": object()}, budget=0),
            lambda: hub.open_job("s", budget=0, deadline=-1),
            lambda: hub.call("GET", "v1/me"),
        ):
            with pytest.raises(UsageError):
                call()
        assert server.heard == []
