"""What is begun in a pause: it makes the answer come sooner, and leaves no trace when speech goes on."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace

import pytest

from echokit_py.asr.base import Transcript
from echokit_py.config.settings import Timeouts, VadSettings
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.llm.base import LlmEvent, Step, ToolCall
from echokit_py.session.journal import Mark
from echokit_py.session.listening import ANSWERS_AHEAD, TEXTS_AHEAD
from echokit_py.session.outbox import Outbox
from echokit_py.session.session import Session
from echokit_py.session.turns import Phase
from firmware_protocol.events import StartChat, Submit, Text
from firmware_protocol.link import LinkParameters
from tests.fakes.providers import silence, speech
from tests.fakes.reading import ReadingBoard
from tests.fakes.timed import FIXED, FRAME_S, SPOKEN_S, Back, Device, in_time

PAUSE_S = 0.224  # 200 ms in whole frames
HANGOVER_S = 0.512  # 500 ms in whole frames
SOON_S = 0.001

NO = BackendError(Stage.ASR, ErrorKind.SERVER, "no")
ONE_ANSWER = ["EndVad", "ASR", "StartAudio", "EndAudio", "StartAudio", "EndAudio", "EndResponse"]


# --- what it saves ---------------------------------------------------------------------------------------------------

BACKS = [(0.1, 0.1, 0.1), (0.15, 0.2, 0.1), (0.0, 0.0, 0.3), (0.5, 0.1, 0.1), (0.02, 1.5, 0.2)]


@pytest.mark.parametrize(("asr", "llm", "tts"), BACKS)
@pytest.mark.parametrize(
    "vad",
    [
        FIXED,
        VadSettings(adaptive=False, speculate_tts=True),
        VadSettings(adaptive=False, speculate=False),
        VadSettings(adaptive=False, hangover_ms=1000),
    ],
    ids=["as it is", "the voice too", "off", "long"],
)
def test_how_soon_the_answer_starts(asr: float, llm: float, tts: float, vad: VadSettings) -> None:
    async def story(device: Device) -> None:
        device.asr.takes_s, device.llm.takes_s, device.tts.takes_s = asr, llm, tts
        await device.ask()
        await asyncio.sleep(1)
        assert device.events() == ONE_ANSWER
        hangover = HANGOVER_S if vad.hangover_ms == 500 else 1.024
        expected = {
            (True, False): max(hangover, PAUSE_S + asr + llm) + tts,
            (True, True): max(hangover, PAUSE_S + asr + llm + tts),
            (False, False): hangover + asr + llm + tts,
        }[vad.speculate, vad.speculate_tts]
        assert device.first_audio_s == pytest.approx(expected, abs=SOON_S)
        assert device.llm.questions == ["What time is it?"]
        assert len(device.asr.asked) == 1
        assert device.tts.spoken == ["It is noon.", "Enjoy."]

    in_time(story, vad)


def test_nothing_is_sent_before_the_utterance_is_over() -> None:
    async def story(device: Device) -> None:
        device.asr.takes_s = device.llm.takes_s = device.tts.takes_s = 0.01
        await device.command(StartChat())
        await device.say(SPOKEN_S)
        await device.pause(HANGOVER_S - FRAME_S)
        assert device.llm.asked
        assert device.tts.spoken == ["It is noon."]
        assert device.seen == []
        assert device.session.phase is Phase.LISTENING
        assert not device.session._history.in_turn
        await device.pause(FRAME_S)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert device.events()[:2] == ["EndVad", "ASR"]
        await asyncio.sleep(1)
        assert device.events() == ONE_ANSWER

    in_time(story, VadSettings(adaptive=False, speculate_tts=True))


def test_the_record_tells_what_was_saved() -> None:
    async def story(device: Device) -> None:
        await device.ask()
        marks = device.record.marks
        after = {mark: at - device.quiet_since for mark, at in marks.items()}
        assert after[Mark.GUESSED] == after[Mark.ASR_REQUEST] == pytest.approx(PAUSE_S, abs=SOON_S)
        assert after[Mark.LLM_REQUEST] == pytest.approx(PAUSE_S + 0.1, abs=SOON_S)
        assert after[Mark.SENTENCE] == pytest.approx(PAUSE_S + 0.2, abs=SOON_S)
        assert after[Mark.DECIDED] == pytest.approx(HANGOVER_S, abs=SOON_S)
        assert after[Mark.TTS_REQUEST] == pytest.approx(HANGOVER_S, abs=SOON_S)
        assert device.record.discarded == 0
        assert device.record.stages()["overhead"] == pytest.approx(0, abs=1)

    in_time(story)


def test_a_submit_in_the_pause_takes_what_was_begun() -> None:
    async def story(device: Device) -> None:
        await device.command(StartChat())
        await device.say(SPOKEN_S)
        await device.pause(PAUSE_S + 2 * FRAME_S)
        await device.command(Submit())
        await asyncio.sleep(2)
        assert device.events() == ONE_ANSWER
        assert len(device.asr.asked) == len(device.llm.asked) == 1
        assert device.first_audio_s == pytest.approx(PAUSE_S + 0.3, abs=SOON_S)

    in_time(story)


def test_frames_that_stop_in_the_pause_take_it_too() -> None:
    async def story(device: Device) -> None:
        await device.ask(PAUSE_S)
        await asyncio.sleep(20)
        assert device.events() == ONE_ANSWER
        assert len(device.asr.asked) == len(device.llm.asked) == 1

    in_time(story)


def test_a_question_that_sounds_finished_is_answered_sooner() -> None:
    """Of the transcript, not of the silence that has come by then: the microphone may send half a second at a time."""

    async def story(device: Device) -> None:
        device.asr.takes_s = device.llm.takes_s = 0.05
        await device.ask()
        assert device.first_audio_s == pytest.approx(0.352 + 0.1, abs=SOON_S)
        assert device.events() == ONE_ANSWER

    async def in_large_frames(device: Device) -> None:
        device.asr.takes_s = device.llm.takes_s = 0.05
        await device.command(StartChat())
        await device.say(SPOKEN_S)
        await asyncio.sleep(0.48)
        await device.audio(silence(0.48))
        await asyncio.sleep(3)
        assert device.first_audio_s == pytest.approx(0.48 + 0.05 + 0.05 + 0.1, abs=SOON_S)
        assert device.events() == ONE_ANSWER

    in_time(story, VadSettings(min_hangover_ms=350))
    in_time(in_large_frames, VadSettings(min_hangover_ms=350))


def test_who_is_not_done_is_given_time() -> None:
    async def story(device: Device) -> None:
        device.asr.texts = ["Turn on the light in the kitchen and", "Turn on the light in the kitchen and the hall."]
        await device.command(StartChat())
        await device.say(SPOKEN_S)
        await device.pause(0.8)
        await device.say(SPOKEN_S)
        await device.pause(3)
        assert device.texts == ["Turn on the light in the kitchen and the hall."]
        assert device.first_audio_s == pytest.approx(0.352 + 0.1, abs=0.1)

    async def who_says_no_more(device: Device) -> None:
        device.asr.texts = ["Turn on the light in the kitchen and"]
        await device.ask()
        assert device.first_audio_s == pytest.approx(1.024 + 0.1, abs=SOON_S)

    in_time(story, VadSettings(min_hangover_ms=350))
    in_time(who_says_no_more, VadSettings(min_hangover_ms=350))


@pytest.mark.parametrize(("language", "after"), [("", 1.024), ("de", 0.352)])
def test_what_sounds_finished_depends_on_the_language(language: str, after: float) -> None:
    async def story(device: Device) -> None:
        device.session = Session("board", replace(device.services, language=language))
        board = ReadingBoard(device.session)
        device.command, device.audio, device.seen = board.command, board.audio, board.seen
        await board.connect()
        device.asr.texts = ["Wie komme ich da um."]
        device.asr.takes_s = device.llm.takes_s = 0.05
        await device.ask()
        assert device.first_audio_s == pytest.approx(after + 0.1, abs=SOON_S)
        await board.disconnect()

    in_time(story, VadSettings(min_hangover_ms=350))


def test_clients_that_submit_are_not_guessed_at() -> None:
    async def story(device: Device) -> None:
        outbox = Outbox()
        await device.session.attach(outbox, LinkParameters(reconnect=True))
        await device.session.command(outbox, StartChat())
        for pcm in (speech(0.96), silence(0.96), speech(0.96), silence(0.96)):
            await device.session.audio(outbox, pcm)
            await asyncio.sleep(1)
        assert device.asr.asked == []
        await device.session.command(outbox, Submit())
        await asyncio.sleep(0.5)
        assert len(device.asr.asked) == len(device.llm.asked) == 1

    in_time(story)


def test_audio_that_vad_has_not_judged_yet_may_be_speech() -> None:
    async def story(device: Device) -> None:
        await device.ask(PAUSE_S + 2 * FRAME_S)
        device.vad.gate = asyncio.Event()
        feeding = asyncio.create_task(device.audio(speech(0.48)))
        await asyncio.sleep(0.01)
        await device.command(Submit())
        device.vad.gate.set()
        await feeding
        await asyncio.sleep(3)
        assert device.events() == ONE_ANSWER
        assert len(device.asr.pcm) == 2
        assert len(device.asr.pcm[1]) > len(device.asr.pcm[0])

    in_time(story)


# --- speech that resumes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [PAUSE_S + FRAME_S, PAUSE_S + 0.16, HANGOVER_S - FRAME_S])
def test_speech_that_resumes_leaves_nothing_of_it(gap: float) -> None:
    """While it is recognised, while the model thinks, and when the first sentence is being synthesised."""

    async def story(device: Device) -> None:
        device.tools.offer("light")
        call = Step("Wait. ", "", "tool_calls", (ToolCall("c1", "light", "{}"),))
        device.llm.steps = [call if gap > 0.3 else Step("Fine.", "", "stop"), Step("Fine.", "", "stop")]
        device.asr.texts = ["Turn it on", "Turn it on when I'm home."]
        device.tts.takes_s = 5
        await device.command(StartChat())
        await device.say(SPOKEN_S)
        await device.pause(gap)
        await device.say(FRAME_S)
        await asyncio.sleep(0)
        assert device.at_work == 0
        assert device.seen == []
        device.tts.takes_s = 0.1
        await device.say(SPOKEN_S)
        await device.pause(2)
        assert device.texts == ["Turn it on when I'm home."]
        assert device.spoken == ["Fine."]
        assert device.tools.called == []
        assert device.llm.questions[-1] == "Turn it on when I'm home."
        assert [message["role"] for message in device.llm.messages[-1]] == ["system", "user"]
        assert device.record.discarded == 1
        assert len(device.asr.pcm[-1]) > len(device.asr.pcm[0]) + len(speech(SPOKEN_S))

    in_time(story, VadSettings(adaptive=False, speculate_tts=True))


def test_who_speaks_slowly_does_not_cost_a_request_for_each_pause() -> None:
    async def story(device: Device) -> None:
        device.asr.takes_s = device.llm.takes_s = 0.01
        await device.command(StartChat())
        for _ in range(TEXTS_AHEAD + 4):
            await device.say(0.32)
            await device.pause(PAUSE_S + 0.1)
        assert len(device.asr.asked) == TEXTS_AHEAD + 3  # and one each three seconds for an interim text
        assert len(device.llm.asked) == ANSWERS_AHEAD
        await device.say(SPOKEN_S)
        await device.pause(2)
        assert device.events()[-7:] == ONE_ANSWER
        assert len(device.llm.asked) == ANSWERS_AHEAD + 1

    in_time(story)


# --- what is taken over ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("llm_s", [0.01, 1.0])
def test_tools_run_once_and_only_when_the_utterance_is_over(llm_s: float) -> None:
    async def story(device: Device) -> None:
        device.tools.offer("light")
        device.llm.takes_s, device.asr.takes_s = llm_s, 0.01
        device.llm.steps = [Step("", "", "tool_calls", (ToolCall("c1", "light", "{}"),)), Step("Done.", "", "stop")]
        await device.command(StartChat())
        await device.say(SPOKEN_S)
        await device.pause(HANGOVER_S - FRAME_S)
        assert device.llm.asked
        assert device.tools.called == []
        await device.pause(4)
        assert device.tools.called == [("light", {})]
        assert device.spoken == ["Done."]
        assert len(device.llm.asked) == 2
        roles = [message["role"] for message in device.llm.messages[-1]]
        assert roles == ["system", "user", "assistant", "tool"]

    in_time(story)


def test_a_request_that_would_be_another_now_is_made_again() -> None:
    """A tool that outlived its turn says what it did, or the tools are others."""

    async def late(device: Device) -> None:
        calls = device.session._history.add_step("", [ToolCall("c1", "light", "{}")])
        device.session._history.commit()
        device.llm.takes_s = 5
        await device.ask(PAUSE_S)
        await asyncio.sleep(0.15)
        device.session._history.add_result(calls[0].id, "The light is on.")
        device.llm.takes_s = 0.1
        await device.pause(2)

    async def story(device: Device) -> None:
        device.tools.offer("light")
        device.session._history.begin_turn("Light!")
        await late(device)
        assert len(device.llm.asked) == 2
        assert "The light is on." in str(device.llm.messages[1])
        assert device.events() == ONE_ANSWER
        device.llm.takes_s = 5
        await device.ask(PAUSE_S)
        await asyncio.sleep(0.15)
        device.tools.offer("clock")
        device.llm.takes_s = 0.1
        await device.pause(2)
        assert device.llm.cancelled == 2
        assert device.events() == ONE_ANSWER * 2

    in_time(story)


def test_nothing_understood_ends_the_turn() -> None:
    async def story(device: Device) -> None:
        device.asr.texts = ["(noise)"]
        await device.ask()
        assert device.events() == ["EndVad", "EndResponse"]
        assert len(device.asr.asked) == 1
        assert device.llm.asked == []

    in_time(story)


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [Stage.ASR, Stage.LLM])
@pytest.mark.parametrize(
    "error",
    [
        BackendError(Stage.ASR, ErrorKind.SERVER, "no"),
        BackendError(Stage.ASR, ErrorKind.INTERNAL, "no"),
        BackendError(Stage.ASR, ErrorKind.BAD_ANSWER, "no"),
        ZeroDivisionError("a fault of ours"),
        asyncio.CancelledError(),
    ],
    ids=["server", "internal", "bad answer", "fault", "called off"],
)
def test_what_fails_ahead_is_tried_in_the_ordinary_way(stage: Stage, error: BaseException) -> None:
    async def story(device: Device) -> None:
        back: Back = getattr(device, stage.value)
        back.errors = [error]
        await device.ask()
        assert device.events() == ONE_ANSWER
        assert len(back.asked) == 2

    in_time(story)


@pytest.mark.parametrize("stage", [Stage.ASR, Stage.LLM])
def test_a_key_that_is_refused_is_not_tried_twice(stage: Stage) -> None:
    async def story(device: Device) -> None:
        back: Back = getattr(device, stage.value)
        back.errors = [BackendError(stage, ErrorKind.AUTH, "no")]
        await device.ask()
        assert device.events()[-4:] == ["Action", "StartAudio", "EndAudio", "EndResponse"]
        assert len(back.asked) == 1

    in_time(story)


def test_what_fails_after_the_end_of_speech_is_the_turns_own_failure() -> None:
    async def story(device: Device) -> None:
        device.asr.takes_s, device.asr.errors = 1, [NO]
        await device.ask()
        assert device.events() == ["EndVad", "Action", "StartAudio", "EndAudio", "EndResponse"]
        assert len(device.asr.asked) == 1

    in_time(story)


def test_a_model_that_refuses_the_messages_gets_simpler_ones() -> None:
    async def story(device: Device) -> None:
        device.llm.errors = [BackendError(Stage.LLM, ErrorKind.REFUSED, "bad messages", status=400)]
        await device.ask()
        assert device.events() == ONE_ANSWER
        assert len(device.llm.messages) == 2
        assert device.llm.messages[0] != device.llm.messages[1]

    in_time(story)


def test_a_voice_that_fails_ahead_is_asked_once_more() -> None:
    async def story(device: Device) -> None:
        device.asr.takes_s = device.llm.takes_s = 0.01
        device.tts.errors = [BackendError(Stage.TTS, ErrorKind.SERVER, "no")]
        await device.ask()
        assert device.spoken == ["It is noon.", "Enjoy."]
        assert device.tts.spoken.count("It is noon.") == 2

    in_time(story, VadSettings(adaptive=False, speculate_tts=True))


# --- whatever comes in between ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [PAUSE_S, PAUSE_S + 0.128, PAUSE_S + 0.224])
@pytest.mark.parametrize("what", ["StartChat", "Text", "disconnect", "connect"])
def test_an_interruption_in_the_pause_ends_it(after: float, what: str) -> None:
    async def story(device: Device) -> None:
        device.tts.takes_s = 5
        await device.ask(after)
        await asyncio.sleep(0.01)
        assert device.at_work == 1
        device.asr.takes_s = device.llm.takes_s = device.tts.takes_s = 0.5
        await device.cut_in(what, "How are you?")
        await asyncio.sleep(0.2)
        assert device.asr.running == device.tts.running == 0
        assert device.llm.running == (what == "Text")
        assert device.seen == ([] if what != "Text" else [device.seen[0]])
        if what == "Text":
            await asyncio.sleep(3)
            assert device.events() == ["EndVad", *ONE_ANSWER[2:]]
            assert device.llm.questions[-1] == "How are you?"
        if what == "StartChat":
            await device.say(SPOKEN_S)
            await device.pause(4)
            assert device.events() == ONE_ANSWER

    in_time(story, VadSettings(adaptive=False, speculate_tts=True))


def test_the_audio_of_an_utterance_goes_with_its_turn() -> None:
    """The next one may be a day away, and a minute is 2 MB."""

    async def story(device: Device) -> None:
        await device.ask(PAUSE_S)
        assert device.session._listening is not None
        audio = weakref.ref(device.session._listening._ear)
        await device.pause(1)
        await asyncio.sleep(3)
        assert device.events() == ONE_ANSWER
        assert audio() is None

    gc.disable()
    try:
        in_time(story, VadSettings(adaptive=False, speculate_tts=True))
    finally:
        gc.enable()


def test_who_does_not_heed_the_cancellation_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    async def story(device: Device) -> None:
        async def stubborn(pcm: bytes) -> Transcript:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(100)
            await asyncio.sleep(60)
            return Transcript("Too late.")

        real, device.asr.transcribe = device.asr.transcribe, stubborn  # type: ignore[method-assign]
        await device.ask(PAUSE_S + FRAME_S)
        device.asr.transcribe = real  # type: ignore[method-assign]
        await device.say(SPOKEN_S)
        await device.pause(6)
        await asyncio.sleep(200)
        assert device.texts == ["What time is it?"]
        assert device.llm.questions == ["What time is it?"]
        assert device.events() == ONE_ANSWER

    with caplog.at_level(logging.ERROR):
        in_time(story)
    assert [record.message for record in caplog.records if "ignores its cancellation" not in record.message] == []
    assert caplog.records


def test_an_answered_turn_runs_no_tool_any_more() -> None:
    """Its deadline has passed, and the model's client does not heed its cancellations."""

    async def story(device: Device) -> None:
        device.tools.offer("light")

        async def stubborn(*_: object) -> AsyncGenerator[LlmEvent, None]:
            for _second in range(60):
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(1)
            yield Step("", "", "tool_calls", (ToolCall("c1", "light", "{}"),))

        device.llm.stream = stubborn  # type: ignore[assignment, method-assign]
        await device.command(Text("Light!"))
        await asyncio.sleep(30)
        told = device.events()
        assert told[-1] == "EndResponse"
        await asyncio.sleep(100)
        assert device.events() == told
        assert device.tools.called == []

    in_time(story, timeouts=Timeouts(turn_s=2, first_byte_s=100))


