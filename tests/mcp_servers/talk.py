"""A conversation with a server that has MCP servers behind it, in the test's process. Starts no MCP server of HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from echokit_py.config.mcp_server import McpServer
from echokit_py.mcp.source import McpTools
from firmware_protocol.events import ServerEvent
from tests.fakes.chat_server import ChatServer, call, say
from tests.fakes.talking import Bench, Talk, chat_client, spoken, talking
from tests.mcp_servers.process import ENVIRON, module

LIMIT_S = 60.0
Call = tuple[str, Mapping[str, Any]]


def from_command(name: str, command: Sequence[str], **options: Any) -> McpServer:
    """The settings of any program as a child process that speaks stdio."""
    entry = {"type": "stdio", "name": name, "command": command[0], "args": list(command[1:])}
    return McpServer.model_validate({**entry, **options})


def over_stdio(name: str, *arguments: str, **options: Any) -> McpServer:
    """The settings of a server of this folder as a child process; `arguments` as of `module`."""
    return from_command(name, module(*arguments), env=ENVIRON, **options)


def over_http(name: str, url: str, **options: Any) -> McpServer:
    """The settings of a server that listens."""
    return McpServer.model_validate({"server": url, "name": name, **options})


async def until(condition: Callable[[], bool], what: str = "what was waited for") -> None:
    """Wait until it holds. There is nothing to be told by, so it is looked at often."""
    try:
        async with asyncio.timeout(LIMIT_S):
            while not condition():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"{what} did not come") from None


@dataclass
class Tooled:
    """A talk whose scripted model calls MCP tools."""

    talk: Talk
    chat: ChatServer
    source: McpTools

    def offered(self) -> dict[str, str]:
        """Description → exposed name of the tools offered now."""
        return {tool.description: tool.name for tool in self.source.tools()}

    async def until_offered(self, *names: str) -> None:
        """Wait until exactly these are offered."""
        await until(lambda: {tool.name for tool in self.source.tools()} == set(names), f"the offer of {names}")

    async def begin(self, *calls: Call) -> None:
        """Ask something that the model answers with these calls, by exposed names; don't wait for the answer."""
        number = len(self.chat.requests)
        asked = [(f"c{number}-{place}", name, _json(arguments)) for place, (name, arguments) in enumerate(calls)]
        self.chat.answers = [call(*asked), say("All well.")]
        await self.talk.type("Do it.")

    async def end(self) -> list[str]:
        """The tool messages of the turn that was begun, in the order of its calls; it ended as it should."""
        events: list[ServerEvent] = await self.talk.read()
        assert spoken(events)[-1:] == ["All well."], events
        assert self.chat.faults == []
        messages = self.chat.requests[-1].messages
        last = max(number for number, message in enumerate(messages) if message["role"] == "user")
        return [message["content"] for message in messages[last:] if message["role"] == "tool"]

    async def use(self, *calls: Call) -> list[str]:
        """A whole turn."""
        await self.begin(*calls)
        return await self.end()


def _json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments))


@asynccontextmanager
async def source_of(*servers: McpServer) -> AsyncIterator[McpTools]:
    """The tools of these servers, which may come later."""
    source = McpTools(servers)
    await source.start()
    try:
        yield source
    finally:
        await source.close()


def bench_of(source: McpTools) -> Bench:
    """The tools as `talking` takes them."""
    return Bench(source=source)  # type: ignore[arg-type]  # any source will do


@asynccontextmanager
async def tooled(*servers: McpServer) -> AsyncIterator[Tooled]:
    """The conversation; whatever it left in tasks and child processes when it is over is the caller's to look for."""
    async with (
        source_of(*servers) as source,
        ChatServer(say("All well.")) as chat,
        talking(chat_client(chat.url), bench_of(source)) as talk,
    ):
        yield Tooled(talk, chat, source)
