"""One connection to an MCP server, from its opening to its end: tools, calls, news, signs of life. Never comes back.

One task, that of `run`, enters and leaves the context managers of the SDK: their cancel scopes belong to a task.
Imports the SDK, which takes 2 s: to be imported late, in a thread (`supervisor.py` does).
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.client.session import ClientSession, IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import CONNECTION_CLOSED, HEADER_MISMATCH
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from echokit_py.config.settings import McpServer
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.log import sanitize
from echokit_py.mcp.base import Refused, Unanswered
from echokit_py.mcp.delivery import DELIVERY, Delivery
from echokit_py.mcp.handshake import shake_hands
from echokit_py.mcp.large import LongAnswers
from echokit_py.mcp.mask import mask
from echokit_py.mcp.paging import PagingDispatcher
from echokit_py.mcp.transports import connect
from echokit_py.mcp.upkeep import OnTools, Upkeep

log = logging.getLogger(__name__)

# anyio would import it when it is first used, which takes the event loop 30 ms.
importlib.import_module("anyio._backends._asyncio")

# Above DEBUG the SDK logs what servers say, with stack traces; what we need of that, we say ourselves.
for _name in ("mcp", "client"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)

_OURSELVES = types.Implementation(name="echokit-py", version=version("echokit-py"))

OPEN_LIMIT_S = 30.0
START_LIMIT_S = 180.0  # of a program: npx and uvx fetch it first
LET_GO_S = 0.3  # for the server to be told that a call is cancelled
GRACE_S = 2.0  # after that, an answer nobody waits for any more is not read on

_RESULT: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


class Connection:
    """`handshake_only`: the server is known not to speak 2026-07-28, and isn't asked first whether it does."""

    def __init__(self, server: McpServer, *, handshake_only: bool = False) -> None:
        self._server = server
        self._handshake_only = handshake_only or server.type == "sse"
        self._hide = mask(server)
        self._answers = LongAnswers()
        self._session: ClientSession | None = None
        self._upkeep: Upkeep | None = None
        self._lost: asyncio.Future[BackendError] = asyncio.get_running_loop().create_future()
        self._unheard = False
        self._last_words = ""
        self._calls: set[asyncio.Task[Any]] = set()

    @property
    def is_lost(self) -> bool:
        """Whether it has ended."""
        return self._lost.done()

    @property
    def speaks_2026(self) -> bool:
        """Whether 2026-07-28 was agreed on: no sessions, no ping, news by subscription."""
        return self._session is not None and self._session.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def run(self, on_tools: OnTools) -> None:
        """Connect, and stay so. `on_tools` gets the tools at first and whenever they change.

        Raises:
            BackendError: always; why there is no connection, or why there is none any more.
        """
        delivery = Delivery()
        DELIVERY.set(delivery)
        try:
            await self._run(on_tools, delivery)
        except Exception as error:  # noqa: BLE001 - the boundary of a connection: the SDK raises groups of anything
            self.lost(self._reason(error, delivery))
        finally:
            self.lost(self._error(ErrorKind.BROKEN_OFF, "is disconnected"))
            await self._end_calls()
        if self._last_words:
            raise self._error(ErrorKind.BROKEN_OFF, self._last_words)
        raise self._lost.result()

    async def call(self, name: str, arguments: dict[str, Any], deadline: float) -> types.CallToolResult:
        """Call a tool, once; `deadline` (the loop's time) is when the caller will give up.

        Cancelling it cancels the call with the server.

        Raises:
            Unanswered: there will be no answer.
            Refused: the server answered with an error of the protocol.
        """
        task = asyncio.create_task(self._call(name, arguments, deadline + GRACE_S), name=f"MCP call {sanitize(name)}")
        self._calls.add(task)
        task.add_done_callback(self._ended)
        try:
            await asyncio.wait([task])
        finally:
            if not task.done():
                # It tells the server. Where that takes longer, it goes on without us.
                task.cancel()
                await asyncio.wait([task], timeout=LET_GO_S)
        if task.cancelled():
            raise Unanswered("the connection was closed", not_run=False)
        return task.result()

    def lost(self, error: BackendError) -> None:
        """The connection has ended. The first reason counts."""
        if not self._lost.done():
            self._lost.set_result(error)

    def suspect(self) -> None:
        """The connection may have ended; see whether it is still there."""
        if self._upkeep is not None:
            self._upkeep.suspect()

    async def alive(self) -> bool:
        """See now whether the connection is still there."""
        if self._upkeep is not None and not self._lost.done():
            await self._upkeep.ping()
        return not self._lost.done()

    async def _run(self, on_tools: OnTools, delivery: Delivery) -> None:
        async with AsyncExitStack() as stack:
            limit_s = START_LIMIT_S if self._server.type == "stdio" else OPEN_LIMIT_S
            deadline = asyncio.get_running_loop().time() + limit_s
            async with asyncio.timeout_at(deadline):
                link = await stack.enter_async_context(connect(self._server, self._answers, self, self._hide))
                dispatcher = PagingDispatcher(JSONRPCDispatcher(link.read, link.write), self._answers, self._end)
                session = await stack.enter_async_context(
                    ClientSession(dispatcher=dispatcher, message_handler=self._hear, client_info=_OURSELVES)
                )
            self._session = session
            self._upkeep = upkeep = Upkeep(
                self._server.name, session, dispatcher, on_tools, self.lost, lambda: bool(self._calls)
            )
            try:
                async with asyncio.timeout_at(deadline):
                    await shake_hands(session, handshake_only=self._handshake_only)
                    await upkeep.list()
                await self._stay(upkeep)
            except Exception as error:  # noqa: BLE001 - as in `run`; but here the server can still be asked why
                self._unheard = self._unheard or (isinstance(error, MCPError) and self._is_end(error))
                self.lost(self._reason(error, delivery))
            # What a program said last tells more than that its pipe is closed. One that served may say what users said.
            if self._unheard and (words := await link.last_words(upkeep.lists == 0)):
                self._last_words = words

    async def _stay(self, upkeep: Upkeep) -> None:
        """Take care of the connection until it is lost."""
        tasks = [
            asyncio.create_task(work(), name=f"{self._server.name}: {work.__name__}")
            for work in (upkeep.watch_pulse, upkeep.follow, upkeep.subscribe)
        ]
        for task in tasks:
            task.add_done_callback(self._look)
        try:
            await asyncio.wait([self._lost])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        raise self._lost.result()

    def _look(self, task: asyncio.Task[None]) -> None:
        """Nobody would notice that the care for the connection has stopped."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.lost(self._reason(error, Delivery()))

    async def _end_calls(self) -> None:
        """The SDK ends them with the session; what doesn't end is cancelled."""
        for cancel in (False, True):
            for task in self._calls if cancel else ():
                task.cancel()
            if self._calls:
                await asyncio.wait(self._calls, timeout=LET_GO_S)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # noticed, also where nobody waits for it any more

    async def _call(self, name: str, arguments: dict[str, Any], deadline: float) -> types.CallToolResult:
        """One call; asked again with the right headers where the server says that these were wrong, and ran nothing."""
        if self._session is None or self._lost.done():
            raise Unanswered("the server is not connected", not_run=True)
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=name, arguments=arguments))
        try:
            result = await self._ask(self._session, request, deadline)
        except MCPError as error:
            if error.code != HEADER_MISMATCH or not self.speaks_2026 or self._upkeep is None:
                raise Refused(self._words(error)) from error
            try:
                await self._upkeep.list()
                result = await self._ask(self._session, request, deadline)
            except (MCPError, TimeoutError, ValidationError) as mismatch:
                raise Refused(self._words(error)) from mismatch
        if isinstance(result, types.InputRequiredResult):
            raise Refused("the tool wants to ask something that can't be asked here")
        return result

    async def _ask(
        self, session: ClientSession, request: types.CallToolRequest, deadline: float
    ) -> types.CallToolResult | types.InputRequiredResult:
        delivery = Delivery(deadline=deadline)
        DELIVERY.set(delivery)
        try:
            # Not `call_tool`: that throws a result away which doesn't fit the tool's output schema.
            return await session.send_request(request, _RESULT)
        except MCPError as error:
            if delivery.sent and not delivery.broken and not self._is_end(error):
                if delivery.failure is None or error.code == HEADER_MISMATCH:
                    raise
                raise Refused(f"the server {self._hide(str(delivery.failure.args[0]))}") from error
            words = delivery.failure.args[0] if delivery.failure else "closed the connection"
            raise Unanswered(f"the server {words}", not_run=not delivery.sent) from error
        except ValidationError as error:
            raise Unanswered("the server's answer can't be read", not_run=False) from error

    def _is_end(self, error: MCPError) -> bool:
        """Whether this is no answer of the server's, but the SDK's word for the end of a connection or a stream."""
        return error.code == CONNECTION_CLOSED and (
            self._lost.done() or error.message.startswith(("SSE stream", "Connection closed"))
        )

    async def _hear(self, message: IncomingMessage) -> None:
        """What the server says by itself."""
        if isinstance(message, types.ToolListChangedNotification) and self._upkeep is not None:
            self._upkeep.announce()

    def _end(self) -> None:
        """The server can't be heard any more."""
        self._unheard = True
        self.lost(self._error(ErrorKind.BROKEN_OFF, "closed the connection"))

    def _reason(self, error: BaseException, delivery: Delivery) -> BackendError:
        """What went wrong, in our words."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        match error:
            case BackendError():
                return error
            case _ if delivery.failure is not None:
                return delivery.failure
            case TimeoutError():
                return self._error(ErrorKind.TIMEOUT, "did not answer in time")
            case MCPError():
                return self._error(ErrorKind.BAD_ANSWER, f"refuses: {self._words(error)}")
            case ValidationError() | RuntimeError():
                return self._error(ErrorKind.BAD_ANSWER, "does not answer in MCP as we know it")
        log.debug("the connection to the MCP server %s ended", self._server.name, exc_info=error)
        return self._error(ErrorKind.BROKEN_OFF, f"broke off ({type(error).__name__})")

    def _error(self, kind: ErrorKind, words: str) -> BackendError:
        return BackendError(Stage.TOOL, kind, words)

    def _words(self, error: MCPError) -> str:
        return sanitize(self._hide(error.message), 500) or f"error {error.code}"
