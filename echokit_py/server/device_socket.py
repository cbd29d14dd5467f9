"""The WebSocket endpoint of devices: the only place where events become bytes. What they mean is the session's.

Two rules come from the firmware (protocol README): never negotiate compression, which a board offers and can't
inflate; and no heartbeat, since a board that plays reads nothing, pings included, for as long as its speech lasts.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import dataclass
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from echokit_py.log import sanitize
from echokit_py.server.origins import Origins
from echokit_py.session.devices import Devices, TooManySessions
from echokit_py.session.outbox import Entry, Outbox, OutboxClosed
from echokit_py.session.session import Session
from echokit_py.session.tasks import stop
from firmware_protocol.codec import decode_command, encode_event
from firmware_protocol.errors import ProtocolError
from firmware_protocol.link import MAX_FRAME_BYTES, LinkParameters, check_device_id, parse_query

log = logging.getLogger(__name__)

# A board stops reading while it plays, tens of seconds at most. One that takes not a byte for this long is gone.
SEND_STALL_S = 120.0
# Events that go out in a row under one such limit: about 1 ms of the event loop, and less than 1 s of audio.
EVENTS_AT_ONCE = 4
# How long a handshake waits for the models at start-up; a board's own retries are over in a second.
READY_LIMIT_S = 15.0
# A peer that doesn't answer our Close within this time is cut off.
CLOSE_LIMIT_S = 2.0

# Dead peers (power cut, Wi-Fi gone) are found by TCP itself: a probe each 15 s after 60 s of quiet. The board's network
# stack answers them even while its program plays. Probes are only sent when nothing waits to be acknowledged; for what
# does, Linux would try for 15 minutes.
_KEEPALIVE = (
    ("TCP_KEEPIDLE", 60),
    ("TCP_KEEPINTVL", 15),
    ("TCP_KEEPCNT", 4),
    ("TCP_USER_TIMEOUT", int(SEND_STALL_S * 1000)),
)


class DeviceSocket:
    """Handles `/ws/{id}`. One instance serves all devices."""

    def __init__(self, devices: Devices, ready: asyncio.Event, origins: Origins) -> None:
        self._devices = devices
        self._ready = ready
        self._origins = origins
        self._connections: set[_Connection] = set()
        self._closing = False

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection from its handshake to its end."""
        device, link = self._admit(request)
        try:
            async with asyncio.timeout(READY_LIMIT_S):
                await self._ready.wait()
        except TimeoutError:
            raise web.HTTPServiceUnavailable(text="the models are still being loaded\n") from None
        if self._closing:
            raise web.HTTPServiceUnavailable(text="the server is going away\n")
        if request.transport is None:  # the device has given up waiting
            return web.Response()
        # aiohttp's own limit for closing lets what is still to be sent linger on; ours, the shorter one, cuts it off.
        ws = web.WebSocketResponse(
            compress=False, heartbeat=None, max_msg_size=MAX_FRAME_BYTES, timeout=2 * CLOSE_LIMIT_S
        )
        await ws.prepare(request)
        connection = _Connection(ws, request.transport, device)
        connection.keep_alive()
        self._connections.add(connection)
        try:
            await self._serve(connection, link)
        finally:
            self._connections.discard(connection)
        return ws

    async def close(self) -> None:
        """Tell every connected device that the server goes away, and take no further ones."""
        self._closing = True
        await asyncio.gather(*(each.close(WSCloseCode.GOING_AWAY) for each in list(self._connections)))

    def _admit(self, request: web.Request) -> tuple[str, LinkParameters]:
        if not self._origins.allows(request.headers.get("Origin"), request.host):
            raise web.HTTPForbidden(text="pages of this origin may not connect; see allowed_origins\n")
        try:
            device, link = check_device_id(request.match_info["id"]), parse_query(request.query)
        except ProtocolError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from None
        if link.record:
            raise web.HTTPNotImplemented(text="record mode is not available in this version\n")
        if request.headers.get("Upgrade", "").lower() != "websocket":
            raise web.HTTPUpgradeRequired(
                text="this address is for boards: it speaks WebSocket\n", headers={"Upgrade": "websocket"}
            )
        return device, link

    async def _serve(self, connection: _Connection, link: LinkParameters) -> None:
        device, outbox = connection.device, Outbox()
        try:
            session = self._devices.session(device)
        except TooManySessions:
            log.warning("%s: refused, too many devices are connected", device)
            await connection.close(WSCloseCode.TRY_AGAIN_LATER)
            return
        log.info("%s: connected (%s)", device, "reconnect" if link.reconnect else "afresh")
        tasks: set[asyncio.Task[None]] = set()
        try:
            await session.attach(outbox, link)
            tasks.add(asyncio.create_task(connection.read(session, outbox), name=f"reader {device}"))
            tasks.add(asyncio.create_task(connection.write(outbox), name=f"writer {device}"))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await session.detach(outbox)
            await stop(tasks)
            await connection.close()
            log.info("%s: disconnected", device)
        for task in tasks:
            if not task.cancelled():
                task.result()  # a fault of ours shows in the log


@dataclass(frozen=True, slots=True, eq=False)
class _Connection:
    """One WebSocket: bytes to events and back."""

    ws: web.WebSocketResponse
    transport: asyncio.Transport | None
    device: str

    async def read(self, session: Session, outbox: Outbox) -> None:
        """Pass on what the device sends, until the connection ends."""
        async for message in self.ws:
            if message.type is WSMsgType.BINARY:
                await session.audio(outbox, message.data)
            elif message.type is WSMsgType.TEXT:
                try:
                    command = decode_command(message.data)
                except ProtocolError as error:
                    log.info("%s: a message was ignored: %s", self.device, sanitize(error))
                    continue
                await session.command(outbox, command)
            elif message.type is WSMsgType.ERROR:
                log.info("%s: the connection broke: %s", self.device, sanitize(self.ws.exception()))

    async def write(self, outbox: Outbox) -> None:
        """Send what the outbox holds, until it is closed or the peer takes nothing more."""
        try:
            while True:
                entry = await outbox.get()
                async with asyncio.timeout(SEND_STALL_S):
                    await self._send(entry)
                    for _ in range(EVENTS_AT_ONCE - 1):
                        if outbox.pending:
                            await self._send(await outbox.get())
                if outbox.pending:
                    await asyncio.sleep(0)
        except OutboxClosed:
            pass
        except TimeoutError:
            log.warning("%s: has taken no data for %g s; disconnected", self.device, SEND_STALL_S)
        except (ConnectionError, RuntimeError) as error:  # aiohttp raises RuntimeError for a socket that is closing
            log.info("%s: the connection broke: %s", self.device, sanitize(error))

    async def _send(self, entry: Entry) -> None:
        await self.ws.send_bytes(encode_event(entry.event))
        if entry.on_sent is not None:
            entry.on_sent()

    async def close(self, code: WSCloseCode = WSCloseCode.OK) -> None:
        """Close the connection; one whose peer takes no more data is cut off."""
        try:
            async with asyncio.timeout(CLOSE_LIMIT_S):
                await self.ws.close(code=code)
        except TimeoutError:
            if self.transport is not None:
                self.transport.abort()

    def keep_alive(self) -> None:
        """Let TCP find out when the peer is gone."""
        peer: Any = self.transport.get_extra_info("socket") if self.transport is not None else None
        if peer is None:
            return
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            if hasattr(socket, name):
                peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
