"""A dispatcher around the SDK's: long answers come back into it, and a list of tools is read here, in short pages.

The SDK refuses a whole list for one bad tool, and checks 250 kB in one go; it gets the essence of the tools, a few at a
time, and between the pages the event loop has its turn. Knows no transport.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio.abc
import mcp_types as types
import msgspec
from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import PARSE_ERROR

from echokit_py.mcp.large import LongAnswers
from echokit_py.mcp.reading import essence, read_tool

PAGE_BYTES = 8 * 1024  # of tools in one page; the SDK takes about 1 ms for that


class _Tools(msgspec.Struct):
    tools: list[msgspec.Raw]


@dataclass(frozen=True, slots=True)
class _Page:
    tools: list[Any]
    rest: dict[str, Any]


class PagingDispatcher:
    """Implements the SDK's Dispatcher. `on_end` is called when the server can't be heard any more.

    Attributes:
        listed: the tools of the page that was asked for last, as the server has them.
    """

    def __init__(self, inner: JSONRPCDispatcher[Any], answers: LongAnswers, on_end: Callable[[], None]) -> None:
        self._inner = inner
        self._answers = answers
        self._on_end = on_end
        self._prefix = secrets.token_hex(8)
        self._numbers = itertools.count()
        self._pages: dict[str, _Page] = {}
        self.listed: list[types.Tool] = []

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request; return its result. Raises MCPError."""
        if method != "tools/list":
            return await self._ask(method, params, opts)
        page = self._pages.pop(str((params or {}).get("cursor")), None)
        if page is None:
            result = await self._inner.send_raw_request(method, params, opts)
            long = self._answers.take(result)
            page = self._cut(long) if long is not None else _Page(_tools(result), result)
        await asyncio.sleep(0)
        self.listed = [tool for raw in page.tools if (tool := read_tool(_plain(raw))) is not None]
        return {**page.rest, "tools": [essence(tool) for tool in self.listed]}

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification."""
        await self._inner.notify(method, params, opts)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Read until the transport ends."""
        try:
            await self._inner.run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self._on_end()

    async def _ask(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None) -> dict[str, Any]:
        result = await self._inner.send_raw_request(method, params, opts)
        long = self._answers.take(result)
        if long is None:
            return result
        fields: dict[str, msgspec.Raw] = _decode(long, dict[str, msgspec.Raw])
        structured = fields.pop("structuredContent", None)
        answer = {name: _decode(value, Any) for name, value in fields.items()}
        # It is said once more as text, as the specification wants it; long as it is, once is enough.
        if structured is not None and not answer.get("content"):
            answer["structuredContent"] = _decode(structured, Any)
        return answer

    def _cut(self, long: msgspec.Raw) -> _Page:
        """Cut a long result of tools/list into pages; return the first, and keep the others under cursors of ours."""
        fields = _decode(long, dict[str, msgspec.Raw])
        groups = _groups(_decode(long, _Tools).tools)
        rest = {name: _decode(value, Any) for name, value in fields.items() if name != "tools"}
        self._pages.clear()  # of a listing that was not read to its end
        cursors = [f"{self._prefix}:{next(self._numbers)}" for _ in groups]
        for group, cursor, following in zip(groups, cursors, [*cursors[1:], None], strict=True):
            more = {"nextCursor": following} if following else {}
            self._pages[cursor] = _Page(group, {**rest, **more})
        return self._pages.pop(cursors[0]) if cursors else _Page([], rest)


def _groups(tools: list[msgspec.Raw]) -> list[list[msgspec.Raw]]:
    groups: list[list[msgspec.Raw]] = []
    size = PAGE_BYTES
    for tool in tools:
        if size >= PAGE_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(tool)
        size += len(bytes(tool))
    return groups


def _tools(result: dict[str, Any]) -> list[Any]:
    tools = result.get("tools")
    if not isinstance(tools, list):
        raise MCPError(code=PARSE_ERROR, message="the server's list of tools can't be read")
    return tools


def _plain(raw: Any) -> Any:
    """One entry of a list of tools; None for one that can't be read, which costs no other."""
    if not isinstance(raw, msgspec.Raw):
        return raw
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _decode(raw: msgspec.Raw, kind: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, RecursionError):
        raise MCPError(code=PARSE_ERROR, message="the server's answer can't be read") from None
