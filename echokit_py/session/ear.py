"""Hears one utterance: its audio, whether there is speech in it, and when it ends. Recognises nothing."""

from __future__ import annotations

from echokit_py.audio.pcm import BYTES_PER_SECOND, SAMPLE_RATE
from echokit_py.config.settings import VadSettings
from echokit_py.session.turns import Input
from echokit_py.vad.audibility import Audibility
from echokit_py.vad.base import FRAME_SECONDS, Releasing, Vad
from echokit_py.vad.endpointing import ONSET_SHARE, Endpointer, EndpointEvent

# What is kept before the first speech: recognisers do better with a moment of quiet than with a clipped first sound,
# and longer silence only costs them time.
LEAD_S = 0.3
# What is kept after the last speech. Between 0.1 and 5 s it makes no difference to what Whisper understands; but a
# client that submits late, or a long hangover, would cost a recogniser time or money.
TAIL_S = 1.0
# Audio goes to VAD in such pieces: what is counted for 30 s at once, as one large frame, would hold up the event loop.
STEP_BYTES = BYTES_PER_SECOND
# VAD may lag behind the microphone by some frames; audio beyond the bound of an utterance and this is not kept.
LAG_S = 10.0

_MEANING = {
    EndpointEvent.SPEECH_ENDED: Input.SPEECH_ENDED,
    EndpointEvent.UTTERANCE_FULL: Input.SPEECH_ENDED,
    EndpointEvent.NO_SPEECH: Input.NOTHING_SAID,
}


class _Span:
    """Where speech begins and ends, for clients that end the utterance themselves (`Submit`)."""

    def __init__(self, settings: VadSettings) -> None:
        self._threshold = settings.threshold
        self._limit = settings.max_utterance_s
        self._now = 0.0
        self.speech_span: tuple[float, float] | None = None
        self.speech_seconds = 0.0

    def feed(self, probability: float, audible: bool | None = None) -> EndpointEvent | None:
        """Take the next frame's speech probability. `audible` makes no difference to what a client has ended."""
        if probability >= self._threshold:
            start = self.speech_span[0] if self.speech_span else self._now
            self.speech_span = (start, self._now + FRAME_SECONDS)
            self.speech_seconds += FRAME_SECONDS
        self._now += FRAME_SECONDS
        return EndpointEvent.UTTERANCE_FULL if self._now >= self._limit else None


class Ear:
    """The microphone's audio of one utterance (s16le, mono, 16 kHz), bounded by the settings' `max_utterance_s`.

    `endpointing`: whether the end of speech is looked for, or left to the client.
    """

    def __init__(self, vad: Vad, settings: VadSettings, *, endpointing: bool) -> None:
        self._stream = vad.stream()
        release_s = self._stream.release_s if isinstance(self._stream, Releasing) else 0.0
        self._frames: Endpointer | _Span = Endpointer(settings, release_s) if endpointing else _Span(settings)
        self._audibility = Audibility(settings.threshold * ONSET_SHARE, settings.threshold) if endpointing else None
        self._audio = bytearray()
        self._speech_mark = 0
        self._limit = int((settings.max_utterance_s + LAG_S) * SAMPLE_RATE) * 2

    @property
    def seconds(self) -> float:
        """The length of the audio so far."""
        return len(self._audio) / BYTES_PER_SECOND

    @property
    def spoke(self) -> bool:
        """Whether there was any speech so far."""
        return self._frames.speech_span is not None

    @property
    def last_speech_s(self) -> float:
        """Where in the audio the last speech was, in seconds; 0 without speech."""
        span = self._frames.speech_span
        return span[1] if span else 0.0

    @property
    def speech_s(self) -> float:
        """Seconds of speech, pauses left out."""
        return self._frames.speech_seconds

    @property
    def paused(self) -> bool:
        """Whether the utterance may be over: `max_silence_duration_ms` have passed since the last speech, but not yet
        the hangover. Never when the client ends it."""
        return isinstance(self._frames, Endpointer) and self._frames.paused

    @property
    def speech_mark(self) -> int:
        """A number that changes whenever speech resumes after a pause: what was begun at another is out of date."""
        return self._speech_mark

    def set_hangover(self, seconds: float) -> Input | None:
        """Set the hangover of the pause that runs; without one nothing changes.

        Returns the input for the turn table when that much silence has passed already: audio comes 512 ms at a time,
        and the next may be that far away. A caller that lets this pass is told again by the `feed` that comes next.
        """
        if not self.paused or not isinstance(self._frames, Endpointer):
            return None
        self._frames.hangover_s = seconds
        return Input.SPEECH_ENDED if self._frames.due else None

    async def feed(self, pcm: bytes) -> Input | None:
        """Take audio; return the input for the turn table when the utterance is over. Raises BackendError."""
        for start in range(0, len(pcm), STEP_BYTES):
            piece = pcm[start : start + STEP_BYTES]
            self._audio += piece[: max(0, self._limit - len(self._audio))]
            probabilities = await self._stream.feed(piece)
            for frame in zip(probabilities, self._audible(piece, probabilities), strict=True):
                event = self._frames.feed(*frame)
                if event is EndpointEvent.SPEECH_RESUMED:
                    self._speech_mark += 1
                if event is not None and event.ends:
                    return _MEANING[event]
        return None

    def _audible(self, pcm: bytes, probabilities: list[float]) -> list[bool | None]:
        if self._audibility is None:
            return [None] * len(probabilities)
        return self._audibility.feed(pcm, probabilities)

    def utterance(self, last_s: float | None = None) -> bytes:
        """The audio from LEAD_S before the first speech to TAIL_S after the last, or the last seconds of it; b"" when
        there was no speech."""
        span = self._frames.speech_span
        if span is None:
            return b""
        end = min(len(self._audio) // 2, int((span[1] + TAIL_S) * SAMPLE_RATE)) * 2
        start = max(0, int((span[0] - LEAD_S) * SAMPLE_RATE)) * 2
        if last_s is not None:
            start = max(start, end - int(last_s * SAMPLE_RATE) * 2)
        with memoryview(self._audio) as audio:  # one copy of what may be 2 MB
            return bytes(audio[start:end])
