"""A scripted MCP server of the revisions up to 2025-11-25 over streamable HTTP, in the test's process. Runs no tools.

Source: modelcontextprotocol.io/specification/2025-06-18, "Transports" and "Lifecycle": each message is a POST; a
request is answered with `application/json` or with an SSE stream that ends after the response; a notification or a
response with 202; GET opens a stream of the server's own messages; after `initialize` the client sends `Mcp-Session-Id`
and (from 2025-06-18 on) `MCP-Protocol-Version` with each request; without the id it gets 400, with one that is
forgotten 404, and then starts anew with an `initialize` that has none; a version that the server doesn't know is 400.
`tools/list` comes in pages; a tool that isn't there is the JSON-RPC error -32602 ("Server features", "Tools").

It is scripted with a server of the corpus' `mcp` cases (README there: `script` in order, `pages`, `timeline`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

from aiohttp import web

Message = dict[str, Any]
LIMIT_S = 60.0

# What a client may send at any time, also where a script gives an order.
_EXTRA = {"tools/list", "ping", "notifications/initialized", "notifications/cancelled"}


def as_tool(tool: str | Message) -> Message:
    """A tool of a case; some cases give names only. The description says what it is called here."""
    if isinstance(tool, str):
        return {"name": tool, "description": tool, "inputSchema": {"type": "object", "properties": {}}}
    return tool


class ScriptedMcp:
    """An asynchronous context manager.

    Attributes:
        tools: what it offers.
        executions: how often each tool ran.
        script: the steps that have not come yet.
        violations: what the client did against the specification or the script, each a sentence.
        methods: what came, in order.
    """

    def __init__(self, given: Mapping[str, Any], *, sse: bool = False) -> None:
        self.name: str = given["name"]
        self._protocol: str = given["protocol"]
        self._sse = sse
        self._pages: list[Message] = given.get("pages", [])
        self.tools = [as_tool(tool) for tool in given.get("tools", [])]
        self.script: list[Message] = list(given.get("script", []))
        self._ordered = any(step["expect"] == "initialize" for step in self.script)
        self.executions: Counter[str] = Counter()
        self.violations: list[str] = []
        self.methods: list[str] = []
        self._sessions: set[str] = set()
        self._numbers = itertools.count(1)
        self._streams: list[web.StreamResponse] = []
        self._answered: set[object] = set()
        self._changed = asyncio.Condition()
        self._closing = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/mcp", self._post)
        app.router.add_get("/mcp", self._get)
        app.router.add_delete("/mcp", self._delete)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        await asyncio.sleep(0)
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        """Where it serves MCP."""
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/mcp"

    async def change(self, *names: str) -> None:
        """Offer other tools, and say so on the client's stream, once it has opened one."""
        await self._until(lambda: bool(self._streams))
        self.tools = [as_tool(name) for name in names]
        await self._send({"method": "notifications/tools/list_changed"})

    async def ping(self) -> None:
        """Ask whether the client lives, and wait for its answer."""
        await self._until(lambda: bool(self._streams))
        await self._send({"id": "are-you-there", "method": "ping"})
        await self._until(lambda: "are-you-there" in self._answered)

    async def _send(self, message: Message) -> None:
        for stream in self._streams:
            await stream.write(f"event: message\ndata: {json.dumps({'jsonrpc': '2.0', **message})}\n\n".encode())

    async def _until(self, condition: Any) -> None:
        async with asyncio.timeout(LIMIT_S), self._changed:
            await self._changed.wait_for(condition)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _get(self, request: web.Request) -> web.StreamResponse:
        if refusal := self._refusal(request):
            return refusal
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        self._streams.append(stream)
        await self._tell()
        try:
            await self._closing.wait()
        finally:
            self._streams.remove(stream)
        return stream

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        self._sessions.discard(request.headers.get("Mcp-Session-Id", ""))
        return web.Response()

    def _refusal(self, request: web.Request) -> web.Response | None:
        session = request.headers.get("Mcp-Session-Id")
        if session is None:
            return web.Response(status=400, text="Bad Request: no session")
        if session not in self._sessions:
            return web.Response(status=404, text="Not Found: no such session")
        version = request.headers.get("MCP-Protocol-Version")
        if self._protocol >= "2025-06-18" and version != self._protocol:
            self.violations.append(f"MCP-Protocol-Version is {version}, not {self._protocol}")
        return None

    async def _post(self, request: web.Request) -> web.StreamResponse:
        message: Message = await request.json()
        method = message.get("method", "")
        if method == "server/discover":  # of a revision that this server doesn't know
            return web.Response(status=400, text="Bad Request: unsupported protocol version")
        self.methods.append(method)
        if method != "initialize" and (refusal := self._refusal(request)):
            return refusal
        step = self._step(method, message, request.headers.get("Mcp-Session-Id"))
        if not method:
            self._answered.add(message.get("id"))
        await self._tell()
        if method == "initialize":
            return self._initialize(message, step)
        if step.get("status", 200) >= 400:
            self._sessions.discard(request.headers.get("Mcp-Session-Id", ""))
            return web.Response(status=step["status"])
        if "id" not in message or not method:
            return web.Response(status=202)
        if step.get("then") == "never_answer":
            await self._closing.wait()
        return await self._answer(request, {"id": message["id"], **self._outcome(method, message, step)})

    def _step(self, method: str, message: Message, session: str | None) -> Message:
        """The step of the script that this message is, {} for none."""
        tool = message.get("params", {}).get("name")
        fits = [step for step in self.script if step["expect"] == method and step.get("tool", tool) == tool]
        if self._ordered and method and method not in _EXTRA and self.script[:1] != fits[:1]:
            self.violations.append(f"{method} came, expected was {self.script[:1]}")
        if not fits or (self._ordered and self.script[0] is not fits[0]):
            return {}
        self.script.remove(fits[0])
        if "session_in" in fits[0] and fits[0]["session_in"] != session:
            self.violations.append(f"{method} came with session {session}")
        return fits[0]

    def _initialize(self, message: Message, step: Message) -> web.Response:
        session = step.get("session_out", f"session-{next(self._numbers)}")
        self._sessions.add(session)
        result = {
            "protocolVersion": self._protocol,
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": self.name, "version": "1"},
        }
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return web.json_response(body, headers={"Mcp-Session-Id": session})

    def _outcome(self, method: str, message: Message, step: Message) -> Message:
        params = message.get("params", {})
        match method:
            case "ping":
                return {"result": {}}
            case "tools/list":
                return {"result": self._page(params.get("cursor"))}
            case "tools/call":
                return self._run(params["name"], step)
        return {"error": {"code": -32601, "message": "Method not found"}}

    def _run(self, tool: str, step: Message) -> Message:
        if all(offered["name"] != tool for offered in self.tools):
            return {"error": {"code": -32602, "message": f"Unknown tool: {tool}"}}
        self.executions[tool] += 1
        if "result" in step:
            return {"result": step["result"]}
        repeat = step.get("result_text_repeat", {"text": f"{self.name} ran {tool}", "times": 1})
        return {"result": {"content": [{"type": "text", "text": repeat["text"] * repeat["times"]}]}}

    def _page(self, cursor: str | None) -> Message:
        for page in self._pages:
            if page.get("cursor") == cursor:
                more = {"nextCursor": page["nextCursor"]} if "nextCursor" in page else {}
                return {"tools": [as_tool(tool) for tool in page["tools"]], **more}
        return {"tools": self.tools}

    async def _answer(self, request: web.Request, message: Message) -> web.StreamResponse:
        body = json.dumps({"jsonrpc": "2.0", **message})
        if not self._sse:
            return web.Response(text=body, content_type="application/json")
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(f"event: message\ndata: {body}\n\n".encode())
        await stream.write_eof()
        return stream
