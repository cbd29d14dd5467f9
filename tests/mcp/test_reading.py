"""Tools that break the specification are read as far as they can be."""

from __future__ import annotations

from typing import Any

import pytest

from echokit_py.mcp.reading import essence, read_tool


@pytest.mark.parametrize("raw", [None, 5, "x", [], {}, {"name": None}, {"name": 5, "inputSchema": {}}])
def test_what_has_no_name_is_no_tool(raw: Any) -> None:
    assert read_tool(raw) is None


@pytest.mark.parametrize("schema", [None, True, [], "object"])
def test_a_schema_that_is_none_counts_as_empty(schema: Any) -> None:
    tool = read_tool({"name": "x", "inputSchema": schema})
    assert tool is not None
    assert tool.input_schema == {}
    assert essence(tool) == {"name": "x", "inputSchema": {"type": "object"}}


def test_a_schema_is_kept_as_it_is() -> None:
    schema = {"type": ["object", "null"], "properties": {"a": {"const": 1}}}
    tool = read_tool({"name": "x", "inputSchema": schema, "outputSchema": {"type": "array"}})
    assert tool is not None
    assert tool.input_schema == schema
    assert tool.output_schema is None


def test_fields_that_can_not_be_read_cost_the_others_nothing() -> None:
    raw = {"name": "x", "inputSchema": {}, "title": 5, "description": "d", "annotations": {"readOnlyHint": True}}
    tool = read_tool(raw)
    assert tool is not None
    assert tool.description == "d"
    assert tool.annotations is not None
    assert tool.annotations.read_only_hint is True
    odd = read_tool({"name": "x", "inputSchema": {}, "description": ["d"], "annotations": {"readOnlyHint": "perhaps"}})
    assert odd is not None
    assert (odd.description, odd.annotations) == (None, None)
