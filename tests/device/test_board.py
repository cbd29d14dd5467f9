"""The firmware's rules as a table: states, the watchdog, the play-out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from echokit_py.device.board import Firmware, Outcome, Pause, State, TurnOver
from firmware_protocol import events as e
from firmware_protocol.link import LinkParameters

BOARD = LinkParameters(opus=True, vowel=True, stream_asr=True)
PCM = LinkParameters(stream_asr=True)
SUBMIT = LinkParameters()
ANSWERED = TurnOver(Outcome.ANSWERED)

Move = e.ServerEvent | str


def play(moves: list[Move], link: LinkParameters = BOARD) -> tuple[Firmware, list[Any]]:
    """Make the moves at time 0: an event is taken, a word is a method's name. Returns the effects of the events."""
    firmware = Firmware(link)
    effects = [getattr(firmware, move)() if isinstance(move, str) else firmware.take(move, 0.0) for move in moves]
    return firmware, effects


STATES: list[tuple[str, list[Move], State, bool]] = [
    ("after power-on", [], State.READY, False),
    ("hello changes nothing", [e.HelloStart(), e.HelloChunk(b"12"), e.HelloEnd()], State.READY, False),
    ("speech", ["start_chat"], State.LISTENING, True),
    ("interim text", ["start_chat", e.ASR("a")], State.LISTENING, True),
    ("end of speech", ["start_chat", e.EndVad()], State.WAITING, False),
    ("end of speech without speech", [e.EndVad()], State.READY, False),
    ("end of speech twice", ["start_chat", e.EndVad(), e.StartAudio("a"), e.EndVad()], State.SPEAKING, False),
    ("submitted", ["start_chat", "submit"], State.WAITING, False),
    ("typed", ["ask"], State.WAITING, False),
    ("typed while speaking", ["start_chat", "ask"], State.WAITING, False),
    ("a sentence", ["start_chat", e.EndVad(), e.StartAudio("a")], State.SPEAKING, False),
    ("a sentence without EndVad: it goes on sending", ["start_chat", e.StartAudio("a")], State.SPEAKING, True),
    ("status", ["start_chat", e.EndVad(), e.Action("think")], State.WAITING, False),
    ("newer events are ignored", ["start_chat", e.Choices("a", ()), e.DisplayText("a")], State.LISTENING, True),
    ("the end alone stops the sending", ["start_chat", e.EndResponse()], State.LISTENING, False),
    ("the next turn", ["start_chat", e.EndResponse(), "start_chat"], State.LISTENING, True),
    ("forgotten", ["start_chat", e.EndVad(), "abandon"], State.READY, False),
]


@pytest.mark.parametrize(("moves", "state", "sending"), [row[1:] for row in STATES], ids=[row[0] for row in STATES])
def test_states(moves: list[Move], state: State, sending: bool) -> None:
    firmware, _ = play(moves)
    assert (firmware.state, firmware.sending) == (state, sending)


def test_only_the_end_of_the_response_ends_a_turn() -> None:
    moves: list[Move] = [
        "start_chat",
        e.ASR("a"),
        e.EndVad(),
        e.ASR("a"),
        e.Action("x"),
        e.StartAudio("b"),
        e.EndResponse(),
    ]
    _, effects = play(moves)
    assert [effect for effect in effects if isinstance(effect, TurnOver)] == [ANSWERED]
    assert effects[-1] == ANSWERED


@pytest.mark.parametrize(
    "moves", [[], ["start_chat", "abandon"], ["start_chat", e.EndResponse()]], ids=["before", "given up", "over"]
)
def test_an_end_without_a_turn_ends_nothing(moves: list[Move]) -> None:
    firmware, effects = play([*moves, e.EndResponse()])
    assert effects[-1] is None
    assert firmware.state is State.LISTENING


def sent(firmware: Firmware, *seconds: float) -> list[Any]:
    return [firmware.sent(duration) for duration in seconds]


def test_ten_seconds_of_audio_without_text_and_the_board_gives_up() -> None:
    firmware = Firmware(BOARD)
    firmware.start_chat()
    assert sent(firmware, 5, 4.99) == [None, None]
    assert sent(firmware, 0.01) == [TurnOver(Outcome.GAVE_UP)]
    assert (firmware.state, firmware.sending) == (State.READY, False)


@pytest.mark.parametrize(
    "renew", [lambda f: f.take(e.ASR(""), 0.0), lambda f: f.start_chat()], ids=["ASR", "StartChat"]
)
def test_text_and_a_new_turn_wind_the_watchdog_up(renew: Callable[[Firmware], object]) -> None:
    firmware = Firmware(BOARD)
    firmware.start_chat()
    assert sent(firmware, 9.9) == [None]
    renew(firmware)
    assert sent(firmware, 9.9, 0.2) == [None, TurnOver(Outcome.GAVE_UP)]


@pytest.mark.parametrize("event", [e.Action("think"), e.HelloEnd(), e.DisplayText("x")])
def test_nothing_else_does(event: e.ServerEvent) -> None:
    firmware = Firmware(BOARD)
    firmware.start_chat()
    sent(firmware, 9.9)
    firmware.take(event, 0.0)
    assert sent(firmware, 0.2) == [TurnOver(Outcome.GAVE_UP)]


def test_without_server_vad_there_is_no_watchdog() -> None:
    firmware = Firmware(SUBMIT)
    firmware.start_chat()
    assert sent(firmware, 60) == [None]
    assert firmware.sending


CHUNK = e.AudioChunk(bytes(8000))  # 0.25 s of PCM; whatever its size, 0.12 s of Opus
VOWEL = e.AudioChunkWithVowel(bytes(8000), 1)
PLAY_OUT: list[tuple[str, LinkParameters, list[tuple[float, e.ServerEvent]], float]] = [
    ("nothing to play", BOARD, [], 7.0),
    ("one packet", BOARD, [(5.0, CHUNK)], 5.12),
    ("as it comes, so played while it comes", BOARD, [(5.0, CHUNK), (5.05, VOWEL), (5.1, CHUNK)], 5.36),
    ("it ran dry in between", BOARD, [(5.0, CHUNK), (6.0, CHUNK)], 6.12),
    ("PCM by its length", PCM, [(5.0, CHUNK), (5.0, VOWEL)], 5.5),
]


@pytest.mark.parametrize(("link", "chunks", "until"), [row[1:] for row in PLAY_OUT], ids=[row[0] for row in PLAY_OUT])
def test_no_event_is_taken_before_the_sentence_has_been_played(
    link: LinkParameters, chunks: list[tuple[float, e.ServerEvent]], until: float
) -> None:
    firmware = Firmware(link)
    for at, chunk in chunks:
        assert firmware.take(chunk, at) is None
    effect = firmware.take(e.EndAudio(), 7.0)
    assert isinstance(effect, Pause)
    assert max(effect.until, 7.0) == pytest.approx(max(until, 7.0))
    assert effect.until == pytest.approx(until if chunks else 0.0)


def test_the_second_sentence_follows_the_first() -> None:
    firmware = Firmware(PCM)
    firmware.take(CHUNK, 1.0)
    assert firmware.take(e.EndAudio(), 1.0) == Pause(1.25)
    firmware.take(CHUNK, 1.25)
    assert firmware.take(e.EndAudio(), 1.25) == Pause(1.5)


def test_playing_can_take_no_time() -> None:
    firmware = Firmware(PCM, plays=False)
    firmware.take(CHUNK, 1.0)
    assert firmware.take(e.EndAudio(), 1.0) is None
