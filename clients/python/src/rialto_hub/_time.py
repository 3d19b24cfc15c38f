"""Times as the hub writes them (RFC 3339)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from ._errors import UsageError

_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:([Zz])|([+-])(\d\d):(\d\d))"
)


def parse_time(text: str) -> datetime:
    """Parse a time. Raises ``ValueError``."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise ValueError(f"{text!r} is not a time")
    year, month, day, hour, minute, second = (int(form[at]) for at in range(1, 7))
    micros = int((form[7] or "0").ljust(6, "0")[:6])
    offset = timedelta(0)
    if form[8] is None:
        offset = timedelta(hours=int(form[10]), minutes=int(form[11]))
        offset = -offset if form[9] == "-" else offset
    at = datetime(year, month, day, hour, minute, second, micros, tzinfo=timezone.utc)
    return at - offset


def format_time(at: datetime) -> str:
    """Write a time in UTC, with milliseconds."""
    utc = at.astimezone(timezone.utc)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03}Z"


def parse_deadline(given: datetime | timedelta | float, now: datetime) -> str:
    """Return a deadline as text: a time, or a duration from now, in seconds or as ``timedelta``."""
    if isinstance(given, datetime):
        if given.tzinfo is None:
            text = "the deadline has no time zone"
            raise UsageError(text, field="deadline", hint="write datetime.now(timezone.utc)")
        return format_time(given)
    length = given if isinstance(given, timedelta) else timedelta(seconds=given)
    if length <= timedelta(0):
        raise UsageError("the deadline must be above zero seconds", field="deadline")
    return format_time(now + length)


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(timezone.utc)
