"""The bounded queue between a session and one connection's writer. Knows events, not bytes or sockets.

It is bounded in seconds of audio: a turn waits for `room` before it queues more, and with it TTS and LLM wait, so that
the socket's own backpressure paces a turn. It also keeps the promise that audio never stands outside StartAudio …
EndAudio, whatever is dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from firmware_protocol.events import EndAudio, ServerEvent, StartAudio

# Enough that synthesis stays ahead of a board that reads in bursts, little enough that an interruption throws
# away at most this much work. 5 s of PCM are 160 kB.
AUDIO_LIMIT_S = 5.0
# Control events are few in a turn; a peer that makes us queue this many doesn't read any more.
EVENT_LIMIT = 2048


class OutboxClosed(Exception):
    """The connection is gone: nothing can be sent to it any more."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event with the play-out time it holds, and a call for the moment it has been written."""

    event: ServerEvent
    seconds: float
    kept: bool
    on_sent: Callable[[], None] | None


class Outbox:
    """Events on their way to one connection. One writer takes them, any number of tasks of the session put them."""

    def __init__(self, audio_limit_s: float = AUDIO_LIMIT_S) -> None:
        self._entries: deque[Entry] = deque()
        self._audio_limit_s = audio_limit_s
        self._audio_s = 0.0
        self._audio_open = False  # a StartAudio was taken by the writer, its EndAudio not yet
        self._changed = asyncio.Event()
        self.closed = False

    @property
    def audio_s(self) -> float:
        """Seconds of audio waiting."""
        return self._audio_s

    @property
    def pending(self) -> int:
        """Events waiting."""
        return len(self._entries)

    def has_room(self, seconds: float) -> bool:
        """Whether audio of `seconds` finds room, or the outbox is closed."""
        return self.closed or self._audio_s <= 0 or self._audio_s + seconds <= self._audio_limit_s

    async def room(self, seconds: float) -> None:
        """Wait until audio of `seconds` finds room. Returns at once when the outbox is closed."""
        while not self.has_room(seconds):
            await self._change()

    def put(
        self,
        event: ServerEvent,
        *,
        seconds: float = 0.0,
        kept: bool = False,
        on_sent: Callable[[], None] | None = None,
    ) -> None:
        """Queue an event of `seconds` of audio. `kept`: it survives `drop`. Raises OutboxClosed."""
        if self.closed:
            raise OutboxClosed
        if len(self._entries) >= EVENT_LIMIT:
            self.close()
            raise OutboxClosed
        self._entries.append(Entry(event, seconds, kept, on_sent))
        self._audio_s += seconds
        self._wake()

    def drop(self) -> None:
        """Throw away what is queued of the turn; an audio that the device has begun to receive is ended."""
        if self.closed:
            return
        kept = [entry for entry in self._entries if entry.kept]
        if self._audio_open and not any(isinstance(entry.event, EndAudio) for entry in kept):
            kept.insert(0, Entry(EndAudio(), 0.0, kept=True, on_sent=None))
        self._entries = deque(kept)
        self._audio_s = 0.0
        self._wake()

    async def get(self) -> Entry:
        """Take the next entry; the writer's side. Raises OutboxClosed."""
        while not self._entries:
            if self.closed:
                raise OutboxClosed
            await self._change()
        entry = self._entries.popleft()
        self._audio_s = max(0.0, self._audio_s - entry.seconds) if self._entries else 0.0
        if isinstance(entry.event, StartAudio):
            self._audio_open = True
        elif isinstance(entry.event, EndAudio):
            self._audio_open = False
        self._wake()
        return entry

    def close(self) -> None:
        """Refuse further events and forget the queued ones."""
        self.closed = True
        self._entries.clear()
        self._audio_s = 0.0
        self._wake()

    def _wake(self) -> None:
        # A fresh Event for each change wakes every waiter exactly once and can't be missed: waiters take the event
        # that is current when they look at the queue.
        self._changed.set()
        self._changed = asyncio.Event()

    async def _change(self) -> None:
        await self._changed.wait()
