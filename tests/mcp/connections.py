"""Connections to MCP servers that do what a test says. No SDK, no server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from mcp import types

from echokit_py.config.settings import McpServer
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.mcp.supervisor import Connected

Answer = Callable[[str, dict[str, Any]], Awaitable[types.CallToolResult]]


def tool(name: str, *, read_only: bool = False) -> types.Tool:
    return types.Tool(
        name=name, input_schema={"type": "object"}, annotations=types.ToolAnnotations(read_only_hint=read_only)
    )


def text(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)])


def error(words: str = "can't be reached: Connection refused") -> BackendError:
    return BackendError(Stage.TOOL, ErrorKind.CONNECT, words)


class FakeConnection:
    """A connection of a `Script`; `end(error)` ends it."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.ended: asyncio.Future[BackendError] = asyncio.get_running_loop().create_future()
        self.suspected = 0
        self.on_tools: Callable[[Sequence[types.Tool]], Awaitable[None]] | None = None

    @property
    def is_lost(self) -> bool:
        return self.ended.done()

    @property
    def speaks_2026(self) -> bool:
        return self._script.speaks_2026

    async def run(self, on_tools: Callable[[Sequence[types.Tool]], Awaitable[None]]) -> None:
        outcome = self._script.next_outcome()
        if isinstance(outcome, Exception):
            raise outcome
        await asyncio.sleep(outcome)
        self.on_tools = on_tools
        await on_tools(self._script.tools)
        raise await self.ended

    async def call(self, name: str, arguments: dict[str, Any], deadline: float) -> types.CallToolResult:
        self._script.calls.append((name, arguments))
        return await self._script.answer(name, arguments)

    def suspect(self) -> None:
        self.suspected += 1

    async def alive(self) -> bool:
        return not self.is_lost

    def end(self, why: BackendError | None = None) -> None:
        if not self.ended.done():
            self.ended.set_result(why or error("closed the connection"))


class Script:
    """One server: what each try to connect comes to (seconds until it is connected, or an error; then 0 for ever)."""

    def __init__(self, *outcomes: float | Exception, tools: Sequence[types.Tool] = ()) -> None:
        self.outcomes = list(outcomes)
        self.tools = list(tools)
        self.speaks_2026 = True
        self.connections: list[FakeConnection] = []
        self.handshakes: list[bool] = []
        self.times: list[float] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.answer: Answer = self._done

    async def connect(self, _server: McpServer, handshake_only: bool) -> Connected:
        self.times.append(asyncio.get_running_loop().time())
        self.handshakes.append(handshake_only)
        self.connections.append(FakeConnection(self))
        return self.connections[-1]

    def next_outcome(self) -> float | Exception:
        return self.outcomes.pop(0) if self.outcomes else 0.0

    async def _done(self, name: str, _arguments: dict[str, Any]) -> types.CallToolResult:
        return text(f"{name} is done")
