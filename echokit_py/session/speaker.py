"""Speaks the pieces of an answer in order: up to two are synthesised while one plays, framed and queued as audio comes.

A sentence that fails is shown instead, and the rest goes on. Where the pieces come from, and what follows when the
voice as a whole fails, is the caller's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable

from echokit_py.audio.framer import Frame, Framer
from echokit_py.audio.opus import FRAME_BYTES
from echokit_py.errors import BackendError, ErrorKind
from echokit_py.log import sanitize
from echokit_py.session.clip import Clip, quiet, synthesize
from echokit_py.session.encoding import shared
from echokit_py.session.journal import TEXT_LIMIT, Mark
from echokit_py.session.piece import Piece
from echokit_py.session.services import Services
from echokit_py.session.tasks import alongside, ending
from echokit_py.session.turn import Turn
from echokit_py.text.speech import SpeechFilter

log = logging.getLogger(__name__)

CLIPS_AHEAD = 2
# A clip's first packet goes out alone, then each job of the encoder makes twice as many, up to these (5 to 10 ms of a
# slow core): each way to its thread and back costs the event loop as much as two packets cost the thread.
PACKETS_AT_ONCE = 8


class Speaker:
    """The voice of one turn. `on_audio` is called for each sentence, when its first audio is about to be queued."""

    def __init__(self, turn: Turn, services: Services, on_audio: Callable[[], None]) -> None:
        self._turn = turn
        self._services = services
        self._on_audio = on_audio
        self._framer = Framer(turn.link.opus, turn.link.vowel, shared(services.encoder).encoders)
        self._plays_until = 0.0  # what was queued so far, monotonic seconds
        self._filter = SpeechFilter()
        self._line: deque[Clip] = deque()  # whose synthesis has begun, from the one that plays on
        self._missed: list[Clip] = []  # that failed, and are shown once another one sounds
        self._worked = False
        self._failed: BackendError | None = None
        self._timed_out = False

    async def run(self, pieces: asyncio.Queue[Piece | None]) -> None:
        """Speak `pieces` until None comes.

        Raises BackendError (TTS) when none of them could be spoken whole, or as soon as it makes no sense to go on: the
        key is refused, or two in a row had their time in vain.
        """
        self._turn.record.question = self._turn.question[:TEXT_LIMIT]
        clips: asyncio.Queue[Clip | None] = asyncio.Queue(CLIPS_AHEAD)
        async with alongside(self._synthesize(pieces, clips), "synthesis") as synthesis:
            while (clip := await clips.get()) is not None:
                begun = await self._play(clip)
                self._line.popleft()
                await self._judge(clip, begun)
            await synthesis
        if self._failed is not None and not self._worked:
            raise self._failed

    async def say(self, text: str, pcm: bytes) -> None:
        """Speak audio that was made beforehand (s16le, mono, 16 kHz)."""
        clip = Clip(text, kept="")
        async with alongside(clip.fill(pcm), "apology"):
            await self._play(clip)

    async def _synthesize(self, pieces: asyncio.Queue[Piece | None], clips: asyncio.Queue[Clip | None]) -> None:
        async with ending(clips), asyncio.TaskGroup() as group:
            while (piece := await pieces.get()) is not None:
                self._turn.record.mark(Mark.SENTENCE)  # it may be what is said while a tool runs, before any sentence
                if spoken := self._filter.speakable(piece.text):
                    clip = Clip(piece.text, kept=piece.text if piece.kept else "")
                    await clips.put(clip)
                    await self._until_free()
                    self._line.append(clip)
                    work = synthesize(clip, spoken, piece.audio, self._services, self._turn.record)
                    group.create_task(work, name="synthesis of a sentence")

    async def _until_free(self) -> None:
        """Wait while the clip that plays may run dry: until then the voice is left to it alone, so that the first audio
        of an answer isn't held up by what comes later. A slow voice is asked for one clip after the other."""
        if self._line:
            playing = self._line[0]
            await playing.steady.wait()
            if playing.slow and self._line:
                await self._line[-1].steady.wait()

    async def _judge(self, clip: Clip, begun: bool) -> None:
        """Take note of how a clip went. `begun`: some of it was queued, and so its text is displayed."""
        error = clip.error
        if error is None:
            self._worked = self._worked or begun
            self._timed_out = False
            return
        late = error.kind is ErrorKind.TIMEOUT
        if error.kind is ErrorKind.AUTH or (late and self._timed_out):
            raise error
        self._timed_out = late
        self._failed = self._failed or error
        log.warning("%s: a sentence is not spoken whole: %s", self._turn.record.device, sanitize(error))
        if clip.kept and not begun:
            self._missed.append(clip)
        if self._worked:
            await self._show_missed()

    async def _show_missed(self) -> None:
        missed, self._missed = self._missed, []  # playing asks for this again
        for clip in missed:
            await self._play(quiet(clip))

    async def _play(self, clip: Clip) -> bool:
        """Queue a clip as its audio comes; return whether there was any."""
        pcm = await clip.take(FRAME_BYTES)
        if not pcm:
            return False
        await self._show_missed()
        self._framer.start()
        begun = await self._queue(await self._first(pcm, clip.over), clip, begun=False)
        await asyncio.sleep(0)  # it is sent before the next job, whose thread would take turns with the event loop
        packets = 1
        while not clip.over:
            packets = min(2 * packets, PACKETS_AT_ONCE)
            pcm = await clip.take(packets * FRAME_BYTES)
            begun = await self._queue(await self._frames(pcm, clip.over), clip, begun)
        if begun:
            self._turn.end_audio()
            self._turn.show_waiting()
        return begun

    async def _queue(self, frames: list[Frame], clip: Clip, begun: bool) -> bool:
        for frame in frames:
            if not begun:
                self._on_audio()
                self._turn.start_audio(clip.text, clip.kept)
                self._turn.record.say(clip.kept)
                begun = True
            await self._turn.send_audio(frame)
            self._plays_until = max(self._plays_until, time.monotonic()) + frame.seconds
        return begun

    async def _first(self, pcm: bytes, last: bool) -> list[Frame]:
        if not last and len(pcm) <= FRAME_BYTES and shared(self._services.encoder).quick:
            return self._framer.feed(pcm)
        return await self._frames(pcm, last)

    async def _frames(self, pcm: bytes, last: bool) -> list[Frame]:
        # Opus and the mouth's shape take 1 to 2 ms a packet: too long for the event loop.
        encoder, work = self._services.encoder, self._framer.end if last else self._framer.feed
        return await shared(encoder).run(encoder, self._plays_until, work, pcm)
