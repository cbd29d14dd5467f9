"""`echokit-py device`: what it sends, prints and writes, and its exit status."""

from __future__ import annotations

import argparse
import json
import re
import wave
from pathlib import Path
from typing import Any

import pytest

from echokit_py.audio.wav import write_wav
from echokit_py.device.command import add_arguments, run
from echokit_py.errors import ModelError
from firmware_protocol import events as e
from tests.device.scripted import Peer, scripted

SPEECH = b"\0\x20" * 16_000
AUDIO = bytes(range(256)) * 25


def parse(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser)
    return parser.parse_args(arguments)


async def answer(peer: Peer) -> None:
    """One turn of every event, for Text and for Submit."""
    command = await peer.receive_command()
    if command == e.StartChat():
        await peer.receive_command()
    await peer.send(e.HelloChunk(b"ab"), e.ASR("what 你"), e.Choices("Pick", ("a", "b")), e.Action("think\x1b[2J"))
    await peer.send(e.StartAudio("It is."), e.AudioChunkWithVowel(AUDIO, 3), e.AudioChunk(AUDIO), e.EndAudio())
    await peer.send(e.EndResponse())
    await peer.receive_rest()


PLAIN = ("--no-opus", "--no-stream-asr", "--fast")


async def test_json_lines_and_a_summary(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "answer.wav"
    async with scripted(answer) as (url, _):
        status = await run(parse("--url", url, "--text", "hi", "--json", "--out", str(out), *PLAIN))
    assert status == 0
    lines: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    times = [line.pop("t") for line in lines]
    assert times == sorted(times)
    summary = lines.pop()
    assert lines == [
        {"event": "HelloChunk", "bytes": 2},
        {"event": "ASR", "text": "what 你"},
        {"event": "Choices", "message": "Pick", "items": ["a", "b"]},
        {"event": "Action", "action": "think\x1b[2J"},
        {"event": "StartAudio", "text": "It is."},
        {"event": "AudioChunkWithVowel", "bytes": 6400, "vowel": 3},
        {"event": "AudioChunk", "bytes": 6400},
        {"event": "EndAudio"},
        {"event": "EndResponse"},
    ]
    assert isinstance(summary.pop("first_audio_s"), float)
    assert isinstance(summary.pop("end_of_speech_s"), float)
    assert summary == {
        "event": "Summary",
        "outcome": "answered",
        "asr": "what 你",
        "answer": ["It is."],
        "audio_s": 0.4,
    }
    with wave.open(str(out)) as written:
        assert (written.getframerate(), written.getnchannels(), written.getsampwidth()) == (16_000, 1, 2)
        assert written.readframes(100_000) == AUDIO * 2


async def test_lines_for_people_hold_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    async with scripted(answer) as (url, _):
        assert await run(parse("--url", url, "--text", "hi", *PLAIN)) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "Action              action think [2J" in printed
    assert "outcome      answered\nheard        what 你\nanswer       It is.\nfirst audio  0." in printed
    assert "after the end of speech\naudio        0.400 s\n" in printed


@pytest.mark.parametrize("kind", ["wav", "say"])
async def test_speech_from_a_file_or_a_voice(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "question.wav"
    file.write_bytes(write_wav(SPEECH))

    async def speak(text: str) -> bytes:
        assert text == str(file)
        return SPEECH

    async with scripted(answer) as (url, peers):
        assert await run(parse("--url", url, f"--{kind}", str(file), *PLAIN), speak=speak) == 0
    assert b"".join(message for message in peers[0].received if isinstance(message, bytes)) == SPEECH


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ((), "/ws/a1?opus=true&vowel=true&stream_asr=true"),
        (("--no-opus", "--no-vowel", "--no-stream-asr"), "/ws/a1"),
        (("--reconnect", "--no-vowel"), "/ws/a1?reconnect=true&opus=true&stream_asr=true"),
    ],
)
async def test_options_of_the_link(arguments: tuple[str, ...], path: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.receive_command()
        await peer.send(e.EndResponse())

    async with scripted(script) as (url, peers):
        await run(parse("--url", url, "--id", "a1", "--text", "hi", *arguments))
    assert peers[0].path == path


async def test_without_an_id_it_looks_like_a_board_of_its_own() -> None:
    async with scripted(answer) as (url, peers):
        for _ in range(2):
            await run(parse("--url", url, "--text", "hi", *PLAIN))
    ids = [peer.path.removeprefix("/ws/").partition("?")[0] for peer in peers]
    assert len(set(ids)) == 2
    assert all(re.fullmatch("[0-9a-f]{12}", device_id) for device_id in ids)


async def fails(capsys: pytest.CaptureFixture[str], *arguments: str, **kwargs: Any) -> str:
    """Run, expect exit status 1 and one line on standard error; return it."""
    assert await run(parse(*arguments), **kwargs) == 1
    error = capsys.readouterr().err
    assert error.startswith("echokit-py device: ")
    assert error.count("\n") == 1
    return error


async def test_a_turn_without_an_answer_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    async def script(peer: Peer) -> None:
        await peer.receive_command()
        await peer.send(e.EndResponse())

    async with scripted(script) as (url, _):
        assert "without an answer" in await fails(capsys, "--url", url, "--text", "hi", "--json")
        await run(parse("--url", url, "--text", "hi"))
        assert "first audio  none" in capsys.readouterr().out


async def test_a_connection_that_closes_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    async def script(peer: Peer) -> None:
        await peer.connection.close(1011)

    async with scripted(script) as (url, _):
        assert "the connection closed (1011)" in await fails(capsys, "--url", url, "--text", "hi")


NOWHERE = ("--url", "ws://127.0.0.1:1/ws/")


async def test_what_can_t_be_done_is_said_in_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    async def no_voice(text: str) -> bytes:
        raise ModelError("the voice is missing")

    rubbish = tmp_path / "a.wav"
    rubbish.write_text("hello, this is no audio file")
    assert "no connection" in await fails(capsys, *NOWHERE, "--text", "hi")
    assert f"{tmp_path}/none.wav: No such file" in await fails(capsys, *NOWHERE, "--wav", f"{tmp_path}/none.wav")
    assert "not a WAV" in await fails(capsys, *NOWHERE, "--wav", str(rubbish))
    assert "--say needs a voice" in await fails(capsys, *NOWHERE, "--say", "hi")
    assert "the voice is missing" in await fails(capsys, *NOWHERE, "--say", "hi", speak=no_voice)


async def test_the_answer_can_t_be_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    async with scripted(answer) as (url, _):
        error = await fails(capsys, "--url", url, "--text", "hi", "--out", f"{tmp_path}/no/a.wav", *PLAIN)
    assert "no/a.wav: No such file" in error


@pytest.mark.parametrize("arguments", [[], [*NOWHERE], [*NOWHERE, "--text", "a", "--say", "b"], ["--text", "a"]])
def test_one_question_and_a_url_are_needed(arguments: list[str]) -> None:
    with pytest.raises((argparse.ArgumentError, SystemExit)):
        parse(*arguments)
