"""The yardstick of the speech tests."""

from __future__ import annotations

import pytest

from tests.words import error_rate, errors, spell, words


@pytest.mark.parametrize(
    ("number", "spelt"),
    [
        (0, "zero"),
        (15, "fifteen"),
        (50, "fifty"),
        (99, "ninety nine"),
        (300, "three hundred"),
        (4217, "four thousand two hundred seventeen"),
    ],
)
def test_numbers(number: int, spelt: str) -> None:
    assert spell(number) == spelt


def test_words_are_compared_as_they_sound() -> None:
    assert words("It's 50% of 1,000 – “half”!") == ["it's", "fifty", "percent", "of", "one", "thousand", "half"]
    assert errors("Set it to fifty percent.", "set it to 50%") == 0


def test_errors() -> None:
    assert errors("one two three", "one three four") == 2
    assert error_rate("one two three four", "one two four") == 0.25
    assert error_rate("", "one") == 1
