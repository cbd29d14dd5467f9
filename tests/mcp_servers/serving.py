"""Serves an MCP server of the SDK over stdio or streamable HTTP, as a process of its own. Knows no tools.

Over HTTP it says `listening on URL` on stderr when it takes connections; port 0 lets the system choose one.
"""

from __future__ import annotations

import argparse
import socket
import sys
from typing import Any

import uvicorn
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS


def arguments(parser: argparse.ArgumentParser) -> None:
    """What every server here is started with."""
    parser.add_argument("transport", choices=["stdio", "http"])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--legacy", action="store_true", help="speak the revisions before 2026-07-28 only")


async def _refuse_modern(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    if ctx.method == "server/discover" or ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(METHOD_NOT_FOUND, "Method not found")
    return await call_next(ctx)


async def serve(server: Server[Any], options: argparse.Namespace) -> None:
    """Serve until the client or the process ends."""
    initial = server.create_initialization_options(NotificationOptions(tools_changed=True))
    if options.transport == "stdio":
        async with stdio_server() as (read, write):
            if options.legacy:
                await serve_loop(server, read, write, lifespan_state={}, init_options=initial)
            else:
                await server.run(read, write, initial)
    else:
        if options.legacy:
            server.middleware.insert(0, _refuse_modern)
        await _serve_http(server, initial, options.port)


async def _serve_http(server: Server[Any], initial: InitializationOptions, port: int) -> None:
    def options(*_: object, **__: object) -> InitializationOptions:
        return initial  # the SDK asks for the default ones, without list_changed

    server.create_initialization_options = options  # type: ignore[method-assign]
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)
    config = uvicorn.Config(
        server.streamable_http_app(), log_level="warning", timeout_graceful_shutdown=1, ws="none", access_log=False
    )
    sys.stderr.write(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp\n")
    sys.stderr.flush()
    await uvicorn.Server(config).serve([listener])
