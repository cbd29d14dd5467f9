"""A session under any sequence of what a device, its network and the back ends may do, in virtual time.

Whatever happened before: once the back ends are well again the next turn is answered exactly, each connection has seen
only what the protocol allows, no task is left, and every request to the model was valid.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echokit_py.config.settings import Timeouts, VadSettings
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.llm.message_rules import check
from echokit_py.session.outbox import Outbox, OutboxClosed
from echokit_py.session.session import Session
from echokit_py.session.turns import Phase
from firmware_protocol.events import (
    ASR,
    Action,
    AudioChunk,
    AudioChunkWithVowel,
    Command,
    EndAudio,
    EndResponse,
    EndVad,
    HelloChunk,
    HelloEnd,
    HelloStart,
    ServerEvent,
    StartAudio,
    StartChat,
    Submit,
    Text,
)
from firmware_protocol.link import LinkParameters
from tests.fakes.providers import Scripted, scripted, silence, speech
from tests.fakes.virtual_time import InlineExecutor, run

# Longer than any turn may take with the time-outs below, whoever hangs: recognition, answer, apology, clean-up.
ANSWERED_S = 200.0
LIMITS = Timeouts(first_byte_s=20, between_bytes_s=10, turn_s=90)


SHORT = ("It is ", "noon. ", "Enjoy your ", "lunch.")
LONG = ("One two three four five six seven eight nine ten eleven twelve. ",) * 6  # 40 s, the outbox holds 5


@dataclass
class Grammar:
    """What one connection may see. `feed` it in the order in which things happen; `faults` says what was wrong."""

    streaming: bool
    owed: bool = False  # a StartChat or Text waits for its EndResponse
    owed_vad: bool = False
    final_text: bool = False  # the utterance's final ASR was seen
    in_audio: bool = False
    greeted: str = ""  # the last event of the greeting
    faults: list[str] = field(default_factory=list)

    def command(self, command: Command, phase: Phase) -> None:
        if isinstance(command, StartChat):
            self.owed, self.owed_vad, self.final_text = True, self.streaming, False
        elif isinstance(command, Text) and command.input.strip():
            # A Text takes over from a StartChat. While the session listens its EndVad comes first.
            self.owed, self.owed_vad, self.final_text = True, self.owed_vad and phase is Phase.LISTENING, True

    def event(self, event: ServerEvent) -> None:
        fault = self._fault(event)
        if fault:
            self.faults.append(f"{type(event).__name__}: {fault}")

    def _fault(self, event: ServerEvent) -> str:
        fault = ""
        match event:
            case HelloStart() | HelloChunk() | HelloEnd():
                fault, self.greeted = self._on_hello(event)
            case EndAudio():
                fault, self.in_audio = "" if self.in_audio else "outside audio", False
            case AudioChunk() | AudioChunkWithVowel():
                fault = "" if self.in_audio else "outside audio"
            case EndVad():
                fault, self.owed_vad = "" if self.owed_vad else "nobody waits for it", False
            case ASR(text=text):
                fault = self._on_text(text)
            case _:
                fault = self._on_answer(event)
        return fault

    def _on_hello(self, event: ServerEvent) -> tuple[str, str]:
        before = {HelloStart: ("",), HelloChunk: ("HelloStart", "HelloChunk"), HelloEnd: ("HelloChunk",)}[type(event)]
        return "" if self.greeted in before else f"after {self.greeted}", type(event).__name__

    def _on_text(self, text: str) -> str:
        if not self.owed or self.final_text or not text:
            return "nobody waits for it"
        self.final_text = not self.owed_vad
        return ""

    def _on_answer(self, event: ServerEvent) -> str:
        if not self.owed or self.owed_vad or self.in_audio:
            return f"owed={self.owed} owed_vad={self.owed_vad} in_audio={self.in_audio}"
        match event:
            case StartAudio():
                self.in_audio = True
            case EndResponse():
                self.owed = False
            case Action():
                pass
            case _:
                return "not an event of a turn"
        return ""


class Connection:
    """A socket's tasks, as the server runs them: one that passes on what came, one that takes what is to be sent."""

    def __init__(self, session: Session, link: LinkParameters) -> None:
        self.session, self.link, self.outbox = session, link, Outbox()
        self.grammar = Grammar(link.stream_asr)
        self.seen: list[ServerEvent] = []
        self.reading = asyncio.Event()
        self.reading.set()
        self._incoming: asyncio.Queue[Command | bytes] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._serving: asyncio.Task[None] | None = None

    def connect(self) -> None:
        self._serving = asyncio.create_task(self._serve(), name="serving")

    async def _serve(self) -> None:
        try:
            await self.session.attach(self.outbox, self.link)
            self._tasks = [
                asyncio.create_task(self._read(), name="reader"),
                asyncio.create_task(self._write(), name="writer"),
            ]
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self.session.detach(self.outbox)
            for task in self._tasks:
                task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task

    async def disconnect(self) -> None:
        assert self._serving is not None
        self._serving.cancel()
        with suppress(asyncio.CancelledError):
            await self._serving
        await self.session.detach(self.outbox)

    def say(self, *messages: Command | bytes) -> None:
        for message in messages:
            self._incoming.put_nowait(message)

    async def _read(self) -> None:
        while not self.outbox.closed:  # a closed socket has no more messages
            message = await self._incoming.get()
            if isinstance(message, bytes):
                await self.session.audio(self.outbox, message)
            else:
                self.grammar.command(message, self.session.phase)
                await self.session.command(self.outbox, message)

    async def _write(self) -> None:
        with suppress(OutboxClosed):
            while True:
                entry = await self.outbox.get()
                self.seen.append(entry.event)
                self.grammar.event(entry.event)
                await self.reading.wait()
                if entry.on_sent is not None:
                    entry.on_sent()


