"""`check`: the file is judged, then each back end is tried; each fault is a line with file, line and key."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from echokit_py import cli
from echokit_py.commands.check import check
from tests.fakes.chat_server import ChatServer, status
from tests.fakes.faults import Fault
from tests.fakes.responses_server import ResponsesServer
from tests.fakes.speech_server import SpeechServer

CONFIG = """\
[asr]
platform = "openai"
url = "{asr}"
api_key = "right"
model = "whisper-1"
[tts]
platform = "openai"
url = "{tts}"
api_key = "{key}"
model = "tts-1"
[llm]
platform = "openai_chat"
url = "{llm}"
model = "gpt"
"""


async def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], **values: str) -> tuple[int, list[str]]:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG.format(**values))
    code = await check(path, offline=False)
    return code, capsys.readouterr().out.replace(str(tmp_path), "").splitlines()


async def test_all_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with SpeechServer(key="right") as speech, ChatServer() as chat:
        code, lines = await run(tmp_path, capsys, asr=speech.asr_url, tts=speech.tts_url, llm=chat.url, key="right")
    assert code == 0
    assert lines[0] == "/config.toml: the configuration is valid"
    assert sorted(line.split(":")[0] for line in lines[1:]) == ["asr", "llm", "tts"]


async def test_the_responses_api_is_tried_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with SpeechServer(key="right") as speech, ResponsesServer() as llm:
        path = tmp_path / "config.toml"
        urls = {"asr": speech.asr_url, "tts": speech.tts_url, "llm": llm.url}
        path.write_text(CONFIG.replace("openai_chat", "openai_responses").format(**urls, key="right"))
        assert await check(path, offline=False) == 0
        assert "model gpt answers" in capsys.readouterr().out
        assert (len(llm.requests), llm.faults) == (1, [])


async def test_each_fault_names_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with SpeechServer(key="right") as speech, ChatServer(status(404, "no such model")) as chat:
        speech.asr_fault = Fault.HTML
        code, lines = await run(
            tmp_path, capsys, asr=speech.asr_url, tts=speech.tts_url, llm=chat.url, key="wrong-secret"
        )
    assert code == 1
    faults = sorted(line for line in lines if line.startswith("/config.toml:") and "valid" not in line)
    assert [fault.split(": ")[:2] for fault in faults] == [
        ["/config.toml:14", "llm.model"],
        ["/config.toml:3", "asr.url"],
        ["/config.toml:9", "tts.api_key"],
    ]
    assert "wrong-secret" not in "".join(lines)


async def test_a_dead_server_is_a_fault_of_its_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with SpeechServer() as speech, ChatServer() as chat:
        llm = chat.url
        await chat.kill()
        code, lines = await run(tmp_path, capsys, asr=speech.asr_url, tts=speech.tts_url, llm=llm, key="")
    assert code == 1
    assert any(line.startswith("/config.toml:13: llm.url: llm connect: ") for line in lines)


def test_offline_contacts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG.format(asr="http://127.0.0.1:1", tts="http://127.0.0.1:1", llm="http://127.0.0.1:1", key=""))
    assert cli.main(["check", str(path), "--offline"]) == 0
    assert "is valid" in capsys.readouterr().out


def test_mistakes_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.toml"
    path.write_text('adr = "0.0.0.0:1"\n' + CONFIG)
    assert cli.main(["check", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"{path}:1: adr: ") and "addr" in line for line in lines)


def test_a_missing_voice_names_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        '[asr]\nplatform = "faster_whisper"\nmodel = "no-such-model"\n[tts]\nplatform = "piper"\n'
        'voice = "no-such-voice"\n[llm]\nplatform = "openai_chat"\nurl = "http://127.0.0.1:1/v1"\n'
    )
    assert asyncio.run(check(path, offline=False)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"{path}:3: asr.model: ") for line in lines)
    assert any(line.startswith(f"{path}:6: tts.voice: ") for line in lines)
