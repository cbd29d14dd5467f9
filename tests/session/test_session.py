"""A session from the device's side: events in, events out, whatever the back ends do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from echokit_py.config.settings import Timeouts
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
    EndResponse,
    HelloChunk,
    HelloEnd,
    HelloStart,
    Select,
    ServerEvent,
    StartAudio,
    StartChat,
    StartRecord,
    Submit,
    Text,
)
from firmware_protocol.link import LinkParameters
from tests.fakes.providers import SECOND, Scripted, scripted, silence, speech
from tests.fakes.reading import take

STREAMING = LinkParameters(stream_asr=True, reconnect=True)
SUBMITTING = LinkParameters(reconnect=True)


class Board:
    """One connection's outbox, read on demand, and the session behind it."""

    def __init__(self, session: Session, link: LinkParameters = STREAMING) -> None:
        self.session, self.link, self.outbox = session, link, Outbox()
        self.seen: list[ServerEvent] = []

    async def connect(self) -> Board:
        await self.session.attach(self.outbox, self.link)
        return self

    async def start(self) -> None:
        await self.session.command(self.outbox, StartChat())

    async def speak(self, *parts: bytes) -> None:
        for part in parts:
            for at in range(0, len(part), SECOND // 2):
                await self.session.audio(self.outbox, part[at : at + SECOND // 2])

    async def ask(self) -> None:
        await self.start()
        await self.speak(speech(1), silence(1))

    async def until(self, wanted: Callable[[ServerEvent], bool]) -> list[ServerEvent]:
        """Read on until an event fits; return what was read."""
        first = len(self.seen)
        async with asyncio.timeout(10):
            while len(self.seen) == first or not wanted(self.seen[-1]):
                self.seen.append(await take(self.outbox))
        return self.seen[first:]

    async def turn(self) -> list[ServerEvent]:
        return await self.until(lambda event: event == EndResponse())


def outline(events: list[ServerEvent]) -> list[str]:
    """The events without audio, repeated ones once."""
    names = [
        f"{type(event).__name__}({event.text})" if isinstance(event, StartAudio | ASR) else type(event).__name__
        for event in events
    ]
    return [name for at, name in enumerate(names) if name not in {"AudioChunk", "AudioChunkWithVowel"}]


ANSWER = [
    "ASR(What time is it?)",
    "StartAudio(It is noon.)",
    "EndAudio",
    "StartAudio(Enjoy your lunch.)",
    "EndAudio",
    "EndResponse",
]


@pytest.fixture
async def made() -> AsyncIterator[Scripted]:
    with scripted() as made:
        yield made


@pytest.fixture
async def board(made: Scripted) -> AsyncIterator[Board]:
    board = await Board(Session("board", made.services)).connect()
    yield board
    await board.session.close()


async def test_a_streaming_turn(board: Board, made: Scripted) -> None:
    await board.ask()
    events = await board.turn()
    assert outline(events) == ["EndVad", *ANSWER]
    audio = b"".join(event.data for event in events if isinstance(event, AudioChunk))
    assert len(audio) == len(speech(0.1 * len("It is noon.Enjoy your lunch.")))
    assert board.session.phase is Phase.IDLE
    assert made.llm.asked == [
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What time is it?"}]
    ]


async def test_a_submitted_turn(made: Scripted) -> None:
    board = await Board(Session("page", made.services), SUBMITTING).connect()
    await board.start()
    await board.speak(silence(2), speech(1), silence(2))
    assert board.outbox.pending == 0
    await board.session.command(board.outbox, Submit())
    assert outline(await board.turn()) == ANSWER
    # The lead is trimmed to 300 ms, the tail to a second.
    assert len(made.asr.heard[0]) == pytest.approx(2.3 * SECOND, abs=0.05 * SECOND)
    await board.session.close()


@pytest.mark.parametrize("audio", [b"", silence(1)])
async def test_submitted_silence_ends_the_turn_without_asr(made: Scripted, audio: bytes) -> None:
    board = await Board(Session("page", made.services), SUBMITTING).connect()
    await board.start()
    await board.speak(audio)
    await board.session.command(board.outbox, Submit())
    assert outline(await board.turn()) == ["EndResponse"]
    assert made.asr.heard == []
    await board.session.close()


async def test_a_typed_turn(board: Board, made: Scripted) -> None:
    await board.session.command(board.outbox, Text("  "))
    await board.session.command(board.outbox, Text("Hi there"))
    assert outline(await board.turn()) == ANSWER[1:]
    assert made.llm.asked[0][-1] == {"role": "user", "content": "Hi there"}


async def test_noise_alone_ends_the_turn_without_asr(board: Board, made: Scripted) -> None:
    await board.start()
    await board.speak(silence(9))
    assert outline(await board.turn()) == ["EndVad", "EndResponse"]
    assert made.asr.heard == []


async def test_nothing_understood(board: Board, made: Scripted) -> None:
    made.asr.text = " (noise)"
    await board.ask()
    assert outline(await board.turn()) == ["EndVad", "EndResponse"]
    assert made.llm.asked == []


async def test_interim_texts_keep_the_board_waiting(board: Board, made: Scripted) -> None:
    await board.start()
    for _ in range(20):
        await board.speak(speech(1))
        await asyncio.sleep(0)
    shown = board.outbox.pending
    assert shown >= 6
    assert made.asr.heard
    await board.speak(silence(1))
    events = await board.turn()
    assert outline(events)[shown:] == ["EndVad", *ANSWER]


async def test_a_slow_recogniser_does_not_make_the_board_give_up(board: Board, made: Scripted) -> None:
    made.asr.gate = asyncio.Event()
    await board.start()
    await board.speak(speech(18))
    assert [event for event in await board.until(lambda event: board.outbox.pending == 0)] == [ASR("…"), ASR("…")]
    made.asr.gate.set()


async def test_an_utterance_is_bounded(board: Board) -> None:
    await board.start()
    await board.speak(speech(65))
    assert outline(await board.turn())[-7:] == ["EndVad", *ANSWER]


async def test_the_bound_holds_for_submitting_clients(made: Scripted) -> None:
    board = await Board(Session("page", made.services), SUBMITTING).connect()
    await board.start()
    await board.speak(speech(65))
    assert outline(await board.turn()) == ANSWER
    assert len(made.asr.heard[0]) <= 61 * SECOND
    await board.session.command(board.outbox, Submit())  # late: the turn is over
    assert board.outbox.pending == 0
    await board.session.close()


async def test_frames_that_stop_end_the_utterance(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echokit_py.session.listening.FRAMES_STOPPED_S", 0.01)
    await board.start()
    await board.speak(speech(1))
    assert outline(await board.turn()) == ["EndVad", *ANSWER]
    await board.start()
    assert outline(await board.turn()) == ["EndVad", "EndResponse"]


@pytest.mark.parametrize(
    ("stage", "kind", "status"),
    [
        (Stage.ASR, ErrorKind.SERVER, "Speech recognition failed"),
        (Stage.LLM, ErrorKind.REFUSED, "Language model failed"),
        (Stage.TTS, ErrorKind.CONNECT, "Speech synthesis failed"),
    ],
)
async def test_a_failed_stage_is_told_and_the_next_turn_works(
    board: Board, made: Scripted, stage: Stage, kind: ErrorKind, status: str
) -> None:
    error = BackendError(stage, kind, "no")
    if stage is Stage.ASR:
        made.asr.error = error
    elif stage is Stage.LLM:
        made.llm.deltas, made.llm.error = [], error
    else:
        made.tts.error = error
    await board.ask()
    events = await board.turn()
    assert outline(events)[0] == "EndVad"
    assert Action(status) in events
    assert outline(events)[-3].startswith("StartAudio(Sorry, ")
    assert outline(events)[-2:] == ["EndAudio", "EndResponse"]
    made.asr.error = made.llm.error = made.tts.error = None
    made.llm.deltas = ("It is noon. ", "Enjoy your lunch.")
    await board.ask()
    assert outline(await board.turn()) == ["EndVad", *ANSWER]
    assert check(made.llm.asked[-1]) == []


async def test_a_fault_of_ours_is_told_too(board: Board, made: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    made.asr.error = ZeroDivisionError()
    await board.ask()
    assert Action("Something failed") in await board.turn()
    assert "a fault of this server" in caplog.text


async def test_a_broken_vad_is_told(board: Board, made: Scripted) -> None:
    made.vad.error = BackendError(Stage.VAD, ErrorKind.INTERNAL, "no")
    await board.start()
    await board.speak(speech(1))
    assert outline(await board.turn())[:2] == ["EndVad", "Action"]


async def test_an_answer_that_breaks_off(board: Board, made: Scripted) -> None:
    made.llm.error = BackendError(Stage.LLM, ErrorKind.BROKEN_OFF, "reset")
    await board.ask()
    seen = outline(await board.turn())
    assert seen[2] == "StartAudio(It is noon.)"
    assert not any("lunch" in name for name in seen)  # the sentence was not complete
    assert "StartAudio(Sorry, my answer broke off. Please ask me again.)" in seen


async def test_an_empty_answer_is_a_failure(board: Board, made: Scripted) -> None:
    made.llm.deltas = [" "]
    await board.ask()
    assert Action("Language model failed") in await board.turn()


async def test_a_voice_without_audio_is_a_failure(board: Board, made: Scripted) -> None:
    made.tts.empty = True
    await board.ask()
    assert Action("Speech synthesis failed") in await board.turn()


async def test_what_cannot_be_spoken_is_left_out(board: Board, made: Scripted) -> None:
    made.llm.deltas = ["Yes, of course.\n\n", "🙂🙂"]
    await board.ask()
    spoken = [name for name in outline(await board.turn()) if name.startswith("Start")]
    assert spoken == ["StartAudio(Yes, of course.)"]


@pytest.mark.parametrize("stage", ["asr", "llm"])
async def test_a_back_end_that_hangs(stage: str) -> None:
    with scripted(Timeouts(first_byte_s=0.01, between_bytes_s=0.01)) as made:
        board = await Board(Session("board", made.services)).connect()
        getattr(made, stage).gate = asyncio.Event()
        await board.ask()
        assert any(isinstance(event, Action) for event in await board.turn())
        assert made.llm.running == 0
        await board.session.close()


async def test_a_turn_has_a_deadline() -> None:
    with scripted(Timeouts(turn_s=0.05)) as made:
        made.llm.gate = asyncio.Event()
        board = await Board(Session("board", made.services)).connect()
        await board.ask()
        assert Action("Language model failed") in await board.turn()
        await board.session.close()


async def test_start_chat_interrupts_the_answer(board: Board, made: Scripted) -> None:
    made.llm.gate, made.llm.gate_at = asyncio.Event(), 2
    await board.ask()
    await board.until(lambda event: isinstance(event, StartAudio))
    await board.start()
    await board.speak(speech(1), silence(1))
    made.llm.gate.set()
    seen = outline(await board.turn())
    assert seen == ["EndAudio", "EndVad", *ANSWER]
    assert made.llm.running == made.tts.running == 0
    assert check(made.llm.asked[-1]) == []


async def test_microphone_audio_during_the_answer_is_dropped(board: Board, made: Scripted) -> None:
    made.llm.gate = asyncio.Event()
    await board.ask()
    await board.speak(speech(5), silence(2))
    made.llm.gate.set()
    assert outline(await board.turn()) == ["EndVad", *ANSWER]
    assert len(made.asr.heard) == 1


async def test_a_new_connection_takes_over(board: Board, made: Scripted) -> None:
    made.llm.gate = asyncio.Event()
    await board.ask()
    await board.until(lambda event: isinstance(event, ASR))
    second = await Board(board.session).connect()
    with pytest.raises(OutboxClosed):
        await board.outbox.get()
    await board.session.detach(board.outbox)  # the old connection's end comes late
    assert board.session.connected
    made.llm.gate.set()
    await second.ask()
    assert outline(await second.turn()) == ["EndVad", *ANSWER]
    roles = [message["role"] for message in made.llm.asked[-1]]
    assert roles == ["system", "user"]  # the unanswered question goes along with the new one


async def test_the_history_goes_on_with_reconnect_only(board: Board, made: Scripted) -> None:
    await board.ask()
    await board.turn()
    await (again := Board(board.session)).connect()
    await again.ask()
    await again.turn()
    assert [message["role"] for message in made.llm.asked[1]][:2] == ["system", "user"]
    assert len(made.llm.asked[1]) >= 2
    await (fresh := Board(board.session, LinkParameters(stream_asr=True))).connect()
    await fresh.ask()
    await fresh.turn()
    assert len(made.llm.asked[2]) == 2


async def test_a_fresh_connection_is_greeted() -> None:
    hello = bytes(range(256)) * 20
    with scripted(hello=hello) as made:
        session = Session("board", made.services)
        board = await Board(session, LinkParameters()).connect()
        await board.start()  # dropping a turn does not drop the greeting
        events = await board.until(lambda event: event == HelloEnd())
        assert events[0] == HelloStart()
        chunks = [event.data for event in events if isinstance(event, HelloChunk)]
        assert b"".join(chunks) == hello
        assert max(map(len, chunks)) == 2048
        again = await Board(session, STREAMING).connect()
        assert again.outbox.pending == 0
        await session.close()


async def test_vowels_and_opus() -> None:
    with scripted() as made:
        session = Session("board", made.services)
        board = await Board(session, LinkParameters(opus=True, vowel=True, stream_asr=True)).connect()
        await board.ask()
        chunks = [event for event in await board.turn() if isinstance(event, AudioChunkWithVowel)]
        assert len(chunks) == 10 + 15  # 1.1 s and 1.7 s in packets of 120 ms
        assert max(len(chunk.data) for chunk in chunks) <= 1280
        await session.close()


async def test_commands_without_a_meaning_here_are_ignored(board: Board) -> None:
    await board.session.command(board.outbox, Select(1))
    await board.session.command(board.outbox, StartRecord())
    await board.session.command(board.outbox, Submit())
    assert board.session.phase is Phase.IDLE
    assert board.session.refused == {"IDLE SUBMIT": 1}


async def test_an_interrupted_answer_is_kept_as_far_as_it_was_heard(board: Board, made: Scripted) -> None:
    await board.ask()
    await board.turn()  # all is written at once, but nothing had time to play
    await board.ask()
    await board.turn()
    heard = [message["content"] for message in made.llm.asked[1] if message["role"] == "assistant"]
    assert "lunch" not in "".join(heard)


async def test_turns_leave_records(board: Board, made: Scripted) -> None:
    await board.ask()
    await board.turn()
    await board.start()
    await board.start()
    records = list(made.services.journal)
    assert [record.outcome for record in records] == ["answered", "interrupted"]
    assert {"silence", "asr", "llm", "tts", "overhead", "first_audio"} <= records[0].stages().keys()
    assert records[0].as_json()["device"] == "board"


async def test_events_after_the_connection_ended_change_nothing(board: Board) -> None:
    await board.session.detach(board.outbox)
    await board.start()
    await board.speak(speech(1))
    assert not board.session.connected
    assert board.session.phase is Phase.IDLE
