"""JSON whose numbers keep their digits.

Answers of the hub are read with ``Decimal`` for every number that is not an integer. Amounts stay that
way. Numbers of users become ``float``, unless exact numbers are wanted.
"""

from __future__ import annotations

import json
import re
import secrets
from decimal import Decimal, InvalidOperation
from typing import Any

# Python refuses to convert longer integers, because that takes quadratic time.
_INTEGER_DIGITS_MAX = 4_000
# Stands before a decimal while it is written as text. Random, so that no input can contain it.
_MARK = secrets.token_hex(16)
_MARKED = re.compile(f'"{_MARK}([-+0-9.eE]+)"')


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _INTEGER_DIGITS_MAX else Decimal(digits)


def _decimal(digits: str) -> Decimal | float:
    try:
        return Decimal(digits)
    except InvalidOperation:
        # Its exponent has more digits than any number needs: it is infinite or zero.
        return float(digits)


def read(text: str | bytes) -> Any:
    """Parse JSON. Numbers with a point or an exponent become ``Decimal``. Raises ``ValueError``."""
    return json.loads(text, parse_float=_decimal, parse_int=_integer)


def with_floats(value: Any) -> Any:
    """Return the same value with ``float`` in place of ``Decimal``."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {name: with_floats(member) for name, member in value.items()}
    if isinstance(value, list):
        return [with_floats(item) for item in value]
    return value


def write(value: Any, *, sort_keys: bool = False) -> str:
    """Write JSON. ``Decimal`` keeps its digits. Raises ``ValueError`` or ``TypeError``."""
    has_decimals = False

    def special(value: object) -> str:
        nonlocal has_decimals
        if not isinstance(value, Decimal):
            raise TypeError(f"{type(value).__name__} cannot be written as JSON")
        if not value.is_finite():
            raise ValueError(f"{value} cannot be written as JSON")
        has_decimals = True
        return f"{_MARK}{value}"

    text = json.dumps(
        value,
        allow_nan=False,
        default=special,
        ensure_ascii=False,
        separators=(",", ":"),
        sort_keys=sort_keys,
    )
    return _MARKED.sub(r"\1", text) if has_decimals else text


def write_bytes(value: Any) -> bytes:
    """Write JSON as UTF-8. Text that is not valid Unicode raises ``ValueError``."""
    return write(value).encode()
