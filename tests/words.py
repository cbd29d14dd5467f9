"""Compares what was said with what was understood, word by word, as recognisers are judged."""

from __future__ import annotations

import re

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def spell(number: int) -> str:
    """An English number below 10,000 in words, without "and"."""
    if number >= 1000:
        return f"{spell(number // 1000)} thousand {spell(number % 1000) if number % 1000 else ''}".strip()
    if number >= 100:
        return f"{_ONES[number // 100]} hundred {spell(number % 100) if number % 100 else ''}".strip()
    if number >= 20:
        return f"{_TENS[number // 10 - 2]} {_ONES[number % 10] if number % 10 else ''}".strip()
    return _ONES[number]


def words(text: str) -> list[str]:
    """The words of an English text as they sound: lower case, no punctuation, numbers below 10,000 spelt out."""
    text = text.lower().replace("%", " percent ").replace("’", "'").replace("-", " ")
    text = re.sub(r"(?<=\d),(?=\d)", "", text)
    text = re.sub(r"\d+", lambda found: f" {spell(int(found[0]))} " if len(found[0]) <= 4 else found[0], text)
    return re.findall(r"[^\W_]+(?:'[^\W_]+)?", text)


def errors(said: str, understood: str) -> int:
    """Words substituted, left out or added: the edit distance over words."""
    expected, found = words(said), words(understood)
    row = list(range(len(found) + 1))
    for i, word in enumerate(expected, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(found, 1):
            diagonal, row[j] = row[j], min(diagonal + (word != other), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def error_rate(said: str, understood: str) -> float:
    """The word error rate: errors per word said."""
    return errors(said, understood) / max(1, len(words(said)))
