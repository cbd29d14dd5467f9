"""One sentence on its way from synthesis to the device: makes its audio, in bounded time. Plays nothing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field

from echokit_py.audio.opus import FRAME_BYTES
from echokit_py.audio.pcm import seconds
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.log import sanitize
from echokit_py.session.journal import Mark, TurnRecord
from echokit_py.session.services import Services
from echokit_py.session.tasks import cancelled_from_outside, ending
from echokit_py.session.watchdog import watched

log = logging.getLogger(__name__)

# Audio waits in such pieces, two Opus packets long; a clip's first is one, so that it is out before the rest is made.
PIECE_BYTES = 2 * FRAME_BYTES
# Audio of a clip that waits for its turn: 15 s, 500 kB, then synthesis waits.
PIECES_AHEAD = 64
# A service that is so far ahead of the listener has time for other sentences.
STEADY_S = 1.0
# Its speed then: at less it can't serve two sentences at once without gaps in them.
SLOW = 2.0
# What another try would not change.
FINAL = frozenset({ErrorKind.AUTH, ErrorKind.REFUSED, ErrorKind.CONTEXT})
# A reader needs about a second for 15 letters, or for five Chinese characters, which are as many bytes of UTF-8.
READING_BYTES_PER_S = 15
READING_S = (1.0, 6.0)


@dataclass(slots=True, eq=False)
class Clip:
    """A piece of the answer and its audio, which ends with None.

    Attributes:
        text: what the device displays while it is spoken.
        kept: what the history keeps of it once it was heard.
        steady: set when all of the audio is made, or the voice is well ahead of the listener.
        slow: the voice was hardly faster than the listener.
        made_s: seconds of audio so far.
        error: why the audio ends early.
        over: all audio was taken.
    """

    text: str
    kept: str
    audio: asyncio.Queue[bytes | None] = field(default_factory=lambda: asyncio.Queue(PIECES_AHEAD))
    steady: asyncio.Event = field(default_factory=asyncio.Event)
    slow: bool = False
    made_s: float = 0.0
    error: BackendError | None = None
    over: bool = False

    async def take(self, most: int) -> bytes:
        """The next audio, once there is some: whole pieces until they are `most` bytes, or no more is there yet. b""
        when it had ended."""
        taken = bytearray()
        while len(taken) < most and not self.over and not (taken and self.audio.empty()):
            piece = await self.audio.get()
            self.over = piece is None
            taken += piece or b""
        return bytes(taken)

    async def fill(self, pcm: bytes) -> None:
        """Take audio that was made beforehand (s16le, mono, 16 kHz)."""
        for piece in _cut(pcm, FRAME_BYTES):
            await self.audio.put(piece)
        await self.audio.put(None)


def quiet(clip: Clip) -> Clip:
    """The same words without a voice, for as long as it takes to read them: a display of firmware 0.3.2 shows the text
    of a sentence while its audio plays, and other text (DisplayText) not at all."""
    shortest, longest = READING_S
    length_s = min(longest, max(shortest, len(clip.text.encode()) / READING_BYTES_PER_S))
    shown = Clip(clip.text, clip.kept)
    for _ in range(round(length_s / seconds(bytes(PIECE_BYTES)))):
        shown.audio.put_nowait(bytes(PIECE_BYTES))
    shown.audio.put_nowait(None)
    return shown


async def synthesize(
    clip: Clip, spoken: str, begun: AsyncIterator[bytes] | None, services: Services, record: TurnRecord
) -> None:
    """Make a clip's audio; what fails is `clip.error`. Raises CancelledError when it is cancelled, and nothing else.

    A try that failed before any audio came is made once more if that may help and there is time: both share what one
    is allowed until its first audio. `begun`: the first try, when it was begun earlier.
    """
    async with ending(clip.audio):
        try:
            await _try_twice(clip, spoken, begun, services, record)
        except BackendError as error:
            clip.error = error
        except (Exception, asyncio.CancelledError):  # a fault costs its sentence; were it raised, it would cost others
            if cancelled_from_outside():
                raise
            log.exception("%s: synthesis failed by a fault, or what it waited for was cancelled", record.device)
            clip.error = BackendError(Stage.TTS, ErrorKind.INTERNAL, "a fault of this server")
        finally:
            clip.steady.set()


async def _try_twice(
    clip: Clip, spoken: str, begun: AsyncIterator[bytes] | None, services: Services, record: TurnRecord
) -> None:
    limits, tts = services.timeouts, services.tts
    deadline = time.monotonic() + limits.first_byte_s
    record.mark(Mark.TTS_REQUEST)
    try:
        first = tts.synthesize(spoken) if begun is None else begun
        await _pour(watched(first, Stage.TTS, limits.first_byte_s, limits.between_bytes_s), clip, record)
        return
    except BackendError as error:
        wait = error.retry_after or 0.0
        if clip.made_s or error.kind in FINAL or time.monotonic() + wait >= deadline:
            raise
        log.info("%s: a sentence is spoken once more: %s", record.device, sanitize(error))
    await asyncio.sleep(wait)
    again = watched(tts.synthesize(spoken), Stage.TTS, deadline - time.monotonic(), limits.between_bytes_s)
    await _pour(again, clip, record)


async def _pour(audio: AsyncGenerator[bytes, None], clip: Clip, record: TurnRecord) -> None:
    first_at = 0.0
    async with aclosing(audio) as pieces:
        async for pcm in pieces:
            record.mark(Mark.TTS_FIRST)
            first_at = first_at or time.monotonic()
            first = not clip.made_s
            for piece in _cut(pcm, FRAME_BYTES if first else PIECE_BYTES):
                clip.made_s += seconds(piece)
                if clip.made_s - (time.monotonic() - first_at) > STEADY_S:
                    clip.steady.set()
                await clip.audio.put(piece)
            if first:  # it is framed, and then sent, before more is decoded, in a thread, at the same time
                await asyncio.sleep(0)
                await asyncio.sleep(0)
    if not clip.made_s:
        raise BackendError(Stage.TTS, ErrorKind.BAD_ANSWER, "the speech service sent no audio")
    clip.slow = clip.made_s < SLOW * (time.monotonic() - first_at)


def _cut(pcm: bytes, first: int) -> Iterator[bytes]:
    """The audio in pieces: the first of at most `first` bytes, the others of PIECE_BYTES."""
    yield pcm[:first]
    for start in range(first, len(pcm), PIECE_BYTES):
        yield pcm[start : start + PIECE_BYTES]
