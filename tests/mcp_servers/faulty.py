"""An MCP server of the SDK that does in each call what a test tells it. Decides nothing itself.

It is told over a loopback connection to the test's `Ledger`, which also counts its executions: so "no call ran twice"
is known from the tool's own side, and nothing has to be slept for.

    python -m tests.mcp_servers.faulty stdio|http --ledger PORT [--name NAME] [--port PORT] [--legacy]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import sys
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from tests.mcp_servers.serving import arguments, serve

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


class Line:
    """The connection to the ledger: one JSON object a line, answers matched by number."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.commands: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def ask(self, what: str, **members: Any) -> dict[str, Any]:
        """Tell the ledger something and wait for what it says to it."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        self.tell(what, number=number, **members)
        try:
            return await self._answers[number]
        except asyncio.CancelledError:
            self.tell("cancelled", **members)
            raise
        finally:
            del self._answers[number]

    def tell(self, what: str, **members: Any) -> None:
        """Tell the ledger something."""
        self._writer.write(json.dumps({"what": what, **members}).encode() + b"\n")

    async def read(self) -> None:
        """Hand out what comes, for ever. A test that is gone ends this process."""
        async for line in self._reader:
            message = json.loads(line)
            if (number := message.pop("number", None)) is None:
                self.commands.put_nowait(message)
            elif number in self._answers and not self._answers[number].done():
                self._answers[number].set_result(message)
        os._exit(0)


def tool(name: str) -> types.Tool:
    """`read_…` declares that it only reads, `put_…` that it may be repeated, the others nothing."""
    hints = types.ToolAnnotations(
        read_only_hint=True if name.startswith("read_") else None,
        idempotent_hint=True if name.startswith("put_") else None,
    )
    return types.Tool(name=name, description=f"Does {name}.", input_schema=SCHEMA, annotations=hints)


class Faulty:
    """The server's side of a ledger."""

    def __init__(self, name: str, line: Line, tools: list[str]) -> None:
        self._name, self._line, self._tools = name, line, tools
        self._bus = InMemorySubscriptionBus()
        self._sessions: dict[int, Any] = {}
        self.server: Server[Any] = Server(
            name,
            version="1",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )

    async def follow(self) -> None:
        """Change the list of tools whenever the ledger says so, and tell the clients."""
        while True:
            self._tools = (await self._line.commands.get())["tools"]
            await self._bus.publish(ToolsListChanged())
            for session in list(self._sessions.values()):
                await session.send_tool_list_changed()

    async def _list(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        if ctx.protocol_version < "2026":
            self._sessions = {id(ctx.session): ctx.session}
        self._line.tell("listed", server=self._name, tools=self._tools, version=ctx.protocol_version)
        return types.ListToolsResult(tools=[tool(name) for name in self._tools])

    async def _call(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        call_id = (params.arguments or {}).get("id", "")
        told = await self._line.ask("call", server=self._name, tool=params.name, id=call_id)
        if told.get("die"):
            os._exit(7)
        if noise := told.get("stdout"):
            # The SDK's own server keeps file 1 clear of such things, other servers don't: so past it.
            os.write(_stdout, noise.encode())
        text = told.get("text", f"{self._name} {params.name} {call_id}") * told.get("times", 1)
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=told.get("is_error", False))


_stdout = os.dup(1)  # before the SDK takes it away


async def main() -> None:
    """Ask the ledger for the tools, which may take as long as the test likes; then serve."""
    parser = argparse.ArgumentParser()
    arguments(parser)
    parser.add_argument("--ledger", type=int, required=True)
    parser.add_argument("--name", default="faulty")
    options = parser.parse_args()
    line = Line(*await asyncio.open_connection("127.0.0.1", options.ledger, limit=1 << 24))
    reading = asyncio.create_task(line.read())
    sys.stderr.write(f"{options.name} starts\n")
    hello = await line.ask("started", server=options.name, pid=os.getpid())
    faulty = Faulty(options.name, line, hello["tools"])
    following = asyncio.create_task(faulty.follow())
    await serve(faulty.server, options)
    reading.cancel()
    following.cancel()


if __name__ == "__main__":
    asyncio.run(main())