# --- interim texts ---------------------------------------------------------------------------------------------------


def test_a_pause_takes_the_place_of_an_interim_recognition() -> None:
    async def story(device: Device) -> None:
        device.asr.texts = ["One two", "One two three four", "One two three four five."]
        await device.command(StartChat())
        await device.say(3.2)
        assert device.asr.running == 1  # it began after 3 s, and is cut short
        await device.pause(PAUSE_S)
        await asyncio.sleep(0.001)
        assert device.asr.cancelled == 1
        assert device.asr.running == 1
        await device.say(SPOKEN_S)  # resumes at once: the text is shown since one is due
        assert device.texts == ["One two three four"]
        assert device.llm.asked == []
        assert device.asr.running == 0
        await device.pause(2)
        assert device.texts == ["One two three four", "One two three four five."]

    async def slow(device: Device) -> None:
        device.asr.takes_s = 0.5
        await story(device)

    in_time(slow)


def test_an_interim_text_that_is_due_comes_from_the_pause_that_is_over() -> None:
    async def story(device: Device) -> None:
        device.asr.takes_s = 0.01
        device.asr.texts = ["One", "One two", "One two three."]
        await device.command(StartChat())
        await device.say(2.72)
        await device.pause(PAUSE_S + FRAME_S)
        assert device.texts == []
        await device.say(FRAME_S)
        await asyncio.sleep(0.001)
        assert device.texts == ["One"]
        assert len(device.asr.asked) == 1
        assert device.llm.running == 0
        await device.pause(2)
        assert device.texts == ["One", "One two"]

    in_time(story)
