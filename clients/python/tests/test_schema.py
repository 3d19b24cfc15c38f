"""Type hints as JSON Schema, and values between JSON and Python."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NewType, Optional, TypedDict, TypeVar

import pydantic
import pytest

from rialto_hub import Agent, AgentError, AsyncJob, Job
from rialto_hub.agent._convert import Converter, to_json
from rialto_hub.agent._outcome import OUTPUT_MAX
from rialto_hub.agent._skill import Skill
from rialto_hub.agent._validate import Validator

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Node:
    name: str
    children: list[Node] = field(default_factory=list)


class Options(TypedDict, total=False):
    loud: bool
    times: int


class Model(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(pattern="^[a-z]+$")]
    size: float = 1.0


UserId = NewType("UserId", int)


def load(hint: Any, value: Any, *, exact: bool = False) -> Any:
    converter = Converter(hint, exact=exact)
    wrong = Validator(converter.schema, is_generated=True).check(value)
    if wrong:
        raise ValueError("; ".join(wrong))
    return converter.load(value)


@pytest.mark.parametrize(
    ("hint", "value", "loaded"),
    [
        (str, "a", "a"),
        (int, 5, 5),
        (int, Decimal("5.0"), 5),
        (float, 5, 5.0),
        (float, Decimal("1.5"), 1.5),
        (Decimal, Decimal("1.10"), Decimal("1.10")),
        (bool, True, True),
        (None, None, None),
        (Any, {"a": Decimal("1.5")}, {"a": 1.5}),
        (dict, {"a": 1}, {"a": 1}),
        (list, [1], [1]),
        (list[int], [1, 2], [1, 2]),
        (Sequence[str], ["a"], ["a"]),
        (dict[str, float], {"a": 1}, {"a": 1.0}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, ...], [1, 2, 3], (1, 2, 3)),
        (Optional[int], None, None),  # noqa: UP045
        (int | None, 5, 5),
        (int | str, "a", "a"),
        (list[int] | dict[str, int], {"a": 1}, {"a": 1}),
        (Literal["a", 1], 1, 1),
        (Colour, "blue", Colour.BLUE),
        (datetime, "2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=timezone.utc)),
        (date, "2026-01-01", date(2026, 1, 1)),
        (uuid.UUID, "0e37df36-f698-41e6-8a1c-0d2f6e2c7a10",
         uuid.UUID("0e37df36-f698-41e6-8a1c-0d2f6e2c7a10")),
        (UserId, 7, 7),
        (Options, {"loud": True, "more": 1}, {"loud": True}),
        (Node, {"name": "a", "children": [{"name": "b"}]}, Node("a", [Node("b")])),
        (Model, {"name": "a", "size": Decimal("2.5")}, Model(name="a", size=2.5)),
        (list[Model], [{"name": "a"}], [Model(name="a")]),
    ],
)  # fmt: skip
def test_a_value_that_fits_becomes_what_its_type_says(hint: Any, value: Any, loaded: Any) -> None:
    found = load(hint, value)
    assert found == loaded
    assert type(found) is type(loaded)


@pytest.mark.parametrize(
    ("hint", "value", "wrong"),
    [
        (str, 1, "must be a string"),
        (int, True, "must be an integer"),
        (int, Decimal("1.5"), "must be an integer"),
        (float, "1", "must be a number"),
        (list[int], [1, "a"], "1 must be an integer"),
        (dict[str, int], {"a": None}, "a must be an integer"),
        (tuple[int, str], [1], "must have at least 2 items"),
        (int | None, "a", "must fit at least one"),
        (Literal["a", "b"], "c", 'must be one of "a", "b"'),
        (Colour, "green", 'must be one of "red", "blue"'),
        (datetime, "today", "is not a time"),
        (Node, {"children": []}, "name is required"),
        (Node, {"name": "a", "children": [{"name": 1}]}, "children.0.name must be a string"),
        (Model, {"name": "A"}, "String should match pattern"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_place(
    hint: Any, value: Any, wrong: str
) -> None:
    with pytest.raises(ValueError, match=wrong):
        load(hint, value)


def test_a_type_without_a_schema_is_refused_when_it_is_declared() -> None:
    class Opaque(Generic[T]):
        pass

    for hint in (bytes, Opaque, Opaque[int], dict[int, str], complex, Colour.RED):
        with pytest.raises(AgentError) as caught:
            Converter(hint, exact=False)
        assert caught.value.code == "bad_skill", hint


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": ["string", "null"]}, [None, "a"], [1]),
        ({"enum": [1, "a", [True]]}, [1, "a", [True]], [True, [1], "b"]),
        ({"const": {"a": [1]}}, [{"a": [1]}], [{"a": [True]}, {}]),
        ({"minimum": 1, "maximum": 2}, [1, Decimal("1.5"), "a"], [0, 3]),
        ({"exclusiveMinimum": 1, "exclusiveMaximum": 2}, [1.5], [1, 2]),
        ({"multipleOf": 0.1}, [Decimal("0.3"), 1], [Decimal("0.35")]),
        ({"minLength": 1, "maxLength": 2}, ["a", 5], ["", "abc"]),
        ({"minItems": 1, "maxItems": 2, "uniqueItems": True}, [[1], [1, 2]], [[], [1, 1]]),
        ({"minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 1}]),
        ({"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
         [{}, {"a": 1}], [{"b": 1}, {"a": "x"}]),
        ({"items": {"type": "string"}, "prefixItems": [{"type": "integer"}]},
         [[1, "a"]], [["a"], [1, 2]]),
        ({"anyOf": [{"type": "string"}, {"minimum": 5}]}, ["a", 6], [1]),
        ({"oneOf": [{"minimum": 1}, {"maximum": 5}]}, [0, 6], [3]),
        ({"allOf": [{"minimum": 1}, {"maximum": 5}]}, [3], [0, 6]),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#"}}}},
         [[], [[[]]]], [1, [1]]),
        ({"required": ["a"], "title": "T", "description": "d", "format": "x"}, [{"a": 1}], [{}]),
    ],
)  # fmt: skip
def test_a_schema_says_what_fits(schema: Any, good: list[Any], bad: list[Any]) -> None:
    validator = Validator(schema)
    for value in good:
        assert validator.check(value) == [], value
    for value in bad:
        assert validator.check(value), value


def test_a_rule_that_would_not_be_checked_is_refused() -> None:
    for schema in (
        {"pattern": "a"},
        {"properties": {"a": {"if": {}}}},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#/$defs/none"},
        {"type": "text"},
        {"required": "a"},
        {"items": []},
        {"minimum": "1"},
        {"anyOf": []},
    ):
        with pytest.raises(AgentError) as caught:
            Validator(schema)
        assert caught.value.code == "bad_skill", schema


def test_a_number_with_a_huge_exponent_costs_nothing() -> None:
    for digits in ("1E+1000000000", "-1E+999999999", "1E+5000"):
        with pytest.raises(ValueError, match="must be an integer"):
            load(int, Decimal(digits))
        assert Validator({"multipleOf": 3}).check(Decimal(digits))
        assert Validator({"maximum": 5}).check(Decimal(digits)) == [] or digits[0] != "-"
    assert load(int, Decimal("1E+30")) == 10**30


def test_violations_are_limited() -> None:
    assert len(Validator({"items": {"type": "string"}}).check(list(range(1_000)))) == 20


def skill_of(agent: Agent) -> Skill:
    (skill,) = agent._skills.values()
    return skill


def test_parameters_are_the_members_of_the_input() -> None:
    agent = Agent("a")

    @agent.skill(price="0.05")
    def shout(
        text: Annotated[str, "what to shout"], job: Job, times: int = 1, **more: float
    ) -> dict[str, Any]:
        """Shouts a text.

        The rest is for readers of the code.
        """
        return {"text": text * times, "job": job, "more": more}

    skill = skill_of(agent)
    assert (skill.name, skill.about, skill.job_parameter) == ("shout", "Shouts a text.", "job")
    assert skill.input_check is not None
    assert skill.input_check.schema == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "what to shout"},
            "times": {"type": "integer"},
        },
        "additionalProperties": {"type": "number"},
        "required": ["text"],
    }
    assert skill.load({"text": "a", "x": 1}) == {"text": "a", "x": 1.0}
    assert skill.registration().get("input_schema") == {"text": "string"}
    for wrong in ({}, {"text": 1}, {"text": "a", "times": "b"}, {"text": "a", "x": "b"}, []):
        with pytest.raises(ValueError):
            skill.load(wrong)


def test_one_object_is_the_whole_input() -> None:
    agent = Agent("a")

    @agent.skill("tree", price=0)
    def count(node: Node) -> int:
        return 1 + sum(map(count, node.children))

    skill = skill_of(agent)
    assert skill.name == "tree"
    assert skill.load({"name": "a"}) == {"node": Node("a")}
    assert skill.registration().get("input_schema") == {"name": "string"}
    assert skill.finish(3).text == '{"result":3}'
    assert skill.finish("three").kind == "failed"

    other = Agent("b")

    @other.skill(price=0)
    def anything(input: dict[str, Any]) -> Any:
        return input

    assert skill_of(other).load({"a": [1]}) == {"input": {"a": [1]}}


def test_local_types_are_found_and_unreadable_ones_reported() -> None:
    @dataclass
    class Local:
        n: int

    agent = Agent("a")

    @agent.skill(price=0)
    def local(value: Local) -> Local:
        return value

    assert skill_of(agent).load({"n": 1}) == {"value": Local(1)}
    with pytest.raises(AgentError, match="skill unknown: its type hints cannot be read"):

        @agent.skill(price=0)
        def unknown(value: Missing) -> None:  # type: ignore[name-defined] # noqa: F821
            ...


def test_a_handler_that_cannot_be_called_with_an_input_is_refused() -> None:
    agent = Agent("a")

    def positional(text: str, /) -> None: ...
    def several(*texts: str) -> None: ...
    def twice(one: Job, other: Job) -> None: ...
    def wrong_kind(job: AsyncJob) -> None: ...
    async def wrong_async_kind(job: Job) -> None: ...

    for handler in (positional, several, twice, wrong_kind, wrong_async_kind):
        with pytest.raises(AgentError) as caught:
            agent.skill(price=0)(handler)
        assert caught.value.code == "bad_skill", handler
    agent.skill("one", price=0)(lambda: None)
    with pytest.raises(AgentError, match="defined twice"):
        agent.skill("one", price=0)(lambda: None)


def test_given_schemas_replace_those_of_the_hints() -> None:
    agent = Agent("a")

    @agent.skill(
        price=0,
        input_schema={"type": "object", "required": ["n"], "properties": {"n": {"maximum": 5}}},
        output_schema={"type": "object", "required": ["m"]},
    )
    def both(n: int) -> dict[str, int]:
        return {"m": n}

    skill = skill_of(agent)
    assert skill.load({"n": 5}) == {"n": 5}
    with pytest.raises(ValueError, match="n must be ≤ 5"):
        skill.load({"n": 6})
    assert skill.finish({}).text == "the output does not match the skill's schema: m is required"


def test_an_output_is_json_that_all_parsers_read_in_the_same_way() -> None:
    agent = Agent("a")

    @agent.skill(price=0)
    def any_output() -> Any: ...

    skill = skill_of(agent)
    output = {
        "enum": Colour.RED,
        "model": Model(name="a"),
        "node": Node("b"),
        "at": datetime(2026, 1, 1, tzinfo=timezone.utc),
        "amount": Decimal("1.10"),
        "tuple": (1, None),
    }
    assert skill.finish(output).text == (
        '{"enum":"red","model":{"name":"a","size":1.0},"node":{"name":"b","children":[]},'
        '"at":"2026-01-01T00:00:00.000Z","amount":1.10,"tuple":[1,null]}'
    )
    assert skill.finish(None).text == '{"result":null}'
    assert skill.finish([1]).text == '{"result":[1]}'
    deep: Any = {}
    for _ in range(61):
        deep = {"a": deep}
    for wrong in (
        object(), {1: 2}, float("nan"), Decimal("Infinity"), "\ud800", deep, datetime(2026, 1, 1),
        {"a": "x" * OUTPUT_MAX},
    ):  # fmt: skip
        assert skill.finish(wrong).kind == "failed", wrong
    with pytest.raises(ValueError):
        to_json(deep, 10)
