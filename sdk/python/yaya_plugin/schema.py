"""JSON Schemas of annotations, and values of annotated types from JSON."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import sys
import types
import typing
from typing import Any, Callable

from .types import Call, Result

if sys.version_info >= (3, 11):
    _OPTIONAL_MARKS: tuple[Any, ...] = (typing.Required, typing.NotRequired)
else:
    _OPTIONAL_MARKS = ()

_SIMPLE: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_UNIONS = (typing.Union, types.UnionType)


def schema_of(hint: Any, above: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Returns the schema of a type. TypeError says what has none."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        out = schema_of(args[0], above)
        for extra in args[1:]:
            out.update({"description": extra} if isinstance(extra, str) else extra if isinstance(extra, dict) else {})
        return out
    if hint is Any:
        return {}
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin in _OPTIONAL_MARKS:
        return schema_of(args[0], above)
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin in _UNIONS:
        return {"anyOf": [schema_of(arg, above) for arg in args]}
    if hint is list or origin is list:
        return {"type": "array", "items": schema_of(args[0], above) if args else {}}
    if hint is dict or origin is dict:
        if args and args[0] is not str:
            raise TypeError(f"{hint}: the keys of a JSON object are texts")
        return {"type": "object", "additionalProperties": schema_of(args[1], above) if args else {}}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if hint in above:
        raise TypeError(f"{hint.__name__} contains itself: give the tool an input_schema")
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        return object_of({f.name: hints[f.name] for f in dataclasses.fields(hint) if f.init}, _required(hint), (*above, hint))
    if typing.is_typeddict(hint):
        return object_of(typing.get_type_hints(hint, include_extras=True), hint.__required_keys__, (*above, hint))
    raise TypeError(f"{hint!r} has no JSON Schema: use str, int, float, bool, list, dict, Literal, an Enum, a dataclass or a TypedDict")


def object_of(members: dict[str, Any], required: typing.Collection[str], above: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Returns the schema of an object with exactly these members."""
    return {
        "type": "object",
        "properties": {name: schema_of(hint, above) for name, hint in members.items()},
        "required": [name for name in members if name in required],
        "additionalProperties": False,
    }


def _required(cls: Any) -> list[str]:
    missing = dataclasses.MISSING
    return [f.name for f in dataclasses.fields(cls) if f.default is missing and f.default_factory is missing]


def value_of(hint: Any, value: Any) -> Any:
    """Returns a value of JSON as a value of a type. ValueError says what does not fit."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated or origin in _OPTIONAL_MARKS:
        return value_of(args[0], value)
    if origin in _UNIONS:
        return _first(args, value)
    if origin is list and isinstance(value, list):
        return [value_of(args[0], item) for item in value]
    if origin is dict and isinstance(value, dict):
        return {key: value_of(args[1], item) for key, item in value.items()}
    if hint is float and type(value) is int:
        return float(value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and isinstance(value, dict):
        hints = typing.get_type_hints(hint, include_extras=True)
        return hint(**{name: value_of(hints[name], item) for name, item in value.items() if name in hints})
    if typing.is_typeddict(hint) and isinstance(value, dict):
        hints = typing.get_type_hints(hint, include_extras=True)
        return {name: value_of(hints.get(name, Any), item) for name, item in value.items()}
    if not _fits(hint, origin, args, value):
        raise ValueError(f"{value!r} is not {getattr(hint, '__name__', hint)}")
    return value


def _first(hints: tuple[Any, ...], value: Any) -> Any:
    """Returns a value as the first type of a union that it fits."""
    for exact in (True, False):
        for hint in hints:
            if exact and type(value) is not hint:
                continue
            try:
                return value_of(hint, value)
            except (ValueError, TypeError):
                continue
    raise ValueError(f"{value!r} is none of {', '.join(str(hint) for hint in hints)}")


def _fits(hint: Any, origin: Any, args: tuple[Any, ...], value: Any) -> bool:
    if hint is Any:
        return True
    if origin is typing.Literal:
        return any(value == arg and type(value) is type(arg) for arg in args)
    expected: Any = origin or hint
    if expected in (int, float):
        return isinstance(value, (int, float) if expected is float else int) and not isinstance(value, bool)
    return isinstance(expected, type) and isinstance(value, expected)


@dataclasses.dataclass(frozen=True)
class Signature:
    """What a function of a tool takes and returns."""

    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    members: dict[str, Any]  # types of the arguments
    call: str  # name of the parameter that gets the Call, or empty

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Signature:
        name = getattr(function, "__name__", repr(function))
        try:
            hints = typing.get_type_hints(function, include_extras=True)
        except NameError as err:
            raise TypeError(f"tool {name}: {err}: its types must be defined at the top of a module") from err
        members: dict[str, Any] = {}
        required, defaults, call = [], {}, ""
        for param in inspect.signature(function).parameters.values():
            if param.kind not in (param.POSITIONAL_OR_KEYWORD, param.KEYWORD_ONLY):
                raise TypeError(f"tool {name}: the parameter {param.name} cannot be named by a caller")
            if param.name not in hints:
                raise TypeError(f"tool {name}: the parameter {param.name} has no type")
            if hints[param.name] is Call:
                call = param.name
                continue
            members[param.name] = hints[param.name]
            if param.default is param.empty:
                required.append(param.name)
            elif isinstance(param.default, (str, int, float, bool)):
                defaults[param.name] = param.default
        try:
            schema = object_of(members, required)
        except TypeError as err:
            raise TypeError(f"tool {name}: {err}") from err
        for key, value in defaults.items():
            schema["properties"][key]["default"] = value.value if isinstance(value, enum.Enum) else value
        returned = hints.get("return")
        structured = returned is not Result and (dataclasses.is_dataclass(returned) or typing.is_typeddict(returned))
        return cls(schema, schema_of(returned) if structured else None, members, call)

    def arguments(self, args: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments of a call as the function takes them."""
        out = {}
        for name, value in args.items():
            if name not in self.members:
                raise ValueError(f"there is no argument {name}")
            try:
                out[name] = value_of(self.members[name], value)
            except (ValueError, TypeError) as err:
                raise ValueError(f"argument {name}: {err}") from err
        missing = [name for name in self.input_schema.get("required", []) if name not in out]
        if missing:
            raise ValueError(f"the argument {missing[0]} is missing")
        return out
