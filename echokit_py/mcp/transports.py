"""Opens the way to a server, by its kind: HTTP, the older HTTP+SSE, or a program of ours. Speaks no MCP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from echokit_py.config.settings import McpServer
from echokit_py.mcp import guarded_http, stdio
from echokit_py.mcp.guarded_http import Watch
from echokit_py.mcp.large import MOST, LongAnswers
from echokit_py.mcp.mask import Mask


@dataclass(frozen=True, slots=True)
class Link:
    """An open way.

    Attributes:
        read, write: the SDK's streams of messages.
        last_words: how it ended, "" where nobody knows; with what the server said last, if asked for.
    """

    read: Any
    write: Any
    last_words: Callable[[bool], Awaitable[str]]


@asynccontextmanager
async def connect(server: McpServer, answers: LongAnswers, watch: Watch, hide: Mask) -> AsyncIterator[Link]:
    """Open the way to `server` for the time of the block.

    Raises:
        BackendError: there is no such program.
        httpx2.HTTPError: HTTP+SSE could not be opened; the `Delivery` of this context says why.
    """
    if server.type == "stdio":
        async with stdio.start(server, answers, hide) as (read, write, child):
            yield Link(read, write, child.last_words)
        return
    client = await guarded_http.client(server, answers, watch)
    if server.type == "sse":
        # It closes the client itself.
        async with sse_client(
            server.server, httpx_client_factory=lambda headers=None, timeout=None, auth=None: client
        ) as (read, write):
            yield Link(read, write, _silence)
        return
    async with (
        client,
        streamable_http_client(server.server, http_client=client, max_sse_event_size=2 * MOST) as (read, write),
    ):
        yield Link(read, write, _silence)


async def _silence(_: bool) -> str:
    return ""
