"""Takes one utterance from the microphone: interim texts, what may be begun in its pauses, its end, and a watchdog for
when frames stop.

What an end of speech leads to is the turn table's to say.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from echokit_py.errors import BackendError, Stage
from echokit_py.llm.base import Message
from echokit_py.session.ear import Ear
from echokit_py.session.hearing import recognise
from echokit_py.session.journal import Mark
from echokit_py.session.leaving import Leaving
from echokit_py.session.outbox import OutboxClosed
from echokit_py.session.services import Services
from echokit_py.session.speculation import Speculation
from echokit_py.session.turn import Turn
from echokit_py.session.turns import Input
from echokit_py.session.watchdog import within
from echokit_py.text.completeness import hangover_ms
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
# Somebody who speaks slowly pauses every second. The model is asked again for so many of these pauses, which its user
# pays for, and recognition for so many; an utterance with more is answered in the ordinary way.
ANSWERS_AHEAD = 5
TEXTS_AHEAD = 12


@dataclass(frozen=True, slots=True)
class Utterance:
    """What was heard.

    Attributes:
        pcm: s16le, mono, 16 kHz; b"" when nothing was said.
        speech_s: seconds of speech in it.
    """

    pcm: bytes = b""
    speech_s: float = 0.0


class Listening:
    """One utterance.

    Args:
        turn: gets what was begun ahead (`Turn.ahead`) when the utterance ends and no speech came after that.
        ask: the messages of the turn's first request, given the question.
        leaving: gets what is dropped.
        on_input: gets SPEECH_ENDED or NOTHING_SAID when the utterance ends otherwise than by `feed`.
    """

    def __init__(
        self,
        turn: Turn,
        services: Services,
        ask: Callable[[str], list[Message]],
        leaving: Leaving,
        on_input: Callable[[Input], None],
    ) -> None:
        self._turn = turn
        self._services = services
        self._settings = services.vad_settings
        self._ask = ask
        self._on_input = on_input
        self._ear = Ear(services.vad, services.vad_settings, endpointing=turn.link.stream_asr)
        self._ended = self._feeding = False
        self._interim: list[asyncio.Task[Any]] = []
        self._interim_at = 0.0  # how far the last interim recognition that came to its end had heard
        self._shown_at = 0.0
        self._shown = "…"
        self._ahead: Speculation | None = None
        self._ahead_of = -1  # the speech mark of the last pause in which something was begun
        self._begun = 0
        self._leaving = leaving
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + PATIENCE * services.vad_settings.max_utterance_s + FRAMES_STOPPED_S
        self._watchdog = self._loop.call_later(FRAMES_STOPPED_S, self._frames_stopped)

    async def feed(self, pcm: bytes) -> Input | None:
        """Take audio (s16le, mono, 16 kHz, any length); return the input for the turn table when the utterance is
        over. Raises BackendError (VAD), OutboxClosed."""
        arrived, last_speech = time.monotonic(), self._ear.last_speech_s
        self._feeding = True
        event = await within(self._ear.feed(pcm), Stage.VAD, self._services.timeouts.first_byte_s)
        self._feeding = False
        if self._ended:  # while VAD was at work: submitted, interrupted, or gone
            return None
        self._watchdog.cancel()
        due = min(self._loop.time() + FRAMES_STOPPED_S, self._until)
        self._watchdog = self._loop.call_at(due, self._frames_stopped)
        if self._ear.last_speech_s > last_speech:
            self._turn.record.marks[Mark.SPEECH_END] = arrived
        if event is None:
            self._look_ahead()
            if self._turn.link.stream_asr:
                self._show_progress()
        return event

    def end(self) -> Utterance:
        """Take no more audio; return the utterance."""
        self._ended = True
        self._watchdog.cancel()
        # With VAD still at work on newer audio it is not known whether that goes on with the speech.
        if self._feeding or not self._fresh:
            self._drop()
        self._turn.ahead, self._ahead = self._ahead, None
        self._leaving.add(self._interim)
        return Utterance(self._ear.utterance(), self._ear.speech_s)

    def _frames_stopped(self) -> None:
        log.info("%s: the microphone's audio stopped, or comes too slowly", self._turn.record.device)
        self._on_input(Input.SPEECH_ENDED if self._ear.spoke else Input.NOTHING_SAID)

    # --- pauses ----------------------------------------------------------------------------------------------------

    @property
    def _fresh(self) -> bool:
        return self._ahead is not None and self._ahead_of == self._ear.speech_mark

    def _look_ahead(self) -> None:
        if not self._fresh:
            self._go_on()
        # Not for clients that end the utterance by `Submit`: web pages send all of it when its end is known, so nothing
        # is left to gain, and who holds a button pauses as long as they like, at the price of a request each time.
        again = self._ahead_of == self._ear.speech_mark  # also when it came to nothing
        if self._settings.speculate and self._ear.paused and not again and self._begun < TEXTS_AHEAD:
            self._guess()

    def _guess(self) -> None:
        """The utterance may be over: begin with what follows then."""
        self._leaving.add(self._interim)  # what is begun now hears the same and more
        self._begun += 1
        self._ahead_of = self._ear.speech_mark
        self._ahead = Speculation(
            self._ear.utterance(),
            self._ear.speech_s,
            self._services,
            self._turn.record.device,
            ask=self._ask if self._begun <= ANSWERS_AHEAD else None,
            on_text=self._on_text,
            after=self._leaving.gone,
        )

    def _on_text(self, text: str) -> None:
        if self._ended or not self._fresh or not self._settings.adaptive:
            return
        over = self._ear.set_hangover(hangover_ms(text, self._settings, self._services.language) / 1000)
        if over is not None and not self._feeding:  # with newer audio at VAD, that is to say
            self._on_input(over)

    def _go_on(self) -> None:
        """Speech has resumed: drop what was begun in the pause, but for a text that is due to be shown."""
        ahead = self._ahead
        if ahead is not None and self._interim_due:
            self._ahead = None
            self._turn.record.discarded += 1
            self._leaving.add(ahead.only_text())
            self._begin_interim(ahead.text, ahead.tasks)
        else:
            self._drop()

    def _drop(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            self._turn.record.discarded += 1
            self._leaving.add(ahead.tasks)

    # --- interim texts ---------------------------------------------------------------------------------------------

    @property
    def _interim_due(self) -> bool:
        return self._ear.seconds - self._interim_at >= INTERIM_EVERY_S

    def _show_progress(self) -> None:
        if not self._ear.spoke:
            self._interim_at = self._ear.seconds
            return
        idle = self._ahead is None and all(task.done() for task in self._interim)
        if idle and self._interim_due:
            pcm, speech_s = self._ear.utterance(INTERIM_LIMIT_S), self._ear.speech_s
            self._begin_interim(lambda: recognise(pcm, speech_s, self._services))
        if self._ear.seconds - self._shown_at >= REMINDER_EVERY_S:
            self._show(self._shown)

    def _show(self, text: str) -> None:
        self._shown, self._shown_at = text, self._ear.seconds
        self._turn.send(ASR(text))

    def _begin_interim(
        self, recognition: Callable[[], Awaitable[str | None]], of: Iterable[asyncio.Task[Any]] = ()
    ) -> None:
        """Show what `recognition` understands, which tasks `of` work on."""
        work = self._show_interim(recognition, self._ear.seconds)
        self._interim = [asyncio.create_task(work, name=f"interim {self._turn.record.device}"), *of]

    async def _show_interim(self, recognition: Callable[[], Awaitable[str | None]], heard_s: float) -> None:
        try:
            text = await recognition()
            if text and not self._ended:
                self._show(text)
        except BackendError as error:
            # Not yet a failure: only the recognition of the whole utterance counts.
            log.info("%s: interim recognition: %s", self._turn.record.device, error)
        except OutboxClosed:
            pass  # the connection's to notice
        except Exception:  # the boundary of a task that nobody waits for; the utterance goes on without the text
            log.exception("%s: interim recognition failed by a fault of this server", self._turn.record.device)
        self._interim_at = max(self._interim_at, heard_s)
