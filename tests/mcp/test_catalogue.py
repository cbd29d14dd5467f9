"""Tests for echokit_py.mcp.catalogue: what is offered of what servers list, and where calls go."""

from __future__ import annotations

import itertools
from typing import Any

import mcp_types as types
import pytest

from echokit_py.config.mcp_server import McpServer
from echokit_py.mcp.catalogue import MAX_CLASHED, MAX_TOOLS, Catalogue, LeftOut, Route, fitting
from echokit_py.tools.base import Tool
from echokit_py.tools.schema import Schemas


def server(name: str, **more: Any) -> McpServer:
    return McpServer(server=f"http://{name}.local/mcp", name=name, **more)


def tool(name: str, schema: dict[str, Any] | None = None, **more: Any) -> types.Tool:
    return types.Tool(name=name, input_schema={"type": "object"} if schema is None else schema, **more)


def names(catalogue: Catalogue) -> list[str]:
    return [each.name for each in catalogue.tools]


def test_a_tool_is_offered_with_what_its_server_is_configured_to() -> None:
    catalogue = Catalogue([server("house", call_mcp_message="One moment.", filler_after_ms=900, timeout_sec=12)])
    assert names(catalogue) == []
    catalogue.update(0, [tool("lamp_on", description="Lights the lamp.")])
    schema = {"type": "object", "properties": {}}
    assert catalogue.tools == (Tool("lamp_on", "Lights the lamp.", schema, "One moment.", 0.9, 12),)
    assert catalogue.route("lamp_on") == Route(0, "lamp_on", repeatable=False)
    assert catalogue.route("lamp_off") is None
    assert catalogue.left_out == []


@pytest.mark.parametrize(
    ("more", "description"),
    [
        ({"description": "D", "title": "T"}, "D"),
        ({"description": " ", "title": "T"}, "T"),
        ({"annotations": types.ToolAnnotations(title="A")}, "A"),
        ({}, ""),
    ],
)
def test_the_description(more: dict[str, Any], description: str) -> None:
    catalogue = Catalogue([server("a")])
    catalogue.update(0, [tool("t", **more)])
    assert catalogue.tools[0].description == description


@pytest.mark.parametrize(
    ("hints", "repeatable"),
    [
        (None, False),
        (types.ToolAnnotations(destructive_hint=False), False),
        (types.ToolAnnotations(read_only_hint=True), True),
        (types.ToolAnnotations(read_only_hint=False, idempotent_hint=True), True),
    ],
)
def test_which_tools_may_run_twice(hints: types.ToolAnnotations | None, repeatable: bool) -> None:
    catalogue = Catalogue([server("a")])
    catalogue.update(0, [tool("t", annotations=hints)])
    route = catalogue.route("t")
    assert route is not None
    assert route.repeatable is repeatable


def test_the_object_is_the_same_until_something_changes() -> None:
    catalogue = Catalogue([server("a"), server("b")])
    catalogue.update(0, [tool("t"), tool("u")])
    before = catalogue.tools
    catalogue.update(0, [tool("t"), tool("u")])
    catalogue.update(1, [])
    catalogue.update(1, None)
    assert catalogue.tools is before
    catalogue.update(0, [tool("t", {"properties": {"x": {}}}), tool("u")])
    assert catalogue.tools != before
    assert catalogue.tools[0].parameters == {"type": "object", "properties": {"x": {}}}
    catalogue.update(0, [tool("u")])
    assert names(catalogue) == ["u"]
    assert catalogue.route("t") is None


def test_equal_names_go_to_their_servers() -> None:
    catalogue = Catalogue([server("kitchen"), server("garage")])
    catalogue.update(1, [tool("turn_on"), tool("open.door")])
    assert names(catalogue) == ["turn_on", "garage_open_door"]
    catalogue.update(0, [tool("turn_on")])
    assert names(catalogue) == ["kitchen_turn_on", "garage_turn_on", "garage_open_door"]
    assert catalogue.route("kitchen_turn_on") == Route(0, "turn_on", repeatable=False)
    assert catalogue.route("garage_turn_on") == Route(1, "turn_on", repeatable=False)
    assert catalogue.route("turn_on") is None


def test_names_do_not_depend_on_who_is_there_and_who_came_first() -> None:
    listed = [[tool("on"), tool("a b")], [tool("on"), tool("off")], [tool("off"), tool("c")]]
    wanted = ["a_on", "a_a_b", "b_on", "b_off", "c_off", "c"]
    for order in itertools.permutations(range(3)):
        catalogue = Catalogue([server(name) for name in "abc"])
        for index in order:
            catalogue.update(index, listed[index])
        assert names(catalogue) == wanted
        catalogue.update(1, None)
        assert names(catalogue) == ["a_on", "a_a_b", "c_off", "c"]
        catalogue.update(1, listed[1])
        assert names(catalogue) == wanted
        catalogue.update(1, [])  # "on" and "off" have meant two tools before
        assert names(catalogue) == ["a_on", "a_a_b", "c_off", "c"]


