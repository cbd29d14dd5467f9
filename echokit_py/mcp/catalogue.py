"""The tools of all MCP servers as they are offered to the model, and where a call of one goes. Pure; connects nothing.

Mending a schema takes about half a millisecond, too long for hundreds at once on an event loop: there, exhaust
`updating` with a pause after each step, instead of calling `update`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from echokit_py.config.mcp_server import McpServer, with_names_apart
from echokit_py.log import sanitize
from echokit_py.mcp.names import Key, clashes, exposed_names
from echokit_py.mcp.schemas import Mended, mend
from echokit_py.tools.base import Tool

if TYPE_CHECKING:
    from mcp import types

MAX_TOOLS = 1000  # of one server; no model chooses among as many
MAX_CLASHED = 10_000  # names remembered; a server that makes up new ones for ever is not worth more


@dataclass(frozen=True, slots=True)
class Route:
    """Where a call goes.

    Attributes:
        server_index: the place of the server in the configuration.
        tool_name: what the server calls the tool.
        repeatable: a second run does no harm: the tool says of itself that it is read-only or idempotent.
    """

    server_index: int
    tool_name: str
    repeatable: bool


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A tool that isn't offered, and why. `by_choice`: the configuration wants it so."""

    server: str
    tool: str
    reason: str
    by_choice: bool = False


@dataclass(frozen=True, slots=True)
class _Listed:
    """One tool as a server listed it, made ready."""

    source: types.Tool
    mended: Mended | None
    left_out: LeftOut | None


@dataclass(slots=True)
class _Shelf:
    """What one server last listed. Kept while it is down, since names depend on it (see names.py)."""

    listed: dict[str, _Listed] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    is_up: bool = False

    def offered(self) -> list[tuple[types.Tool, Mended]]:
        return [(entry.source, entry.mended) for entry in self.listed.values() if entry.mended is not None]


class Catalogue:
    """Takes the tools that servers list, in any order and as often as they like."""

    def __init__(self, servers: Sequence[McpServer]) -> None:
        self._servers = with_names_apart(tuple(servers))
        self._shelves = [_Shelf() for _ in self._servers]
        self._named: list[Key] = []
        self._names: Mapping[Key, str] = {}
        self._clashed: set[str] = set()
        self._tools: tuple[Tool, ...] = ()
        self._routes: dict[str, Route] = {}

    def update(self, server_index: int, tools: Sequence[types.Tool] | None) -> None:
        """Take what a server lists now; None when it is down, and its tools are not offered any more."""
        for _ in self.updating(server_index, tools):
            pass

    def updating(self, server_index: int, tools: Sequence[types.Tool] | None) -> Iterator[None]:
        """The same in steps of one tool. Nothing changes before the last; one that isn't exhausted changes nothing."""
        shelf = self._shelves[server_index]
        if tools is None:
            filled = _Shelf(shelf.listed, shelf.left_out)
        else:
            filled = _Shelf(is_up=True)
            yield from _fill(filled, shelf.listed, self._servers[server_index], tools)
        self._shelves[server_index] = filled
        self._offer()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All that are offered now, in the order of the configuration and of each server's list.

        The very same object as before as long as nothing has changed.
        """
        return self._tools

    @property
    def left_out(self) -> list[LeftOut]:
        """What the servers listed last and isn't offered, of those that are up."""
        return [entry for shelf in self._shelves if shelf.is_up for entry in shelf.left_out]

    def route(self, name: str) -> Route | None:
        """Where a call of the tool that is offered as `name` goes; None when it isn't offered (any more)."""
        return self._routes.get(name)

    def _offer(self) -> None:
        keys = [
            (server.name, tool.name)
            for server, shelf in zip(self._servers, self._shelves, strict=True)
            for tool, _ in shelf.offered()
        ]
        if keys != self._named:  # it is the same when a server goes or comes back
            self._named = keys
            if len(self._clashed) < MAX_CLASHED:
                self._clashed |= clashes(keys)
            self._names = exposed_names(keys, self._clashed)
        names = self._names
        tools: list[Tool] = []
        routes: dict[str, Route] = {}
        for index, (server, shelf) in enumerate(zip(self._servers, self._shelves, strict=True)):
            for tool, mended in shelf.offered() if shelf.is_up else ():
                name = names[server.name, tool.name]
                routes[name] = Route(index, tool.name, _repeatable(tool))
                tools.append(_offered(server, name, mended))
        self._routes = routes
        if tuple(tools) != self._tools:
            self._tools = tuple(tools)


def _offered(server: McpServer, name: str, mended: Mended) -> Tool:
    return Tool(
        name,
        mended.description,
        mended.parameters,
        filler=server.call_mcp_message,
        filler_after_s=server.filler_after_ms / 1000,
        timeout_s=server.timeout_sec,
        check=mended.strict,
    )


def _fill(
    shelf: _Shelf, before: Mapping[str, _Listed], server: McpServer, tools: Sequence[types.Tool]
) -> Iterator[None]:
    """Put `tools` on the empty shelf, with what is known of them from before."""
    for tool in tools[:MAX_TOOLS]:
        if tool.name in shelf.listed:
            shelf.left_out.append(_left_out(server, tool, "the server lists another tool of this name"))
            continue
        known = before.get(tool.name)
        entry = known if known is not None and known.source == tool else _listed(server, tool)
        shelf.listed[tool.name] = entry
        if entry.left_out:
            shelf.left_out.append(entry.left_out)
        yield
    for tool in tools[MAX_TOOLS : MAX_TOOLS + 1]:
        reason = f"the server lists {len(tools)} tools; this one and those that follow are more than {MAX_TOOLS}"
        shelf.left_out.append(_left_out(server, tool, reason))


def _listed(server: McpServer, tool: types.Tool) -> _Listed:
    if reason := _unwanted(server, tool.name):
        return _Listed(tool, None, LeftOut(server.name, sanitize(tool.name), reason, by_choice=True))
    if tool.execution is not None and tool.execution.task_support == "required":
        return _Listed(tool, None, _left_out(server, tool, "it can only be run as a task, which nobody would wait for"))
    annotated = tool.annotations.title if tool.annotations else None
    about = next((text for text in (tool.description, tool.title, annotated) if text and text.strip()), "")
    try:
        return _Listed(tool, mend(tool.input_schema, about), None)
    except ValueError as error:
        return _Listed(tool, None, _left_out(server, tool, str(error)))
    except RecursionError:  # of the values in it, which are no schemas: defaults, examples
        return _Listed(tool, None, _left_out(server, tool, "its schema is too deep"))


def _unwanted(server: McpServer, name: str) -> str:
    if server.allow and not any(fnmatchcase(name, pattern) for pattern in server.allow):
        return "allow doesn't name it"
    denied = next((pattern for pattern in server.deny if fnmatchcase(name, pattern)), None)
    return f'deny names it, with "{denied}"' if denied else ""


def _left_out(server: McpServer, tool: types.Tool, reason: str) -> LeftOut:
    return LeftOut(server.name, sanitize(tool.name), reason)


def _repeatable(tool: types.Tool) -> bool:
    hints = tool.annotations
    return hints is not None and (hints.read_only_hint is True or hints.idempotent_hint is True)


def fitting(patterns: Sequence[str], names: Sequence[str]) -> list[bool]:
    """For each of `patterns`: whether it fits any of the names."""
    return [any(fnmatchcase(name, pattern) for name in names) for pattern in patterns]
