"""A real connection to a server that a test has at hand: open, with its tools listed, and gone without a trace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import types

from echokit_py.config.settings import McpServer
from echokit_py.errors import BackendError
from echokit_py.mcp.connection import Connection

LIMIT_S = 20  # of any wait here: the machine's slowness, not what is tested


class Open:
    """A connection; `lists` are the names that were listed, one entry a list."""

    def __init__(self, server: McpServer) -> None:
        self.connection = Connection(server)
        self.lists: list[list[str]] = []
        self.tools: Sequence[types.Tool] = ()
        self._listed = asyncio.Condition()
        self.task = asyncio.create_task(self.connection.run(self._take))

    async def _take(self, tools: Sequence[types.Tool]) -> None:
        self.tools = tools
        async with self._listed:
            self.lists.append([tool.name for tool in tools])
            self._listed.notify_all()

    async def listed(self, count: int = 1) -> list[str]:
        async with asyncio.timeout(LIMIT_S), self._listed:
            await self._listed.wait_for(lambda: len(self.lists) >= count or self.task.done())
        return self.lists[-1]

    async def call(self, name: str = "on", limit_s: float = LIMIT_S) -> str:
        result = await self.connection.call(name, {}, asyncio.get_running_loop().time() + limit_s)
        assert isinstance(result.content[0], types.TextContent)
        return result.content[0].text

    async def end(self) -> BackendError:
        """Wait until it has ended by itself."""
        async with asyncio.timeout(LIMIT_S):
            with pytest.raises(BackendError) as raised:
                await self.task
        return raised.value

    async def close(self) -> None:
        self.task.cancel()
        async with asyncio.timeout(LIMIT_S):
            await asyncio.wait([self.task])


@asynccontextmanager
async def opened(server: McpServer) -> AsyncIterator[Open]:
    """A connection whose tools are listed; nothing is left of it after the block."""
    before = asyncio.all_tasks()
    connection = Open(server)
    try:
        await connection.listed()
        yield connection
    finally:
        await connection.close()
        assert {task for task in asyncio.all_tasks() - before if not _of_the_server(task)} == set()


def _of_the_server(task: asyncio.Task[Any]) -> bool:
    return "aiohttp" in repr(task)
