"""What is done while a server is connected: signs of life, and a new list of tools when there is one. Opens nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import mcp_types as types
from mcp.client.session import ClientSession
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.mcp.backoff import Backoff
from echokit_py.mcp.delivery import DELIVERY, Delivery
from echokit_py.mcp.listing import list_tools
from echokit_py.mcp.paging import PagingDispatcher

log = logging.getLogger(__name__)

LIST_LIMIT_S = 30.0
PING_EVERY_S = 30.0
PING_LIMIT_S = 10.0
NEWS_EVERY_S = 1.0  # a server that announces a new list all the time is listed no more often

OnTools = Callable[[Sequence[types.Tool]], Awaitable[None]]


class Upkeep:
    """The care for one session. `lost` is called when it has no more life, `busy` says whether calls are running.

    Attributes:
        lists: how often the tools were listed.
    """

    def __init__(
        self,
        name: str,
        session: ClientSession,
        dispatcher: PagingDispatcher,
        on_tools: OnTools,
        lost: Callable[[BackendError], None],
        busy: Callable[[], bool],
    ) -> None:
        self._name = name
        self._session = session
        self._dispatcher = dispatcher
        self._on_tools = on_tools
        self._lost = lost
        self._busy = busy
        self._suspected = asyncio.Event()
        self._news = asyncio.Event()
        self._listing = asyncio.Lock()
        self.lists = 0

    def suspect(self) -> None:
        """Ask for a sign of life now."""
        self._suspected.set()

    def announce(self) -> None:
        """There is a new list of tools."""
        self._news.set()

    async def list(self) -> None:
        """Read the list of tools and hand it on. Raises what `list_tools` raises, and TimeoutError."""
        if (capabilities := self._session.server_capabilities) is None or capabilities.tools is None:
            tools = []  # a server of prompts or resources only; it would refuse to be asked
        else:
            async with self._listing, asyncio.timeout(LIST_LIMIT_S):
                tools = await list_tools(self._session, self._dispatcher, self._name)
        self.lists += 1
        await self._on_tools(tools)

    async def watch_pulse(self) -> None:
        """Ping, every 30 s and when there is a suspicion."""
        while True:
            try:
                async with asyncio.timeout(PING_EVERY_S):
                    await self._suspected.wait()
            except TimeoutError:
                pass
            self._suspected.clear()
            await self.ping()

    async def follow(self) -> None:
        """List again whenever there is news."""
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self.list()
            except (MCPError, ValidationError, TimeoutError) as error:
                log.debug("the MCP server %s does not list its tools again: %s", self._name, type(error).__name__)
                self.suspect()
            await asyncio.sleep(NEWS_EVERY_S)

    async def subscribe(self) -> None:
        """Ask for news, where that has to be asked for: in 2026-07-28."""
        capabilities = self._session.server_capabilities
        if (
            self._session.protocol_version not in MODERN_PROTOCOL_VERSIONS
            or capabilities is None
            or capabilities.tools is None
            or not capabilities.tools.list_changed
        ):
            return
        backoff, now, again = Backoff(), asyncio.get_running_loop().time, False
        began = now()
        while await self._hear_news(again=again):
            again = True
            self.suspect()
            await asyncio.sleep(max(NEWS_EVERY_S, backoff.pause_s(now() - began)))
            began = now()

    async def _hear_news(self, *, again: bool) -> bool:
        """Listen until the subscription ends; return whether to subscribe again."""
        try:
            async with listen(self._session, tools_list_changed=True) as subscription:
                if again:  # nothing is replayed
                    self.announce()
                async for _ in subscription:
                    self.announce()
        except MCPError as error:
            return error.code != METHOD_NOT_FOUND
        except SubscriptionLost:
            pass
        return True

    async def ping(self) -> None:
        """See whether the server still answers; `lost` is called when it doesn't."""
        delivery = Delivery(deadline=asyncio.get_running_loop().time() + PING_LIMIT_S)
        token = DELIVERY.set(delivery)
        try:
            async with asyncio.timeout(PING_LIMIT_S):
                await self._ask_for_life()
        except TimeoutError:
            if not self._busy():  # a simple server does nothing else while it works at a call
                self._lost(BackendError(Stage.TOOL, ErrorKind.TIMEOUT, "gives no sign of life"))
        except MCPError as error:
            # Any answer is a sign of life. What isn't one, the transport has reported already, or it has ended.
            if error.code == CONNECTION_CLOSED and error.message == "Connection closed" and delivery.failure is None:
                self._lost(BackendError(Stage.TOOL, ErrorKind.BROKEN_OFF, "closed the connection"))
            elif delivery.failure is not None and delivery.failure.retryable and not self._busy():
                self._lost(delivery.failure)
        except ValidationError:
            pass
        finally:
            DELIVERY.reset(token)

    async def _ask_for_life(self) -> None:
        version = self._session.protocol_version
        if version in MODERN_PROTOCOL_VERSIONS:
            await self._session.send_discover(version)
        else:
            await self._session.send_request(types.PingRequest(), types.EmptyResult)
