"""The HTTP application: routes, version, health, the journal. The device endpoint itself is `device_socket.py`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

from aiohttp import web

from echokit_py.mcp.base import ServerStatus
from echokit_py.server.device_socket import DeviceSocket
from echokit_py.server.origins import Origins
from echokit_py.session.devices import Devices
from echokit_py.session.journal import Journal

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Readiness:
    """Whether the models are loaded. `failure` is the sentence why they will never be."""

    ready: asyncio.Event = field(default_factory=asyncio.Event)
    failure: str = ""


def build(
    devices: Devices,
    journal: Journal,
    readiness: Readiness,
    origins: Origins,
    servers: Callable[[], Sequence[ServerStatus]] = tuple,
) -> web.Application:
    """The application with all its routes. It owns `devices`: they are closed at its shutdown.

    `servers` tells how the MCP servers are; that is shown, and nothing depends on it: without tools boards are served
    as well.
    """
    socket = DeviceSocket(devices, readiness.ready, origins)
    app = web.Application(client_max_size=64 * 1024)

    async def show_version(_: web.Request) -> web.Response:
        return web.json_response({"version": version("echokit-py")})

    async def show_health(_: web.Request) -> web.Response:
        if readiness.ready.is_set():
            return web.json_response(
                {
                    "status": "ok",
                    "devices": devices.connected,
                    "sessions": len(devices),
                    # Not why one is down: that may name hosts and folders, and anybody in the network can ask here.
                    "mcp_servers": [{"name": one.name, "state": one.state, "tools": one.tools} for one in servers()],
                }
            )
        return web.json_response({"status": readiness.failure or "the models are being loaded"}, status=503)

    async def show_turns(_: web.Request) -> web.Response:
        shown = []
        for record in list(journal):
            shown.append(record.as_json())
            await asyncio.sleep(0)  # all at once they take some milliseconds
        return web.json_response(shown)

    async def shut_down(_: web.Application) -> None:
        await socket.close()
        await devices.close()

    app.add_routes(
        [
            web.get("/version", show_version),
            web.get("/health", show_health),
            web.get("/api/turns", show_turns),
            # The id takes the rest of the path, so that one with a slash in it is refused and not just not found.
            web.get("/ws/{id:(?s:.*)}", socket.handle),
            web.get("/v2/stable_ws/{id:(?s:.*)}", socket.handle),
        ]
    )
    app.on_shutdown.append(shut_down)
    return app