class World:
    """A session, its connections and its back ends. `faults` collects what must not happen."""

    def __init__(self, made: Scripted, faults: list[str]) -> None:
        self.made, self.faults = made, faults
        self.session = Session("board", made.services)
        self.connections: list[Connection] = []
        self._gates: list[asyncio.Event] = []

    @property
    def current(self) -> Connection | None:
        return self.connections[-1] if self.connections else None

    def connect(self, link: LinkParameters) -> Connection:
        connection = Connection(self.session, link)
        self.connections.append(connection)
        connection.connect()
        return connection

    def break_(self, stage: Stage, how: str) -> None:
        provider: Any = getattr(self.made, stage.value)
        if how in {"hangs", "hangs half-way", "is stubborn"}:
            provider.gate = asyncio.Event()
            self.made.llm.gate_at = 3 if how == "hangs half-way" else 0
            provider.stubborn_s = 3.0 if how == "is stubborn" else 0.0
            self._gates.append(provider.gate)
        else:
            provider.error = {
                "fails": BackendError(stage, ErrorKind.SERVER, "no"),
                "is faulty": ZeroDivisionError("a fault of ours"),
                "was cancelled": asyncio.CancelledError(),
            }[how]

    def heal(self) -> None:
        for provider in (self.made.vad, self.made.asr, self.made.llm, self.made.tts):
            provider.error = provider.gate = None
        for gate in self._gates:
            gate.set()
        self._gates.clear()

    async def end(self) -> None:
        """Heal, ask once more, and look at everything."""
        self.heal()
        self.made.llm.deltas = SHORT
        for connection in self.connections:
            connection.reading.set()
        await asyncio.sleep(ANSWERED_S)
        self._check_idle()
        last = self.connect(LinkParameters(stream_asr=True, reconnect=True))
        last.say(StartChat(), speech(1), silence(1))
        await asyncio.sleep(ANSWERED_S)
        names = [f"{type(event).__name__}" for event in last.seen if not isinstance(event, AudioChunk)]
        sentence = ["StartAudio", "EndAudio"]
        if names != ["EndVad", "ASR", *sentence, *sentence, "EndResponse"]:
            self.faults.append(f"the last turn was {names}")
        for connection in self.connections:
            self.faults += connection.grammar.faults
        self.faults += [fault for messages in self.made.llm.asked for fault in check(messages)]
        if any("Sorry" in str(message["content"]) for messages in self.made.llm.asked for message in messages):
            self.faults.append("an apology is in the history")
        for connection in self.connections:
            await connection.disconnect()
        await self.session.close()
        await asyncio.sleep(10)
        names = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if names or self.made.llm.running or self.made.tts.running:
            self.faults.append(f"left behind: {names} llm={self.made.llm.running} tts={self.made.tts.running}")

    def _check_idle(self) -> None:
        if self.session.phase is not Phase.IDLE:
            self.faults.append(f"still {self.session.phase.name}")
        if self.current is not None and not self.current.outbox.closed and self.current.grammar.owed:
            self.faults.append("no EndResponse")


Act = Callable[[World], Coroutine[Any, Any, None]]


def says(*messages: Command | bytes) -> Act:
    async def act(world: World) -> None:
        if world.current is not None:
            world.current.say(*messages)

    act.__name__ = " ".join(type(message).__name__ for message in messages)
    return act


async def old_says(world: World) -> None:
    for connection in world.connections:
        if connection.outbox.closed:
            await world.session.command(connection.outbox, StartChat())
            await world.session.audio(connection.outbox, speech(1))


async def disconnects(world: World) -> None:
    if world.current is not None:
        await world.current.disconnect()


async def old_disconnects(world: World) -> None:
    for connection in world.connections:
        if connection.outbox.closed:
            await connection.disconnect()


async def answers_at_length(world: World) -> None:
    world.made.llm.deltas = LONG


async def answers_briefly(world: World) -> None:
    world.made.llm.deltas = SHORT


async def stops_reading(world: World) -> None:
    if world.current is not None:
        world.current.reading.clear()


async def reads_on(world: World) -> None:
    if world.current is not None:
        world.current.reading.set()


