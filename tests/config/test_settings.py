"""Tests for echokit_py.config.settings and values: types, limits, and that no secret shows."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from echokit_py.config.settings import (
    FasterWhisperAsr,
    LlamaCppLlm,
    McpServer,
    OpenAiAsr,
    OpenAiChatLlm,
    OpenAiTts,
    PiperTts,
    PluginSettings,
    Settings,
    Timeouts,
    VadSettings,
)

URL = "http://user:s3cret@box.local:9000/v1?api_key=s3cret&model=x"


def secretive() -> Settings:
    """Settings with a secret in every place that can hold one."""
    key = SecretStr("s3cret")
    return Settings(
        asr=OpenAiAsr(url=URL, api_key=key),
        tts=PluginSettings.model_validate({"platform": "mine", "token": "s3cret", "more": {"Authorization": "s3cret"}}),
        llm=OpenAiChatLlm(
            url=URL,
            api_key=key,
            prompts_url=URL,
            mcp_server=(McpServer(server=URL, api_key=key),),
            extra={"tools": [{"headers": {"X-Api-Key": "s3cret"}, "server_url": URL}]},
        ),
    )


def test_no_secret_shows() -> None:
    settings = secretive()
    for shown in (
        *(repr(settings), str(settings), f"{settings}", repr(settings.llm), str(settings.asr), repr([settings.tts])),
        *(
            repr(settings.model_dump()),
            str(settings.llm.model_dump()),
            settings.model_dump_json(),
            settings.tts.model_dump_json(),
        ),
        repr(settings.llm.mcp_server),
    ):
        assert "s3cret" not in shown
        assert "**********" in shown
    assert "box.local:9000/v1" in repr(settings)


def test_the_values_themselves_are_whole() -> None:
    settings = secretive()
    assert isinstance(settings.llm, OpenAiChatLlm)
    assert settings.llm.url == URL
    assert settings.llm.api_key.get_secret_value() == "s3cret"
    assert settings.llm.extra["tools"][0]["headers"] == {"X-Api-Key": "s3cret"}
    assert settings.tts.model_extra == {"token": "s3cret", "more": {"Authorization": "s3cret"}}
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_a_validation_error_does_not_show_its_input() -> None:
    with pytest.raises(ValidationError) as error:
        OpenAiChatLlm.model_validate({"url": "ftp://u:s3cret@h", "api_key": ["s3cret"], "unknown": "s3cret"})
    assert "s3cret" not in str(error.value)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        PiperTts().voice = "x"


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("sk-1", "sk-1"),
        ("Bearer gaia-1234", "gaia-1234"),
        ("bearer   gaia-1234", "gaia-1234"),
        ("  sk-1\n", "sk-1"),
        ("", ""),
        ("Bearer", "Bearer"),
    ],
)
def test_keys(given: str, key: str) -> None:
    assert OpenAiTts(api_key=SecretStr(given)).api_key.get_secret_value() == key


@pytest.mark.parametrize("given", ["two words", "line\nbreak", "schlüssel", "nul\0"])
def test_keys_that_no_header_can_carry(given: str) -> None:
    with pytest.raises(ValidationError, match="a key has no spaces"):
        OpenAiTts(api_key=SecretStr(given))


@pytest.mark.parametrize("given", ["http://h", "https://h:1/x?y", "http://[::1]:80/", " http://h "])
def test_urls(given: str) -> None:
    assert OpenAiTts(url=given).url == given.strip()


@pytest.mark.parametrize(
    "given", ["", "h/x", "wss://h", "http://", "http://:80", "http://h:port", "http://h:0", "http://a b", "http://[:"]
)
def test_urls_that_are_none(given: str) -> None:
    with pytest.raises(ValidationError, match="must be a URL"):
        OpenAiTts(url=given)


def test_languages() -> None:
    assert [FasterWhisperAsr(lang=lang).lang for lang in ("", " en ", "Auto", "auto")] == ["", "en", "auto", "auto"]


def test_origins() -> None:
    parts: dict[str, Any] = {"asr": FasterWhisperAsr(), "tts": PiperTts(), "llm": LlamaCppLlm()}
    given = ("https://Example.org/", "http://localhost:3000", "*", "chrome-extension://abc")
    assert Settings(allowed_origins=given, **parts).allowed_origins == (
        *("https://example.org", "http://localhost:3000", "*", "chrome-extension://abc"),
    )
    for wrong in ("example.org", "https://example.org/page", "https://u@example.org", "https://*.org x", ""):
        with pytest.raises(ValidationError, match="must be a scheme and a host"):
            Settings(allowed_origins=(wrong,), **parts)


def test_address_and_log_level() -> None:
    parts: dict[str, Any] = {"asr": FasterWhisperAsr(), "tts": PiperTts(), "llm": LlamaCppLlm()}
    settings = Settings(addr="[::]:0", log_level="debug", **parts)  # type: ignore[arg-type]
    assert (settings.host, settings.port, settings.log_level) == ("::", 0, "DEBUG")
    assert (Settings(**parts).host, Settings(**parts).port) == ("0.0.0.0", 8080)
    with pytest.raises(ValidationError, match="the host is missing"):
        Settings(addr="8080", **parts)
    with pytest.raises(ValidationError, match="'DEBUG', 'INFO'"):
        Settings(log_level=5, **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [True, "5", 5.5, None, -1, 1001])
def test_numbers_are_numbers(value: object) -> None:
    with pytest.raises(ValidationError):
        LlamaCppLlm.model_validate({"history": value})


@pytest.mark.parametrize("value", [True, "5", float("nan"), float("inf"), 0, 3601])
def test_seconds_are_seconds(value: object) -> None:
    with pytest.raises(ValidationError):
        Timeouts.model_validate({"turn_s": value})


def test_extra_must_be_json() -> None:
    good = {"tools": [{"a": [1, 2.5, None, True, "x"]}]}
    assert LlamaCppLlm(extra=good).extra == good
    for bad in (float("nan"), object()):
        with pytest.raises(ValidationError, match="can't be sent to a model"):
            LlamaCppLlm(extra={"x": bad})


def test_the_old_name_of_the_url() -> None:
    old = OpenAiChatLlm.model_validate({"llm_chat_url": "http://h"})
    assert old == OpenAiChatLlm(url="http://h")
    assert json.loads(old.model_dump_json())["url"] == "http://h"


def test_exit_threshold() -> None:
    assert VadSettings().exit_threshold == 0.35
    assert VadSettings(threshold=0.1).exit_threshold == 0.05
    assert VadSettings(neg_threshold=0.2).exit_threshold == 0.2


def test_the_hangover_moves_the_limits_that_were_not_given() -> None:
    def limits(**given: int) -> tuple[int, int]:
        vad = VadSettings.model_validate(given)
        return vad.min_hangover_ms, vad.max_hangover_ms

    assert limits() == (500, 1000)
    assert limits(hangover_ms=200) == (200, 400)
    assert limits(hangover_ms=1500) == (1500, 3000)
    assert limits(hangover_ms=1500, min_hangover_ms=1500, max_hangover_ms=1500) == (1500, 1500)
    with pytest.raises(ValidationError, match="must be at most hangover_ms, which is 500"):
        limits(min_hangover_ms=501)
    with pytest.raises(ValidationError, match="must be at least hangover_ms, which is 600"):
        limits(hangover_ms=600, max_hangover_ms=599)


def test_the_new_switches() -> None:
    vad = VadSettings()
    assert (vad.speculate, vad.speculate_tts, vad.adaptive) == (True, False, True)
    for asr in (OpenAiAsr(url=URL), FasterWhisperAsr(), PluginSettings(platform="mine")):
        assert asr.to_simplified is None
        assert asr.model_copy(update={"to_simplified": False}).to_simplified is False
    for wrong in (1, "true", None):
        with pytest.raises(ValidationError):
            VadSettings.model_validate({"speculate": wrong})
