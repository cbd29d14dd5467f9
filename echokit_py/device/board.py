"""What the firmware does with events, commands and time: states, watchdog, play-out. Does no I/O and holds no audio.

The facts are those of firmware 0.3.2, written down in firmware_protocol/SPEC.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from echokit_py.audio.pcm import seconds
from firmware_protocol.events import (
    ASR,
    AudioChunk,
    AudioChunkWithVowel,
    EndAudio,
    EndResponse,
    EndVad,
    ServerEvent,
    StartAudio,
)
from firmware_protocol.link import OPUS_FRAME_SAMPLES, SAMPLE_RATE, LinkParameters

# The firmware gives up after this much audio without an ASR event.
WATCHDOG_S = 10.0


class State(StrEnum):
    """What the display shows."""

    READY = "ready"
    LISTENING = "listening"
    WAITING = "waiting"
    SPEAKING = "speaking"


class Outcome(StrEnum):
    """How a turn ended."""

    ANSWERED = "answered"  # EndResponse came
    GAVE_UP = "gave_up"  # the watchdog
    CLOSED = "closed"  # the connection ended first
    TIMED_OUT = "timed_out"  # nothing of that happened within the limit


@dataclass(frozen=True, slots=True)
class Pause:
    """A sentence plays: no event is taken before this time (in seconds, of the clock that `take` was given)."""

    until: float


@dataclass(frozen=True, slots=True)
class TurnOver:
    """The turn has ended."""

    outcome: Outcome


Effect = Pause | TurnOver


class Firmware:
    """One board's state. `plays`: sentences take as long as they last; else no time at all.

    Attributes:
        state: what the display shows.
        sending: the microphone's audio goes to the server.
    """

    def __init__(self, link: LinkParameters, *, plays: bool = True) -> None:
        self.state = State.READY
        self.sending = False
        self._link = link
        self._plays = plays
        self._in_turn = False
        self._unanswered_s = 0.0  # audio sent since StartChat or the last ASR
        self._played_at = 0.0  # when what has come so far will have been played

    def start_chat(self) -> None:
        """Its own VAD has heard speech: StartChat goes out, then audio."""
        self._begin(State.LISTENING)
        self.sending = True

    def ask(self) -> None:
        """A typed question goes out."""
        self._begin(State.WAITING)
        self.sending = False

    def submit(self) -> None:
        """Submit goes out: nothing more is sent."""
        self.state = State.WAITING
        self.sending = False

    def sent(self, audio_s: float) -> Effect | None:
        """`audio_s` seconds of microphone audio went out. The watchdog only knows servers that do the VAD."""
        self._unanswered_s += audio_s
        if not self._link.stream_asr or self._unanswered_s < WATCHDOG_S:
            return None
        self.abandon()
        return TurnOver(Outcome.GAVE_UP)

    def abandon(self) -> None:
        """Forget the turn and show Ready; the server isn't told."""
        self.state = State.READY
        self.sending = False
        self._in_turn = False

    def take(self, event: ServerEvent, now: float) -> Effect | None:
        """Take an event from the queue, at `now` (seconds)."""
        match event:
            case ASR():
                self._unanswered_s = 0.0
            case EndVad() if self.sending:
                self.submit()
            case StartAudio():
                self.state = State.SPEAKING
            case AudioChunk(data) | AudioChunkWithVowel(data, _):
                self._played_at = max(now, self._played_at) + self._seconds(data)
            case EndAudio() if self._plays:
                return Pause(self._played_at)
            case EndResponse():
                return self._end_response()
        return None

    def _begin(self, state: State) -> None:
        self.state = state
        self._in_turn = True
        self._unanswered_s = 0.0

    def _end_response(self) -> Effect | None:
        self.state = State.LISTENING
        self.sending = False
        if not self._in_turn:
            return None
        self._in_turn = False
        return TurnOver(Outcome.ANSWERED)

    def _seconds(self, data: bytes) -> float:
        return OPUS_FRAME_SAMPLES / SAMPLE_RATE if self._link.opus else seconds(data)
