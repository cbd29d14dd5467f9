"""One turn's way to the device: what it may still send, its deadline, and its record. Decides nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from echokit_py.audio.framer import Frame
from echokit_py.session.journal import Mark, TurnRecord
from echokit_py.session.outbox import Outbox
from echokit_py.session.playout import Playout
from echokit_py.session.speculation import Speculation
from firmware_protocol.events import Action, AudioChunk, AudioChunkWithVowel, EndAudio, ServerEvent, StartAudio
from firmware_protocol.link import LinkParameters


@dataclass(slots=True, eq=False)
class Turn:
    """The work for one StartChat or Text.

    `over` is set when the turn is cancelled or answered: from then on it can send nothing, whatever task of it is
    still running.
    """

    outbox: Outbox
    link: LinkParameters
    record: TurnRecord
    status: str = ""  # to be shown once the audio that is being sent has ended
    playout: Playout = field(default_factory=Playout)
    deadline: asyncio.Timeout | None = None
    question: str = ""
    ahead: Speculation | None = None  # what was begun while the user might still have gone on
    over: bool = False
    spoke: bool = False
    in_audio: bool = False  # a StartAudio is queued, its EndAudio not yet
    delivered: bool = False  # all of it, EndResponse too, was written to the device

    def send(self, event: ServerEvent, on_sent: Callable[[], None] | None = None) -> None:
        """Queue an event of the turn. Raises CancelledError when the turn is over, OutboxClosed."""
        if self.over:
            raise asyncio.CancelledError
        self.outbox.put(event, on_sent=on_sent)

    def show(self, status: str) -> None:
        """Show what is being done: at once, or when the sentence that is being sent has ended (`show_waiting`)."""
        self.status = status
        self.show_waiting()

    def show_waiting(self) -> None:
        """Show what waits to be shown, unless a sentence is being sent."""
        if self.status and not self.in_audio:
            status, self.status = self.status, ""
            self.send(Action(status))

    def start_audio(self, text: str, kept: str) -> None:
        """Begin a sentence: `text` is displayed, `kept` is what the history keeps of it as far as it is heard."""
        self.send(StartAudio(text), on_sent=lambda: self.playout.begin(kept))
        self.spoke = self.in_audio = True
        self.record.mark(Mark.AUDIO_QUEUED)

    async def send_audio(self, frame: Frame) -> None:
        """Queue a frame as soon as there is room; the wait doesn't count against the turn's deadline."""
        if not self.outbox.has_room(frame.seconds):
            async with self._off_the_clock():
                await self.outbox.room(frame.seconds)
        if self.over:
            raise asyncio.CancelledError
        event = AudioChunkWithVowel(frame.data, frame.vowel) if self.link.vowel else AudioChunk(frame.data)
        self.outbox.put(event, seconds=frame.seconds, on_sent=lambda: self._sent(frame.seconds))

    def end_audio(self) -> None:
        """End the sentence."""
        self.send(EndAudio(), on_sent=self.playout.end)
        self.in_audio = False

    def break_off_audio(self) -> None:
        """End a sentence that will not be completed, and forget what was to be shown behind it: the turn's deadline or
        a fault came in its middle."""
        self.status = ""
        if self.in_audio:
            self.send(EndAudio())
            self.in_audio = False

    def _sent(self, seconds: float) -> None:
        self.record.mark(Mark.AUDIO_SENT)
        self.playout.sent(seconds, time.monotonic())

    @asynccontextmanager
    async def _off_the_clock(self) -> AsyncIterator[None]:
        # The deadline bounds what back ends take. How long the board takes to play what it has is its own affair: a
        # story of three minutes is no fault. (A board that takes nothing at all is the connection's to notice.)
        if self.deadline is None or (due := self.deadline.when()) is None:
            yield
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.deadline.reschedule(None)
        try:
            yield
        finally:
            self.deadline.reschedule(due + loop.time() - began)
