from __future__ import annotations

from echokit_py.text import abbreviations


def test_each_word_has_one_rule_and_is_written_as_it_is_looked_up() -> None:
    lists = [
        abbreviations.ALWAYS_CONTINUED,
        abbreviations.BEFORE_NAMES,
        abbreviations.BEFORE_NUMBERS,
        abbreviations.MAY_END,
        abbreviations.MONTHS,
        abbreviations.BEGINNINGS,
    ]
    words = [word for group in lists for word in group]
    assert len(words) == len(set(words))
    assert all(word == word.lower() and not word.endswith(".") for word in words)
    assert all(len(word) <= 24 for word in words)  # what `fullstops.word_before` reaches
