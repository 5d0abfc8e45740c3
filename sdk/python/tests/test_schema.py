"""Schemas of annotations, and values of annotated types."""

from __future__ import annotations

import dataclasses
import enum
import unittest
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

from yaya_plugin.schema import Signature, schema_of, value_of


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: float
    y: Annotated[float, "upwards"] = 0.0


class Named(TypedDict, total=False):
    name: str


@dataclasses.dataclass
class Tree:
    children: list[Tree]


class TestSchema(unittest.TestCase):
    def test_types(self) -> None:
        point = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number", "description": "upwards"}}, "required": ["x"], "additionalProperties": False}
        for hint, want in [
            (str, {"type": "string"}),
            (bool, {"type": "boolean"}),
            (Any, {}),
            (list, {"type": "array", "items": {}}),
            (list[int], {"type": "array", "items": {"type": "integer"}}),
            (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
            (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),
            (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            (Literal["a", "b"], {"enum": ["a", "b"]}),
            (Color, {"enum": ["red", "blue"]}),
            (Annotated[int, "a count", {"minimum": 1}], {"type": "integer", "description": "a count", "minimum": 1}),
            (Point, point),
            (Named, {"type": "object", "properties": {"name": {"type": "string"}}, "required": [], "additionalProperties": False}),
        ]:
            with self.subTest(hint=hint):
                self.assertEqual(schema_of(hint), want)

    def test_types_without(self) -> None:
        for hint, want in [(bytes, "has no JSON Schema"), (dict[int, str], "keys"), (Tree, "contains itself"), (object, "has no JSON Schema")]:
            with self.subTest(hint=hint), self.assertRaisesRegex(TypeError, want):
                schema_of(hint)

    def test_values(self) -> None:
        for hint, value, want in [
            (Point, {"x": 1}, Point(1.0, 0.0)),
            (list[Point], [{"x": 1, "y": 2}], [Point(1.0, 2.0)]),
            (Color, "red", Color.RED),
            (Optional[Point], None, None),
            (Union[Point, str], "here", "here"),
            (int, 3.0, 3),
            (dict[str, Color], {"a": "blue"}, {"a": Color.BLUE}),
            (list, [1], [1]),
            (dict, {"a": 1}, {"a": 1}),
            (Named, {"name": "a"}, {"name": "a"}),
        ]:
            with self.subTest(hint=hint):
                got = value_of(hint, value)
                self.assertEqual(got, want)
                self.assertIs(type(got), type(want))

    def test_values_that_do_not_fit(self) -> None:
        for hint, value in [(int, "1"), (int, True), (str, 1), (Color, "green"), (Literal[1], True), (list[int], ["a"]), (Union[int, str], []), (Point, {"x": "far"})]:
            with self.subTest(hint=hint, value=value), self.assertRaises(ValueError):
                value_of(hint, value)


class TestSignature(unittest.TestCase):
    def test_refused(self) -> None:
        def untyped(a) -> None: ...  # type: ignore[no-untyped-def]
        def rest(*a: int) -> None: ...
        def raw(a: bytes) -> None: ...

        class Local:
            pass

        def hidden(a: Local) -> None: ...

        for function, want in [(untyped, "has no type"), (rest, "cannot be named"), (raw, "tool raw: .*has no JSON Schema"), (hidden, "top of a module")]:
            with self.subTest(function=function.__name__), self.assertRaisesRegex(TypeError, want):
                Signature.of(function)

    def test_arguments(self) -> None:
        def move(to: Point, times: int = 2) -> Point: ...  # type: ignore[empty-body]

        signature = Signature.of(move)
        self.assertEqual(signature.input_schema["required"], ["to"])
        self.assertEqual(signature.input_schema["properties"]["times"], {"type": "integer", "default": 2})
        self.assertEqual(signature.output_schema, schema_of(Point))
        self.assertEqual(signature.arguments({"to": {"x": 1}}), {"to": Point(1.0)})
        for args, want in [({}, "the argument to is missing"), ({"to": {"x": 1}, "a": 1}, "there is no argument a"), ({"to": 1}, "argument to")]:
            with self.subTest(args=args), self.assertRaisesRegex(ValueError, want):
                signature.arguments(args)


if __name__ == "__main__":
    unittest.main()
