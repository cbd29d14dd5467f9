"""Writes the tools of a request as JSON, once for each offer of tools. Knows no API's form; sends nothing.

The schemas of 155 tools are 250 kB: writing them takes 3 ms, more than a request may hold up the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from echokit_py.http.body import encode
from echokit_py.llm.base import Tool
from echokit_py.log import sanitize

log = logging.getLogger(__name__)

PART_BYTES = 50_000  # written at once: half a millisecond
MAX_KEPT = 4  # offers: the current one, and those of turns that began before the tools changed
_WITH_TOOLS = frozenset({"tools", "tool_choice", "parallel_tool_calls"})


class Offers:
    """The members of requests that don't change from one to the next: those of the configuration, and the tools.

    Args:
        write: a tool in the form of the API.
        extra: members of the configuration. Its `tools` (for the server to run) come after those offered; one that is
            no list stays as it is where none are offered.
    """

    def __init__(self, write: Callable[[Tool], dict[str, Any]], extra: Mapping[str, Any]) -> None:
        self._write = write
        self._extra = dict(extra)
        # The tools are kept along with what was made of them, so that no other tuple gets their identity.
        self._kept: dict[int, tuple[Sequence[Tool], dict[str, Any]]] = {}
        self._making = asyncio.Lock()

    async def members(self, tools: Sequence[Tool]) -> dict[str, Any]:
        """Return the members for an offer; `tools` are a `msgspec.Raw`. Made once for one and the same tuple.

        Without any tools what only means something with them is left out: servers refuse a choice among none.
        """
        if not isinstance(tools, tuple):
            return await self._made(tools)
        async with self._making:  # twenty devices that ask at once after a change get it made once
            kept = self._kept.pop(id(tools), None) or (tools, await self._made(tools))
            self._kept[id(tools)] = kept  # the last used one stands last
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return kept[1]

    async def _made(self, tools: Sequence[Tool]) -> dict[str, Any]:
        configured = self._extra.get("tools")
        pieces = await self._all_written(tools)
        pieces += map(encode, configured if isinstance(configured, list) else [])
        if pieces:
            return {**self._extra, "tools": msgspec.Raw(b"[" + b",".join(pieces) + b"]")}
        if configured:
            return self._extra
        return {key: value for key, value in self._extra.items() if key not in _WITH_TOOLS}

    async def _all_written(self, tools: Sequence[Tool]) -> list[bytes]:
        pieces, size = [], 0
        for tool in tools:
            if piece := self._written(tool):
                pieces.append(piece)
                size += len(piece)
            if size > PART_BYTES:
                size = 0
                await asyncio.sleep(0)
        return pieces

    def _written(self, tool: Tool) -> bytes:
        try:
            return encode(self._write(tool))
        except (TypeError, ValueError, RecursionError) as error:
            # One tool that can't be written must not cost the others.
            log.warning("the tool %s is not offered, its schema can't be written: %s", tool.name, sanitize(error))
            return b""
