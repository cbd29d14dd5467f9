"""The language that the configuration names, whatever way it is written."""

from __future__ import annotations

from typing import Any

import pytest

from echokit_py.config.language import language_code, spoken_language
from echokit_py.config.settings import FasterWhisperAsr, OpenAiAsr, PluginSettings


@pytest.mark.parametrize(
    ("tag", "code"), [("", ""), ("en", "en"), (" zh_CN ", "zh"), ("ZH-Hant", "zh"), ("auto", ""), ("Auto", "")]
)
def test_a_tag(tag: str, code: str) -> None:
    assert language_code(tag) == code


@pytest.mark.parametrize(
    ("asr", "code"),
    [
        (FasterWhisperAsr(lang="de"), "de"),
        (FasterWhisperAsr(), ""),
        (OpenAiAsr(url="http://127.0.0.1:1/", lang="auto"), ""),
        (PluginSettings.model_validate({"platform": "mine", "lang": "ja-JP"}), "ja"),
        (PluginSettings(platform="mine"), ""),
    ],
)
def test_of_a_recogniser(asr: Any, code: str) -> None:
    assert spoken_language(asr) == code
