"""What a session does over minutes, in virtual time: answers cut off, boards that stop reading, clean-up that hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from echokit_py.config.settings import Timeouts
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.session.apologies import Apology
from echokit_py.session.outbox import EVENT_LIMIT, Outbox, OutboxClosed
from echokit_py.session.session import Session
from echokit_py.session.turns import Phase
from firmware_protocol.events import (
    AudioChunk,
    EndAudio,
    EndResponse,
    EndVad,
    ServerEvent,
    StartAudio,
    StartChat,
    Submit,
    Text,
)
from firmware_protocol.link import LinkParameters
from tests.fakes.providers import Scripted, scripted, silence, speech
from tests.fakes.reading import take
from tests.fakes.virtual_time import InlineExecutor, run

BROKEN = BackendError(Stage.LLM, ErrorKind.SERVER, "no")


class Device:
    """One connection; it reads when it is told to."""

    def __init__(self, made: Scripted) -> None:
        self.made, self.session, self.outbox = made, Session("board", made.services), Outbox()
        self.seen: list[ServerEvent] = []

    async def connect(self, streaming: bool = True) -> Device:
        await self.session.attach(self.outbox, LinkParameters(stream_asr=streaming, reconnect=True))
        return self

    async def ask(self) -> None:
        await self.session.command(self.outbox, StartChat())
        for part in (speech(0.6), speech(0.6), silence(0.6), silence(0.6)):
            await self.session.audio(self.outbox, part)

    async def read(self, last: ServerEvent | type[ServerEvent]) -> list[str]:
        """Read up to `last`; return the names of what was read, without audio."""
        names: list[str] = []
        async with asyncio.timeout(300):
            while True:
                event = await take(self.outbox)
                self.seen.append(event)
                if not isinstance(event, AudioChunk):
                    names.append(type(event).__name__)
                if event == last or type(event) is last:
                    return names

    @property
    def said(self) -> list[str]:
        """What the last request to the model says of earlier turns, and its question."""
        return [message["content"] for message in self.made.llm.asked[-1] if message["role"] != "system"]


def in_time(story: Callable[[Device], Coroutine[Any, Any, None]], timeouts: Timeouts | None = None) -> None:
    """Let `story` happen to a connected device; nothing may be reported to the loop, nothing left behind."""
    errors: list[dict[str, Any]] = []

    async def whole(made: Scripted) -> None:
        device = await Device(made).connect()
        await story(device)
        await device.session.close()
        await asyncio.sleep(10)
        assert [task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}] == []

    with scripted(timeouts, encoder=InlineExecutor()) as made:
        run(whole(made), errors.append)
    assert errors == []


def test_sentences_that_were_never_sent_were_not_heard() -> None:
    async def story(device: Device) -> None:
        await device.ask()
        await device.read(AudioChunk)
        await device.read(EndAudio)
        await asyncio.sleep(20)  # the first sentence is played; the whole answer is made, and waits in the outbox
        assert device.session.phase is Phase.IDLE
        await device.ask()
        await device.read(EndResponse())
        assert device.said == ["What time is it?", "It is noon.", "What time is it?"]

    in_time(story)


def test_an_answer_is_kept_whole_once_it_was_played() -> None:
    async def story(device: Device) -> None:
        device.made.llm.deltas = ("It is noon. ", "🙂")
        await device.ask()
        await device.read(EndResponse())
        await asyncio.sleep(20)
        await device.ask()
        await device.read(EndResponse())
        assert device.said == ["What time is it?", "It is noon. 🙂", "What time is it?"]

    in_time(story)


@pytest.mark.parametrize("reconnect", [False, True])
def test_a_question_that_failed_leaves_no_trace_when_the_apology_is_interrupted(reconnect: bool) -> None:
    async def story(device: Device) -> None:
        device.made.llm.deltas, device.made.llm.error = (), BROKEN
        await device.session.command(device.outbox, Text("A question that a server chokes on"))
        await device.read(StartAudio)
        device.made.llm.deltas, device.made.llm.error = ("Yes.",), None
        if reconnect:
            device.outbox = Outbox()
            await device.connect()
        await device.ask()
        await device.read(EndResponse())
        assert device.said == ["What time is it?"]
        outcomes = [(record.outcome, record.error) for record in device.made.services.journal]
        assert outcomes == [("interrupted", "llm server: no"), ("answered", "")]

    in_time(story)


def test_a_question_that_was_understood_is_kept_though_its_turn_was_cut_off_at_once() -> None:
    async def story(device: Device) -> None:
        device.made.llm.gate = asyncio.Event()
        await device.session.command(device.outbox, Text("Set a timer."))
        await device.session.command(device.outbox, Text("And add milk."))
        device.made.llm.gate.set()
        await device.read(EndResponse())
        assert device.said == ["Set a timer.\nAnd add milk."]

    in_time(story)


def test_an_apology_that_the_board_does_not_take_ends_properly() -> None:
    async def story(device: Device) -> None:
        known = device.made.services.apologies
        known["llm"] = Apology("A long excuse.", "no", silence(20))
        device.made.llm.deltas, device.made.llm.error = (), BROKEN
        await device.ask()
        await asyncio.sleep(60)
        assert device.session.phase is Phase.IDLE
        assert await device.read(EndResponse()) == ["EndVad", "ASR", "Action", "StartAudio", "EndAudio", "EndResponse"]

    in_time(story)


def test_the_deadline_in_the_middle_of_a_sentence_ends_its_audio() -> None:
    async def story(device: Device) -> None:
        device.made.tts.pause_s = 4  # between pieces, again and again: never silent for too long
        device.made.tts.pieces = 100
        await device.session.command(device.outbox, Text("Tell me a story"))
        names = await device.read(EndResponse())
        assert names == ["StartAudio", "EndAudio", "Action", "StartAudio", "EndAudio", "EndResponse"]

    in_time(story, Timeouts(turn_s=30))


@pytest.mark.parametrize("stage", [Stage.VAD, Stage.ASR, Stage.LLM, Stage.TTS])
def test_work_that_was_called_off_elsewhere_is_a_failure(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    async def story(device: Device) -> None:
        getattr(device.made, stage.value).error = asyncio.CancelledError()
        await device.ask()
        assert (await device.read(EndResponse()))[-3:] == ["StartAudio", "EndAudio", "EndResponse"]
        assert device.session.phase is Phase.IDLE

    in_time(story)
    assert "was cancelled" in caplog.text


def test_a_vad_that_hangs_does_not_keep_the_board_waiting() -> None:
    async def story(device: Device) -> None:
        device.made.vad.gate = asyncio.Event()
        asking = asyncio.create_task(device.ask())
        assert await device.read(EndResponse()) == ["EndVad", "EndResponse"]
        await asking  # the reader goes on when VAD's time is up
        assert device.outbox.pending == 0

    in_time(story)


def test_a_vad_that_fails_after_the_utterance_ended_fails_no_other_turn() -> None:
    async def story(device: Device) -> None:
        await device.session.command(device.outbox, StartChat())
        await device.session.audio(device.outbox, speech(1))
        device.made.vad.gate = asyncio.Event()
        device.made.vad.error = BackendError(Stage.VAD, ErrorKind.INTERNAL, "no")
        device.made.asr.gate = asyncio.Event()
        feeding = asyncio.create_task(device.session.audio(device.outbox, speech(1)))
        assert await device.read(EndVad()) == ["EndVad"]  # frames have stopped: what was said is recognised
        device.made.vad.gate.set()
        await feeding
        assert device.session.phase is Phase.RECOGNISING
        device.made.asr.gate.set()
        assert "Action" not in await device.read(EndResponse())

    in_time(story)


def test_drops_of_audio_do_not_keep_an_utterance_open() -> None:
    async def story(device: Device) -> None:
        await device.session.command(device.outbox, StartChat())
        for _ in range(40):
            await asyncio.sleep(5)
            await device.session.audio(device.outbox, b"")
        assert device.session.phase is Phase.IDLE
        assert await device.read(EndResponse()) == ["EndVad", "EndResponse"]

    in_time(story)


def test_interim_texts_that_fail_by_a_fault_do_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    async def story(device: Device) -> None:
        device.made.asr.error = ZeroDivisionError()
        await device.session.command(device.outbox, StartChat())
        await device.session.audio(device.outbox, speech(4))
        await asyncio.sleep(1)
        device.made.asr.error = BROKEN
        await device.session.audio(device.outbox, speech(4))
        await asyncio.sleep(1)
        device.made.asr.error = None
        await device.session.audio(device.outbox, silence(1))
        assert (await device.read(EndResponse()))[-1] == "EndResponse"

    in_time(story)
    assert "interim recognition failed by a fault" in caplog.text


def test_a_provider_that_ignores_its_cancellation_holds_up_one_turn(caplog: pytest.LogCaptureFixture) -> None:
    async def story(device: Device) -> None:
        loop = asyncio.get_running_loop()
        device.made.asr.gate, device.made.asr.stubborn_s = asyncio.Event(), 1000
        await device.ask()
        await asyncio.sleep(1)
        device.made.asr.gate = None
        for limit in (2.1, 0.1):
            began = loop.time()
            await device.ask()
            await device.read(EndResponse())
            assert loop.time() - began < limit

    in_time(story)
    assert caplog.text.count("ignores its cancellation") == 1


def test_a_peer_that_reads_nothing_is_given_up() -> None:
    async def story(device: Device) -> None:
        device.made.llm.gate = asyncio.Event()
        await device.ask()
        await asyncio.sleep(1)
        with pytest.raises(OutboxClosed):
            for _ in range(EVENT_LIMIT + 1):
                device.outbox.put(EndVad())
        device.made.llm.gate.set()
        await asyncio.sleep(1)
        await device.session.command(device.outbox, StartChat())  # nothing that the session does raises
        await device.session.audio(device.outbox, speech(9))
        await device.session.command(device.outbox, Submit())
        await asyncio.sleep(100)

    in_time(story)


def test_sessions_without_apologies_end_a_failed_turn_at_once() -> None:
    async def story(device: Device) -> None:
        device.made.services.apologies.clear()
        device.made.asr.error = BackendError(Stage.ASR, ErrorKind.SERVER, "no")
        await device.ask()
        assert await device.read(EndResponse()) == ["EndVad", "EndResponse"]

    in_time(story)


def test_only_what_is_not_expected_counts_as_refused() -> None:
    async def story(device: Device) -> None:
        await device.ask()
        await device.read(EndResponse())
        await device.session.command(device.outbox, Submit())
        assert device.session.refused == {"IDLE SUBMIT": 1}

    in_time(story)


def test_waiting_for_the_board_is_not_counted() -> None:
    async def story(device: Device) -> None:
        device.made.llm.deltas = ("One two three four five six seven eight nine ten eleven twelve thirteen. ",) * 4
        await device.ask()
        await device.read(AudioChunk)
        await asyncio.sleep(90)  # a board that plays and doesn't read, for longer than the whole turn may take
        names = await device.read(EndResponse())
        assert names.count("StartAudio") == 3  # of four, one was read before
        assert "Action" not in names

    in_time(story, Timeouts(turn_s=30))
