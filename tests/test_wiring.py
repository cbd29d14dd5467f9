"""The composition root: the hello sound, and what is told when a provider isn't there."""

from __future__ import annotations

from pathlib import Path

import pytest

from echokit_py.audio.wav import write_wav
from echokit_py.config.settings import OpenAiChatLlm, OpenAiTts, PluginSettings, Settings
from echokit_py.errors import ModelError
from echokit_py.wiring import HELLO_LIMIT_BYTES, load_hello, providers


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
