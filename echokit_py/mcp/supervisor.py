"""Keeps one server connected, for ever: connects, notices the end, connects again. Offers no tools, routes no calls."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from echokit_py.config.settings import McpServer
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.heap import settle
from echokit_py.log import sanitize
from echokit_py.mcp.backoff import Backoff
from echokit_py.mcp.base import ServerStatus, State
from echokit_py.mcp.mask import mask

if TYPE_CHECKING:
    from mcp import types

log = logging.getLogger(__name__)

_CONNECTION = "echokit_py.mcp.connection"  # it imports the SDK

# A server that restarts is back within this; until then its tools stay offered, since a call waits that long anyway.
GRACE_S = 2.0
HURRY_S = 0.5  # between tries while a call waits

OnTools = Callable[["Sequence[types.Tool] | None"], Awaitable[None]]
"""Takes the tools that a server lists now; None when it is down."""


class Connected(Protocol):
    """A connection (`connection.Connection`)."""

    @property
    def is_lost(self) -> bool:
        """Whether it has ended."""
        ...

    @property
    def speaks_2026(self) -> bool:
        """Whether the revision agreed on is 2026-07-28 or later."""
        ...

    async def run(self, on_tools: Callable[[Sequence[types.Tool]], Awaitable[None]]) -> None:
        """Connect and stay so. Raises BackendError when that is over."""
        ...

    async def call(self, name: str, arguments: dict[str, Any], deadline: float) -> types.CallToolResult:
        """Call a tool once. Raises Unanswered, Refused."""
        ...

    def suspect(self) -> None:
        """The connection may have ended; see to it."""
        ...

    async def alive(self) -> bool:
        """See now whether the connection is still there."""
        ...


Connect = Callable[[McpServer, bool], Awaitable[Connected]]
"""`connect(server, handshake_only)` makes a connection, not yet opened."""


async def connect(server: McpServer, handshake_only: bool) -> Connected:
    """Make a connection of the real kind. The SDK takes 2 s to be imported: in a thread, when first needed."""
    connection = await asyncio.to_thread(_import_sdk)
    made: Connected = connection.Connection(server, handshake_only=handshake_only)
    return made


def _import_sdk() -> Any:
    known = _CONNECTION in sys.modules
    module = importlib.import_module(_CONNECTION)  # waits for an import that another server's thread has begun
    if not known:
        settle()
    return module


class Supervisor:
    """One server. `run` does the work, in a task of the caller's."""

    def __init__(
        self,
        server: McpServer,
        on_tools: OnTools,
        *,
        connect: Connect = connect,
        backoff: Backoff | None = None,
    ) -> None:
        self.server = server
        self._on_tools = on_tools
        self._connect = connect
        self._backoff = backoff or Backoff()
        self._hide = mask(server)
        self._status = ServerStatus(server.name, State.CONNECTING, time.time())
        self._connection: Connected | None = None
        self._changed = asyncio.Event()
        self._hurry = asyncio.Event()
        self._wanted = 0
        self._handshake_only = False
        self._offered = False
        self._grace: asyncio.Task[None] | None = None

    @property
    def status(self) -> ServerStatus:
        """How the server is."""
        return self._status

    async def run(self) -> None:
        """Keep the server connected until this is cancelled."""
        try:
            while True:
                lasted_s = await self._once()
                await self._rest(self._backoff.pause_s(lasted_s))
        finally:
            self._set(State.CLOSED)
            if (grace := self._grace) is not None:
                grace.cancel()
                await asyncio.wait([grace])

    async def connected(self, limit_s: float) -> Connected:
        """Return the connection, waiting for it up to `limit_s`. Raises BackendError when there is none by then."""
        self._wanted += 1
        self._hurry.set()
        try:
            async with asyncio.timeout(limit_s):
                while (connection := self._connection) is None or connection.is_lost:
                    await self._changed.wait()
        except TimeoutError:
            why = self._status.last_error or "is not connected yet"
            raise BackendError(Stage.TOOL, ErrorKind.CONNECT, f"the MCP server {self.server.name} {why}") from None
        finally:
            self._wanted -= 1
            if not self._wanted:
                self._hurry.clear()
        return connection

    async def _rest(self, pause_s: float) -> None:
        """Wait before the next try; not as long while somebody waits for the server."""
        try:
            async with asyncio.timeout(pause_s):
                await self._hurry.wait()
                await asyncio.sleep(HURRY_S)
        except TimeoutError:
            pass

    async def _once(self) -> float:
        """Connect once, and stay connected as long as it lasts; return how long that was, 0 for not at all."""
        loop = asyncio.get_running_loop()
        began: list[float] = []
        connection: Connected | None = None

        async def take(tools: Sequence[types.Tool]) -> None:
            began.append(loop.time())
            self._end_grace()
            self._offered = True
            await self._on_tools(tools)
            self._came(connection, len(tools))

        try:
            connection = await self._connect(self.server, self._handshake_only)
            await connection.run(take)
        except BackendError as error:
            await self._went(error)
        except Exception as error:  # the boundary of a server: whatever happens, it is tried again
            log.exception("the MCP server %s: a fault of ours", self.server.name)
            await self._went(BackendError(Stage.TOOL, ErrorKind.INTERNAL, type(error).__name__))
        finally:
            self._connection = None
        return max(loop.time() - began[0], 1e-6) if began else 0.0

    def _came(self, connection: Connected | None, tools: int) -> None:
        """The server has listed its tools."""
        assert connection is not None
        if self._connection is None:
            log.info("the MCP server %s is connected and lists %d tools", self.server.name, tools)
            self._connection = connection
            self._handshake_only = not connection.speaks_2026
            self._set(State.CONNECTED, tools=tools, last_error=self._status.last_error)
        elif tools != self._status.tools:
            log.info("the MCP server %s lists %d tools now", self.server.name, tools)
            self._set(State.CONNECTED, tools=tools, last_error=self._status.last_error, since=self._status.since)

    async def _went(self, error: BackendError) -> None:
        """The connection was lost, or there was none."""
        was, self._connection = self._status.state, None
        text = sanitize(self._hide(str(error.args[0])), 300)
        if was is State.CONNECTED:
            log.warning("the MCP server %s is lost: it %s", self.server.name, text)
            self._set(State.CONNECTING, last_error=text)
            self._grace = asyncio.create_task(self._withdraw_later(), name=f"grace of {self.server.name}")
            return
        self._handshake_only = False  # it may be another one by now
        if was is State.CONNECTING:
            log.warning("the MCP server %s is down: it %s; trying again", self.server.name, text)
            self._set(State.DOWN, last_error=text)
        else:
            log.debug("the MCP server %s is still down: it %s", self.server.name, text)
            self._set(State.DOWN, last_error=text, since=self._status.since)
        self._end_grace()
        await self._withdraw()

    def _end_grace(self) -> None:
        if self._grace is not None:
            self._grace.cancel()

    async def _withdraw_later(self) -> None:
        await asyncio.sleep(GRACE_S)
        await self._withdraw()

    async def _withdraw(self) -> None:
        if self._offered:
            self._offered = False
            await self._on_tools(None)

    def _set(self, state: State, *, last_error: str = "", tools: int = 0, since: float | None = None) -> None:
        self._status = ServerStatus(self.server.name, state, time.time() if since is None else since, last_error, tools)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
