"""A skill: what it is called, what it costs, and the function that does it."""

from __future__ import annotations

import inspect
import typing
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from .._errors import AgentError
from .._money import Amount, parse_amount
from .._wire import SkillBody
from ._convert import Converter, Loader, is_record, load_members
from ._job import AsyncJob, Job
from ._outcome import Outcome, done, failed, output_of
from ._validate import Validator, bad_schema

#: The default time limit of a job, in seconds.
TIME_LIMIT = 30.0
_NAME_MAX = 128
_KIB = 1024
_ABOUT_MAX = 4_096
# Types that the registry's form of schemas has names for.
_SIMPLE_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object"})
_KINDS = inspect.Parameter
_GENERATORS = (Generator, Iterator, Iterable)
_ASYNC_GENERATORS = (AsyncGenerator, AsyncIterator, AsyncIterable)


@dataclass(frozen=True)
class Skill:
    """One skill of an agent, with its handler."""

    name: str
    about: str
    price: Decimal
    #: A surcharge for every started KiB of input, for jobs with offers.
    per_kib: Decimal
    timeout: float
    #: Whether an interrupted handler may run again.
    repeatable: bool
    handler: Callable[..., Any]
    #: Checks inputs; ``None`` takes any.
    input_check: Validator | None
    output_check: Validator | None
    #: The parameter that takes the job, if there is one.
    job_parameter: str | None
    _load: Callable[[dict[str, Any]], dict[str, Any]] = field(repr=False)

    @property
    def is_async(self) -> bool:
        """Whether the handler runs on the event loop."""
        return inspect.iscoroutinefunction(self.handler) or inspect.isasyncgenfunction(self.handler)

    def price_for(self, input_size: int) -> Decimal:
        """Return the price of a job with an input of this many bytes, for jobs with offers."""
        return self.price + self.per_kib * -(-input_size // _KIB)

    def load(self, job_input: Any) -> dict[str, Any]:
        """Check an input and return the arguments of the handler. Raises ``ValueError``."""
        if not isinstance(job_input, dict):
            raise ValueError("it must be an object")
        wrong = self.input_check.check(job_input) if self.input_check is not None else []
        if wrong:
            raise ValueError("; ".join(wrong))
        return self._load(job_input)

    def finish(self, value: Any) -> Outcome:
        """Return the outcome for what the handler returned."""
        try:
            output = output_of(value)
        except (ValueError, TypeError) as error:
            return failed(f"the output cannot be written as JSON: {error}")
        wrong = self.output_check.check(output) if self.output_check is not None else []
        if wrong:
            return failed(f"the output does not match the skill's schema: {'; '.join(wrong)}")
        return done(output)

    def registration(self) -> SkillBody:
        """Return the skill as it is registered: with the part of its schemas that the registry has."""
        return {
            "skill_name": self.name,
            "description": self.about,
            "cost_per_call": self.price,
            "input_schema": _simple(self.input_check),
            "output_schema": _simple(self.output_check),
        }


def make_skill(
    handler: Callable[..., Any],
    *,
    name: str | None,
    price: Amount,
    about: str | None,
    timeout: float,
    input_schema: Mapping[str, Any] | None,
    output_schema: Mapping[str, Any] | None,
    per_kib: Amount,
    repeatable: bool,
    names: Mapping[str, Any],
    exact: bool,
) -> Skill:
    """Make a skill of a function. ``names`` are those that its type hints may use."""
    called = name if name is not None else getattr(handler, "__name__", "")
    if not called or len(called) > _NAME_MAX:
        raise bad_schema(f"the name of a skill must have 1 to {_NAME_MAX} characters")
    if timeout <= 0:
        raise AgentError(f"skill {called}: timeout must be above zero", code="bad_skill")
    try:
        signature = _Signature(handler, names, exact=exact)
        given = None if input_schema is None else Validator(input_schema)
        output = signature.output_check if output_schema is None else Validator(output_schema)
    except AgentError as error:
        raise AgentError(f"skill {called}: {error.message}", code="bad_skill") from None
    text = about if about is not None else (inspect.getdoc(handler) or "").partition("\n")[0]
    return Skill(
        name=called,
        about=text[:_ABOUT_MAX],
        price=parse_amount(price, "price"),
        per_kib=parse_amount(per_kib, "per_kib"),
        timeout=timeout,
        repeatable=repeatable,
        handler=handler,
        input_check=signature.input_check if given is None else given,
        output_check=output,
        job_parameter=signature.job_parameter,
        _load=signature.load,
    )


class _Signature:
    """What the parameters and the return type of a handler say."""

    def __init__(
        self, handler: Callable[..., Any], names: Mapping[str, Any], *, exact: bool
    ) -> None:
        self._exact = exact
        self.job_parameter: str | None = None
        self.input_check: Validator | None = None
        self.output_check: Validator | None = None
        hints = _hints(handler, names)
        parameters = []
        for parameter in inspect.signature(handler).parameters.values():
            if parameter.kind in (_KINDS.POSITIONAL_ONLY, _KINDS.VAR_POSITIONAL):
                raise bad_schema(
                    f"the parameter {parameter.name} has no name for callers; "
                    "a handler gets the members of its input by name"
                )
            if hints.get(parameter.name) in (Job, AsyncJob):
                self._take_job(handler, parameter.name, hints[parameter.name])
            else:
                parameters.append(parameter)
        self.load = self._read_parameters(parameters, hints)
        if "return" in hints:
            self._read_return(handler, hints["return"])

    def _take_job(self, handler: Callable[..., Any], name: str, hint: Any) -> None:
        if self.job_parameter is not None:
            raise bad_schema(f"both {self.job_parameter} and {name} take the job")
        is_async = inspect.iscoroutinefunction(handler) or inspect.isasyncgenfunction(handler)
        wanted = AsyncJob if is_async else Job
        if hint is not wanted:
            kind = "an async" if is_async else "a plain"
            raise bad_schema(f"{name} must be {wanted.__name__} in {kind} handler")
        self.job_parameter = name

    def _read_parameters(
        self, parameters: list[inspect.Parameter], hints: Mapping[str, Any]
    ) -> Callable[[dict[str, Any]], dict[str, Any]]:
        if len(parameters) == 1 and parameters[0].kind is not _KINDS.VAR_KEYWORD:
            (only,) = parameters
            hint = hints.get(only.name, Any)
            # One object is the whole input.
            if is_record(hint) or only.name == "input":
                return self._read_whole(only.name, hint)
        return self._read_members(parameters, hints)

    def _read_whole(self, name: str, hint: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
        converter = Converter(hint, exact=self._exact)
        if converter.schema:
            self.input_check = Validator(converter.schema, is_generated=True)
        return lambda job_input: {name: converter.load(job_input)}

    def _read_members(
        self, parameters: list[inspect.Parameter], hints: Mapping[str, Any]
    ) -> Callable[[dict[str, Any]], dict[str, Any]]:
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        definitions: dict[str, Any] = {}
        loaders: dict[str, Loader] = {}
        load_other: Loader | None = None
        required = []
        for parameter in parameters:
            converter = Converter(hints.get(parameter.name, Any), exact=self._exact)
            member = dict(converter.schema)
            for name, definition in member.pop("$defs", {}).items():
                if definitions.setdefault(name, definition) != definition:
                    raise bad_schema(f"two types have the name {name}; rename one of them")
            if parameter.kind is _KINDS.VAR_KEYWORD:
                schema["additionalProperties"] = member or True
                load_other = converter.load
                continue
            schema["properties"][parameter.name] = member
            loaders[parameter.name] = converter.load
            if parameter.default is _KINDS.empty:
                required.append(parameter.name)
        if required:
            schema["required"] = required
        if definitions:
            schema["$defs"] = definitions
        self.input_check = Validator(schema, is_generated=True)
        if load_other is None:
            return lambda job_input: load_members(loaders, job_input)
        others = load_other

        def load_all(job_input: dict[str, Any]) -> dict[str, Any]:
            rest = {name: others for name in job_input if name not in loaders}
            return load_members({**loaders, **rest}, job_input)

        return load_all

    def _read_return(self, handler: Callable[..., Any], hint: Any) -> None:
        if inspect.isasyncgenfunction(handler):
            return
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if inspect.isgeneratorfunction(handler):
            if origin is not Generator or len(arguments) < 3:
                return
            hint = arguments[2]
        elif origin is Awaitable:
            hint = arguments[0]
        if hint in (Any, None, type(None), object) or hint is typing.NoReturn:
            return
        schema = Converter(hint, exact=self._exact).schema
        if schema == {"type": "object"}:
            return
        reference = schema.get("$ref", "").removeprefix("#/$defs/")
        definition = schema.get("$defs", {}).get(reference, schema)
        if definition.get("type") != "object":
            definitions = schema.pop("$defs", None)
            schema = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
            if definitions:
                schema["$defs"] = definitions
        self.output_check = Validator(schema, is_generated=True)


def _hints(handler: Callable[..., Any], names: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(handler, localns=dict(names), include_extras=True)
    except (NameError, TypeError) as error:
        raise bad_schema(f"its type hints cannot be read: {error}") from None


def _simple(check: Validator | None) -> dict[str, Any]:
    """Return the part of a schema that the registry has: required members and their types."""
    if check is None:
        return {}
    schema = check.schema
    reference = schema.get("$ref", "").removeprefix("#/$defs/")
    schema = schema.get("$defs", {}).get(reference, schema)
    properties = schema.get("properties", {})

    def kind(name: str) -> str:
        declared = properties.get(name, {})
        named = declared.get("type") if isinstance(declared, dict) else None
        return named if isinstance(named, str) and named in _SIMPLE_TYPES else "any"

    return {name: kind(name) for name in schema.get("required", [])}
