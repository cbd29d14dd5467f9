"""Decides whether the end mark of a word ends the sentence as well. Pure; looks no further than it must.

A verdict is True, False, or None: it depends on text that has not come yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from echokit_py.text.abbreviations import (
    ALWAYS_CONTINUED,
    BEFORE_NAMES,
    BEFORE_NUMBERS,
    BEGINNINGS,
    MAY_END,
    MONTHS,
)
from echokit_py.text.characters import NEWLINES

# White space beyond this is no reason to wait for the next word: the sentence is over.
_SPACES_MAX = 16
# The longest name of a month has 9 letters.
_MONTH_MAX = 10
# How much of the text before a word tells whether it is an ordinal number: an article and the number before.
PRECEDING_MAX = 24

_WORD = re.compile(r"[^\s(\[{\"“„'‘*_`~/—–:;,!?…]{0,24}\Z")
# A word of everyday length in small letters: nothing but the list of abbreviations can make its full stop another one.
_PLAIN_WORD = re.compile(r"[a-zà-öø-ÿāăąćčďđēęěğīłńňőœřśşšťůűźżžα-ωа-яёіїє]{4,}\Z")
_APOSTROPHE = re.compile(r"\w['’]")
# "J", "U.S", "J.-P", and the plurals of Spanish: "EE. UU." But "II" is a number.
_INITIALS = re.compile(r"(?:[^\W\d_]\.-?)*[^\W\d_]\Z|(?![IVX])([A-Z])\1\Z")
# "z. B. Sie": more of the kind, and no initial of a name.
_SMALL_INITIAL = re.compile(r"(?<!\w)[a-zà-öø-ÿα-ωа-я]\.\s?\Z")
_NUMBER = re.compile(r"\d{1,3}\Z")
# "Der 5. Mann", "am 24.12." Before it stands an article or the like of German, or another such number: "der 5. und
# 6. Mann", "am 24. 12. 2026". "I am 5." is English.
_ORDINAL = re.compile(r"\d{1,3}\Z|\d{1,2}\.\d{1,2}\Z")
_BEFORE_ORDINAL = re.compile(
    r"(?:(?<!\bI )\b(?:d(?:er|ie|as|em|en|es)|am|im|vom|zu[mr]|beim|(?:jed|dies|unser)e[mnrs]?|[msd]?eine?[mnrs]?"
    r"|ihre?[mnrs]?)|\d\.(?:\s(?:und|oder|bis))?)\s\Z",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[^\W\d_]*")
# A colon between digits is a clock's: "10:30."
_LINE_START = re.compile(r"(?:\A|[\n\r]|(?<!\d):|:\s)[^\w\n\r]*\Z")
_SAME_LINE = re.compile(r":[^\n\r]*\Z")
_LINE_ENDS = frozenset(NEWLINES)
_BLANKS = re.compile(f"[^\\S{NEWLINES}]*")


def word_before(text: str, start: int, at: int) -> str:
    """Return the word that ends at `at`, not reaching back beyond `start`.

    Of one with an apostrophe in it the end from there on: the "s" of "Mary's" is no initial.
    """
    found = _WORD.search(text, max(start, at - 24), at)
    word = found[0] if found else ""
    before = at - len(word) - 1
    return text[before:at] if word and before > start and _APOSTROPHE.match(text, before - 1) else word


def list_number(text: str, start: int, at: int, previous: int) -> int:
    """Return the number of a list marker ("1.") whose dot is at `at`, 0 if it is none.

    It is one at the beginning of a line, when it goes on counting from `previous`, or when it is 1 after a colon.
    """
    word = word_before(text, start, at)
    if not _NUMBER.match(word):
        return 0
    number = int(word)
    if number == previous + 1 and previous:
        return number
    line_start = _LINE_START.search(text[start : at - len(word)])
    if line_start is None or (number != 1 and _SAME_LINE.match(line_start[0])):  # "The answer: 42."
        return 0
    return number


def ends_sentence(
    mark: str, word: str, trailed: bool, following: str, at_end: bool, preceding: str = ""
) -> bool | None:
    """Decide about the end marks `mark` that follow `word` and have white space (or the end) after them.

    Args:
        mark: one or more of ". ! ? …".
        word: the word before, without the mark.
        trailed: whether quotes, brackets or emphasis are closed between the mark and the white space.
        following: the text from the white space on, as far as it has come.
        at_end: no more will come.
        preceding: the end of the text before the word, at least the last PRECEDING_MAX characters.
    """
    if mark == ".":
        return _full_stop(word, trailed, following, at_end, preceding)
    if ("!" in mark or "?" in mark) and not trailed:
        return True
    return _begins_anew(following, at_end)


def _full_stop(word: str, trailed: bool, following: str, at_end: bool, preceding: str) -> bool | None:
    small = word.lower()
    initials = small not in MAY_END and _INITIALS.match(word)
    if small in ALWAYS_CONTINUED or (initials and (word[0].islower() or _SMALL_INITIAL.search(preceding))):
        return _nothing_follows(following, at_end)
    if small in BEFORE_NUMBERS:
        return _unless(lambda char: char.isdecimal() or char.islower(), following, at_end)
    if initials or small in BEFORE_NAMES or (_ORDINAL.match(word) and _BEFORE_ORDINAL.search(preceding)):
        return _unless_it_begins(following, at_end)
    if _NUMBER.match(word) and len(word) < 3:
        return _ordinal(following, at_end)
    if _PLAIN_WORD.match(word) and small not in MAY_END and not trailed:
        return True
    return _begins_anew(following, at_end)


def _next_word(following: str, at_end: bool) -> str | None:
    """The text from the next word on, "" when the line or the text ends before, None when that is not known yet."""
    spaces = _BLANKS.match(following)
    width = spaces.end() if spaces else 0
    if width > _SPACES_MAX or following[width : width + 1] in _LINE_ENDS:
        return ""
    return following[width:] if at_end or width < len(following) else None


def _nothing_follows(following: str, at_end: bool) -> bool | None:
    word = _next_word(following, at_end)
    return None if word is None else not word


def _unless_it_begins(following: str, at_end: bool) -> bool | None:
    """ "St. Petersburg", "Der 5. Mann": all but a word that begins sentences goes on."""
    word = _next_word(following, at_end)
    if not word:
        return None if word is None else True
    letters = _LETTERS.match(word)
    name = letters[0] if letters else ""
    if not name.istitle():
        return False
    small = name.lower()
    if name == word and not at_end and any(beginning.startswith(small) for beginning in BEGINNINGS):
        return None
    return small in BEGINNINGS


def _begins_anew(following: str, at_end: bool) -> bool | None:
    """A new sentence begins with anything but a small letter."""
    return _unless(str.islower, following, at_end)


def _unless(continues: Callable[[str], bool], following: str, at_end: bool) -> bool | None:
    word = _next_word(following, at_end)
    return None if word is None else not continues(word[:1])


def _ordinal(following: str, at_end: bool) -> bool | None:
    """ "Am 3. Juli", "2. místo": an ordinal number is followed by a month or a small letter."""
    word = _next_word(following, at_end)
    if word is None:
        return None
    letters = _LETTERS.match(word)
    name = letters[0] if letters else ""
    if name == word and len(name) <= _MONTH_MAX and name and not at_end:
        return False if name[0].islower() else None
    return not (name[:1].islower() or name.lower() in MONTHS)
