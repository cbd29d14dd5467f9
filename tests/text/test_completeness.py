"""Which transcripts sound finished, which open, and what hangover follows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echokit_py.config.settings import VadSettings
from echokit_py.text.completeness import Completeness, completeness, hangover_ms

FINISHED = (
    "Turn on the kitchen light.",
    "What time is it in Paris?",
    "Stop it now!",
    "Where are you from?",
    "What are you waiting for?",
    "Turn the radio off.",
    'He said "go home."',
    "(That is all I know.)",
    "Wake me at 5 p.m.",
    "Set it to 5%?",
    "Is the number five five?",
    "Play the next one?",
    "Bring milk, bread etc.",
    "打开客厅的灯。",
    "现在几点了？",
    "我们走吧",
    "你会唱歌吗",
    "你要哪一个？",
    "¿Qué hora es en París?",
    "Mach das Licht bitte an.",
)

OPEN = (
    "I want to go to the.",
    "I want to go to the",
    "Turn on the light and",
    "Because.",
    "And?",
    "I would like, um",
    "Um.",
    "Uh…",
    "Set a timer for.",
    "I’m",
    "Well, let's...",
    "Wait..",
    "Turn on the light,",
    "Turn on the kit-",
    "I was thinking —",
    "The following:",
    "my number is five five",
    "My number is 0 7 9.",
    "It costs three point",
    "Seven plus.",
    "I have an appointment with Dr.",
    "我喜欢苹果和",
    "但是",
    "因为。",
    "我想要那个",
    "嗯",
    "嗯嗯。",
    "然后，",
    "我的号码是一三八",
    "等等……",
    "等一下。。",
)

UNKNOWN = (
    "",
    "   ",
    "...",
    "?!",
    "Stop.",
    "Hey computer.",
    "Turn on the light",
    "Set it to 50.",
    "Set it to fifty.",
    "Yes, I think it is.",
    "Play that red one.",
    "This is plan B.",
    "He lives in the U.S.",
    "The answer is no.",
    "Set a timer for 10.",
    "温和。",
    "我想听音乐",
    "开灯。",
    "今天是星期一。",
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, Completeness.FINISHED) for text in FINISHED),
        *((text, Completeness.OPEN) for text in OPEN),
        *((text, Completeness.UNKNOWN) for text in UNKNOWN),
    ],
)
def test_how_a_text_ends(text: str, expected: Completeness) -> None:
    assert completeness(text) is expected


@pytest.mark.parametrize("text", ["Mach alles wieder an the.", "Udělej to prosím to."])
def test_english_words_are_english_only(text: str) -> None:
    assert completeness(text, "de") is Completeness.FINISHED


@pytest.mark.parametrize(
    ("text", "language"),
    [("Das brauche ich so.", "de"), ("Das machen wir all.", "de"), ("我要咖啡和。", "ja")],
)
def test_another_language_is_judged_by_its_marks(text: str, language: str) -> None:
    assert completeness(text) is not Completeness.FINISHED
    assert completeness(text, language) is Completeness.FINISHED


def test_characters_that_are_not_chinese_say_so() -> None:
    assert completeness("彼が生まれたのは昭和。") is Completeness.FINISHED
    assert completeness("我要咖啡和") is Completeness.OPEN


def test_letters_that_are_not_english_say_so() -> None:
    assert completeness("Udělej mi prosím to.") is Completeness.FINISHED
    assert completeness("I want you to do to.") is Completeness.OPEN


def test_only_the_end_of_a_long_text_counts() -> None:
    assert completeness("and, " * 100_000 + "that is all I know.") is Completeness.FINISHED


@dataclass(frozen=True)
class Given:
    adaptive: bool = True
    min_hangover_ms: int = 1
    hangover_ms: int = 2
    max_hangover_ms: int = 3


@pytest.mark.parametrize(
    ("text", "expected"), [("What time is it?", 1), ("Turn on the light", 2), ("Turn on the", 3), ("", 2)]
)
def test_the_hangover(text: str, expected: int) -> None:
    assert hangover_ms(text, Given()) == expected
    assert hangover_ms(text, Given(adaptive=False)) == 2


def test_the_hangover_knows_the_language() -> None:
    assert hangover_ms("Ich bringe dich um.", Given()) == 3
    assert hangover_ms("Ich bringe dich um.", Given(), "de") == 1


def test_the_settings_have_what_it_needs() -> None:
    settings = VadSettings()
    assert hangover_ms("What time is it?", settings) == settings.min_hangover_ms
    assert hangover_ms("What time is it in the", settings) == settings.max_hangover_ms


@given(st.text(), st.sampled_from(["", "en", "zh", "fr"]))
def test_any_text_has_an_answer(text: str, language: str) -> None:
    assert completeness(text, language) in Completeness
