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
        ("The answer: 42", 0, 0),
        ("The answer:\n42", 0, 42),
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
        (".", "J", False, " S", None),  # "She"?
        (".", "J", False, " Sm", False),
        (".", "J", False, " R", False),
        (".", "U.S", False, " A", None),
        (".", "U.S", False, " Ar", False),
        (".", "U.S", False, " It", None),
        (".", "U.S", False, " It ", True),
        (".", "U.S", False, " It’s", True),
        (".", "U.S", False, " IT ", False),
        (".", "U.S", False, " it ", False),
        (".", "U.S", False, "\nArmy", True),
        (".", "h", False, " Sie ", False),
        (".", "J.-P", False, " Sartre", False),
        (".", "EE", False, " UU", False),
        (".", "II", False, " M", True),
        (".", "St", False, " Pa", False),
        (".", "St", False, " The ", True),
        (".", "3", False, " 5", True),
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


@pytest.mark.parametrize(
    ("preceding", "word", "following", "verdict"),
    [
        ("Der ", "5", " Mä", False),
        ("Der ", "5", " W", None),  # "Wir"?
        ("Der ", "5", " Wi", None),
        ("Der ", "5", " Wir ", True),
        ("Der ", "5", " Wirt ", False),
        ("der ", "100", " G", False),
        ("im ", "19", " J", False),
        ("sein ", "50", " G", False),
        ("am ", "24.12", " Pa", False),
        ("zum ", "2", " m", False),
        ("Am ", "3", " 5", False),
        ("Am 3. ", "5", " 2026", False),
        ("der 5. und ", "6", " Mä", False),
        ("der ", "5", " (", False),
        ("der ", "5", "\nM", True),
        ("der ", "5", " ", None),
        ("die ", "2000", " M", True),
        ("Leder ", "5", " M ", True),
        ("I am ", "5", " M ", True),
        ("take ", "5", " M ", True),
    ],
)
def test_a_number_behind_an_article_is_an_ordinal(
    preceding: str, word: str, following: str, verdict: bool | None
) -> None:
    assert ends_sentence(".", word, False, following, at_end=False, preceding=preceding) is verdict


def test_an_abbreviation_of_several_small_letters_goes_on() -> None:
    assert ends_sentence(".", "B", False, " Sie ", at_end=False, preceding="Das sind z. ") is False
    assert ends_sentence(".", "B", False, " Sie ", at_end=False, preceding="Das ist ") is True


@pytest.mark.parametrize("word", ["there", "it", "Mr", "No", "etc", "J", "3"])
def test_at_the_end_nothing_is_waited_for(word: str) -> None:
    assert ends_sentence(".", word, False, "", at_end=True) is True
    assert ends_sentence(".", word, False, " ", at_end=True) is True


def test_at_the_end_a_month_is_a_month() -> None:
    assert ends_sentence(".", "3", False, " Juli", at_end=True) is False
    assert ends_sentence(".", "3", False, " Jul", at_end=True) is True
