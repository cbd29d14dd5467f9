"""The tools of all MCP servers as one source: routes calls, bounds them, repeats one only where that can do no harm.

Imports nothing of the SDK; the connections do, when there is one to be made.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from echokit_py.config.settings import McpServer
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.log import sanitize
from echokit_py.mcp.base import Refused, ServerStatus, Unanswered
from echokit_py.mcp.catalogue import Catalogue, LeftOut, Route
from echokit_py.mcp.mask import mask
from echokit_py.mcp.results import tool_result
from echokit_py.mcp.supervisor import Connect, Connected, Supervisor, connect
from echokit_py.tools.base import Tool, ToolResult

if TYPE_CHECKING:
    from mcp import types

log = logging.getLogger(__name__)

PER_SERVER = 8  # calls at once
OVERALL = 32
BACK_LIMIT_S = 10.0  # for a server to come back; somebody waits for an answer
AGAIN_S = 0.25  # between tries of a call after the second
CLOSE_LIMIT_S = 3.0
PROBE_LIMIT_S = 10.0

_NOT_RUN = "The call was not run."
_UNKNOWN = "Whether the call took effect is not known: outcome unknown."


class McpTools:
    """A `tools.base.ToolSource` over all servers of the configuration."""

    def __init__(self, servers: Sequence[McpServer], *, connect: Connect = connect) -> None:
        self._catalogue = Catalogue(servers)
        self._updating = asyncio.Lock()
        self._servers = [_Server(self, index, server, connect) for index, server in enumerate(servers)]
        self._slots = asyncio.Semaphore(OVERALL)
        self._tasks: list[asyncio.Task[None]] = []
        self._told: set[LeftOut] = set()

    async def start(self) -> None:
        """Begin to connect to all servers at once. Returns without waiting for any."""
        self._tasks = [
            asyncio.create_task(server.supervisor.run(), name=f"MCP server {server.settings.name}")
            for server in self._servers
        ]

    async def close(self) -> None:
        """Disconnect from all servers and end those that are programs of ours; after 3 s at most."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            _, stuck = await asyncio.wait(self._tasks, timeout=CLOSE_LIMIT_S)
            for task in stuck:
                log.error("%s does not let go and is left behind", task.get_name())
        self._tasks = []
        async with self._updating:  # a list that is being read
            pass

    def tools(self) -> Sequence[Tool]:
        """The tools of the servers that are connected; the same object until something changes."""
        return self._catalogue.tools

    def statuses(self) -> tuple[ServerStatus, ...]:
        """How each server is, in the order of the configuration."""
        return tuple(server.supervisor.status for server in self._servers)

    def left_out(self) -> list[LeftOut]:
        """The tools that are not offered, and why."""
        return self._catalogue.left_out

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool, once; see `ToolSource`. A server that is gone is waited for up to 10 s.

        Raises:
            TimeoutError: the tool did not answer within its server's `timeout_sec`; what it did is not known.
        """
        async with self._updating:
            route = self._catalogue.route(name)
        if route is None:
            return _error(f"the tool {sanitize(name)} is not there at the moment. {_NOT_RUN}")
        return await self._servers[route.server_index].call(route, arguments, self._slots)

    async def take(self, index: int, tools: Sequence[types.Tool] | None) -> None:
        """A server lists these tools now; None when it is down."""
        # A thread can't be cancelled: the next one has to wait for it, whoever asked for this one.
        await asyncio.shield(self._update(index, tools))
        told, self._told = self._told, set(self._catalogue.left_out)
        for left in self._told - told:
            level = logging.DEBUG if left.by_choice else logging.INFO
            log.log(level, "the tool %s of the MCP server %s is left out: %s", left.tool, left.server, left.reason)

    async def _update(self, index: int, tools: Sequence[types.Tool] | None) -> None:
        async with self._updating:
            # Mending 250 kB of schemas takes longer than the event loop may be held up.
            await asyncio.to_thread(self._catalogue.update, index, tools)


class _Server:
    """One server: its supervisor, and its calls."""

    def __init__(self, tools: McpTools, index: int, settings: McpServer, connect: Connect) -> None:
        async def take(listed: Sequence[types.Tool] | None) -> None:
            await tools.take(index, listed)

        self.settings = settings
        self.supervisor = Supervisor(settings, take, connect=connect)
        self._slots = asyncio.Semaphore(PER_SERVER)
        self._hide = mask(settings)

    async def call(self, route: Route, arguments: dict[str, Any], slots: asyncio.Semaphore) -> ToolResult:
        call = _Call(route, arguments, asyncio.get_running_loop().time() + self.settings.timeout_sec)
        try:
            async with asyncio.timeout_at(call.deadline), self._slots, slots:
                return await self._run(call)
        except TimeoutError:
            if call.may_have_run:
                raise
            return _error(f"{call.waits_for}. {_NOT_RUN}")

    async def _run(self, call: _Call) -> ToolResult:
        """Call the tool; again where the call provably did not run, and once more where it may run twice."""
        loop = asyncio.get_running_loop()
        until, tries, maybe_runs = call.deadline, 0, 0
        while True:
            call.waits_for = f"the MCP server {self.settings.name} {self.supervisor.status.last_error}"
            try:
                connection = await self.supervisor.connected(min(until - loop.time(), BACK_LIMIT_S))
            except BackendError as error:
                return self._failed(call, str(error.args[0]))
            before, call.may_have_run = call.may_have_run, True
            tries += 1
            try:
                return await self._once(connection, call)
            except Refused as error:
                return _error(str(error))
            except Unanswered as error:
                call.may_have_run = before or not error.not_run
                maybe_runs += not error.not_run
                again = error.not_run or (call.route.repeatable and maybe_runs < 2)
                if not again or loop.time() >= until:
                    connection.suspect()
                    return self._failed(call, self._hide(str(error)))
                log.info("the MCP server %s: a call is sent again", self.settings.name)
                if tries > 1:
                    await asyncio.sleep(AGAIN_S)
                until = min(until, loop.time() + BACK_LIMIT_S)
                await connection.alive()  # else the next try might end on the same broken connection

    async def _once(self, connection: Connected, call: _Call) -> ToolResult:
        try:
            result = await connection.call(call.route.tool_name, call.arguments, call.deadline)
        except asyncio.CancelledError:
            if asyncio.get_running_loop().time() >= call.deadline:
                connection.suspect()
            raise
        answer = tool_result(result, self.settings.max_result_chars)
        return ToolResult(self._hide(answer.text), answer.is_error)

    def _failed(self, call: _Call, why: str) -> ToolResult:
        return _error(f"{sanitize(why)}. {_UNKNOWN if call.may_have_run else _NOT_RUN}")


@dataclass(slots=True)
class _Call:
    """One call on its way. `deadline`: the loop's time; `waits_for`: why it is not with the server."""

    route: Route
    arguments: dict[str, Any]
    deadline: float
    may_have_run: bool = False
    waits_for: str = "too many calls are running"


async def probe(server: McpServer) -> list[types.Tool]:
    """Connect to one server, list its tools, disconnect; within 10 s.

    Raises:
        BackendError: why it could not be done.
    """
    connection = await connect(server, False)
    listed: asyncio.Future[list[types.Tool]] = asyncio.get_running_loop().create_future()

    async def take(tools: Sequence[types.Tool]) -> None:
        if not listed.done():
            listed.set_result(list(tools))

    task = asyncio.create_task(connection.run(take), name=f"probe of {server.name}")
    try:
        events: list[asyncio.Future[Any]] = [task, listed]
        await asyncio.wait(events, timeout=PROBE_LIMIT_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=CLOSE_LIMIT_S)
    if listed.done():
        return listed.result()
    if task.done() and not task.cancelled() and isinstance(error := task.exception(), BackendError):
        raise BackendError(error.stage, error.kind, mask(server)(str(error.args[0])), status=error.status)
    raise BackendError(Stage.TOOL, ErrorKind.TIMEOUT, f"gave no list of tools within {PROBE_LIMIT_S:.0f} s")


def _error(text: str) -> ToolResult:
    return ToolResult(f"Error: {text}", is_error=True)
