"""An MCP server over streamable HTTP that does what a test says, as the revisions 2025-03-26 to 2025-11-25 have it
(modelcontextprotocol.io/specification/2025-06-18/basic/transports). Of stdlib and aiohttp, in the test's process.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Handler = Callable[[dict[str, Any]], Awaitable[web.StreamResponse]]
RawHandler = Callable[[dict[str, Any], web.Request], Awaitable[web.StreamResponse]]


class LegacyServer:
    """Its tools are `pages`, one list a page; `answers` and
    `raw_answers`, by method, take the place of what it would do by itself.

    Attributes:
        posts: the messages that came, in order.
        headers: of the last request.
        known: the sessions it knows; the next one gets the next number.
        stream: the open GET stream, None while there is none.
        get_status: what GET is answered with, if not with a stream.
        unknown: status and body of the answer to who names a session that isn't known.
    """

    def __init__(self) -> None:
        self.posts: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.known: set[str] = set()
        self.pages: list[list[dict[str, Any]]] = [[named("on")]]
        self.answers: dict[str, Handler] = {}
        self.raw_answers: dict[str, RawHandler] = {}
        self.stream: web.StreamResponse | None = None
        self.get_status = 200
        self.unknown = (404, "")
        self.arrived = asyncio.Condition()
        self.url = ""
        self.port = 0
        self._runner: web.AppRunner | None = None
        self._streams: set[asyncio.Event] = set()
        self._sessions = 0

    async def start(self) -> None:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/mcp", self._handle)
        app.router.add_get("/sse", self._open_sse)
        app.router.add_post("/messages", self._take_message)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    async def stop(self) -> None:
        self.cut_streams()
        if self._runner is not None:
            await self._runner.cleanup()
        self._runner = None

    async def _open_sse(self, request: web.Request) -> web.StreamResponse:
        """HTTP+SSE, the transport of 2024-11-05: answers come on this stream."""
        if self.get_status != 200:
            return web.Response(status=self.get_status)
        self.known.add("sse")
        return await self._open_stream(request, b"event: endpoint\ndata: /messages?session_id=sse\n\n")

    async def _take_message(self, request: web.Request) -> web.StreamResponse:
        if request.query["session_id"] not in self.known:
            return web.Response(status=404)
        post = await request.json()
        self.posts.append(post)
        if "id" in post and self.stream is not None:
            answer = self._answer(post)
            assert isinstance(answer.text, str)
            await self.stream.write(event(json.loads(answer.text)))
        return web.Response(status=202)

    def methods(self) -> list[str]:
        return [post.get("method", "answer") for post in self.posts]

    async def received(self, method: str, count: int = 1) -> dict[str, Any]:
        """Wait until that many messages of a method came; return the last."""

        def found() -> bool:
            return self.methods().count(method) >= count

        async with asyncio.timeout(20), self.arrived:
            await self.arrived.wait_for(found)
        return [post for post in self.posts if post.get("method", "answer") == method][-1]

    async def say(self, message: dict[str, Any]) -> None:
        """Say something by itself, on the GET stream, once that is there."""
        async with asyncio.timeout(20), self.arrived:
            await self.arrived.wait_for(lambda: self.stream is not None)
        assert self.stream is not None
        await self.stream.write(event(message))

    def cut_streams(self) -> None:
        for end in self._streams:
            end.set()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.headers = dict(request.headers)
        session = request.headers.get("mcp-session-id")
        if session is not None and session not in self.known:
            status, text = self.unknown
            return web.Response(status=status, text=text)
        if request.method == "GET":
            return await self._open_stream(request)
        if request.method == "DELETE":
            self.posts.append({"method": "DELETE"})
            return web.Response()
        post = await request.json()
        async with self.arrived:
            self.posts.append(post)
            self.arrived.notify_all()
        return await self._answer_or_not(post, request)

    async def _answer_or_not(self, post: dict[str, Any], request: web.Request) -> web.StreamResponse:
        if "id" not in post or "method" not in post:
            return web.Response(status=202)
        if (raw := self.raw_answers.get(post["method"])) is not None:
            return await raw(post, request)
        if (answer := self.answers.get(post["method"])) is not None:
            return await answer(post)
        return self._answer(post)

    def _answer(self, post: dict[str, Any]) -> web.Response:
        match post["method"]:
            case "initialize":
                self._sessions += 1
                self.known.add(f"s{self._sessions}")
                result: dict[str, Any] = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "legacy", "version": "1"},
                }
                return reply(post, result, {"mcp-session-id": f"s{self._sessions}"})
            case "tools/list":
                page = int(post.get("params", {}).get("cursor", 0))
                more = {"nextCursor": str(page + 1)} if page + 1 < len(self.pages) else {}
                return reply(post, {"tools": self.pages[page], **more})
            case "tools/call":
                return reply(post, {"content": [{"type": "text", "text": "done"}]})
            case "ping":
                return reply(post, {})
        return web.json_response(
            {"jsonrpc": "2.0", "id": post["id"], "error": {"code": -32601, "message": "Method not found"}}
        )

    async def _open_stream(self, request: web.Request, begin: bytes = b"") -> web.StreamResponse:
        if self.get_status != 200:
            return web.Response(status=self.get_status)
        end = asyncio.Event()
        self._streams.add(end)
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(begin)
        async with self.arrived:
            self.stream = stream
            self.arrived.notify_all()
        try:
            await end.wait()
        finally:
            self.stream = None
            self._streams.discard(end)
        return stream


def named(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **members}


def reply(post: dict[str, Any], result: dict[str, Any], headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"jsonrpc": "2.0", "id": post["id"], "result": result}, headers=headers)


def event(message: dict[str, Any]) -> bytes:
    return b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n"


@asynccontextmanager
async def serving() -> AsyncIterator[LegacyServer]:
    server = LegacyServer()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
