"""JSON, amounts and times."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest

from rialto_hub import UsageError
from rialto_hub._json import read, with_floats, write, write_bytes
from rialto_hub._money import DECIMALS, parse_amount
from rialto_hub._time import format_time, parse_deadline, parse_time


def test_numbers_keep_their_digits_from_text_to_text() -> None:
    text = '{"a":1.10,"b":[0.1,1E+400,-0.0],"c":123456789012345678901234567890,"d":1}'
    assert write(read(text)) == text
    assert with_floats(read('{"a":[1.10]}')) == {"a": [1.1]}
    assert type(with_floats(read("1.5"))) is float


def test_an_integer_of_any_length_is_read() -> None:
    digits = "9" * 50_000
    assert write(read(digits)) == digits.replace("9" * 50_000, str(Decimal(digits)))


def test_a_number_beyond_all_bounds_is_read() -> None:
    for digits, value in (("1e999999999999999999999", float("inf")), ("1e-9999999999999999999", 0)):
        assert float(read(digits)) == value
        assert float(with_floats(read(digits))) == value
    assert with_floats(read("[1e400,-1e400]")) == [float("inf"), float("-inf")]


def test_text_that_looks_like_a_number_stays_text() -> None:
    for value in ("1.5", '"1.5"', "\x00", "😀"):
        assert read(write({"v": value, "n": Decimal("1.5")})) == {"v": value, "n": Decimal("1.5")}


def test_what_json_cannot_hold_is_refused() -> None:
    for value in (float("nan"), float("inf"), Decimal("NaN"), Decimal("Infinity")):
        with pytest.raises(ValueError):
            write({"v": value})
    with pytest.raises(TypeError):
        write({"v": object()})
    with pytest.raises(ValueError):
        write_bytes("\ud800")


def test_an_amount_is_text_a_decimal_or_an_int_and_never_a_float() -> None:
    assert parse_amount("0.10", "budget") == Decimal("0.10")
    assert str(parse_amount(Decimal("1E+2"), "budget")) == "100"
    assert parse_amount(7, "budget") == 7
    assert parse_amount("0.000001", "price", decimals=DECIMALS) == Decimal("0.000001")
    for wrong in (0.1, True, None, "", "a", "1_0", "NaN", "-1", "0.001", "1000000001", "∞"):
        with pytest.raises(UsageError) as caught:
            parse_amount(wrong, "budget")  # type: ignore[arg-type]
        assert (caught.value.code, caught.value.field) == ("invalid", "budget"), wrong


def test_times_are_read_in_any_zone_and_written_in_utc() -> None:
    at = datetime(2026, 2, 11, 14, 15, 9, 123_000, tzinfo=timezone.utc)
    for text in (
        "2026-02-11T14:15:09.123Z",
        "2026-02-11t14:15:09.123z",
        "2026-02-11T16:15:09.123+02:00",
        "2026-02-11 12:45:09.123000-01:30",
    ):
        assert parse_time(text) == at
    assert format_time(at) == "2026-02-11T14:15:09.123Z"
    for wrong in ("2026-02-11", "2026-02-11T14:15:09", "2026-13-11T14:15:09Z", ""):
        with pytest.raises(ValueError):
            parse_time(wrong)


def test_a_deadline_is_a_time_or_a_duration() -> None:
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert parse_deadline(90, now) == "2026-01-01T00:01:30.000Z"
    assert parse_deadline(timedelta(hours=1), now) == "2026-01-01T01:00:00.000Z"
    assert parse_deadline(now, now) == "2026-01-01T00:00:00.000Z"
    for wrong in (0, -1, datetime(2026, 1, 1)):
        with pytest.raises(UsageError):
            parse_deadline(wrong, now)
