"""Tools that are functions of this process. Each has a time-out of its own; arguments are checked by the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from echokit_py.tools.base import NAME, Tool, ToolResult

Function = Callable[[dict[str, Any]], Awaitable[str | ToolResult]]
"""What a tool does: the arguments in, words for the model out."""

TIMEOUT_S = 20.0  # who waits longer for an answer by voice believes that nobody is there


class LocalTools:
    """A source of tools; add them before the sessions begin."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[Tool, Function, float]] = {}
        self._offered: tuple[Tool, ...] = ()

    def add(self, tool: Tool, function: Function, timeout_s: float = TIMEOUT_S) -> None:
        """Offer a tool. Raises ValueError when no server would take its name, or another has it."""
        if NAME.fullmatch(tool.name) is None:
            raise ValueError(f"a tool can't be called {tool.name!r}")
        if tool.name in self._tools:
            raise ValueError(f"there is a tool {tool.name!r} already")
        self._tools[tool.name] = (tool, function, timeout_s)
        self._offered = (*self._offered, tool)

    def tools(self) -> Sequence[Tool]:
        """All of them, in the order in which they were added."""
        return self._offered

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool. Raises TimeoutError, and whatever its function raises."""
        if name not in self._tools:
            return ToolResult(f"there is no tool {name!r}", is_error=True)
        _, function, timeout_s = self._tools[name]
        async with asyncio.timeout(timeout_s):
            result = await function(arguments)
        return result if isinstance(result, ToolResult) else ToolResult(result)
