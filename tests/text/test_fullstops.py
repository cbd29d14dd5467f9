from __future__ import annotations

import pytest

from echokit_py.text.fullstops import ends_sentence, list_number, word_before


@pytest.mark.parametrize(
    ("text", "word"),
    [("the end", "end"), ("(e.g", "e.g"), ("", ""), ("a ", ""), ("x—U.S", "U.S"), ("“Mr", "Mr"), ("a" * 40, "a" * 24)],
)
def test_the_word_before(text: str, word: str) -> None:
    assert word_before(text, 0, len(text)) == word


def test_the_word_before_does_not_reach_into_the_last_piece() -> None:
    assert word_before("one.two", 4, 7) == "two"


@pytest.mark.parametrize(
    ("text", "previous", "number"),
    [
        ("1", 0, 1),
        ("  **12", 0, 12),
        ("Milk\n2", 0, 2),
        ("things: 1", 0, 1),
        ("Milk 2", 1, 2),
        ("Milk 2", 0, 0),
        ("It costs 3", 1, 0),
        ("1999", 0, 0),
        ("one", 0, 0),
        ("", 0, 0),
    ],
)
def test_list_numbers(text: str, previous: int, number: int) -> None:
    assert list_number(text, 0, len(text), previous) == number


@pytest.mark.parametrize(
    ("mark", "word", "trailed", "following", "verdict"),
    [
        (".", "there", False, " ", True),
        (".", "there", True, " ", None),
        (".", "there", True, " A", True),
        (".", "there", True, " a", False),
        (".", "it", False, " ", None),
        (".", "it", False, "\n", True),
        (".", "it", False, " \u3000 x", False),
        (".", "Mr", False, " ", None),
        (".", "Mr", False, " S", False),
        (".", "Mr", False, "\nS", True),
        (".", "No", False, " 5", False),
        (".", "No", False, " F", True),
        (".", "Feb", False, " w", False),
        (".", "etc", False, " a", False),
        (".", "etc", False, " A", True),
        (".", "J", False, " S", False),
        (".", "U.S", False, " A", False),
        (".", "p.m", False, " A", True),
        (".", "3", False, " J", None),
        (".", "3", False, " Ju", None),
        (".", "3", False, " j", False),
        (".", "3", False, " Juli", None),
        (".", "3", False, " Juli ", False),
        (".", "3", False, " Julia ", True),
        (".", "3", False, " Weihnachten", True),
        (".", "3", False, " (", True),
        (".", "3", False, "\n", True),
        (".", "3", False, " ", None),
        (".", "345", False, " J", True),
        ("!", "there", False, " ", True),
        ("!", "there", True, " ", None),
        ("?", "there", True, " h", False),
        ("...", "there", False, " h", False),
        ("...", "there", False, " H", True),
        ("…", "there", False, " ", None),
    ],
)
def test_verdicts(mark: str, word: str, trailed: bool, following: str, verdict: bool | None) -> None:
    assert ends_sentence(mark, word, trailed, following, at_end=False) is verdict


@pytest.mark.parametrize("word", ["there", "it", "Mr", "No", "etc", "J", "3"])
def test_at_the_end_nothing_is_waited_for(word: str) -> None:
    assert ends_sentence(".", word, False, "", at_end=True) is True
    assert ends_sentence(".", word, False, " ", at_end=True) is True


def test_at_the_end_a_month_is_a_month() -> None:
    assert ends_sentence(".", "3", False, " Juli", at_end=True) is False
    assert ends_sentence(".", "3", False, " Jul", at_end=True) is True
