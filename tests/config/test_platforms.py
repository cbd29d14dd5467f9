"""Tests for echokit_py.config.platforms: every spelling, and what isn't in this version."""

from __future__ import annotations

import pytest

from echokit_py import registry
from echokit_py.config.platforms import KINDS, SETTINGS, Kind, choose, missing_table
from echokit_py.config.settings import (
    FasterWhisperAsr,
    LlamaCppLlm,
    OpenAiAsr,
    OpenAiChatLlm,
    OpenAiResponsesLlm,
    OpenAiTts,
    PiperTts,
    PluginSettings,
    Section,
)

NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("kind", "name", "canonical", "settings"),
    [
        *[("asr", name, "openai", OpenAiAsr) for name in ("openai", "OpenAI", "Openai", "whisper", "Whisper")],
        *[("tts", name, "openai", OpenAiTts) for name in ("openai", "OpenAI", "Openai")],
        *[("llm", name, "openai_chat", OpenAiChatLlm) for name in ("openai_chat", "OpenAIChat", "openai-chat")],
        *[
            ("asr", name, "faster_whisper", FasterWhisperAsr)
            for name in ("faster_whisper", "faster-whisper", "FasterWhisper")
        ],
        *[("llm", name, "openai_responses", OpenAiResponsesLlm) for name in ("openai_responses", "OpenAIResponses")],
        ("tts", "Piper", "piper", PiperTts),
        *[("llm", name, "llama_cpp", LlamaCppLlm) for name in ("llama_cpp", "llama.cpp", "LlamaCpp")],
    ],
)
def test_spellings(kind: Kind, name: str, canonical: str, settings: type[Section]) -> None:
    assert choose(kind, {"platform": name}, NONE) == (canonical, settings)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *[("asr", name) for name in ("paraformer_v2", "ParaformerV2", "elevenlabs")],
        *[
            ("tts", name)
            for name in (
                *("groq", "Groq", "gsv", "GSV", "Stable", "stream_gsv", "StreamGSV", "fish", "Fish"),
                *("cosyvoice", "CosyVoice", "elevenlabs", "Elevenlabs", "streaming"),
            )
        ],
    ],
)
def test_what_is_not_in_this_version_says_what_to_write(kind: Kind, name: str) -> None:
    with pytest.raises(ValueError, match=rf'^"{name}" isn\'t in this version yet; write platform = "') as error:
        choose(kind, {"platform": name}, NONE)
    assert any(f'"{platform}"' in str(error.value) for platform in SETTINGS[kind])


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("asr", "wisper", 'did you mean "faster_whisper"'),
        ("asr", "fasterwhisper2", 'did you mean "faster_whisper"'),
        ("llm", "openai", 'did you mean "openai_chat"'),
        ("tts", "pipper", 'did you mean "piper"'),
        ("tts", "xyz", 'there is no platform "xyz" that can speak; there are "piper", "openai", "mine"'),
        ("tts", "", 'there is no platform ""'),
        ("tts", "mien", 'did you mean "mine"'),
        ("tts", 5, "the platform must be a text in quotes"),
        ("tts", False, "the platform must be a text in quotes"),
    ],
)
def test_unknown(kind: Kind, name: object, message: str) -> None:
    with pytest.raises(ValueError) as error:
        choose(kind, {"platform": name}, frozenset({"mine"}))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("kind", "table", "canonical"),
    [
        ("asr", {"url": "http://x"}, "openai"),
        ("llm", {"url": "http://x"}, "openai_chat"),
        ("llm", {"llm_chat_url": "http://x"}, "openai_chat"),
        ("llm", {"llm_responses_url": "http://x"}, "openai_responses"),
    ],
)
def test_old_documents_without_platform(kind: Kind, table: dict[str, object], canonical: str) -> None:
    assert choose(kind, table, NONE)[0] == canonical


@pytest.mark.parametrize(
    ("kind", "table", "message"),
    [
        ("tts", {"url": "http://x", "voice": "alloy"}, '^is missing: write platform = "piper"'),
        ("asr", {"lang": "en"}, '^is missing: write platform = "faster_whisper"'),
        ("llm", {"model": "x"}, '^is missing: write platform = "openai_chat"'),
        ("asr", {"paraformer_token": "x"}, '"paraformer_v2" isn\'t in this version yet'),
    ],
)
def test_old_documents_that_do_not_say_enough(kind: Kind, table: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose(kind, table, NONE)


def test_platforms_of_other_packages() -> None:
    assert choose("tts", {"platform": "mine"}, frozenset({"mine"})) == ("mine", PluginSettings)
    assert choose("tts", {"platform": "elevenlabs"}, frozenset({"elevenlabs"})) == ("elevenlabs", PluginSettings)
    assert choose("tts", {"platform": "piper"}, frozenset({"piper"})) == ("piper", PiperTts)


@pytest.mark.parametrize("kind", KINDS)
def test_every_platform_is_its_own_default_and_named_for_a_missing_table(kind: Kind) -> None:
    for platform, settings in SETTINGS[kind].items():
        assert settings.model_fields["platform"].default == platform
        assert f'"{platform}"' in missing_table(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_installed_platform_of_this_package_has_settings(kind: Kind) -> None:
    installed = registry.platforms(kind)
    if not installed:
        pytest.skip("the package is not installed, only on the path: there are no entry points to compare with")
    assert set(SETTINGS[kind]) <= installed
