"""The composition root: the hello sound, and what is told when a provider isn't there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from echokit_py.audio.wav import write_wav
from echokit_py.config.settings import McpServer, OpenAiAsr, OpenAiChatLlm, OpenAiTts, PluginSettings, Settings
from echokit_py.errors import ModelError
from echokit_py.mcp.base import State
from echokit_py.session.apology_texts import WORDINGS
from echokit_py.session.journal import TurnRecord
from echokit_py.tools.base import NoTools, ToolSource
from echokit_py.tools.registry import LocalTools
from echokit_py.wiring import HELLO_LIMIT_BYTES, load_hello, mcp_tools, providers, services


def test_a_hello_sound_of_any_rate(tmp_path: Path) -> None:
    path = tmp_path / "hello.wav"
    path.write_bytes(write_wav(b"\x00\x10" * 44_100, rate=44_100))
    assert len(load_hello(str(path))) == pytest.approx(32_000, abs=200)


def test_no_hello_sound(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert load_hello(None) == b""
    assert load_hello(str(tmp_path / "none.wav")) == b""
    rubbish = tmp_path / "rubbish.wav"
    rubbish.write_bytes(b"MZ rubbish")
    assert load_hello(str(rubbish)) == b""
    assert caplog.text.count("boards get no hello sound") == 2


def test_a_song_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "song.wav"
    path.write_bytes(write_wav(bytes(HELLO_LIMIT_BYTES + 32_000)))
    assert len(load_hello(str(path))) == HELLO_LIMIT_BYTES


async def test_a_platform_that_is_not_installed() -> None:
    settings = Settings(
        asr=PluginSettings(platform="elsewhere"),
        tts=OpenAiTts(url="http://127.0.0.1:1/"),
        llm=OpenAiChatLlm(url="http://127.0.0.1:1/"),
    )
    with pytest.raises(ModelError, match="no installed package offers the asr platform 'elsewhere'"):
        async with providers(settings):
            pass


def settings(*servers: McpServer) -> Settings:
    return Settings(
        asr=OpenAiAsr(url="http://127.0.0.1:1/"),
        tts=OpenAiTts(url="http://127.0.0.1:1/"),
        llm=OpenAiChatLlm(url="http://127.0.0.1:1/", mcp_server=servers),
    )


async def test_without_mcp_servers_there_are_no_tools() -> None:
    async with mcp_tools(settings()) as tools:
        assert tools is None


async def test_mcp_servers_that_are_down_hold_nothing_up_and_leave_nothing_behind() -> None:
    before = asyncio.all_tasks()
    down = [McpServer(server=f"http://127.0.0.1:1/{n}", name=f"down{n}") for n in range(3)]
    async with mcp_tools(settings(*down)) as tools:
        assert tools is not None
        assert list(tools.tools()) == []
        assert [(one.name, one.state) for one in tools.statuses()] == [(f"down{n}", State.CONNECTING) for n in range(3)]
        assert len(asyncio.all_tasks() - before) >= 3
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("given", [LocalTools(), None])
async def test_sessions_get_the_tools(given: ToolSource | None) -> None:
    made = settings()
    async with providers(made) as built, services(made, built, given) as shared:
        assert shared.tools is given if given is not None else isinstance(shared.tools, NoTools)


@pytest.mark.parametrize("wanted", [True, False])
async def test_texts_are_kept_if_they_are_wanted(wanted: bool) -> None:
    made = settings().model_copy(update={"log_texts": wanted})
    async with providers(made) as built, services(made, built) as shared:
        record = TurnRecord("board", "1")
        record.question = "Who are you?"
        shared.journal.close(record, "answered")
        (turn,) = [one.as_json() for one in shared.journal]
        assert turn.get("question") == ("Who are you?" if wanted else None)


async def test_what_is_said_of_failures_is_in_the_language_of_the_configuration() -> None:
    made = settings().model_copy(update={"asr": OpenAiAsr(url="http://127.0.0.1:1/", lang="de")})
    async with providers(made) as built, services(made, built) as shared:
        assert {name: one.text for name, one in shared.apologies.items()} == {
            name: wording.text for name, wording in WORDINGS["de"].items()
        }
        assert shared.language == "de"
