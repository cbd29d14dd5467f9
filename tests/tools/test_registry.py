"""Tools that are functions of this process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from echokit_py.tools.base import NoTools, Tool, ToolResult
from echokit_py.tools.registry import LocalTools

CLOCK = Tool("clock", "Tell the time.", {"type": "object"})


async def test_a_function_is_called_with_its_arguments() -> None:
    seen: list[dict[str, Any]] = []

    async def clock(arguments: dict[str, Any]) -> str:
        seen.append(arguments)
        return "noon"

    tools = LocalTools()
    tools.add(CLOCK, clock)
    assert tools.tools() == (CLOCK,)
    assert await tools.call("clock", {"zone": "UTC"}) == ToolResult("noon")
    assert seen == [{"zone": "UTC"}]


async def test_a_function_may_say_that_it_failed() -> None:
    async def clock(arguments: dict[str, Any]) -> ToolResult:
        return ToolResult("the battery is empty", is_error=True)

    tools = LocalTools()
    tools.add(CLOCK, clock)
    assert await tools.call("clock", {}) == ToolResult("the battery is empty", is_error=True)


async def test_each_tool_has_its_own_time() -> None:
    cancelled = asyncio.Event()

    async def hangs(arguments: dict[str, Any]) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    tools = LocalTools()
    tools.add(CLOCK, hangs, timeout_s=0.01)
    with pytest.raises(TimeoutError):
        await tools.call("clock", {})
    assert cancelled.is_set()


async def test_what_is_not_there_is_an_error_for_the_model() -> None:
    assert (await LocalTools().call("clock", {})).is_error
    assert (await NoTools().call("clock", {})).is_error
    assert NoTools().tools() == ()


@pytest.mark.parametrize("name", ["", "two words", "ü", "a" * 65])
def test_names_that_no_server_takes(name: str) -> None:
    with pytest.raises(ValueError, match="can't be called"):
        LocalTools().add(Tool(name, "", {}), _nothing)


def test_a_name_is_given_once() -> None:
    tools = LocalTools()
    tools.add(CLOCK, _nothing)
    with pytest.raises(ValueError, match="already"):
        tools.add(CLOCK, _nothing)


async def _nothing(arguments: dict[str, Any]) -> str:
    return ""