def test_servers_without_names_of_their_own() -> None:
    catalogue = Catalogue([McpServer(server="http://h/1"), McpServer(server="http://h/2")])
    for index in range(2):
        catalogue.update(index, [tool("t")])
    assert names(catalogue) == ["h_t", "h_2_t"]


def test_what_the_configuration_wants() -> None:
    catalogue = Catalogue([server("a", allow=("get_*", "Set?"), deny=("*secret*",)), server("b", deny=("x", "[yz]"))])
    catalogue.update(0, [tool("get_time"), tool("set1"), tool("Set1"), tool("get_secret")])
    catalogue.update(1, [tool("z"), tool("get_secret")])
    assert names(catalogue) == ["get_time", "Set1", "get_secret"]
    assert catalogue.left_out == [
        LeftOut("a", "set1", "allow doesn't name it", by_choice=True),
        LeftOut("a", "get_secret", 'deny names it, with "*secret*"', by_choice=True),
        LeftOut("b", "z", 'deny names it, with "[yz]"', by_choice=True),
    ]
    assert fitting(("get_*", "put_*"), ["get_time", "set1"]) == [True, False]


def test_one_bad_tool_does_not_cost_the_others() -> None:
    catalogue = Catalogue([server("a")])
    catalogue.update(0, [tool("bad\n", {"type": "array"}), tool("good"), tool("good", description="again")])
    assert names(catalogue) == ["good"]
    assert catalogue.left_out == [
        LeftOut("a", "bad", 'its arguments are no object but "array"'),
        LeftOut("a", "good", "the server lists another tool of this name"),
    ]
    catalogue.update(0, None)
    assert catalogue.left_out == []


def test_one_that_is_too_deep_does_not_cost_the_others() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    catalogue = Catalogue([server("s")])
    catalogue.update(0, [tool("deep", {"properties": {"p": {"dependentRequired": deep}}}), tool("plain")])
    assert [offered.name for offered in catalogue.tools] == ["plain"]
    assert [left.reason for left in catalogue.left_out] == ["its schema is too deep"]


def test_arguments_are_checked_against_what_could_not_be_said() -> None:
    schema = {"properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    catalogue = Catalogue([server("s")])
    catalogue.update(0, [tool("loose", schema), tool("plain")])
    loose, plain = catalogue.tools
    schemas = Schemas()
    assert schemas.fault(loose, {"a": 1}) == ""
    assert "the arguments don't fit the tool loose" in schemas.fault(loose, {"a": 1, "b": 2})
    assert schemas.fault(plain, {"a": 1}) == ""
    assert plain.check is None


def test_it_changes_at_the_last_step_only() -> None:
    catalogue = Catalogue([server("a")])
    catalogue.update(0, [tool("old")])
    steps = catalogue.updating(0, [tool("t"), tool("u")])
    for _ in range(2):
        next(steps)
        assert names(catalogue) == ["old"]
    assert next(steps, "done") == "done"
    assert names(catalogue) == ["t", "u"]


def test_there_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = Catalogue([server("a")])
    catalogue.update(0, [tool(f"t{number}") for number in range(MAX_TOOLS + 5)])
    assert len(catalogue.tools) == MAX_TOOLS
    reason = "the server lists 1005 tools; this one and those that follow are more than 1000"
    assert catalogue.left_out == [LeftOut("a", "t1000", reason)]
    assert MAX_CLASHED >= MAX_TOOLS
    monkeypatch.setattr("echokit_py.mcp.catalogue.MAX_CLASHED", 1)
    two = Catalogue([server("a"), server("b")])
    for name in ("x", "y"):
        for index in range(2):
            two.update(index, [tool(name)])
    two.update(1, [])
    assert names(two) == ["y"]  # the second clash is not remembered


@pytest.mark.parametrize("support", ["forbidden", "optional", "required", None])
def test_a_tool_that_runs_only_as_a_task_is_left_out(support: Any) -> None:
    catalogue = Catalogue([server("a")])
    catalogue.update(0, [tool("research", execution=types.ToolExecution(task_support=support))])
    assert [entry.tool for entry in catalogue.left_out] == (["research"] if support == "required" else [])
    assert len(catalogue.tools) == (0 if support == "required" else 1)
