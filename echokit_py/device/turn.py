"""What came of a turn: its events, texts and audio, gathered one event at a time. Does no I/O and knows no time.

Here the simulated board is stricter than a real one: audio that a board would play as noise or cut off is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from echokit_py.audio.opus import OpusDecoder
from echokit_py.audio.pcm import AudioError
from echokit_py.device.board import Outcome
from echokit_py.device.errors import DeviceError
from firmware_protocol.events import (
    ASR,
    AudioChunk,
    AudioChunkWithVowel,
    HelloChunk,
    HelloStart,
    ServerEvent,
    StartAudio,
)
from firmware_protocol.link import HELLO_CHUNK_BYTES, OPUS_FRAME_SAMPLES, PCM_CHUNK_BYTES, LinkParameters

_Event = TypeVar("_Event", bound=ServerEvent)


@dataclass(frozen=True, slots=True)
class Turn:
    """One question and what came back.

    Attributes:
        outcome: how it ended.
        ended_s: when it ended, in seconds since the connection was made.
        events: (seconds since the connection was made, event), in order; also those that came before the question.
        asr: the last text of an ASR event.
        answer: the texts of the sentences.
        audio: the sentences, decoded: s16le, mono, 16 kHz.
        end_of_speech_s: when the frame with the last sample of speech had been sent (Text: when that had), in seconds
            since the connection was made; None when the turn ended before.
        first_audio_s: seconds from the end of speech to the first audio event; None when there was none.
        hello: the wake sound of the connection, as far as it has come: s16le, mono, 16 kHz.
        detail: a sentence about an end that wasn't an answer.
    """

    outcome: Outcome
    ended_s: float
    events: tuple[tuple[float, ServerEvent], ...]
    asr: str
    answer: tuple[str, ...]
    audio: bytes
    end_of_speech_s: float | None
    first_audio_s: float | None
    hello: bytes
    detail: str = ""


@dataclass(slots=True)
class _Draft:
    """A turn that hasn't ended yet."""

    events: list[tuple[float, ServerEvent]] = field(default_factory=list)
    asr: str = ""
    answer: list[str] = field(default_factory=list)
    audio: bytearray = field(default_factory=bytearray)
    speech_end: float | None = None
    first_audio: float | None = None


class TurnRecorder:
    """Gathers turn after turn of one connection. `hello` holds the wake sound of the last HelloStart."""

    def __init__(self, link: LinkParameters) -> None:
        self._opus = link.opus
        self._decoder = OpusDecoder() if link.opus else None
        self._hello = bytearray()
        self._draft = _Draft()

    @property
    def hello(self) -> bytes:
        """The wake sound as far as it has come: s16le, mono, 16 kHz."""
        return bytes(self._hello)

    def take(self, at: float, event: ServerEvent) -> None:
        """Take an event that came `at` seconds after connecting. Raises DeviceError for audio no board can play."""
        draft = self._draft
        draft.events.append((at, event))
        match event:
            case HelloStart():
                self._hello.clear()
            case HelloChunk(data):
                self._take_hello(data)
            case ASR(text):
                draft.asr = text
            case StartAudio(text):
                draft.answer.append(text)
                if self._decoder is not None:
                    self._decoder.reset()
            case AudioChunk(data) | AudioChunkWithVowel(data, _):
                draft.first_audio = at if draft.first_audio is None else draft.first_audio
                draft.audio += self._decode(data)

    def taken(self, kind: type[_Event]) -> list[_Event]:
        """The events of this class since the last turn ended."""
        return [event for _, event in self._draft.events if isinstance(event, kind)]

    def speech_ended(self, at: float) -> None:
        """The last of the question was sent, `at` seconds after connecting."""
        self._draft.speech_end = at

    def finish(self, outcome: Outcome, at: float, detail: str = "") -> Turn:
        """Return the turn, which ended `at` seconds after connecting, and begin the next."""
        draft, self._draft = self._draft, _Draft()
        latency = None
        if draft.first_audio is not None and draft.speech_end is not None:
            latency = draft.first_audio - draft.speech_end
        return Turn(
            outcome=outcome,
            ended_s=at,
            events=tuple(draft.events),
            asr=draft.asr,
            answer=tuple(draft.answer),
            audio=bytes(draft.audio),
            end_of_speech_s=draft.speech_end,
            first_audio_s=latency,
            hello=self.hello,
            detail=detail,
        )

    def _take_hello(self, data: bytes) -> None:
        if len(data) > HELLO_CHUNK_BYTES:
            raise DeviceError(f"the server sent a hello chunk of {len(data)} bytes; a board takes {HELLO_CHUNK_BYTES}")
        self._hello += data

    def _decode(self, data: bytes) -> bytes:
        if self._decoder is None:
            return _check_pcm(data)
        try:
            pcm = self._decoder.decode(data)
        except AudioError as error:
            raise DeviceError(f"the server sent audio that isn't Opus: {error}") from error
        if len(pcm) != 2 * OPUS_FRAME_SAMPLES:
            raise DeviceError(f"the server sent an Opus packet of {len(pcm) // 2} samples; a board takes 1920")
        return pcm


def _check_pcm(data: bytes) -> bytes:
    if len(data) > PCM_CHUNK_BYTES or len(data) % 2:
        raise DeviceError(f"the server sent a chunk of {len(data)} bytes; a board takes whole samples, at most 1 s")
    return data
