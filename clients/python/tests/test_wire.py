"""The wire types are those of the hub's API document."""

from __future__ import annotations

import dataclasses
import types
import typing
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from rialto_hub import Hub, Unreadable
from rialto_hub._codec import decode, wire_name
from rialto_hub._wire import SCHEMAS, JobView, Notice

from .kit import HubProcess

# What a member may be, as far as types of Python say it.
Shape = dict[str, Any]
_PLAIN: dict[Any, Shape] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    Decimal: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
}


@pytest.fixture(scope="module")
def document(hub_process: HubProcess) -> Any:
    with Hub(hub_process.url, key="") as hub:
        return hub.call("GET", "/openapi.json")


def shape_of_hint(hint: Any) -> Shape:
    """The shape that a type hint says."""
    if hint is Any:
        return {}
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return {"type": "string", "format": arguments[1]}
    if origin in (typing.Union, types.UnionType):
        rest = [one for one in arguments if one is not type(None)]
        shape = shape_of_hint(rest[0])
        if len(rest) > 1:
            shape = {"types": sorted(shape_of_hint(one)["type"] for one in rest)}
        return {**shape, "nullable": True} if len(rest) < len(arguments) else shape
    if origin is typing.Literal:
        return {"type": "string", "enum": sorted(arguments)}
    if origin is list:
        return {"type": "array", "items": shape_of_hint(arguments[0])}
    if origin is dict:
        members = shape_of_hint(arguments[1])
        return {"type": "object", **({"values": members} if members else {})}
    names = [name for name, kind in SCHEMAS.items() if kind is hint]
    assert names, hint
    return {"ref": names[0]}


def shape_of_schema(schema: Any, document: Any) -> Shape:
    """The shape that a schema of the document says, without what types of Python do not say."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        target = document["components"]["schemas"][name]
        return shape_of_schema(target, document) if "enum" in target else {"ref": name}
    if "anyOf" in schema:
        rest = [one for one in schema["anyOf"] if one != {"type": "null"}]
        shape = shape_of_schema(rest[0], document)
        return {**shape, "nullable": True} if len(rest) < len(schema["anyOf"]) else shape
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    shape: Shape = {"nullable": True} if "null" in kinds else {}
    kinds = [kind for kind in kinds if kind != "null"]
    if len(kinds) == 1:
        shape["type"] = kinds[0]
    elif kinds:
        shape["types"] = sorted(kinds)
    if "enum" in schema:
        shape["enum"] = sorted(one for one in schema["enum"] if one is not None)
    if schema.get("format") == "date-time":
        shape["format"] = "date-time"
    if "items" in schema:
        shape["items"] = shape_of_schema(schema["items"], document)
    if isinstance(schema.get("additionalProperties"), dict) and schema["additionalProperties"]:
        shape["values"] = shape_of_schema(schema["additionalProperties"], document)
    return shape


def members_of(kind: type[Any]) -> dict[str, tuple[Any, bool]]:
    """The members of a wire type: hint, and whether it is required."""
    hints = typing.get_type_hints(kind, include_extras=True)
    if typing.is_typeddict(kind):
        required: frozenset[str] = getattr(kind, "__required_keys__")  # noqa: B009
        return {name: (hint, name in required) for name, hint in hints.items()}
    missing = dataclasses.MISSING
    return {
        wire_name(member): (
            hints[member.name],
            member.default is missing and member.default_factory is missing,
        )
        for member in dataclasses.fields(kind)
    }


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_wire_type_has_the_members_of_its_schema(name: str, document: Any) -> None:
    schema = document["components"]["schemas"][name]
    members = members_of(SCHEMAS[name])
    assert set(members) == set(schema["properties"]), "members"
    required = {member for member, (_, is_required) in members.items() if is_required}
    assert required == set(schema.get("required", [])), "required members"
    for member, (hint, is_required) in members.items():
        wanted = shape_of_schema(schema["properties"][member], document)
        shape = shape_of_hint(hint)
        if not is_required and "nullable" not in wanted:
            # What may be missing is None here.
            shape.pop("nullable", None)
        assert shape == wanted, member


def test_every_schema_that_this_package_calls_has_a_type(document: Any) -> None:
    named = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            reference = value.get("$ref", "")
            if reference.startswith("#/components/schemas/"):
                name = reference.rsplit("/", 1)[-1]
                if name not in named:
                    named.add(name)
                    walk(document["components"]["schemas"][name])
            for member in value.values():
                walk(member)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    for path, operations in document["paths"].items():
        if path.startswith("/v1/") and not path.startswith("/v1/operator/"):
            walk(operations)
    # What the operator reads on its stream, errors, and what only the command line calls.
    others = {
        "HubLineView",
        "HubProblem",
        "HubProblemCode",
        "HubDeliveryPreview",
        "HubDeliveryView",
        "HubKeyList",
        "HubKeyView",
        "HubLimitedKeyBody",
        "HubLimitedKeyResponse",
    }
    assert named - set(SCHEMAS) - others == set()


def test_unknown_members_and_values_of_a_newer_hub_do_no_harm() -> None:
    notice = {"position": 1, "kind": "of_tomorrow", "at": "2026-01-01T00:00:00Z", "more": {}}
    assert decode(Notice, notice).kind == "of_tomorrow"


def test_a_member_of_a_wrong_type_is_named() -> None:
    for value, text in (
        ([], "it is not an object"),
        ({}, "id is missing"),
        ({"id": 1}, "id: it is not text"),
    ):
        with pytest.raises(Unreadable, match=text):
            decode(JobView, value)