async def heals(world: World) -> None:
    world.heal()


def connects(reconnect: bool, streaming: bool, opus: bool) -> Act:
    async def act(world: World) -> None:
        world.connect(LinkParameters(reconnect=reconnect, stream_asr=streaming, opus=opus, vowel=opus))

    act.__name__ = f"connects reconnect={reconnect} streaming={streaming} opus={opus}"
    return act


def breaks(stage: Stage, how: str) -> Act:
    async def act(world: World) -> None:
        world.break_(stage, how)

    act.__name__ = f"{stage} {how}"
    return act


def passes(seconds: float) -> Act:
    async def act(_: World) -> None:
        await asyncio.sleep(seconds)

    act.__name__ = f"{seconds:g} s pass"
    return act


def turns_of_the_loop(count: int) -> Act:
    async def act(_: World) -> None:
        for _turn in range(count):
            await asyncio.sleep(0)

    act.__name__ = f"{count} turns of the loop"
    return act


ASKS = [
    says(StartChat(), speech(0.6), speech(0.6), silence(1)),
    says(StartChat(), speech(0.6), silence(0.3), Submit()),
    says(StartChat(), speech(4), speech(4), speech(4), silence(1), Submit()),
    says(Text("How are you?")),
    says(StartChat(), speech(1), silence(0.3)),  # what follows is begun ahead of its end
    says(StartChat(), speech(1), silence(0.3), speech(1), silence(0.3)),
]
SAYS = [
    says(StartChat()),
    says(StartChat(), speech(4), speech(4)),
    says(speech(0.512)),
    says(silence(0.512)),
    says(silence(0.256)),
    says(silence(5), silence(5)),
    says(speech(0.1)[:777], b"", b"\1"),
    says(Submit()),
    says(Text(" ")),
]
CONNECTS = [connects(*flags) for flags in [(True, True, False), (True, False, False), (False, True, False)]]
STAGES = [Stage.VAD, Stage.ASR, Stage.LLM, Stage.TTS]
WAYS = ["fails", "hangs", "hangs half-way", "is stubborn", "is faulty", "was cancelled"]
WAITS = [turns_of_the_loop(count) for count in (1, 2, 5, 10, 20, 40)] + [
    passes(seconds) for seconds in (0.01, 0.5, 2.0, 5.0, 15.0, 30.0, 100.0)
]
ACTS = st.one_of(
    st.sampled_from(ASKS),
    st.sampled_from(ASKS),
    st.sampled_from(WAITS),
    st.sampled_from(WAITS),
    st.sampled_from(SAYS),
    st.sampled_from([*CONNECTS, connects(False, False, True), disconnects, old_disconnects, old_says]),
    st.builds(breaks, st.sampled_from(STAGES), st.sampled_from(WAYS)),
    st.sampled_from([heals, heals, stops_reading, reads_on, answers_at_length, answers_briefly]),
)
# Hypothesis would mostly think of short ones.
STORIES = st.lists(ACTS, min_size=25, max_size=40)


def live(acts: list[Act], lost: list[str], *, voice_ahead: bool = False) -> list[str]:
    """Let it all happen; return the faults. `lost` gets what only the collector of garbage finds."""
    faults: list[str] = []

    def on_error(context: dict[str, Any]) -> None:
        (lost if "never retrieved" in context["message"] else faults).append(f"{context['message']}: {context}")

    async def story(made: Scripted) -> None:
        world = World(made, faults)
        world.connect(LinkParameters(stream_asr=True))
        for act in acts:
            await act(world)
        await world.end()

    with scripted(LIMITS, hello=bytes(5000), encoder=InlineExecutor()) as made:
        made.services = replace(made.services, vad_settings=VadSettings(speculate_tts=voice_ahead))
        run(story(made), on_error)
    return faults


@pytest.fixture
def lost(caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.set_level(logging.CRITICAL)  # thousands of turns fail here
    return []


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=STORIES, voice_ahead=st.booleans())
def test_whatever_happens(acts: list[Act], voice_ahead: bool, lost: list[str]) -> None:
    assert live(acts, lost, voice_ahead=voice_ahead) == []


def test_no_error_is_lost(lost: list[str]) -> None:
    """Each stage in each way, at the time when it hurts."""
    cut_in = [says(StartChat()), says(Text("No, wait.")), disconnects, CONNECTS[0]]
    pause = [says(StartChat(), speech(1), silence(0.3)), passes(0.1)]
    stories = [[*pause, says(silence(0.3)), passes(5), passes(100)], *([*pause, then] for then in cut_in)]
    ask = [says(StartChat(), speech(0.6), speech(0.6), silence(1)), passes(5)]
    stories += [[*ask, then] for then in [passes(100), *cut_in]]
    for stage in STAGES:
        for how in WAYS:
            for number, story in enumerate(stories):
                acts = [breaks(stage, how), *story, passes(1)]
                assert live(acts, lost, voice_ahead=True) == [], (stage, how, number)
    gc.collect()
    assert lost == []
