"""The simulated board against a scripted server: pacing, watchdog, play-out, many turns, and how connections end."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from echokit_py.audio.opus import OpusEncoder
from echokit_py.device.board import Outcome, State
from echokit_py.device.client import QUEUE_EVENTS, Board, converse
from echokit_py.device.clock import MonotonicClock
from echokit_py.device.errors import DeviceError
from firmware_protocol import events as e
from firmware_protocol.link import LinkParameters
from tests.device.manual_clock import ManualClock
from tests.device.scripted import Peer, scripted, settle

PCM_LINK = LinkParameters(stream_asr=True)
SUBMIT_LINK = LinkParameters()
SPEECH = b"\0\x20" * 16_000  # a second, all of it loud
SENTENCE = bytes(range(256)) * 25  # 0.2 s
NO_END_S = 100_000.0


def answer(text: str, audio: bytes = SENTENCE) -> list[e.ServerEvent]:
    return [e.StartAudio(text), e.AudioChunk(audio), e.EndAudio()]


async def answer_everything(peer: Peer) -> None:
    """Answers every utterance (after a second of audio), Submit and Text with a numbered sentence."""
    for number in itertools.count(1):
        command = await peer.receive_command()
        if command == e.StartChat() and "stream_asr=true" in peer.path:
            await peer.receive_until(peer.audio_bytes + 32_000)
            await peer.send(e.ASR("wha"), e.EndVad(), e.ASR(f"what {number}"))
        elif command == e.StartChat():
            assert await peer.receive_command() == e.Submit()
            await peer.send(e.ASR(f"what {number}"))
        await peer.send(*answer(f"Answer {number}."), e.EndResponse())


async def test_a_spoken_question_is_answered() -> None:
    taken: list[tuple[float, e.ServerEvent]] = []

    async def script(peer: Peer) -> None:
        await peer.send(e.HelloStart(), e.HelloChunk(b"hello!"), e.HelloEnd())
        await answer_everything(peer)

    async with scripted(script) as (url, peers):
        conversation = await converse(
            url,
            device_id="a1b2",
            pcm=SPEECH,
            link=PCM_LINK,
            realtime=False,
            on_event=lambda at, event: taken.append((at, event)),
        )
    assert conversation.outcome is Outcome.ANSWERED
    assert (conversation.asr, conversation.answer) == ("what 1", ("Answer 1.",))
    assert (conversation.audio, conversation.hello, conversation.detail) == (SENTENCE, b"hello!", "")
    assert [event for _, event in conversation.events] == [event for _, event in taken]
    assert conversation.events[0][1] == e.HelloStart()
    assert conversation.events[-1][1] == e.EndResponse()
    times = [at for at, _ in conversation.events]
    assert times == sorted(times)
    assert conversation.end_of_speech_s is not None
    assert conversation.first_audio_s is not None
    assert peers[0].path == "/ws/a1b2?stream_asr=true"
    assert peers[0].received[0] == e.StartChat()


async def test_it_connects_like_a_board() -> None:
    async with scripted(answer_everything) as (url, peers), Board(url, device_id="a1:b2", realtime=False) as board:
        assert board.state is State.READY
        await settle()
        request = peers[0].connection.request
        assert request is not None
        assert request.path == "/ws/a1:b2?opus=true&vowel=true&stream_asr=true"
        assert request.headers["Sec-WebSocket-Extensions"] == "permessage-deflate; client_max_window_bits"


async def test_opus_is_decoded() -> None:
    async def script(peer: Peer) -> None:
        await peer.receive_until(32_000)
        packet = OpusEncoder().encode(bytes(3840))
        await peer.send(e.EndVad(), e.StartAudio("a"), e.AudioChunkWithVowel(packet, 1), e.EndAudio(), e.EndResponse())

    async with scripted(script) as (url, _):
        conversation = await converse(url, device_id="a", pcm=SPEECH, realtime=False)
    assert len(conversation.audio) == 3840


async def test_several_turns_on_one_connection() -> None:
    async with scripted(answer_everything) as (url, peers):
        async with Board(url, device_id="a", link=PCM_LINK, realtime=False) as board:
            turns = [await board.say(SPEECH), await board.send_text("hi"), await board.say(SPEECH)]
            assert board.state is State.LISTENING
        assert [turn.answer for turn in turns] == [("Answer 1.",), ("Answer 2.",), ("Answer 3.",)]
        assert [turn.asr for turn in turns] == ["what 1", "", "what 3"]
        assert [turn.audio for turn in turns] == [SENTENCE] * 3
        assert all(turn.outcome is Outcome.ANSWERED and turn.first_audio_s is not None for turn in turns)
        commands = [message for message in peers[0].received if not isinstance(message, bytes)]
        assert commands == [e.StartChat(), e.Text("hi"), e.StartChat()]


async def test_with_submit_the_recording_is_sent_and_nothing_more() -> None:
    async with scripted(answer_everything) as (url, peers):
        conversation = await converse(url, device_id="a", pcm=SPEECH[:-1], link=SUBMIT_LINK, realtime=False)
    assert conversation.asr == "what 1"
    sent = peers[0].received
    assert (sent[0], sent[-1]) == (e.StartChat(), e.Submit())
    assert b"".join(message for message in sent if isinstance(message, bytes)) == SPEECH[:-1]


async def test_the_microphone_keeps_to_real_time_and_stops_at_end_vad() -> None:
    clock = ManualClock()
    stop, ended = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.receive_until(16_384 + 3 * 16_384)
        await peer.send(e.EndVad())
        receiving = asyncio.create_task(peer.receive_rest())
        await stop.wait()
        await peer.send(e.EndResponse())
        await ended.wait()
        receiving.cancel()

    async with (
        scripted(script) as (url, peers),
        Board(url, device_id="a", link=PCM_LINK, limit_s=NO_END_S, clock=clock) as board,
    ):
        saying = asyncio.create_task(board.say(SPEECH))
        waits = [await clock.step() for _ in range(2)]
        end_vad = asyncio.create_task(board.wait_for(e.EndVad))
        waits.append(await clock.step())
        assert await end_vad == e.EndVad()
        assert board.state is State.WAITING
        clock.advance(20)
        await settle()
        stop.set()
        turn = await saying
        ended.set()
    assert waits == pytest.approx([0.512] * 3)
    audio = [len(message) for message in peers[0].received if isinstance(message, bytes)]
    assert audio == [1024] * 16 + [16_384] * 3
    assert turn.end_of_speech_s == pytest.approx(0.512)  # the last of the second is in the first long frame
    assert turn.outcome is Outcome.ANSWERED


async def test_without_text_the_board_gives_up_after_ten_seconds_and_tries_again() -> None:
    clock = ManualClock()

    async def script(peer: Peer) -> None:
        await peer.receive_until(10 * 32_000)
        assert await peer.receive_command() == e.StartChat()
        await peer.receive_until(peer.audio_bytes + 16_384)
        await peer.send(e.EndResponse())

    async with (
        scripted(script) as (url, peers),
        Board(url, device_id="a", link=PCM_LINK, limit_s=NO_END_S, clock=clock) as board,
    ):
        saying = asyncio.create_task(board.say(SPEECH))
        await clock.drive(saying)
        turn = await saying
        assert turn.outcome is Outcome.GAVE_UP
        assert "10 s" in turn.detail
        assert board.state is State.READY
        assert turn.ended_s == pytest.approx(19 * 0.512)  # 0.512 s at once, and 19 frames: the first beyond 10 s
        again = await board.say(SPEECH)
        assert again.outcome is Outcome.ANSWERED
    assert sum(message == e.StartChat() for message in peers[0].received) == 2


async def test_no_event_is_taken_while_a_sentence_plays() -> None:
    clock = ManualClock()
    taken: list[e.ServerEvent] = []

    async def script(peer: Peer) -> None:
        await peer.receive_command()
        await peer.send(*answer("One.", bytes(32_000)), e.Action("x"), *answer("Two.", bytes(16_000)), e.EndResponse())
        await peer.receive_rest()

    async with (
        scripted(script) as (url, _),
        Board(
            url,
            device_id="a",
            link=PCM_LINK,
            limit_s=NO_END_S,
            clock=clock,
            on_event=lambda _, event: taken.append(event),
        ) as board,
    ):
        asking = asyncio.create_task(board.send_text("hi"))
        await board.wait_for(e.EndAudio)
        await settle()
        clock.advance(0.99)
        await settle()
        assert [type(event) for event in taken] == [e.StartAudio, e.AudioChunk, e.EndAudio]
        assert board.state is State.SPEAKING
        clock.advance(0.01)
        await board.wait_for(e.EndAudio, 2)
        await settle()
        assert taken[-1] == e.EndAudio()
        assert not asking.done()
        clock.advance(0.5)
        turn = await asking
    assert turn.answer == ("One.", "Two.")
    assert turn.ended_s == pytest.approx(1.5)


async def test_the_server_is_left_to_wait_while_the_board_plays() -> None:
    clock = ManualClock()
    sent = 0
    total = 200  # of 900,000 bytes: far more than the queue and the sockets' buffers hold

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.receive_command()
        await peer.send(*answer("One.", bytes(32_000)))
        for sent in range(1, total + 1):  # noqa: B007 - the test looks at it
            await peer.send(e.Action("x" * 900_000))
        await peer.send(e.EndResponse())

    async with (
        scripted(script) as (url, _),
        Board(url, device_id="a", link=PCM_LINK, limit_s=NO_END_S, clock=clock) as board,
    ):
        asking = asyncio.create_task(board.send_text("hi"))
        await board.wait_for(e.EndAudio)
        before = -1
        while before != sent:
            before = sent
            await settle()
        assert QUEUE_EVENTS < sent < total / 2
        clock.advance(1)
        turn = await asking
    assert sent == total
    assert sum(isinstance(event, e.Action) for _, event in turn.events) == total


async def test_a_turn_without_an_end_is_over_at_the_limit() -> None:
    clock = ManualClock()

    async def script(peer: Peer) -> None:
        await peer.receive_rest()

    async with (
        scripted(script) as (url, _),
        Board(url, device_id="a", link=SUBMIT_LINK, limit_s=30, clock=clock, realtime=False) as board,
    ):
        asking = asyncio.create_task(board.say(SPEECH))
        await clock.drive(asking)
        turn = await asking
        assert turn.outcome is Outcome.TIMED_OUT
        assert turn.ended_s == pytest.approx(30)
        assert "30 s" in turn.detail
        assert board.state is State.READY
        waiting = asyncio.create_task(board.wait_for(e.ASR))
        await clock.drive(waiting)
        with pytest.raises(DeviceError, match="no ASR came"):
            await waiting


async def test_the_connection_closes_in_the_middle() -> None:
    async def script(peer: Peer) -> None:
        await peer.receive_until(1024)
        await peer.send(e.ASR("wha"))
        await peer.connection.close(1001, "going\naway")

    async with (
        scripted(script) as (url, _),
        Board(url, device_id="a", link=PCM_LINK, realtime=False) as board,
    ):
        turn = await board.say(SPEECH)
        assert turn.outcome is Outcome.CLOSED
        assert turn.asr == "wha"
        assert turn.detail == "the connection closed (1001 going away)"
        assert (await board.say(SPEECH)).outcome is Outcome.CLOSED
        assert (await board.send_text("a")).outcome is Outcome.CLOSED
        with pytest.raises(DeviceError, match="1001"):
            await board.send_command(e.StartChat())
        with pytest.raises(DeviceError, match="no EndVad came"):
            await board.wait_for(e.EndVad)


async def test_a_dropped_board_says_no_word() -> None:
    gone: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    async def script(peer: Peer) -> None:
        await peer.receive_rest()
        gone.set_result(peer.connection.close_code)

    async with scripted(script) as (url, _), Board(url, device_id="a", link=PCM_LINK) as board:
        saying = asyncio.create_task(board.say(SPEECH))
        await settle()
        board.drop()
        assert await gone == 1006  # no close frame came
        assert (await saying).outcome is Outcome.CLOSED


async def test_commands_and_audio_can_be_sent_by_hand() -> None:
    async with (
        scripted(answer_everything) as (url, _),
        Board(url, device_id="a", link=PCM_LINK, realtime=False) as board,
    ):
        await board.send_command(e.StartChat())
        await board.send_audio(SPEECH)
        assert await board.wait_for(e.StartAudio) == e.StartAudio("Answer 1.")
        assert board.hello == b""
        await board.wait_for(e.EndResponse)
        turn = await board.send_text("hi")
        assert turn.answer == ("Answer 1.", "Answer 2.")


async def test_a_cancelled_turn_leaves_nothing_behind() -> None:
    async def script(peer: Peer) -> None:
        await peer.receive_rest()

    before = asyncio.all_tasks()
    async with scripted(script) as (url, _):
        async with Board(url, device_id="a", link=PCM_LINK) as board:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await board.say(SPEECH)
        await settle()
    await settle()
    assert asyncio.all_tasks() == before


BAD: dict[str, tuple[bytes | str, str]] = {
    "text": ("hello", "text message"),
    "bin": (bytes.fromhex("81aa417564696f4368756e6b91c40300017f"), "refuses"),
    "unknown": (b"\xa5Bogus", "refuses"),
    "no Opus": (b"\x81\xaaAudioChunk\x91\x91\xcc\xff", "Opus"),
}


@pytest.mark.parametrize(("message", "sentence"), BAD.values(), ids=BAD.keys())
async def test_what_a_board_refuses_fails_the_turn(message: bytes | str, sentence: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.receive_command()
        await peer.connection.send(message)
        await peer.receive_rest()

    async with scripted(script) as (url, _):
        with pytest.raises(DeviceError, match=sentence):
            await converse(url, device_id="a", text="hi", realtime=False)


async def test_the_server_must_not_accept_the_compression_that_a_board_offers() -> None:
    async with scripted(answer_everything, compression="deflate") as (url, _):
        with pytest.raises(
            DeviceError, match="/ws/ accepted permessage-deflate, which a board offers but can't inflate"
        ):
            await converse(url, device_id="a", text="hi")


@pytest.mark.parametrize("question", [{}, {"pcm": b"", "text": ""}])
async def test_one_question_is_asked(question: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="pcm or text"):
        await converse("ws://127.0.0.1:1/ws/", device_id="a", **question)  # type: ignore[arg-type]


async def test_eight_boards_at_once() -> None:
    async def script(peer: Peer) -> None:
        await peer.receive_until(32_000)
        await peer.send(e.EndVad(), *answer(peer.path), e.EndResponse())

    async with scripted(script) as (url, _):
        talks = (converse(url, device_id=f"b{n}", pcm=SPEECH, link=PCM_LINK, realtime=False) for n in range(8))
        conversations = await asyncio.gather(*talks)
    assert [talk.answer for talk in conversations] == [(f"/ws/b{n}?stream_asr=true",) for n in range(8)]


async def test_the_machine_s_clock_goes_on_and_lets_others_work() -> None:
    clock = MonotonicClock()

    async def work() -> None:
        pass

    worked = asyncio.create_task(work())
    started = clock.now()
    await clock.sleep_until(started - 5)
    assert worked.done()
    await clock.sleep_until(started + 0.001)
    assert clock.now() >= started + 0.001
