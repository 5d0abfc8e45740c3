"""Data that the conformance suites want to find."""

from typing import Any

IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="


def asking(field: str, kind: str = "string") -> dict[str, Any]:
    """The schema of a form with one field."""
    return {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}


DEFAULTS = {  # SEP-1034
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}

_titled = [{"const": n.lower(), "title": f"Option {n}"} for n in ("One", "Two", "Three")]
_plain = [o["const"] for o in _titled]
CHOICES = {  # SEP-1330
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": _plain},
        "titledSingle": {"type": "string", "oneOf": _titled},
        "legacyEnum": {"type": "string", "enum": _plain, "enumNames": [o["title"] for o in _titled]},
        "untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": _plain}},
        "titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": _titled}},
    },
}

SCHEMA_2020 = {  # SEP-1613, SEP-2106
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
