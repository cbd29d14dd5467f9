"""Takes one utterance from the microphone: interim texts, the end of speech, and a watchdog for when frames stop.

What an end of speech leads to is the turn table's to say.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from echokit_py.asr.clean import clean_transcript
from echokit_py.errors import BackendError, Stage
from echokit_py.session.ear import Ear
from echokit_py.session.journal import Mark
from echokit_py.session.outbox import OutboxClosed
from echokit_py.session.services import Services
from echokit_py.session.turn import Turn
from echokit_py.session.turns import Input
from echokit_py.session.watchdog import within
from firmware_protocol.events import ASR

log = logging.getLogger(__name__)

# A board gives up when it has sent 10 s of audio and no ASR event came (protocol README), so it gets one this often.
INTERIM_EVERY_S = 3.0
REMINDER_EVERY_S = 8.0
# Recognising an utterance again and again costs its length each time; Whisper's window is 30 s.
INTERIM_LIMIT_S = 30.0
# A board sends without a pause until it is told to stop. With no frame for this long its microphone is gone.
FRAMES_STOPPED_S = 10.0
# Audio comes in real time, but for a slow network. An utterance may take this many times its greatest length.
PATIENCE = 2.0


class Listening:
    """One utterance. `on_input` gets SPEECH_ENDED or NOTHING_SAID when frames stop."""

    def __init__(self, turn: Turn, services: Services, on_input: Callable[[Input], None]) -> None:
        self._turn = turn
        self._services = services
        self._on_input = on_input
        self._ear = Ear(services.vad, services.vad_settings, endpointing=turn.link.stream_asr)
        self._ended = False
        self._interim: asyncio.Task[None] | None = None
        self._interim_at = 0.0
        self._shown_at = 0.0
        self._shown = "…"
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + PATIENCE * services.vad_settings.max_utterance_s + FRAMES_STOPPED_S
        self._watchdog = self._loop.call_later(FRAMES_STOPPED_S, self._frames_stopped)

    async def feed(self, pcm: bytes) -> Input | None:
        """Take audio (s16le, mono, 16 kHz, any length); return the input for the turn table when the utterance is
        over. Raises BackendError (VAD), OutboxClosed."""
        arrived, last_speech = time.monotonic(), self._ear.last_speech_s
        event = await within(self._ear.feed(pcm), Stage.VAD, self._services.timeouts.first_byte_s)
        if self._ended:  # while VAD was at work: submitted, interrupted, or gone
            return None
        self._watchdog.cancel()
        due = min(self._loop.time() + FRAMES_STOPPED_S, self._until)
        self._watchdog = self._loop.call_at(due, self._frames_stopped)
        if self._ear.last_speech_s > last_speech:
            self._turn.record.marks[Mark.SPEECH_END] = arrived
        if event is None and self._turn.link.stream_asr:
            self._show_progress()
        return event

    def end(self) -> bytes:
        """Take no more audio; return the utterance, b"" when nothing was said."""
        self._ended = True
        self._watchdog.cancel()
        if self._interim is not None:
            self._interim.cancel()
        return self._ear.utterance()

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The interim recognition, if one is under way."""
        return self._interim

    def _frames_stopped(self) -> None:
        log.info("%s: the microphone's audio stopped, or comes too slowly", self._turn.record.device)
        self._on_input(Input.SPEECH_ENDED if self._ear.spoke else Input.NOTHING_SAID)

    def _show_progress(self) -> None:
        if not self._ear.spoke:
            self._interim_at = self._ear.seconds
            return
        idle = self._interim is None or self._interim.done()
        if idle and self._ear.seconds - self._interim_at >= INTERIM_EVERY_S:
            self._interim_at = self._ear.seconds
            self._interim = asyncio.create_task(self._recognise(), name=f"interim {self._turn.record.device}")
        if self._ear.seconds - self._shown_at >= REMINDER_EVERY_S:
            self._show(self._shown)

    def _show(self, text: str) -> None:
        self._shown, self._shown_at = text, self._ear.seconds
        self._turn.send(ASR(text))

    async def _recognise(self) -> None:
        pcm = self._ear.utterance(INTERIM_LIMIT_S)
        try:
            transcript = await within(
                self._services.asr.transcribe(pcm), Stage.ASR, self._services.timeouts.first_byte_s
            )
            text = clean_transcript(transcript.text)
            if text and not self._ended:
                self._show(text)
        except BackendError as error:
            # Not yet a failure: only the recognition of the whole utterance counts.
            log.info("%s: interim recognition: %s", self._turn.record.device, error)
        except OutboxClosed:
            pass  # the connection's to notice
        except Exception:  # the boundary of a task that nobody waits for; the utterance goes on without the text
            log.exception("%s: interim recognition failed by a fault of this server", self._turn.record.device)
