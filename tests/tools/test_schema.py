"""Arguments against schemas: what doesn't fit is said, and a broken schema breaks nothing."""

from __future__ import annotations

import asyncio
import logging
import threading
import urllib.request
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from echokit_py.tools import schema
from echokit_py.tools.base import Tool
from echokit_py.tools.schema import Schemas

LIGHT = Tool(
    "set_light",
    "Switch a light.",
    {
        "type": "object",
        "properties": {"room": {"type": "string"}, "level": {"type": "integer", "minimum": 0, "maximum": 100}},
        "required": ["room"],
    },
)


def test_what_fits() -> None:
    assert Schemas().fault(LIGHT, {"room": "hall", "level": 7, "more": None}) == ""
    assert Schemas().fault(Tool("clock", "", {}), {"anything": 1}) == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "'room' is a required property"),
        ({"room": 5}, "room: 5 is not of type 'string'"),
        ({"room": "hall", "level": 101}, "level: 101 is greater than the maximum of 100"),
        ({"room": "hall", "level": "7"}, "level: '7' is not of type 'integer'"),
    ],
)
def test_what_does_not_fit_is_said_for_the_model(arguments: dict[str, Any], says: str) -> None:
    assert Schemas().fault(LIGHT, arguments) == f"the arguments don't fit the tool set_light: {says}"


def test_long_values_and_many_faults_are_cut() -> None:
    tool = Tool("t", "", {"properties": {f"p{number}": {"type": "integer"} for number in range(20)}})
    fault = Schemas().fault(tool, {f"p{number}": "x" * 10_000 for number in range(20)})
    assert len(fault) < schema.MAX_FAULTS * (schema.MAX_FAULT_CHARS + 10) + 100
    assert fault.count(";") == schema.MAX_FAULTS - 1


BROKEN: list[dict[str, Any]] = [
    {"type": "objekt"},
    {"properties": []},
    {"properties": {"room": {"$ref": "#/nowhere"}}},
    {"properties": {"room": {"$ref": "http://127.0.0.1:1/schema.json"}}},
    {"properties": {"room": {"pattern": "("}}},
    {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
]


@pytest.mark.parametrize("parameters", BROKEN)
def test_a_broken_schema_checks_nothing_and_is_named_once(
    parameters: dict[str, Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetched(*_: object, **__: object) -> None:
        raise AssertionError("a schema was fetched")

    monkeypatch.setattr(urllib.request, "urlopen", fetched)
    schemas, tool = Schemas(), Tool("odd", "", parameters)
    for _ in range(3):
        assert schemas.fault(tool, {"room": "hall"}) == ""
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "odd" in caplog.text


def test_a_tool_may_change_its_schema() -> None:
    schemas = Schemas()
    assert schemas.fault(LIGHT, {"room": 1})
    assert schemas.fault(Tool("set_light", "", {"type": "object"}), {"room": 1}) == ""
    assert schemas.fault(LIGHT, {"room": 1})


def test_compiled_schemas_are_kept_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "MAX_KEPT", 2)
    schemas = Schemas()
    for number in range(5):
        assert schemas.fault(Tool(f"t{number}", "", LIGHT.parameters), {})
        assert len(schemas._kept) <= 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
WORDS = st.sampled_from(["type", "properties", "required", "items", "$ref", "enum", "anyOf", "minimum", "pattern", "x"])


@given(parameters=st.dictionaries(WORDS, JSON, max_size=4), arguments=st.dictionaries(WORDS, JSON, max_size=3))
def test_any_schema_and_any_arguments(parameters: dict[str, Any], arguments: dict[str, Any]) -> None:
    assert isinstance(Schemas().fault(Tool("t", "", parameters), arguments), str)


LARGE = Tool("large", "", {"type": "object", "properties": {f"p{n}": {"type": "integer"} for n in range(20)}})


@pytest.fixture
def checked_in(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Which schemas were checked, and whether on the event loop's thread."""
    seen: list[tuple[str, bool]] = []
    check = Draft202012Validator.check_schema

    def noted(parameters: Any) -> None:
        seen.append((str(parameters), threading.current_thread() is threading.main_thread()))
        check(parameters)

    monkeypatch.setattr(Draft202012Validator, "check_schema", noted)
    return seen


async def test_a_large_schema_is_compiled_aside_and_once(checked_in: list[tuple[str, bool]]) -> None:
    schemas = Schemas()
    await asyncio.gather(*(schemas.prepare(LARGE) for _ in range(20)))
    assert checked_in == [(str(LARGE.parameters), False)]
    assert "not of type 'integer'" in schemas.fault(LARGE, {"p1": ""})
    assert len(checked_in) == 1


async def test_a_small_schema_is_not_worth_a_thread(checked_in: list[tuple[str, bool]]) -> None:
    schemas = Schemas()
    await schemas.prepare(Tool("clock", "", {"type": "object"}))
    assert checked_in == []


async def test_a_large_schema_that_changes_or_is_broken(checked_in: list[tuple[str, bool]]) -> None:
    schemas, broken = Schemas(), Tool("large", "", {**LARGE.parameters, "type": "objekt"})
    for tool in (LARGE, broken, broken, LARGE):
        await schemas.prepare(tool)
        assert bool(schemas.fault(tool, {"p1": ""})) is (tool is LARGE)
    assert [on_loop for _, on_loop in checked_in] == [False] * 3
