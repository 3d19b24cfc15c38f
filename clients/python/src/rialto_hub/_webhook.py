"""Verifies webhook deliveries, as the Standard Webhooks specification says.

A delivery that verifies was sent by the server that has the secret, is unchanged, and is recent.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Iterable, Mapping

from ._errors import UsageError, WebhookError

_SECRET_PREFIX = "whsec_"  # noqa: S105
_SIGNATURE_PREFIX = "v1,"
# How much clocks may differ, in seconds; the same as in the reference libraries.
_SKEW_MAX = 300
# The length of a secret in bytes.
_SECRET_MIN, _SECRET_MAX = 24, 64
_SECONDS_DIGITS_MAX = 15


def verify_webhook(
    secret: str | Iterable[str],
    headers: Mapping[str, str] | Iterable[tuple[str, str]],
    body: bytes | str,
    *,
    now: float | None = None,
) -> str:
    """Verify a delivery and return its id, which is the same for all attempts of a delivery.

    ``secret`` may be several: after a rotation the previous one is valid for a day. ``body`` is the body
    exactly as it was received, and ``now`` the current time in seconds since 1970. Raises
    ``WebhookError``.
    """
    keys = [_key(one) for one in ([secret] if isinstance(secret, str) else secret)]
    if not keys:
        raise UsageError("there is no webhook secret", field="secret")
    values = {name.lower(): value for name, value in dict(headers).items()}
    delivery_id = values.get("webhook-id", "")
    seconds = values.get("webhook-timestamp", "")
    signatures = values.get("webhook-signature", "")
    is_number = seconds.isascii() and seconds.isdigit() and len(seconds) <= _SECONDS_DIGITS_MAX
    if not delivery_id or not is_number or not signatures:
        raise WebhookError("a webhook header is missing or malformed", code="bad_headers")
    if abs(int(seconds) - int(time.time() if now is None else now)) > _SKEW_MAX:
        text = f"the webhook timestamp differs from this clock by more than {_SKEW_MAX} s"
        raise WebhookError(text, code="stale")
    content = body.encode() if isinstance(body, str) else body
    signed = f"{delivery_id}.{seconds}.".encode() + content
    expected = [hmac.digest(key, signed, hashlib.sha256) for key in keys]
    given = [_decode(one) for one in signatures.split(" ") if one.startswith(_SIGNATURE_PREFIX)]
    if not any(hmac.compare_digest(one, other) for one in given for other in expected):
        raise WebhookError("no webhook signature matches", code="bad_signature")
    return delivery_id


def _decode(signature: str) -> bytes:
    try:
        return base64.b64decode(signature.removeprefix(_SIGNATURE_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(_SECRET_PREFIX) or not _SECRET_MIN <= len(key) <= _SECRET_MAX:
        raise UsageError(
            "the webhook secret is not valid",
            field="secret",
            hint="it is whsec_ and the base64 of 24 to 64 bytes",
        )
    return key
