"""Reads JSON into dataclasses, by their type hints.

Members that a type does not have are ignored, so that a newer hub can add some, and so are new values of
an enumeration.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from ._errors import Unreadable
from ._json import with_floats
from ._time import parse_time

T = TypeVar("T")

# A decoder gets a value and whether numbers of users stay exact.
_Decoder = Callable[[Any, bool], Any]


class _Mismatch(Exception):
    """A value that is not what it should be, and where."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.path: list[str] = []


def decode(kind: type[T], value: Any, *, exact: bool = False) -> T:
    """Read a value as a type. ``exact`` keeps ``Decimal`` in members of any type."""
    try:
        decoded: T = _decoder(kind)(value, exact)
    except _Mismatch as error:
        where = ".".join(reversed(error.path))
        raise Unreadable(f"{where}: {error}" if where else str(error)) from None
    return decoded


def wire_name(field: dataclasses.Field[Any]) -> str:
    """Return the name of a member on the wire. Names that Python reserves have a ``_`` behind."""
    return field.name.rstrip("_")


def _decoder(hint: Any) -> _Decoder:
    """Return the decoder of a type hint."""
    if hint not in _DECODERS:
        _DECODERS[hint] = _make_decoder(hint)
    return _DECODERS[hint]


def _make_decoder(hint: Any) -> _Decoder:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _dataclass_decoder(hint)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (part for part in typing.get_args(hint) if part is not type(None))
        decode_inner = _decoder(inner)
        return lambda value, exact: None if value is None else decode_inner(value, exact)
    if origin is list:
        return _list_decoder(_decoder(typing.get_args(hint)[0]))
    if origin is dict:
        return _dict_decoder(_decoder(typing.get_args(hint)[1]))
    if origin is typing.Literal:
        return _expect(str, "text")
    raise TypeError(f"{hint} cannot be read")


def _dataclass_decoder(kind: type[Any]) -> _Decoder:
    hints = typing.get_type_hints(kind)
    members = [
        (
            wire_name(field),
            field.name,
            _decoder(hints[field.name]),
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind)
    ]

    def read(value: Any, exact: bool) -> Any:
        if not isinstance(value, dict):
            raise _Mismatch("it is not an object")
        given = {}
        for name, attribute, decode_member, is_required in members:
            if name in value:
                try:
                    given[attribute] = decode_member(value[name], exact)
                except _Mismatch as error:
                    error.path.append(name)
                    raise
            elif is_required:
                raise _Mismatch(f"{name} is missing")
        return kind(**given)

    return read


def _list_decoder(decode_item: _Decoder) -> _Decoder:
    def read(value: Any, exact: bool) -> Any:
        if not isinstance(value, list):
            raise _Mismatch("it is not a list")
        return [decode_item(item, exact) for item in value]

    return read


def _dict_decoder(decode_item: _Decoder) -> _Decoder:
    def read(value: Any, exact: bool) -> Any:
        if not isinstance(value, dict):
            raise _Mismatch("it is not an object")
        return {name: decode_item(item, exact) for name, item in value.items()}

    return read


def _expect(kind: type, name: str) -> _Decoder:
    def read(value: Any, _exact: bool) -> Any:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise _Mismatch(f"it is not {name}")
        return value

    return read


def _amount(value: Any, _exact: bool) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise _Mismatch("it is not an amount")
    return Decimal(value)


def _number(value: Any, _exact: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise _Mismatch("it is not a number")
    return float(value)


def _moment(value: Any, _exact: bool) -> datetime:
    try:
        return parse_time(value)
    except (TypeError, ValueError):
        raise _Mismatch("it is not a time") from None


def _anything(value: Any, exact: bool) -> Any:
    return value if exact else with_floats(value)


# The decoders made so far, each a function of its hint alone.
_DECODERS: dict[Any, _Decoder] = {
    str: _expect(str, "text"),
    int: _expect(int, "an integer"),
    bool: _expect(bool, "true or false"),
    Decimal: _amount,
    float: _number,
    datetime: _moment,
    Any: _anything,
}
