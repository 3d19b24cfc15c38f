"""Type hints of handlers: their JSON Schema, and values between JSON and Python.

pydantic models are used if they occur; this module does not need pydantic.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
import types
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, TypeAlias

from .._json import with_floats
from .._time import format_time, parse_time
from ._validate import Validator, bad_schema

# A loader turns JSON that matches the schema into a value of the type. Raises ``ValueError``.
Loader: TypeAlias = Callable[[Any], Any]
JsonSchema: TypeAlias = dict[str, Any]

_DEPTH_MAX = 64
_MAPPINGS = (dict, Mapping)
_LISTS = (list, Sequence)
# The markers of members, and whether such a member is required. Python 3.10 does not have them.
_MARKERS: dict[Any, bool] = {
    getattr(typing, name): is_required
    for name, is_required in (("Required", True), ("NotRequired", False))
    if hasattr(typing, name)
}


class Converter:
    """The schema and the loader of one type hint."""

    def __init__(self, hint: Any, *, exact: bool) -> None:
        self._exact = exact
        self._definitions: dict[str, JsonSchema] = {}
        self._loaders: dict[str, Loader] = {}
        self._named: dict[Any, str] = {}
        schema, self.load = self._convert(hint)
        if self._definitions:
            schema = {**schema, "$defs": self._definitions}
        self.schema: JsonSchema = schema

    def _convert(self, hint: Any) -> tuple[JsonSchema, Loader]:
        if hint in (Any, object):
            return {}, self._anything
        if hint is None or hint is type(None):
            return {"type": "null"}, _same
        plain = _PLAIN.get(hint) if isinstance(hint, type) else None
        if plain is not None:
            return dict(plain[0]), plain[1]
        if hint in _LISTS:
            return {"type": "array"}, self._anything
        if hint in _MAPPINGS:
            return {"type": "object"}, self._anything
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is Annotated:
            return self._annotated(arguments)
        if origin is not None:
            return self._generic(hint, origin, arguments)
        if isinstance(hint, type):
            return self._class(hint)
        supertype = getattr(hint, "__supertype__", None)
        if supertype is not None:
            return self._convert(supertype)
        raise bad_schema(f"{hint!r} has no JSON Schema; use another type, or give a schema")

    def _annotated(self, arguments: tuple[Any, ...]) -> tuple[JsonSchema, Loader]:
        hint, *extras = arguments
        if any(type(extra).__module__.partition(".")[0] == "pydantic" for extra in extras):
            return self._pydantic(Annotated[tuple(arguments)])
        schema, load = self._convert(hint)
        for extra in extras:
            # A text describes the member, as is usual.
            if isinstance(extra, str):
                schema = {**schema, "description": extra}
        return schema, load

    def _generic(
        self, hint: Any, origin: Any, arguments: tuple[Any, ...]
    ) -> tuple[JsonSchema, Loader]:
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments)
        if origin is typing.Literal:
            return {"enum": list(arguments)}, _same
        if origin in _LISTS:
            schema, load = self._convert(arguments[0])
            return {"type": "array", "items": schema}, lambda value: [load(one) for one in value]
        if origin is tuple:
            return self._tuple(arguments)
        if origin in _MAPPINGS and arguments[0] is str:
            schema, load = self._convert(arguments[1])
            return (
                {"type": "object", "additionalProperties": schema},
                lambda value: {name: load(member) for name, member in value.items()},
            )
        if isinstance(origin, type) and _is_model(origin):
            return self._pydantic(hint)
        raise bad_schema(f"{hint!r} has no JSON Schema; use another type, or give a schema")

    def _union(self, arguments: tuple[Any, ...]) -> tuple[JsonSchema, Loader]:
        options = [self._convert(option) for option in arguments]
        if len(options) == 2 and {"type": "null"} in [schema for schema, _ in options]:
            (schema, load), *_ = [one for one in options if one[0] != {"type": "null"}]
            return (
                {"anyOf": [schema, {"type": "null"}]},
                lambda value: None if value is None else load(value),
            )
        schemas = [schema for schema, _ in options]
        # The definitions are complete only when the whole hint is read.
        checks: list[Any] = []

        def load_union(value: Any) -> Any:
            if not checks:
                checks.extend(self._checks(schemas))
            for (_, load), check in zip(options, checks, strict=True):
                if not check(value):
                    return load(value)
            raise ValueError("it fits none of the types")

        return {"anyOf": schemas}, load_union

    def _checks(self, schemas: list[JsonSchema]) -> list[Callable[[Any], list[str]]]:
        return [
            Validator({**schema, "$defs": self._definitions}, is_generated=True).check
            for schema in schemas
        ]

    def _tuple(self, arguments: tuple[Any, ...]) -> tuple[JsonSchema, Loader]:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            schema, load = self._convert(arguments[0])
            return (
                {"type": "array", "items": schema},
                lambda value: tuple(load(item) for item in value),
            )
        options = [self._convert(item) for item in arguments]
        count = len(options)
        return (
            {
                "type": "array",
                "prefixItems": [schema for schema, _ in options],
                "minItems": count,
                "maxItems": count,
            },
            lambda value: tuple(load(item) for (_, load), item in zip(options, value, strict=True)),
        )

    def _class(self, kind: type) -> tuple[JsonSchema, Loader]:
        if issubclass(kind, enum.Enum):
            values = {_enum_value(member): member for member in kind}
            return {"enum": list(values)}, lambda value: values[value]
        if _is_model(kind):
            return self._pydantic(kind)
        if dataclasses.is_dataclass(kind) or typing.is_typeddict(kind):
            return self._record(kind)
        raise bad_schema(
            f"{kind.__qualname__} has no JSON Schema; use a dataclass, a TypedDict, a pydantic "
            "model, or give a schema"
        )

    def _record(self, kind: type) -> tuple[JsonSchema, Loader]:
        name = self._named.get(kind)
        if name is None:
            name = kind.__name__
            while name in self._definitions:
                name += "_"
            self._named[kind] = name
            # A type may contain itself.
            self._definitions[name] = {}
            members = record_members(kind)
            schema, load = self._members(members, kind)
            self._definitions[name] = schema
            self._loaders[name] = load
        named = name
        return {"$ref": f"#/$defs/{named}"}, lambda value: self._loaders[named](value)

    def _members(
        self, members: list[tuple[str, Any, bool]], build: Callable[..., Any]
    ) -> tuple[JsonSchema, Loader]:
        properties, loaders = {}, {}
        for name, hint, _ in members:
            properties[name], loaders[name] = self._convert(hint)
        schema: JsonSchema = {"type": "object", "properties": properties}
        required = [name for name, _, is_required in members if is_required]
        if required:
            schema["required"] = required
        return schema, lambda value: build(**load_members(loaders, value))

    def _pydantic(self, hint: Any) -> tuple[JsonSchema, Loader]:
        import pydantic  # noqa: PLC0415

        if not hasattr(pydantic, "TypeAdapter"):
            raise bad_schema("models need version 2 of pydantic")
        adapter = pydantic.TypeAdapter(hint)
        schema = adapter.json_schema(mode="validation")
        definitions = schema.pop("$defs", {})
        for name, definition in definitions.items():
            if self._definitions.setdefault(name, definition) != definition:
                raise bad_schema(f"two types have the name {name}; rename one of them")

        def load(value: Any) -> Any:
            try:
                return adapter.validate_python(with_floats(value))
            except pydantic.ValidationError as error:
                texts = (
                    f"{'.'.join(map(str, wrong['loc']))} {wrong['msg']}".strip()
                    for wrong in error.errors(include_url=False, include_input=False)
                )
                raise ValueError("; ".join(texts)) from None

        return schema, load

    def _anything(self, value: Any) -> Any:
        return value if self._exact else with_floats(value)


def record_members(kind: type) -> list[tuple[str, Any, bool]]:
    """Return the members of a dataclass or ``TypedDict``: name, hint, and whether it is required."""
    hints = typing.get_type_hints(kind, include_extras=True)
    if typing.is_typeddict(kind):
        required = getattr(kind, "__required_keys__", frozenset(hints))
        return [_typed_dict_member(name, hint, name in required) for name, hint in hints.items()]
    return [
        (
            field.name,
            hints[field.name],
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind)
        if field.init
    ]


def _typed_dict_member(name: str, hint: Any, is_required: bool) -> tuple[str, Any, bool]:
    marker = typing.get_origin(hint)
    if marker in _MARKERS:
        return name, typing.get_args(hint)[0], _MARKERS[marker]
    return name, hint, is_required


def load_members(loaders: Mapping[str, Loader], value: Mapping[str, Any]) -> dict[str, Any]:
    """Load the members of an object that are known; others are left out."""
    loaded = {}
    for name, load in loaders.items():
        if name in value:
            try:
                loaded[name] = load(value[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
    return loaded


def is_record(hint: Any) -> bool:
    """Whether a type is an object with named members."""
    if not isinstance(hint, type):
        return False
    return dataclasses.is_dataclass(hint) or typing.is_typeddict(hint) or _is_model(hint)


def _is_model(kind: type) -> bool:
    # A model can only exist if pydantic is imported already.
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(kind, pydantic.BaseModel)


def _enum_value(member: enum.Enum) -> Any:
    value = member.value
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise bad_schema(f"{type(member).__qualname__} must have text or numbers as values")
    return value


def _same(value: Any) -> Any:
    return value


def _time(value: str) -> datetime:
    return parse_time(value)


def _integer(value: Any) -> int:
    return int(value)


def _decimal(value: Any) -> Decimal:
    return Decimal(value)


_PLAIN: dict[type, tuple[JsonSchema, Loader]] = {
    str: ({"type": "string"}, _same),
    bool: ({"type": "boolean"}, _same),
    int: ({"type": "integer"}, _integer),
    float: ({"type": "number"}, float),
    Decimal: ({"type": "number"}, _decimal),
    datetime: ({"type": "string", "format": "date-time"}, _time),
    date: ({"type": "string", "format": "date"}, date.fromisoformat),
    uuid.UUID: ({"type": "string", "format": "uuid"}, uuid.UUID),
}


def to_json(value: Any, depth: int = 0) -> Any:
    """Turn what a handler gives into JSON. Raises ``ValueError`` or ``TypeError``."""
    if depth > _DEPTH_MAX:
        raise ValueError(f"it is nested more than {_DEPTH_MAX} levels deep")
    if value is None or isinstance(value, str | bool | int | Decimal):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a number in JSON")
        return value
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"the name {name!r} of a member is not text")
        return {name: to_json(member, depth + 1) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item, depth + 1) for item in value]
    return _object_to_json(value, depth)


def _object_to_json(value: Any, depth: int) -> Any:
    if isinstance(value, enum.Enum):
        return to_json(value.value, depth + 1)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a time without a time zone is not a time for others")
        return format_time(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_json(getattr(value, field.name), depth + 1)
            for field in dataclasses.fields(value)
        }
    if _is_model(type(value)):
        model: Any = value
        return to_json(model.model_dump(mode="json", by_alias=True), depth + 1)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
