"""Recognises an utterance and asks the model about it while it is not yet certain that the utterance is over.

Nothing leaves it before a turn takes it over: nothing is sent, no tool runs, no history changes. What is taken over is
what would be asked for now, byte for byte; anything else is dropped and asked for in the ordinary way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.llm.base import LlmEvent, Message, Step, TextDelta, Tool
from echokit_py.log import sanitize
from echokit_py.session.hearing import recognise
from echokit_py.session.journal import Mark, TurnRecord
from echokit_py.session.relay import Relay
from echokit_py.session.services import Services
from echokit_py.session.tasks import cancelled_from_outside
from echokit_py.session.watchdog import watched
from echokit_py.text.sentences import SentenceSplitter
from echokit_py.text.speech import SpeechFilter

log = logging.getLogger(__name__)

# Failures that the same request would meet again a moment later: not asked for, and perhaps paid for, twice.
_FINAL = frozenset({ErrorKind.AUTH, ErrorKind.REFUSED, ErrorKind.CONTEXT})
# So is this one, but the model's retries know when to ask again.
_FINAL_FOR_MODELS = _FINAL | {ErrorKind.RATE_LIMIT}
# What waits to be taken over: more than a quick model says in a pause, and the audio of a sentence.
_DELTAS_AHEAD = 512
_AUDIO_AHEAD = 64


class Speculation:
    """What a turn would begin with if the utterance were over now.

    Args:
        pcm: the utterance so far (s16le, mono, 16 kHz).
        speech_s: seconds of speech in it.
        ask: the messages of the turn's first request, given the question; None: the model isn't asked.
        on_text: told the transcript, when words came.
        after: what is waited for first: that what the device had begun earlier is gone.

    Attributes:
        heard: the record of the recognition.
        thought: that of the model and the voice.
        taken: whether the turn has looked at the model's part.
    """

    def __init__(
        self,
        pcm: bytes,
        speech_s: float,
        services: Services,
        device: str,
        *,
        ask: Callable[[str], list[Message]] | None,
        on_text: Callable[[str], None],
        after: Callable[[], Awaitable[None]],
    ) -> None:
        self.heard, self.thought = TurnRecord(device, "heard"), TurnRecord(device, "thought")
        self.heard.mark(Mark.GUESSED)
        self.taken = False
        self._services = services
        self._device = device
        self._ask = ask
        self._on_text = on_text
        self._text: str | BackendError | None = None
        self._recognised = asyncio.Event()
        self._request: tuple[list[Message], tuple[Tool, ...]] = ([], ())
        self._thinking: Relay[LlmEvent] | None = None
        self._splitter = SentenceSplitter()
        self._first_piece: str | None = None
        self._voice: Relay[bytes] | None = None
        self._recognition = asyncio.create_task(self._recognise(pcm, speech_s, after), name=f"ahead {device}")

    @property
    def tasks(self) -> list[asyncio.Task[Any]]:
        """The tasks that are at work: to be cancelled, and waited for, when it is dropped or its turn is over."""
        relays = [relay.task for relay in (self._thinking, self._voice) if relay is not None]
        return [task for task in (self._recognition, *relays) if not task.done()]

    async def text(self) -> str | None:
        """Wait for the transcript. None: it has to be asked for in the ordinary way, since what failed before anybody
        waited for it counts as never tried. Raises BackendError (ASR)."""
        waited = not self._recognised.is_set()
        await self._recognised.wait()
        if isinstance(self._text, BackendError):
            if waited or self._text.kind in _FINAL:
                raise self._text
            return None
        return self._text

    def only_text(self) -> list[asyncio.Task[Any]]:
        """Go on with the recognition alone; return the other tasks, to be cancelled."""
        self._ask, self._on_text = None, lambda _: None
        return [task for task in self.tasks if task is not self._recognition]

    def fits(self, messages: list[Message], tools: Sequence[Tool]) -> bool:
        """Whether the model was asked just this, and nothing speaks against what it answered so far."""
        if self._thinking is None or self._request != (messages, tuple(tools)):
            return False
        error = self._thinking.error
        return error is None or (isinstance(error, BackendError) and error.kind in _FINAL_FOR_MODELS)

    def answer(self) -> AsyncGenerator[LlmEvent, None]:
        """The model's answer, what came and what comes: as `Llm.stream`, time-outs included. To be read once."""
        if self._thinking is None:
            raise AssertionError("an answer is taken only when it `fits`")
        return self._thinking.items()

    def voice(self, piece: str) -> AsyncIterator[bytes] | None:
        """The speech of the answer's first piece, as `Tts.synthesize`, if it was begun and `piece` is that one."""
        return self._voice.items() if self._voice is not None and piece == self._first_piece else None

    async def _recognise(self, pcm: bytes, speech_s: float, after: Callable[[], Awaitable[None]]) -> None:
        try:
            await after()
            self._text = text = await recognise(pcm, speech_s, self._services, self.heard)
            self._recognised.set()
            if text and not cancelled_from_outside():  # a back end may forget that it was cancelled
                self._think(text)
                self._on_text(text)
        except BackendError as error:
            log.info("%s: recognition ahead of the end of speech: %s", self._device, sanitize(error))
            self._text = error
        except Exception:  # the boundary of a task that nobody may ever wait for
            log.exception("%s: recognition ahead of the end of speech failed by a fault of this server", self._device)
        finally:
            self._recognised.set()

    def _think(self, question: str) -> None:
        if self._ask is None:
            return
        messages, tools = self._request = self._ask(question), tuple(self._services.tools.tools())
        limits = self._services.timeouts
        self.thought.mark(Mark.LLM_REQUEST)
        stream = self._services.llm.stream(messages, tools)
        answer = watched(stream, Stage.LLM, limits.first_byte_s, limits.between_bytes_s)
        self._thinking = Relay(answer, _DELTAS_AHEAD, self._on_event, f"thinking ahead {self._device}")

    def _on_event(self, event: LlmEvent) -> None:
        if self._first_piece is not None:
            return
        found: list[str] = []
        if isinstance(event, TextDelta):
            self.thought.mark(Mark.LLM_FIRST)
            found = self._splitter.feed(event.text)
        elif isinstance(event, Step):
            found = self._splitter.flush()
        if found:
            self.thought.mark(Mark.SENTENCE)
            self._first_piece = found[0]
            if self._services.vad_settings.speculate_tts:
                self._speak(found[0])

    def _speak(self, piece: str) -> None:
        spoken = SpeechFilter().speakable(piece)
        if spoken:
            self.thought.mark(Mark.TTS_REQUEST)
            audio = self._services.tts.synthesize(spoken)
            self._voice = Relay(audio, _AUDIO_AHEAD, self._on_audio, f"speaking ahead {self._device}")

    def _on_audio(self, _: bytes) -> None:
        self.thought.mark(Mark.TTS_FIRST)
