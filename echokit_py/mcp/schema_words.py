"""The vocabulary of JSON Schema as tools use it: which keywords hold schemas, and which values they may have. Pure.

Source: json-schema.org, draft 2020-12, and what drafts 4 to 7 had instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]

MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords that hold schemas by name."""

LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords that hold a list of schemas."""

SINGLE = frozenset(
    {"items", "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
"""Keywords that hold one schema; up to draft 7 `items` could be a list as well."""

TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})

STRING_KEYS = frozenset({"minLength", "maxLength", "pattern", "format"})
NUMBER_KEYS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
ARRAY_KEYS = frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"})
OBJECT_KEYS = frozenset({"properties", "required", "additionalProperties", "minProperties", "maxProperties"})

KEYS_OF_TYPE = {
    "string": STRING_KEYS,
    "number": NUMBER_KEYS,
    "integer": NUMBER_KEYS,
    "array": ARRAY_KEYS,
    "object": OBJECT_KEYS,
}
"""Keywords that say something about values of one type, and nothing about others."""

NOTES = frozenset({"title", "description", "default", "examples", "deprecated"})
"""Keywords that say something to who reads them, and forbid nothing."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_anything(_: Any) -> bool:
    return True


FITS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("title", "description", "format", "pattern"), _is_text),
    **dict.fromkeys(NUMBER_KEYS, _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(("minContains", "maxContains"), _is_count),
    **dict.fromkeys(("uniqueItems", "deprecated"), _is_flag),
    **dict.fromkeys(("enum", "examples"), _is_list),
    **dict.fromkeys(("const", "default", "dependentRequired", "dependencies", "type", "required"), _is_anything),
}
"""Every other keyword that is known, and what its value must be. What isn't known is a note nobody reads."""
