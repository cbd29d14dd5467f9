"""A server that follows a test's script: one coroutine for each connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from firmware_protocol.codec import decode_command, encode_event
from firmware_protocol.events import Command, ServerEvent


class Peer:
    """The server's end of a connection; everything that came is in `received`."""

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection
        self.received: list[Command | bytes] = []

    async def send(self, *events: ServerEvent) -> None:
        for event in events:
            await self.connection.send(encode_event(event))

    async def receive(self) -> Command | bytes:
        """The next command or piece of audio. Raises ConnectionClosed."""
        message = await self.connection.recv()
        self.received.append(decode_command(message) if isinstance(message, str) else message)
        return self.received[-1]

    async def receive_until(self, size: int) -> None:
        """Receive until that many bytes of audio have come."""
        while self.audio_bytes < size:
            await self.receive()

    async def receive_command(self) -> Command:
        """Receive up to the next command."""
        while isinstance(message := await self.receive(), bytes):
            pass
        return message

    async def receive_rest(self) -> None:
        """Receive until the board is gone."""
        with suppress(ConnectionClosed):
            while True:
                await self.receive()

    @property
    def path(self) -> str:
        """The path and query that the board asked for."""
        assert self.connection.request is not None
        return self.connection.request.path

    @property
    def audio_bytes(self) -> int:
        return sum(len(message) for message in self.received if isinstance(message, bytes))


Script = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def scripted(script: Script, *, compression: str | None = None) -> AsyncIterator[tuple[str, list[Peer]]]:
    """Serve; yields the board's URL and the connections so far. A script that fails makes the test fail."""
    peers: list[Peer] = []
    failures: list[BaseException] = []

    async def handle(connection: ServerConnection) -> None:
        peers.append(Peer(connection))
        try:
            await script(peers[-1])
        except ConnectionClosed:
            pass
        except AssertionError as error:
            failures.append(error)

    async with serve(handle, "127.0.0.1", 0, compression=compression, close_timeout=1) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}/ws/", peers
    assert failures == []


async def settle() -> None:
    """Give everything that can go on the chance to, the sockets of the loopback too."""
    for _ in range(50):
        await asyncio.sleep(0)
