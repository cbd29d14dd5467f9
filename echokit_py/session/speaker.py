"""Speaks the pieces of an answer in order: synthesis up to two pieces ahead, framed and queued as audio comes.

Where the pieces come from, and what happens when synthesis fails, is the caller's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from echokit_py.audio.framer import Frame, Framer
from echokit_py.audio.opus import FRAME_BYTES
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.session.journal import Mark
from echokit_py.session.piece import Piece
from echokit_py.session.services import Services
from echokit_py.session.tasks import alongside, ending
from echokit_py.session.turn import Turn
from echokit_py.session.watchdog import watched
from echokit_py.text.speech import SpeechFilter

CLIPS_AHEAD = 2
# Audio is framed two Opus packets at a time, so that the first is out while the rest of a long sentence is encoded.
PIECE_BYTES = 2 * FRAME_BYTES
# Audio of a clip that waits for its turn: 15 s, 500 kB, then synthesis waits.
PIECES_AHEAD = 64


@dataclass(frozen=True, slots=True)
class _Clip:
    """A piece of the answer being synthesised; its audio ends with None."""

    text: str
    kept: str  # what the history keeps of it once it was heard
    audio: asyncio.Queue[bytes | None] = field(default_factory=lambda: asyncio.Queue(PIECES_AHEAD))


class Speaker:
    """The voice of one turn. `on_audio` is called when the first audio is about to be queued."""

    def __init__(self, turn: Turn, services: Services, on_audio: Callable[[], None]) -> None:
        self._turn = turn
        self._services = services
        self._on_audio = on_audio
        self._framer = Framer(turn.link.opus, turn.link.vowel)
        self._filter = SpeechFilter()

    async def run(self, pieces: asyncio.Queue[Piece | None]) -> None:
        """Speak `pieces` until None comes. Raises BackendError (TTS), after the audio that was made is queued."""
        clips: asyncio.Queue[_Clip | None] = asyncio.Queue(CLIPS_AHEAD)
        async with alongside(self._synthesize(pieces, clips), "synthesis") as synthesis:
            while (clip := await clips.get()) is not None:
                await self._play(clip)
            await synthesis

    async def say(self, text: str, pcm: bytes) -> None:
        """Speak audio that was made beforehand (s16le, mono, 16 kHz)."""
        clip = _Clip(text, kept="")
        async with alongside(self._fill(clip, pcm), "apology"):
            await self._play(clip)

    @staticmethod
    async def _fill(clip: _Clip, pcm: bytes) -> None:
        for start in range(0, len(pcm), PIECE_BYTES):
            await clip.audio.put(pcm[start : start + PIECE_BYTES])
        await clip.audio.put(None)

    async def _synthesize(self, pieces: asyncio.Queue[Piece | None], clips: asyncio.Queue[_Clip | None]) -> None:
        async with ending(clips):
            while (piece := await pieces.get()) is not None:
                if spoken := self._filter.speakable(piece.text):
                    clip = _Clip(piece.text, kept=piece.text if piece.kept else "")
                    await clips.put(clip)
                    await self._synthesize_clip(spoken, clip)

    async def _synthesize_clip(self, spoken: str, clip: _Clip) -> None:
        limits, record = self._services.timeouts, self._turn.record
        record.mark(Mark.TTS_REQUEST)
        audio = self._services.tts.synthesize(spoken)
        empty = True
        heard = watched(audio, Stage.TTS, limits.first_byte_s, limits.between_bytes_s)
        async with ending(clip.audio), aclosing(heard):
            async for pcm in heard:
                for start in range(0, len(pcm), PIECE_BYTES):
                    record.mark(Mark.TTS_FIRST)
                    empty = False
                    await clip.audio.put(pcm[start : start + PIECE_BYTES])
            if empty:
                raise BackendError(Stage.TTS, ErrorKind.BAD_ANSWER, "the speech service sent no audio")

    async def _play(self, clip: _Clip) -> None:
        self._framer.start()
        begun = False
        while (pcm := await clip.audio.get()) is not None:
            begun = await self._queue(await self._frames(self._framer.feed, pcm), clip, begun)
        begun = await self._queue(await self._frames(self._framer.flush), clip, begun)
        if begun:
            self._turn.end_audio()
            self._turn.show_waiting()

    async def _queue(self, frames: list[Frame], clip: _Clip, begun: bool) -> bool:
        for frame in frames:
            if not begun:
                self._on_audio()
                self._turn.start_audio(clip.text, clip.kept)
                begun = True
            await self._turn.send_audio(frame)
        return begun

    async def _frames(self, make: Callable[..., list[Frame]], *pcm: bytes) -> list[Frame]:
        # Opus and the mouth's shape take 1 to 2 ms a packet: too long for the event loop.
        return await asyncio.get_running_loop().run_in_executor(self._services.encoder, make, *pcm)
