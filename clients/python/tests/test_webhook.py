"""Webhook signatures."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from rialto_hub import Hub, UsageError, WebhookError, verify_webhook

from .kit import Answer, Heard, HubProcess, Server

# The commonly used example of the specification.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'
AT = 1_614_265_330
GOOD = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "Webhook-Timestamp": str(AT),
    "webhook-signature": GOOD,
}


def code(**changes: Any) -> str:
    given = {"secret": SECRET, "headers": HEADERS, "body": BODY, "now": AT, **changes}
    now = given.pop("now")
    with pytest.raises(WebhookError) as caught:
        verify_webhook(**given, now=now)
    return caught.value.code


def test_the_published_example_verifies_and_nothing_else_does() -> None:
    assert verify_webhook(SECRET, HEADERS, BODY, now=AT) == HEADERS["webhook-id"]
    assert verify_webhook(SECRET, list(HEADERS.items()), BODY.decode(), now=AT)
    other = "whsec_" + base64.b64encode(bytes([9] * 32)).decode()
    assert verify_webhook([other, SECRET], HEADERS, BODY, now=AT)
    several = {**HEADERS, "webhook-signature": f"v1a,abc v1,AAAA v1,* {GOOD}"}
    assert verify_webhook(SECRET, several, BODY, now=AT)
    assert code(body=b"{}") == "bad_signature"
    assert code(secret=other) == "bad_signature"
    assert code(headers={**HEADERS, "webhook-id": "other"}) == "bad_signature"
    assert code(headers={**HEADERS, "Webhook-Timestamp": str(AT + 1)}) == "bad_signature"
    for name in HEADERS:
        rest = {key: value for key, value in HEADERS.items() if key != name}
        assert code(headers=rest) == "bad_headers"
    for wrong in ("soon", "-1", "²", "9" * 99):
        assert code(headers={**HEADERS, "Webhook-Timestamp": wrong}) == "bad_headers"


def test_a_delivery_is_believed_for_five_minutes_either_way() -> None:
    for off in (-300, 300):
        assert verify_webhook(SECRET, HEADERS, BODY, now=AT + off)
    for off in (-301, 301):
        assert code(now=AT + off) == "stale"


def test_a_secret_that_is_none_is_a_mistake_of_the_program() -> None:
    for wrong in ("", "whsec_", "whsec_AAEC", SECRET.removeprefix("whsec_"), "whsec_*", []):
        with pytest.raises(UsageError):
            verify_webhook(wrong, HEADERS, BODY, now=AT)


def test_deliveries_of_a_real_hub_verify_with_the_old_and_the_new_secret(
    hub_process: HubProcess, boss: Hub
) -> None:
    with Server(lambda *_: Answer(200)) as endpoint:
        me = boss.me().agent
        first = boss.register("hooked", me.owner, endpoint=endpoint.url).webhook_secret
        assert first is not None
        assert boss.test_webhook().delivered
        second = boss.rotate_webhook_secret().webhook_secret
        assert second is not None
        assert boss.test_webhook().delivered
        old, new = endpoint.heard

        def verifies(secret: str, heard: Heard) -> bool:
            try:
                return bool(verify_webhook(secret, heard.headers, heard.body))
            except WebhookError:
                return False

        assert (verifies(first, old), verifies(second, old)) == (True, False)
        assert (verifies(first, new), verifies(second, new)) == (True, True)
        assert list(boss.deliveries()) == []
