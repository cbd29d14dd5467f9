"""The part of `echokit-py check` that asks the MCP servers: what do they offer, under which names? Calls no tool."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from echokit_py.config.mcp_server import STDIO, McpServer
from echokit_py.config.positions import Positions, dotted
from echokit_py.errors import BackendError, ConfigIssue, ErrorKind, Stage
from echokit_py.log import sanitize
from echokit_py.mcp.catalogue import Catalogue, fitting

if TYPE_CHECKING:
    from mcp import types

# The probe itself gives up sooner; this is for one that hangs while it is closed.
LIMIT_S = 20.0
AT_ONCE = 16  # processes and connections; nobody has as many servers

Probe = Callable[[McpServer], Awaitable[list["types.Tool"]]]
"""Connects, lists the tools, disconnects. Raises BackendError."""


async def check_tools(
    path: Path, servers: Sequence[McpServer], positions: Positions, ask: Probe | None = None
) -> list[ConfigIssue]:
    """Ask all servers at once; print the tools of each that answers, return an issue for each that doesn't."""
    if not servers:
        return []
    if ask is None:
        from echokit_py.mcp.source import probe

        ask = probe
    slots = asyncio.Semaphore(AT_ONCE)
    found = await asyncio.gather(*(_listed(server, ask, slots) for server in servers))
    catalogue = Catalogue(servers)
    for index, tools in enumerate(found):
        if not isinstance(tools, BackendError):
            for _ in catalogue.updating(index, tools):
                await asyncio.sleep(0)
    faults: list[ConfigIssue] = []
    for index, (server, tools) in enumerate(zip(servers, found, strict=True)):
        if isinstance(tools, BackendError):
            faults.append(_issue(path, positions, (index, _key(server, tools)), str(tools)))
        else:
            _say(*_lines(server, index, catalogue, len(tools)), *_idle(path, positions, index, server, tools))
    return faults


async def _listed(server: McpServer, ask: Probe, slots: asyncio.Semaphore) -> list[types.Tool] | BackendError:
    async with slots:
        try:
            async with asyncio.timeout(LIMIT_S):
                return await ask(server)
        except BackendError as error:
            return error
        except TimeoutError:
            return BackendError(Stage.TOOL, ErrorKind.TIMEOUT, f"no answer for {LIMIT_S:g} s")


def _lines(server: McpServer, index: int, catalogue: Catalogue, listed: int) -> list[str]:
    routes = [(tool.name, route) for tool in catalogue.tools if (route := catalogue.route(tool.name))]
    mine = [(name, route.tool_name) for name, route in routes if route.server_index == index]
    of = f" of {listed}" if len(mine) < listed else ""
    lines = [f"tools of {server.name}: {len(mine)}{of}"]
    lines += [f"  {name}" if name == own else f"  {name} (there: {sanitize(own)})" for name, own in mine]
    left_out = [entry for entry in catalogue.left_out if entry.server == server.name]
    return lines + [f"  left out: {entry.tool}: {entry.reason}" for entry in left_out]


def _idle(path: Path, positions: Positions, index: int, server: McpServer, tools: Sequence[types.Tool]) -> list[str]:
    """Patterns that fit no tool, and were meant for one."""
    names = [tool.name for tool in tools]
    return [
        f"{_issue(path, positions, (index, key, place), _fits_none(pattern))} (warning)"
        for key, patterns in (("allow", server.allow), ("deny", server.deny))
        for place, (pattern, fits) in enumerate(zip(patterns, fitting(patterns, names), strict=True))
        if not fits
    ]


def _fits_none(pattern: str) -> str:
    return f'"{pattern}" fits none of its tools'


def _issue(path: Path, positions: Positions, where: tuple[str | int, ...], message: str) -> ConfigIssue:
    key = ("llm", "mcp_server", *where)
    return ConfigIssue(str(path), positions.line(key), dotted(key), message)


def _key(server: McpServer, error: BackendError) -> str:
    """The key that a person has to look at."""
    if server.type == STDIO:
        return "command"
    return "api_key" if error.kind is ErrorKind.AUTH else "server"


def _say(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
