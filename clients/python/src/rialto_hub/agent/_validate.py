"""JSON Schema: what can be stated about inputs, outputs and answers, and the check of a value.

Keywords outside the supported set are refused when a schema is read, because a rule that is not checked
is worse than none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from .. import _json
from .._errors import AgentError

#: How many violations one check reports.
VIOLATIONS_MAX = 20
#: The digits of an integer that is written with an exponent.
INTEGER_DIGITS_MAX = 4_000
_QUOTE_MAX = 200
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_ARTICLES = {"integer": "an", "array": "an", "object": "an"}
_ANNOTATIONS = frozenset(
    {
        "$comment",
        "$id",
        "$schema",
        "default",
        "deprecated",
        "description",
        "examples",
        "format",
        "readOnly",
        "title",
        "writeOnly",
    }
)

# A check gets a value and its path, and returns what is wrong.
_Check: TypeAlias = Callable[[Any, str], list[str]]


def bad_schema(text: str) -> AgentError:
    """Return the error for a schema that cannot be used."""
    return AgentError(text, code="bad_skill")


class Validator:
    """A schema that is ready to check values.

    A generated schema may have other keywords, which come from a library that checks them itself.
    """

    def __init__(self, schema: Mapping[str, Any], *, is_generated: bool = False) -> None:
        self.schema: dict[str, Any] = dict(schema)
        self._is_generated = is_generated
        self._definitions: dict[str, _Check] = {}
        self._references: set[str] = set()
        self._root = self._compile(self.schema, "#")
        for name, definition in self._members(self.schema, "$defs", "#").items():
            self._definitions[f"#/$defs/{name}"] = self._compile(definition, f"#/$defs/{name}")
        self._definitions["#"] = self._root
        for reference in self._references - self._definitions.keys():
            raise bad_schema(f"the schema refers to {reference}, which it does not have")

    def check(self, value: Any) -> list[str]:
        """Return what is wrong with a value; nothing if it matches."""
        return self._root(value, "")[:VIOLATIONS_MAX]

    def _compile(self, schema: Any, at: str) -> _Check:
        if schema is True:
            return lambda _value, _path: []
        if schema is False:
            return lambda _value, path: [_say(path, "is not allowed")]
        if not isinstance(schema, Mapping):
            raise bad_schema(f"the schema at {at} must be an object, true or false")
        checks: list[_Check] = []
        for keyword, rule in schema.items():
            if keyword in _ANNOTATIONS or keyword == "$defs":
                continue
            compile_keyword = _KEYWORDS.get(keyword)
            if compile_keyword is None and self._is_generated:
                continue
            if compile_keyword is None:
                raise bad_schema(f"the schema at {at} has {keyword}, which is not supported")
            check = compile_keyword(self, rule, schema, f"{at}/{keyword}")
            if check is not None:
                checks.append(check)

        def check_all(value: Any, path: str) -> list[str]:
            wrong: list[str] = []
            for check in checks:
                wrong += check(value, path)
                if len(wrong) >= VIOLATIONS_MAX:
                    break
            return wrong

        return check_all

    @staticmethod
    def _members(schema: Mapping[str, Any], keyword: str, at: str) -> Mapping[str, Any]:
        members = schema.get(keyword, {})
        if not isinstance(members, Mapping):
            raise bad_schema(f"{keyword} at {at} must be an object")
        return members

    def _reference(self, rule: Any, _schema: Any, at: str) -> _Check:
        if not isinstance(rule, str) or not (rule == "#" or rule.startswith("#/$defs/")):
            raise bad_schema(f"{at} must be # or begin with #/$defs/")
        self._references.add(rule)
        return lambda value, path: self._definitions[rule](value, path)

    def _type(self, rule: Any, _schema: Any, at: str) -> _Check:
        names = rule if isinstance(rule, list) else [rule]
        if not names or not all(isinstance(name, str) and name in _TYPES for name in names):
            raise bad_schema(f"{at} must be one of {', '.join(sorted(_TYPES))}")
        wanted = " or ".join(f"{_ARTICLES.get(name, 'a')} {name}" for name in names)
        wanted = wanted.replace("a null", "null")

        def check(value: Any, path: str) -> list[str]:
            fits = any(_has_type(value, name) for name in names)
            return [] if fits else [_say(path, f"must be {wanted}")]

        return check

    def _properties(self, rule: Any, schema: Mapping[str, Any], at: str) -> _Check:
        if not isinstance(rule, Mapping):
            raise bad_schema(f"{at} must be an object")
        del schema
        members = {name: self._compile(member, f"{at}/{name}") for name, member in rule.items()}

        def check(value: Any, path: str) -> list[str]:
            if not isinstance(value, Mapping):
                return []
            wrong: list[str] = []
            for name, check_member in members.items():
                if name in value:
                    wrong += check_member(value[name], _join(path, name))
            return wrong

        return check

    def _required(self, rule: Any, _schema: Any, at: str) -> _Check:
        if not isinstance(rule, list) or not all(isinstance(name, str) for name in rule):
            raise bad_schema(f"{at} must be a list of names")

        def check(value: Any, path: str) -> list[str]:
            if not isinstance(value, Mapping):
                return []
            return [_say(_join(path, name), "is required") for name in rule if name not in value]

        return check

    def _additional_properties(self, rule: Any, schema: Mapping[str, Any], at: str) -> _Check:
        known = frozenset(self._members(schema, "properties", at))
        check_other = self._compile(rule, at)

        def check(value: Any, path: str) -> list[str]:
            if not isinstance(value, Mapping):
                return []
            wrong: list[str] = []
            for name, member in value.items():
                if name not in known:
                    wrong += check_other(member, _join(path, name))
            return wrong

        return check

    def _items(self, rule: Any, schema: Mapping[str, Any], at: str) -> _Check:
        prefix = schema.get("prefixItems", [])
        first = len(prefix) if isinstance(prefix, list) else 0
        check_item = self._compile(rule, at)

        def check(value: Any, path: str) -> list[str]:
            wrong: list[str] = []
            for at_item, item in enumerate(value if isinstance(value, list) else []):
                if at_item >= first:
                    wrong += check_item(item, _join(path, str(at_item)))
                if len(wrong) >= VIOLATIONS_MAX:
                    break
            return wrong

        return check

    def _prefix_items(self, rule: Any, _schema: Any, at: str) -> _Check:
        if not isinstance(rule, list):
            raise bad_schema(f"{at} must be a list")
        checks = [self._compile(item, f"{at}/{number}") for number, item in enumerate(rule)]

        def check(value: Any, path: str) -> list[str]:
            items = value if isinstance(value, list) else []
            wrong: list[str] = []
            for number, (check_item, item) in enumerate(zip(checks, items, strict=False)):
                wrong += check_item(item, _join(path, str(number)))
            return wrong

        return check

    def _unique_items(self, rule: Any, _schema: Any, _at: str) -> _Check | None:
        if rule is not True:
            return None

        def check(value: Any, path: str) -> list[str]:
            if not isinstance(value, list):
                return []
            texts = {_json.write(item, sort_keys=True) for item in value}
            return [] if len(texts) == len(value) else [_say(path, "must not have an item twice")]

        return check

    def _enum(self, rule: Any, _schema: Any, at: str) -> _Check:
        if not isinstance(rule, list) or not rule:
            raise bad_schema(f"{at} must be a list")
        shown = [_quote(option) for option in rule]
        wanted = shown[0] if len(shown) == 1 else _cut(f"one of {', '.join(shown)}")

        def check(value: Any, path: str) -> list[str]:
            fits = any(_is_equal(value, option) for option in rule)
            return [] if fits else [_say(path, f"must be {wanted}")]

        return check

    def _const(self, rule: Any, _schema: Any, _at: str) -> _Check:
        def check(value: Any, path: str) -> list[str]:
            fits = _is_equal(value, rule)
            return [] if fits else [_say(path, f"must be {_quote(rule)}")]

        return check

    def _any_of(self, rule: Any, _schema: Any, at: str) -> _Check:
        checks = self._list(rule, at)

        def check(value: Any, path: str) -> list[str]:
            if any(not check_one(value, path) for check_one in checks):
                return []
            return [_say(path, "must fit at least one of the schemas in anyOf")]

        return check

    def _one_of(self, rule: Any, _schema: Any, at: str) -> _Check:
        checks = self._list(rule, at)

        def check(value: Any, path: str) -> list[str]:
            fitting = sum(not check_one(value, path) for check_one in checks)
            if fitting == 1:
                return []
            more = "exactly one of the schemas in oneOf, and fits more"
            return [_say(path, f"must fit {more if fitting else 'one of the schemas in oneOf'}")]

        return check

    def _all_of(self, rule: Any, _schema: Any, at: str) -> _Check:
        checks = self._list(rule, at)
        return lambda value, path: [text for check in checks for text in check(value, path)]

    def _list(self, rule: Any, at: str) -> list[_Check]:
        if not isinstance(rule, list) or not rule:
            raise bad_schema(f"{at} must be a list of schemas")
        return [self._compile(schema, f"{at}/{number}") for number, schema in enumerate(rule)]

    def _limit(self, rule: Any, _schema: Any, at: str) -> _Check:
        keyword = at.rsplit("/", 1)[-1]
        is_number = isinstance(rule, int | float | Decimal) and not isinstance(rule, bool)
        if not is_number:
            raise bad_schema(f"{at} must be a number")
        limit = Decimal(str(rule))
        measure, is_within, text = _LIMITS[keyword]
        if keyword == "multipleOf" and limit <= 0:
            raise bad_schema(f"{at} must be above zero")

        def check(value: Any, path: str) -> list[str]:
            size = measure(value)
            if size is None or is_within(size, limit):
                return []
            return [_say(path, text.format(rule))]

        return check


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return Decimal(str(value)) if isinstance(value, float) else Decimal(value)


def _length_of(kind: type[str | list[Any] | dict[str, Any]]) -> Callable[[Any], Decimal | None]:
    return lambda value: Decimal(len(value)) if isinstance(value, kind) else None


_text, _items, _object = _length_of(str), _length_of(list), _length_of(dict)
_Measure: TypeAlias = Callable[[Any], Decimal | None]
_Within: TypeAlias = Callable[[Decimal, Decimal], bool]


def _is_multiple(size: Decimal, step: Decimal) -> bool:
    try:
        return size % step == 0
    except InvalidOperation:
        # There are more digits between them than are computed with.
        return False


def _at_least(size: Decimal, limit: Decimal) -> bool:
    return size >= limit


def _at_most(size: Decimal, limit: Decimal) -> bool:
    return size <= limit


_LIMITS: dict[str, tuple[_Measure, _Within, str]] = {
    "minimum": (_number, _at_least, "must be ≥ {}"),
    "maximum": (_number, _at_most, "must be ≤ {}"),
    "exclusiveMinimum": (_number, lambda size, limit: size > limit, "must be > {}"),
    "exclusiveMaximum": (_number, lambda size, limit: size < limit, "must be < {}"),
    "multipleOf": (
        _number,
        lambda size, step: _is_multiple(size, step),
        "must be a multiple of {}",
    ),
    "minLength": (_text, _at_least, "must have at least {} characters"),
    "maxLength": (_text, _at_most, "must have at most {} characters"),
    "minItems": (_items, _at_least, "must have at least {} items"),
    "maxItems": (_items, _at_most, "must have at most {} items"),
    "minProperties": (_object, _at_least, "must have at least {} members"),
    "maxProperties": (_object, _at_most, "must have at most {} members"),
}

_Compile: TypeAlias = Callable[[Validator, Any, Mapping[str, Any], str], _Check | None]
_KEYWORDS: dict[str, _Compile] = {
    "$ref": Validator._reference,
    "type": Validator._type,
    "properties": Validator._properties,
    "required": Validator._required,
    "additionalProperties": Validator._additional_properties,
    "items": Validator._items,
    "prefixItems": Validator._prefix_items,
    "uniqueItems": Validator._unique_items,
    "enum": Validator._enum,
    "const": Validator._const,
    "anyOf": Validator._any_of,
    "oneOf": Validator._one_of,
    "allOf": Validator._all_of,
    **dict.fromkeys(_LIMITS, Validator._limit),
}


def _has_type(value: Any, name: str) -> bool:
    if name == "null":
        return value is None
    if name == "boolean":
        return isinstance(value, bool)
    if name in ("number", "integer"):
        if isinstance(value, bool):
            return False
        if isinstance(value, int):
            return True
        if not isinstance(value, float | Decimal):
            return False
        return name == "number" or _is_integer(value)
    kind: dict[str, type] = {"string": str, "array": list, "object": dict}
    return isinstance(value, kind[name])


def _is_integer(value: float | Decimal) -> bool:
    if isinstance(value, Decimal):
        # An integer with more digits would take long to be made.
        return value.adjusted() <= INTEGER_DIGITS_MAX and value == value.to_integral_value()
    return float(value).is_integer()


def _is_equal(value: Any, option: Any) -> bool:
    # True == 1 in Python, and not in JSON.
    if isinstance(value, bool) or isinstance(option, bool):
        return value is option
    if isinstance(value, dict) and isinstance(option, dict):
        return value.keys() == option.keys() and all(
            _is_equal(value[name], option[name]) for name in value
        )
    if isinstance(value, list) and isinstance(option, list):
        return len(value) == len(option) and all(map(_is_equal, value, option))
    if isinstance(value, Decimal) and isinstance(option, float):
        return value == Decimal(str(option))
    return bool(value == option)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _say(path: str, text: str) -> str:
    return f"{path} {text}" if path else text


def _quote(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False, default=str))


def _cut(text: str) -> str:
    return text if len(text) <= _QUOTE_MAX else f"{text[:_QUOTE_MAX]}…"
