"""A board that takes from a session's outbox what there is, without a socket. Knows no microphone and no speaker."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from echokit_py.session.outbox import Outbox, OutboxClosed
from echokit_py.session.session import Session
from firmware_protocol.events import Command, ServerEvent
from firmware_protocol.link import LinkParameters


async def take(outbox: Outbox) -> ServerEvent:
    """The next event, sent as soon as it is taken."""
    entry = await outbox.get()
    if entry.on_sent is not None:
        entry.on_sent()
    return entry.event


class ReadingBoard:
    """Reads all at once; connected to one session, again and again where it is told to.

    `seen`: the events, and when they came (the loop's time). `outbox`: that of the latest connection.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.outbox = Outbox()
        self.seen: list[tuple[float, ServerEvent]] = []
        self._reader: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Connect; what was connected before no longer is."""
        await self.disconnect()
        self.outbox = Outbox()
        await self.session.attach(self.outbox, LinkParameters(stream_asr=True, reconnect=True))
        self._reader = asyncio.create_task(self._read(self.outbox), name="board")

    async def disconnect(self) -> None:
        await self.session.detach(self.outbox)
        if self._reader is not None:
            self._reader.cancel()
            with suppress(asyncio.CancelledError):
                await self._reader

    async def command(self, command: Command) -> None:
        await self.session.command(self.outbox, command)

    async def audio(self, pcm: bytes) -> None:
        await self.session.audio(self.outbox, pcm)

    async def _read(self, outbox: Outbox) -> None:
        with suppress(OutboxClosed):
            while True:
                event = await take(outbox)
                self.seen.append((asyncio.get_running_loop().time(), event))
