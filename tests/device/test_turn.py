"""What a turn is made of, and the audio that no board can play."""

from __future__ import annotations

import pytest

from echokit_py.audio.opus import OpusEncoder
from echokit_py.device.board import Outcome
from echokit_py.device.errors import DeviceError
from echokit_py.device.turn import TurnRecorder
from firmware_protocol import events as e
from firmware_protocol.link import LinkParameters

PCM = LinkParameters()
OPUS = LinkParameters(opus=True)


def test_a_turn_of_pcm() -> None:
    recorder = TurnRecorder(PCM)
    given: list[tuple[float, e.ServerEvent]] = [
        (0.1, e.HelloStart()),
        (0.2, e.HelloChunk(b"ab")),
        (0.3, e.HelloChunk(b"cd")),
        (1.0, e.ASR("wha")),
        (2.0, e.ASR("what")),
        (2.5, e.StartAudio("It is.")),
        (2.75, e.AudioChunk(b"1234")),
        (2.8, e.AudioChunkWithVowel(b"56", 3)),
        (3.0, e.StartAudio("So.")),
        (3.5, e.AudioChunk(b"78")),
    ]
    for at, event in given[:5]:
        recorder.take(at, event)
    recorder.speech_ended(2.25)
    for at, event in given[5:]:
        recorder.take(at, event)
    turn = recorder.finish(Outcome.ANSWERED, 4.0)
    assert turn.events == tuple(given)
    assert (turn.outcome, turn.ended_s, turn.detail) == (Outcome.ANSWERED, 4.0, "")
    assert (turn.asr, turn.answer, turn.audio, turn.hello) == ("what", ("It is.", "So."), b"12345678", b"abcd")
    assert (turn.end_of_speech_s, turn.first_audio_s) == (2.25, 0.5)


def test_the_next_turn_begins_afresh_but_keeps_the_wake_sound() -> None:
    recorder = TurnRecorder(PCM)
    recorder.take(0.1, e.HelloChunk(b"ab"))
    recorder.take(0.1, e.ASR("a"))
    recorder.take(0.1, e.AudioChunk(b"ab"))
    recorder.speech_ended(0.1)
    recorder.finish(Outcome.ANSWERED, 1.0)
    turn = recorder.finish(Outcome.CLOSED, 2.0, "why")
    assert (turn.events, turn.asr, turn.answer, turn.audio) == ((), "", (), b"")
    assert (turn.end_of_speech_s, turn.first_audio_s, turn.detail) == (None, None, "why")
    assert turn.hello == recorder.hello == b"ab"


def test_a_new_wake_sound_replaces_the_old_one() -> None:
    recorder = TurnRecorder(PCM)
    for event in (e.HelloStart(), e.HelloChunk(b"ab"), e.HelloEnd(), e.HelloStart(), e.HelloChunk(b"cd")):
        recorder.take(0.0, event)
    assert recorder.hello == b"cd"


def test_opus_is_decoded_each_sentence_from_a_fresh_state() -> None:
    noise = bytes((i * i * 7919) % 251 for i in range(3840))
    recorder = TurnRecorder(OPUS)
    for text in ("a", "b"):
        encoder = OpusEncoder()
        recorder.take(0.0, e.StartAudio(text))
        for _ in range(3):
            recorder.take(0.0, e.AudioChunk(encoder.encode(noise)))
    audio = recorder.finish(Outcome.ANSWERED, 1.0).audio
    assert len(audio) == 6 * 3840
    assert audio[: 3 * 3840] == audio[3 * 3840 :]
    assert any(audio)


@pytest.mark.parametrize(
    ("link", "event", "sentence"),
    [
        (PCM, e.HelloChunk(bytes(2049)), "2049"),
        (PCM, e.AudioChunk(bytes(32_002)), "32002"),
        (PCM, e.AudioChunkWithVowel(bytes(3), 1), "whole samples"),
        (OPUS, e.AudioChunk(b""), "isn't Opus"),
        (OPUS, e.AudioChunk(b"\xff" * 40), "isn't Opus"),
        (OPUS, e.AudioChunk(b"\x08"), "320 samples"),  # an empty packet of 20 ms
    ],
    ids=["long hello", "long PCM", "half a sample", "no packet", "rubbish", "20 ms"],
)
def test_what_no_board_can_play_is_an_error(link: LinkParameters, event: e.ServerEvent, sentence: str) -> None:
    with pytest.raises(DeviceError, match=sentence):
        TurnRecorder(link).take(0.0, event)


@pytest.mark.parametrize("event", [e.HelloChunk(bytes(2048)), e.AudioChunk(bytes(32_000)), e.AudioChunk(b"")])
def test_the_largest_that_a_board_takes(event: e.HelloChunk | e.AudioChunk) -> None:
    recorder = TurnRecorder(PCM)
    recorder.take(0.0, event)
    turn = recorder.finish(Outcome.ANSWERED, 1.0)
    assert turn.events == ((0.0, event),)
    assert turn.hello + turn.audio == event.data
