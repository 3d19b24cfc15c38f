"""Amounts of credits: decimal, never a float."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from ._errors import UsageError

#: An amount as callers give it: ``"0.10"``, ``Decimal("0.10")`` or ``1``.
Amount: TypeAlias = str | int | Decimal

#: Decimals of a price, a budget and a payment.
PRICE_DECIMALS = 2
#: Decimals of any amount.
DECIMALS = 6
_MAX = Decimal(1_000_000_000)


def parse_amount(value: Amount, name: str, *, decimals: int = PRICE_DECIMALS) -> Decimal:
    """Check an amount and return it. Floats are refused, because they lose digits."""
    hint = 'write it like "0.10"'
    wrong = UsageError(f"{name} must be an amount: text, Decimal or int", field=name, hint=hint)
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise wrong
    text = str(value).strip()
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise wrong from None
    if not amount.is_finite() or "_" in text:
        raise wrong
    if amount < 0 or amount > _MAX:
        raise UsageError(f"{name} must be between 0 and {_MAX}", field=name, hint=hint)
    exponent = amount.normalize().as_tuple().exponent
    if isinstance(exponent, int) and -exponent > decimals:
        raise UsageError(f"{name} has more than {decimals} decimals", field=name, hint=hint)
    # Without an exponent, which not every parser of amounts takes.
    return Decimal(f"{amount:f}")
