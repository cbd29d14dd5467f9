"""Tests for echokit_py.mcp.schemas and schema_*: nothing is left that servers refuse, and nothing is lost."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from echokit_py.mcp.schemas import MAX_DESCRIPTION, MAX_SIZE, Mended, mend

TEXT = {"type": "string"}


def prop(schema: Any, **more: Any) -> tuple[Any, bool]:
    """What becomes of a property, and whether it says something else then."""
    mended = mend({"type": "object", "properties": {"p": schema}, **more}, "")
    return mended.parameters["properties"]["p"], mended.strict is not None


def subschemas(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from subschemas(value)
    elif isinstance(node, list):
        for value in node:
            yield from subschemas(value)


@pytest.mark.parametrize(
    ("given_schema", "expected"),
    [
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "$id": "x"}, {"type": "object", "properties": {}}),
        ({"additionalProperties": False}, {"type": "object", "properties": {}, "additionalProperties": False}),
        ({"type": ["object", "null"], "properties": []}, {"type": "object", "properties": {}}),
        ({"properties": {"a": TEXT}, "required": []}, {"type": "object", "properties": {"a": TEXT}}),
        (
            {"required": ["a", "b", "a", 5], "properties": {"a": TEXT}},
            {"type": "object", "required": ["a", "b"], "properties": {"a": TEXT, "b": {}}},
        ),
        (
            {"required": ["a"], "additionalProperties": False},
            {"type": "object", "properties": {}, "required": ["a"], "additionalProperties": False},
        ),
    ],
)
def test_the_top_is_an_object_with_properties(given_schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert mend(given_schema, "") == Mended(expected, "")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, {}),
        ("integer", {"type": "integer"}),
        ({"type": "STRING"}, TEXT),
        ({"type": "int"}, {"type": "integer"}),
        ({"type": ["string"]}, TEXT),
        ({"type": ["integer", "number"]}, {"type": "number"}),
        ({"const": "x"}, {"enum": ["x"], "type": "string"}),
        ({"enum": ["a", "b", "a"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"enum": [1, True, "1"]}, {"enum": [1, True, "1"]}),
        ({"type": "integer", "format": "int64"}, {"type": "integer"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "string", "format": "uri", "description": "Where."}, TEXT | {"description": "Where. (format: uri)"}),
        ({"type": "string", "pattern": "^[a-z]{2}\\.x+$"}, {"type": "string", "pattern": "^[a-z]{2}\\.x+$"}),
        ({"type": "array", "uniqueItems": True}, {"type": "array", "uniqueItems": True, "items": {}}),
        ({"type": "array", "items": True}, {"type": "array", "items": {}}),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, {"type": "number", "exclusiveMinimum": 1}),
        ({"type": "number", "maximum": 1, "exclusiveMaximum": False}, {"type": "number", "maximum": 1}),
        ({"type": "string", "x-order": 1, "$comment": "c", "readOnly": True}, TEXT),
        ({"type": "object", "additionalProperties": TEXT}, {"type": "object", "additionalProperties": TEXT}),
        ({"anyOf": [TEXT, TEXT]}, TEXT),
        ({"anyOf": [TEXT, {}], "title": "T"}, {"title": "T"}),
        ({"allOf": [TEXT], "default": "x"}, {"type": "string", "default": "x"}),
        ({"allOf": [TEXT | {"title": "T"}, {"title": "U"}]}, TEXT | {"title": "T"}),
        (
            {"type": ["string", "null"], "minLength": 1, "default": None},
            {"default": None, "anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
        ),
        ({"type": "string", "nullable": True}, {"anyOf": [TEXT, {"type": "null"}]}),
        ({"type": "string", "nullable": False}, TEXT),
        (
            {"type": ["string", "integer", "null"], "enum": ["a", 1, True]},
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}]},
        ),
        ({"type": ["string", "null"], "enum": ["a", None]}, {"anyOf": [TEXT | {"enum": ["a"]}, {"type": "null"}]}),
        ({"type": ["string", "null"], "anyOf": [{"minLength": 1}, {"maxLength": 9}]},
         {"type": ["string", "null"], "anyOf": [{"minLength": 1}, {"maxLength": 9}]}),
    ],
)  # fmt: skip
def test_what_loses_nothing(schema: Any, expected: Any) -> None:
    assert prop(schema) == (expected, False)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"properties": {"a": TEXT}}, {"type": "object", "properties": {"a": TEXT}}),
        ({"items": TEXT}, {"type": "array", "items": TEXT}),
        (False, {}),
        ({"type": "any"}, {}),
        ({"type": ["string", "whatever"]}, {}),
        ({"enum": []}, {}),
        ({"enum": "a"}, {}),
        ({"anyOf": []}, {}),
        ({"minimum": "5"}, {}),
        ({"type": "string", "minLength": -1}, TEXT),
        ({"type": "string", "exclusiveMinimum": "x"}, TEXT),
        ({"type": "string", "pattern": "^(?!x)$"}, TEXT | {"description": '(pattern: "^(?!x)$")'}),
        ({"type": "string", "pattern": "\\d+"}, TEXT | {"description": '(pattern: "\\\\d+")'}),
        ({"type": "string", "maxLength": 10_000}, TEXT | {"description": "(maxLength: 10000)"}),
        ({"type": "string", "pattern": "x" * 400}, TEXT),
        ({"type": "string", "pattern": "^[a$"}, TEXT | {"description": '(pattern: "^[a$")'}),
        ({"type": "string", "pattern": "^" + "[a]" * 60 + "(b)$"}, TEXT | {"description": ANY}),  # not tried 2^60 ways
        ({"type": "string", "not": {"const": "x"}}, TEXT | {"description": '(not: {"enum": ["x"], "type": "string"})'}),
        ({"oneOf": [TEXT, {"type": "null"}]}, {"anyOf": [TEXT, {"type": "null"}]}),
        ({"oneOf": [TEXT], "anyOf": [TEXT]}, TEXT | {"description": '(oneOf: [{"type": "string"}])'}),
        ({"type": ["string", "null"], "enum": [5]}, {}),
        (
            {"type": "array", "items": [TEXT, {"type": "integer"}], "additionalItems": False},
            {"type": "array", "items": {"anyOf": [TEXT, {"type": "integer"}]}},
        ),
        ({"type": "array", "prefixItems": [TEXT], "items": TEXT}, {"type": "array", "items": TEXT}),
        ({"type": "array", "items": []}, {"type": "array", "items": {}}),
        ({"type": "array", "items": False}, {"type": "array", "items": {}}),
        (
            {"type": "object", "patternProperties": {"^x": TEXT}, "additionalProperties": False},
            {"type": "object", "description": '(patternProperties: {"^x": {"type": "string"}})'},
        ),
        (
            {"type": "object", "patternProperties": {"^x": TEXT}, "additionalProperties": TEXT, "minProperties": 1},
            {
                "type": "object",
                "additionalProperties": TEXT,
                "description": '(minProperties: 1; patternProperties: {"^x": {"type": "string"}})',
            },
        ),
    ],
)  # fmt: skip
def test_what_loses_something_is_kept_for_the_check(schema: Any, expected: Any) -> None:
    assert prop(schema) == (expected, True)


def test_the_schema_for_the_check_says_what_the_original_says() -> None:
    pair = {"type": "array", "items": [TEXT, {"type": "integer"}], "additionalItems": False}
    strict = mend({"properties": {"p": pair, "q": False, "r": {"not": {"type": "null"}}}}, "").strict
    assert strict is not None
    check = Draft202012Validator(strict)
    assert check.is_valid({"p": ["a", 1], "r": 1})
    for wrong in ({"p": ["a", "b"]}, {"p": ["a", 1, 2]}, {"q": 1}, {"r": None}):
        assert not check.is_valid(wrong)


def test_required_as_a_flag_of_the_property() -> None:
    schema = {"properties": {"a": {"type": "string", "required": True}, "b": {"type": "string", "required": False}}}
    assert mend(schema, "").parameters == {
        "type": "object",
        "properties": {"a": TEXT, "b": TEXT},
        "required": ["a"],
    }


def test_properties_may_have_the_names_of_keywords() -> None:
    schema = {"properties": {"$ref": TEXT, "type": TEXT, "enum": {"type": "array", "items": TEXT}, "$defs": TEXT}}
    assert mend(schema, "").parameters == {"type": "object", **schema}


def test_values_are_not_taken_for_schemas() -> None:
    value = {"$ref": "#/nowhere", "type": "any"}
    assert prop({"type": "object", "default": value, "enum": [value]})[0]["enum"] == [value]


def test_references_are_written_out() -> None:
    schema = {
        "properties": {
            "a": {"$ref": "#/$defs/Place"},
            "b": {"$ref": "#/definitions/a~1b%20c", "description": "Here."},
            "c": {"type": "array", "items": {"$ref": "#/properties/a"}},
            "d": {"$ref": "#/$defs/Two/anyOf/1"},
            "e": {"$ref": "#/$defs/Size", "minimum": 0},
            "f": {"$ref": "#/$defs/Size", "maximum": 5},
        },
        "$defs": {
            "Place": {"type": "object", "properties": {"x": {"$ref": "#/$defs/Size"}}},
            "Size": {"type": "number", "maximum": 9},
            "Two": {"anyOf": [{"type": "null"}, TEXT]},
        },
        "definitions": {"a/b c": TEXT},
    }
    before = copy.deepcopy(schema)
    place = {"type": "object", "properties": {"x": {"type": "number", "maximum": 9}}}
    mended = mend(schema, "")
    assert mended.parameters["properties"] == {
        "a": place,
        "b": {"type": "string", "description": "Here."},
        "c": {"type": "array", "items": place},
        "d": TEXT,
        "e": {"type": "number", "maximum": 9, "minimum": 0},
        "f": {"type": "number", "maximum": 9, "allOf": [{"maximum": 5}]},
    }
    assert mended.strict is None
    assert schema == before


def test_a_definition_that_holds_itself_is_cut_and_checked_whole() -> None:
    node = {"type": "object", "description": "A node.", "properties": {"next": {"$ref": "#/$defs/Node"}, "v": TEXT}}
    mended = mend({"properties": {"first": {"$ref": "#/$defs/Node"}, "me": {"$ref": "#"}}, "$defs": {"Node": node}}, "")
    first = mended.parameters["properties"]["first"]
    assert first["properties"]["next"] == {"type": "object", "description": "A node."}
    assert mended.strict is not None
    check = Draft202012Validator(mended.strict)
    assert check.is_valid({"first": {"next": {"next": {"v": "x"}}}})
    assert not check.is_valid({"first": {"next": {"next": {"v": 5}}}})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "array"}, 'its arguments are no object but "array"'),
        ({"properties": {"a": 5}}, "its schema has something in it that is no schema"),
        ({"properties": {"a": "whatever"}}, "its schema has something in it that is no schema"),
        ({"properties": {"a": {"$ref": "https://e.org/a\x1b.json"}}},
         "its schema refers to another document: https://e.org/a .json"),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "its schema refers to #/$defs/b, which isn't there"),
        ({"properties": {"a": {"$ref": "#b"}}}, "its schema refers to #b, which isn't there"),
        ({"properties": {"a": {"$ref": "#/anyOf/7"}}, "anyOf": [TEXT]},
         "its schema refers to #/anyOf/7, which isn't there"),
        ({"properties": {"a": {"$dynamicRef": "#b"}}}, "its schema has references of a kind that few servers know"),
        ({"properties": {"a": {"description": "\ud800"}}}, "its schema can't be written as JSON"),
        ({"properties": {"a": {"maximum": float("inf")}}}, "its schema can't be written as JSON"),
        ({"properties": {"a": {"description": "x" * MAX_SIZE}}}, "its schema is too large: 100060 bytes"),
    ],
)  # fmt: skip
def test_what_cannot_be_mended(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError) as error:
        mend(schema, "")
    assert str(error.value) == reason


def test_a_schema_without_end() -> None:
    deep: dict[str, Any] = {}
    for _ in range(1000):
        deep = {"properties": {"a": deep}}
    wide = {f"d{n}": {"properties": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in "ab"}} for n in range(30)}
    for schema in (deep, {"$ref": "#/$defs/d0", "$defs": wide | {"d30": {}}}):
        with pytest.raises(ValueError, match="too large or too deep"):
            mend(schema, "")


def test_combinations_at_the_top_become_properties_and_a_note() -> None:
    schema = {
        "type": "object",
        "properties": {"a": TEXT, "b": TEXT},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    mended = mend(schema, "Sends it.")
    assert mended.parameters == {"type": "object", "properties": {"a": TEXT, "b": TEXT}}
    assert mended.description == (
        'Sends it.\nThe arguments together must fit: anyOf [{"required": ["a"]}, {"required": ["b"]}]'
    )
    assert mended.strict == schema


def test_alternatives_at_the_top() -> None:
    kinds = [
        {
            "properties": {"kind": {"const": "box"}, "size": {"type": "integer"}, "id": TEXT, "n": {"const": [1]}},
            "required": ["kind", "id"],
        },
        {"properties": {"kind": {"const": "bag"}, "size": TEXT, "n": {"enum": [[1], 2]}}, "required": ["kind"]},
    ]
    mended = mend({"oneOf": kinds}, "")
    assert mended.parameters == {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["box", "bag"]},
            "size": {"anyOf": [{"type": "integer"}, TEXT]},
            "id": TEXT,
            "n": {"enum": [[1], 2]},
        },
        "required": ["kind"],
    }
    assert mended.strict is not None
    check = Draft202012Validator(mended.strict)
    assert check.is_valid({"kind": "box", "id": "1", "size": 5})
    assert not check.is_valid({"kind": "box", "size": 5})


def test_everything_at_the_top_holds_at_once() -> None:
    parts = [{"properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": TEXT}, "required": ["b"]}]
    whole = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a", "b"]}
    assert mend({"allOf": parts}, "").parameters == whole
    closed = mend({"allOf": [parts[0] | {"additionalProperties": False}, parts[1]], "enum": [{}]}, "")
    assert closed.parameters["properties"] == whole["properties"]
    assert closed.parameters["required"] == ["a", "b"]
    assert "allOf" in closed.description
    assert closed.strict is not None


def test_a_rule_that_is_too_long_for_a_note() -> None:
    kinds = [{"required": [f"name_{number}"]} for number in range(60)]
    mended = mend({"properties": {"a": TEXT}, "anyOf": kinds}, "X.")
    assert mended.description == "X.\nThe arguments together must fit: rules that an error will name"


def test_the_description_is_cut_where_servers_refuse_it() -> None:
    schema = {"description": "More.", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert mend(schema, " x\ud800 ").description.startswith("x?\nMore.\nThe arguments together")
    full = mend(schema, "y" * 2000).description
    assert full == "y" * (MAX_DESCRIPTION - 1) + "…"
    assert mend({"description": "Tells more."}, "Tells more. And.").description == "Tells more. And."


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "bb"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)
_type = st.sampled_from(["string", "number", "integer", "boolean", "object", "array", "null"])


def _tables(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    keywords = {
        "type": _type | st.lists(_type, min_size=1, max_size=3, unique=True),
        "enum": st.lists(_values, min_size=1, max_size=3),
        "const": _values,
        "minimum": st.integers(-1, 1),
        "maxLength": st.integers(0, 1000),
        "pattern": st.sampled_from(["^a", "^a*$"]),
        "format": st.just("uri"),
        "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
        "required": st.lists(st.sampled_from("ab"), max_size=2),
        "additionalProperties": st.booleans() | inner,
        "minProperties": st.integers(0, 2),
        "items": inner | st.booleans(),
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "not": inner,
        **{key: st.lists(inner, min_size=1, max_size=2) for key in ("allOf", "anyOf", "oneOf")},
    }
    return st.fixed_dictionaries({}, optional=keywords)


_plain = st.recursive(st.just({"type": "string"}), _tables, max_leaves=3)
_schemas = st.recursive(st.just({"type": "string"}) | st.just({"$ref": "#/$defs/d"}), _tables, max_leaves=5)


@settings(max_examples=60, deadline=None)
@given(_tables(_schemas), st.dictionaries(st.sampled_from("ab"), _values, max_size=2), _plain)
def test_what_the_original_refuses_is_refused_and_what_it_takes_is_taken(
    top: dict[str, Any], arguments: dict[str, Any], definition: dict[str, Any]
) -> None:
    original = top | {"type": "object", "$defs": {"d": definition}}
    mended = mend(original, "")
    Draft202012Validator.check_schema(mended.parameters)
    assert not {"anyOf", "oneOf", "allOf", "enum", "not"} & mended.parameters.keys()
    assert mended.parameters["type"] == "object"
    assert "$ref" not in json.dumps(mended.parameters)
    for each in subschemas(mended.parameters["properties"]):
        assert not {"const", "oneOf", "not", "prefixItems"} & each.keys()
    wanted = Draft202012Validator(original).is_valid(arguments)
    found = Draft202012Validator(mended.strict or mended.parameters).is_valid(arguments)
    assert found == wanted
