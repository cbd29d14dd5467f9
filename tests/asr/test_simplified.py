"""Chinese in simplified characters: when, and what is left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from echokit_py.asr import simplified
from echokit_py.asr.base import Transcript
from echokit_py.asr.simplified import is_chinese, simplify, wrap
from echokit_py.config.settings import AsrSettings, FasterWhisperAsr, OpenAiAsr, PluginSettings

TRADITIONAL = "請把客廳的燈打開,謝謝。"
SIMPLIFIED = "请把客厅的灯打开,谢谢。"


@dataclass
class Recogniser:
    """Notes what is asked of it."""

    transcript: Transcript
    done: list[str] = field(default_factory=list)

    async def start(self) -> None:
        self.done.append("start")

    async def transcribe(self, pcm: bytes) -> Transcript:
        return self.transcript

    async def probe(self) -> str:
        return "well"

    async def close(self) -> None:
        self.done.append("close")


def written(settings: AsrSettings, text: str = TRADITIONAL, language: str | None = None) -> str:
    return asyncio.run(wrap(Recogniser(Transcript(text, language)), settings).transcribe(b"")).text


def settings(lang: str, to_simplified: bool | None = None) -> AsrSettings:
    return OpenAiAsr(url="http://127.0.0.1/asr", lang=lang, to_simplified=to_simplified)


@pytest.mark.parametrize("lang", ["zh", "ZH-cn", "zh_Hans", "yue", " chinese"])
def test_chinese_is_simplified_by_default(lang: str) -> None:
    assert written(settings(lang)) == SIMPLIFIED
    assert written(settings(lang), language="en") == SIMPLIFIED  # the settings know better


@pytest.mark.parametrize("lang", ["zh-TW", "zh_Hant", "zh-hk", "ja", "en"])
def test_other_languages_are_not(lang: str) -> None:
    assert written(settings(lang), language="zh") == TRADITIONAL


@pytest.mark.parametrize(
    ("language", "expected"),
    [(None, SIMPLIFIED), ("zh", SIMPLIFIED), ("chinese", SIMPLIFIED), ("ja", TRADITIONAL), ("japanese", TRADITIONAL)],
)
@pytest.mark.parametrize("lang", ["", "auto"])
def test_where_the_language_is_open_the_recogniser_says_it(lang: str, language: str | None, expected: str) -> None:
    assert written(settings(lang), language=language) == expected


@pytest.mark.parametrize("lang", ["", "zh", "zh-TW", "en"])
def test_the_option_decides(lang: str) -> None:
    assert written(settings(lang, False), language="zh") == TRADITIONAL
    assert written(settings(lang, True), language="ja") == SIMPLIFIED


def test_all_platforms_have_it() -> None:
    assert written(FasterWhisperAsr(model="tiny", lang="zh")) == SIMPLIFIED
    assert written(PluginSettings.model_validate({"platform": "mine", "lang": "zh"})) == SIMPLIFIED
    assert (
        written(PluginSettings.model_validate({"platform": "mine", "lang": "zh", "to_simplified": False}))
        == TRADITIONAL
    )


@pytest.mark.parametrize("text", ["日本語の機械", "한국어 漢字", "Turn on the light.", "", "🙂"])
def test_what_is_not_chinese_stays(text: str) -> None:
    assert not is_chinese(text)
    assert written(settings("zh", True), text) == text


def test_the_other_fields_stay() -> None:
    given = Transcript("燈", "zh", 0.1, -0.2, 0.9)
    assert asyncio.run(wrap(Recogniser(given), settings("zh")).transcribe(b"")) == Transcript(
        "灯", "zh", 0.1, -0.2, 0.9
    )


def test_half_a_character_is_left_alone() -> None:
    assert simplify("燈\ud800") == "燈\ud800"


async def test_the_rest_is_the_recogniser_s() -> None:
    recogniser = Recogniser(Transcript(""))
    around = wrap(recogniser, settings("zh"))
    await around.start()
    assert await around.probe() == "well"
    await around.close()
    assert recogniser.done == ["start", "close"]


async def test_nothing_is_put_around_where_nothing_is_to_be_done() -> None:
    recogniser = Recogniser(Transcript(""))
    assert wrap(recogniser, settings("en")) is recogniser
    assert wrap(recogniser, settings("zh", False)) is recogniser


async def test_where_the_language_is_open_nothing_is_loaded_before_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[str] = []

    def converter() -> Callable[[str], str]:
        loaded.append("OpenCC")
        return lambda text: text

    monkeypatch.setattr(simplified, "_converter", converter)
    recogniser = Recogniser(Transcript("Hello."))
    around = wrap(recogniser, settings(""))
    await around.start()
    await around.transcribe(b"")
    assert loaded == []
    await wrap(recogniser, settings("zh")).start()
    assert loaded == ["OpenCC"]
