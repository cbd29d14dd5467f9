"""One device's session: it outlives connections, keeps the history, and does what the turn table says.

Everything here runs on the event loop. The work of a turn is a task of its own that reports back through `_on`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from uuid import uuid4

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.llm.history import History
from echokit_py.llm.ladder import Ladder, first_request
from echokit_py.session import apologies
from echokit_py.session.answer import answer, apologise, next_input, transcribe
from echokit_py.session.boundary import Waiting, limited, outcome
from echokit_py.session.greeting import greeting
from echokit_py.session.journal import Mark, TurnRecord
from echokit_py.session.leaving import Leaving
from echokit_py.session.listening import Listening, Utterance
from echokit_py.session.outbox import Outbox, OutboxClosed
from echokit_py.session.services import Services
from echokit_py.session.turn import Turn
from echokit_py.session.turns import Action, Input, Phase, TurnState, step
from firmware_protocol.events import (
    Command,
    EndResponse,
    EndVad,
    ServerEvent,
    StartChat,
    Submit,
    Text,
)
from firmware_protocol.link import LinkParameters

log = logging.getLogger(__name__)


class Session:
    """The conversation with one device. A device has at most one connection; a new one takes over."""

    def __init__(self, device: str, services: Services) -> None:
        self.device = device
        self.last_seen = time.monotonic()
        self.refused: Counter[str] = Counter()  # inputs that the turn table did not hold, for diagnosis
        self._services = services
        self._history = History(services.system, services.few_shot, services.history_turns)
        self._ladder = Ladder()
        self._state = TurnState()
        self._outbox: Outbox | None = None
        self._link = LinkParameters()
        self._turn: Turn | None = None
        self._listening: Listening | None = None
        self._task: asyncio.Task[None] | None = None
        self._leaving = Leaving()
        self._typed = ""
        self._failure = BackendError(Stage.LLM, ErrorKind.INTERNAL, "")
        self._doing: dict[Action, Callable[[], None]] = {
            Action.CANCEL: self._cancel,
            Action.LISTEN: self._listen,
            Action.END_VAD: lambda: self._send(EndVad()),
            Action.TRANSCRIBE: self._transcribe,
            Action.ANSWER: self._answer,
            Action.APOLOGISE: self._apologise,
            Action.END_RESPONSE: self._end_response,
        }

    # --- the connection's side -------------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether a device is connected."""
        return self._outbox is not None

    @property
    def phase(self) -> Phase:
        """What the session is doing."""
        return self._state.phase

    async def attach(self, outbox: Outbox, link: LinkParameters) -> None:
        """A connection of the device takes over, at once: the old one's turn is cancelled and its outbox closed."""
        previous, self._outbox = self._outbox, outbox
        self._on(Input.GONE)
        if previous is not None:
            previous.close()
            log.info("%s: a new connection takes over", self.device)
        self._link = link
        self._state = TurnState(Phase.IDLE, streaming=link.stream_asr)
        if not link.reconnect:
            self._history.reset()
            self._ladder.reset()
            for event in greeting(self._services.hello):
                outbox.put(event, kept=True)
        await self._leaving.gone()

    async def detach(self, outbox: Outbox) -> None:
        """A connection ended. One that was taken over before changes nothing."""
        outbox.close()
        if outbox is self._outbox:
            self._on(Input.GONE)
            self._outbox = None
            self.last_seen = time.monotonic()
            await self._leaving.gone()

    async def command(self, outbox: Outbox, command: Command) -> None:
        """Take a command that came over the connection of `outbox`."""
        if outbox is not self._outbox:
            return
        match command:
            case StartChat():
                self._on(Input.START_CHAT)
            case Submit():
                self._on(Input.SUBMIT)
            case Text(input=text):
                if text.strip():
                    self._typed = text
                    self._on(Input.TEXT)
            case _:
                log.info("%s: %s has no meaning in a conversation; ignored", self.device, type(command).__name__)

    async def audio(self, outbox: Outbox, pcm: bytes) -> None:
        """Take microphone audio (s16le, mono, 16 kHz). It counts only while the session listens."""
        listening, turn = self._listening, self._turn
        if outbox is not self._outbox or listening is None or turn is None:
            return
        result = await outcome(listening.feed(pcm), self.device)
        if listening is self._listening:  # else the utterance ended meanwhile, and its turn goes on without this
            self._conclude(turn, result)

    async def close(self) -> None:
        """End the session: for shutdown, and when it has been idle for too long."""
        if self._outbox is not None:
            await self.detach(self._outbox)

    # --- the turn table's side -------------------------------------------------------------------------------------

    def _on(self, event: Input, turn: Turn | None = None) -> None:
        """Apply an input to the table and do what it says. Inputs of a turn that is no longer the current one are late
        and count for nothing."""
        if turn is not None and (turn is not self._turn or turn.over):
            return
        transition = step(self._state, event)
        if transition.refused:
            self.refused[f"{self._state.phase.name} {event.name}"] += 1
            log.debug("%s: %s is not expected while %s", self.device, event.name, self._state.phase.name)
            return
        self._state = transition.state
        for action in transition.actions:
            self._doing[action]()

    def _send(self, event: ServerEvent, on_sent: Callable[[], None] | None = None) -> None:
        if self._outbox is not None:
            with suppress(OutboxClosed):  # the connection's to notice; the table goes on
                self._outbox.put(event, on_sent=on_sent)

    def _cancel(self) -> None:
        self._stop_listening()
        turn, task = self._turn, self._task
        self._turn = self._task = None
        if task is not None:
            self._leaving.add([task])
        if turn is not None:
            turn.over = True
            turn.outbox.drop()
            self._release(turn)
            self._services.journal.close(turn.record, "interrupted")
            self._settle(turn)

    def _release(self, turn: Turn) -> None:
        ahead, turn.ahead = turn.ahead, None  # it holds the utterance's audio, and the next turn may be a day away
        if ahead is not None:
            self._leaving.add(ahead.tasks)

    def _settle(self, turn: Turn) -> None:
        """Commit the history's open turn: all of the answer when it was played, else what there was time to hear."""
        now = time.monotonic()
        if turn.record.error:  # what failed before anything was said leaves no trace
            self._history.abort(turn.playout.heard(now))
        elif turn.delivered and turn.playout.complete_by(now):
            self._history.commit()
        else:
            self._history.commit(turn.playout.heard(now))

    def _new_turn(self) -> Turn:
        if self._outbox is None:
            raise OutboxClosed
        return Turn(self._outbox, self._link, TurnRecord(self.device, uuid4().hex[:4]))

    def _listen(self) -> None:
        self._turn = turn = self._new_turn()
        ask = partial(first_request, self._ladder, self._history)
        on_input = partial(self._on, turn=turn)
        self._listening = Listening(turn, self._services, ask, self._leaving, on_input)

    def _stop_listening(self) -> Utterance:
        listening, self._listening = self._listening, None
        return Utterance() if listening is None else listening.end()

    def _transcribe(self) -> None:
        utterance, turn = self._stop_listening(), self._current()
        turn.record.mark(Mark.DECIDED)

        async def work() -> Input:
            turn.question = await transcribe(turn, utterance, self._services)
            return next_input(turn.question)

        self._begin(turn, partial(limited, work, turn, self._services.timeouts.turn_s, Waiting(Stage.ASR)))

    def _answer(self) -> None:
        if self._turn is None:  # a Text begins its turn here
            self._turn = self._new_turn()
            self._turn.question = self._typed
        turn = self._turn
        turn.record.mark(Mark.DECIDED)
        self._history.begin_turn(turn.question)
        waiting = Waiting(Stage.LLM)

        async def work() -> Input:
            await answer(turn, self._history, self._ladder, self._services, waiting, ready)
            return Input.FINISHED

        def ready() -> None:
            if not turn.spoke:  # it is called for every sentence
                self._on(Input.AUDIO_READY, turn)

        self._begin(turn, partial(limited, work, turn, self._services.timeouts.turn_s, waiting))

    def _apologise(self) -> None:
        self._stop_listening()
        turn, error = self._current(), self._failure
        self._break_off(turn)
        apology = apologies.choose(self._services.apologies, error, spoke=turn.spoke)

        async def work() -> Input:
            if apology is not None:
                await apologise(turn, apology, self._services, lambda: None)
            return Input.FINISHED

        self._begin(turn, work)

    def _end_response(self) -> None:
        self._stop_listening()
        turn = self._current()
        self._break_off(turn)
        result = "failed" if turn.record.error else "answered" if turn.spoke else "nothing said"

        def written() -> None:
            turn.delivered = True
            self._services.journal.close(turn.record, result)

        self._send(EndResponse(), on_sent=written)
        turn.over = True

    def _break_off(self, turn: Turn) -> None:
        self._release(turn)
        with suppress(OutboxClosed):
            turn.break_off_audio()

    def _current(self) -> Turn:
        if self._turn is None:
            raise AssertionError("the turn table has no such row without a turn")
        return self._turn

    # --- the work of a turn ----------------------------------------------------------------------------------------

    def _begin(self, turn: Turn, work: Callable[[], Awaitable[Input]]) -> None:
        self._task = asyncio.create_task(self._run(turn, work), name=f"turn {self.device} {turn.record.turn}")

    async def _run(self, turn: Turn, work: Callable[[], Awaitable[Input]]) -> None:
        await self._leaving.gone()
        self._conclude(turn, await outcome(work(), self.device))

    def _conclude(self, turn: Turn, result: Input | BackendError | None) -> None:
        if isinstance(result, BackendError):
            self._fail(turn, result)
        elif result is not None:
            self._on(result, turn)

    def _fail(self, turn: Turn, error: BackendError) -> None:
        if turn is not self._turn or turn.over:
            return
        log.warning("%s: %s", self.device, error)
        turn.record.error = turn.record.error or str(error)
        self._failure = error
        self._on(Input.FAILED, turn)
