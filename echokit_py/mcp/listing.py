"""Reads a server's list of tools to its end, within bounds. Judges no tool."""

from __future__ import annotations

import logging

import mcp_types as types
from mcp.client.session import ClientSession

from echokit_py.mcp.paging import PagingDispatcher

log = logging.getLogger(__name__)

MOST_TOOLS = 1000  # more fit into no prompt
MOST_EMPTY_PAGES = 100  # a paginator that never ends; pages with tools end by their number


async def list_tools(session: ClientSession, dispatcher: PagingDispatcher, name: str) -> list[types.Tool]:
    """Return all tools, in the server's order; `name` is what the log calls it.

    Raises:
        MCPError: the server refuses, or the connection ended.
        pydantic.ValidationError: it sent something else.
    """
    tools: list[types.Tool] = []
    seen: set[str] = set()
    cursor: str | None = None
    while True:
        page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor) if cursor else None)
        accepted = {tool.name for tool in page.tools}
        tools += [tool for tool in dispatcher.listed if tool.name in accepted]
        cursor = page.next_cursor
        if not cursor:
            break
        if cursor in seen or len(seen) >= MOST_EMPTY_PAGES + len(tools) or len(tools) >= MOST_TOOLS:
            log.warning("the list of tools of the MCP server %s does not end; %d are read", name, len(tools))
            break
        seen.add(cursor)
    return tools[:MOST_TOOLS]
