"""Cuts a streamed answer into pieces to be spoken, one sentence each, as soon as each is complete. Removes no words.

The pieces do not depend on how the text was split into deltas. Joined, they are the text but for white space.
"""

from __future__ import annotations

import re

from echokit_py.text.characters import (
    ENDS,
    FULL_ENDS,
    FULL_PAUSES,
    NEWLINES,
    PAIRS,
    SPACED_PAUSES,
    TRAILERS,
    TWO_WAY_QUOTES,
    is_attached,
    is_cjk,
    is_hiragana,
    is_thai,
    is_unspaced,
)
from echokit_py.text.fullstops import PRECEDING_MAX, ends_sentence, list_number, word_before

# A sentence longer than this is parted at a pause or a word: 200 characters are some 12 s of speech, enough to
# synthesise the next part meanwhile, and most voices get worse beyond.
LENGTH_MAX = 200
# A pause is worth parting at only behind this; otherwise a word's end near the limit is better.
_PAUSE_MIN = 100
# Where no white space comes either (an address, a row of dashes) it is cut anyway, so that memory has a bound.
HARD_MAX = 1000
# Inside quotes and brackets sentences belong together until the piece is this long: an unclosed one must not delay
# the speech for longer.
_NESTED_MAX = 120
# Thai puts a space after a clause or a sentence and has no other end mark.
_THAI_MIN = 30
# One character of Chinese or Japanese is spoken about as long as this many letters.
_FULL_WIDTH = 3
# Speech begins with the first clause when it has this many letters: some 2 s, in which the rest can be made.
FIRST_CLAUSE_MIN = 30

# A row of full stops or stars is not waited for any longer than this.
_RUN_MAX = 64
# What `ends_sentence` looks at: white space and the name of a month.
LOOK_AHEAD = 40

_ENDS_SET = frozenset(ENDS)
_FOOTNOTE = r"\[\^?\w{1,4}\]"
# An emoji right behind the mark belongs to what it ends: "Great!🎉".
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\ufe0f\u200d\U0001f000-\U0001faff\U000e0020-\U000e007f"
_TRAIL = re.compile(f"(?:[{re.escape(''.join(sorted(TRAILERS)))}{_EMOJI}]|{_FOOTNOTE}){{0,{_RUN_MAX}}}")
_PART_OF_FOOTNOTE = re.compile(r"(?:\[\^?\w{0,4})?")
# Behind these, if they open anything, no white space follows.
_TIGHT = frozenset('»›"`')
# "5 – 6 degrees"
_RANGE = re.compile(r"\d\s?[–—]\Z")
_BARE_NUMBER = re.compile(r"\W*\d{1,3}[.)]\W*\Z")


class SentenceSplitter:
    """Incremental: `feed` deltas of any size, `flush` at the end; after it the next answer can begin."""

    def __init__(self, first_clause_min: int = FIRST_CLAUSE_MIN) -> None:
        """`first_clause_min`: the first piece of an answer may end at a comma after so many letters; 0: never."""
        self._first_clause_min = first_clause_min
        self._text = ""
        self._reset()

    def _reset(self) -> None:
        self._first = True
        self._list_number = 0
        self._begin(0)

    def _begin(self, start: int) -> None:
        """A piece begins at `start`."""
        self._start = self._at = start
        self._spoken = False  # a letter or digit was seen
        self._weight = 0
        self._open: list[str] = []  # the closers awaited
        self._pause = self._word = 0  # the last places where this piece could be parted

    def feed(self, text: str) -> list[str]:
        """Take the next delta, return the pieces that are complete, without outer white space."""
        self._text += text
        pieces = self._cut(at_end=False)
        self._text = self._text[self._start :]
        self._at -= self._start
        self._pause = max(0, self._pause - self._start)
        self._word = max(0, self._word - self._start)
        self._start = 0
        return pieces

    def flush(self) -> list[str]:
        """The answer has ended: return the rest."""
        pieces = self._cut(at_end=True)
        if rest := self._text[self._start :].strip():
            pieces.append(rest)
        self._text = ""
        self._reset()
        return pieces

    def _cut(self, *, at_end: bool) -> list[str]:
        pieces = []
        while (end := self._next_end(at_end)) is not None:
            if piece := self._text[self._start : end].strip():
                pieces.append(piece)
                self._first = False
            self._begin(end)
        return pieces

    def _next_end(self, at_end: bool) -> int | None:
        """Where the piece ends, None when that is not in the text yet."""
        end: int | None
        while self._at < len(self._text):
            if self._at - self._start >= LENGTH_MAX and (end := self._part()):
                return end
            end = self._visit(self._text[self._at], at_end)
            if end != 0:
                return end
        return None

    def _visit(self, char: str, at_end: bool) -> int | None:
        """Look at the next character: the end of the piece, None to wait for more text, 0 after stepping over it."""
        end: int | None = 0
        step = 1
        if char in NEWLINES:
            end = self._line_end()
        elif char in ENDS:
            step = _length_of_run(self._text, self._at)
            end = self._sentence_end(step, at_end)
        elif char in FULL_PAUSES:
            end = self._full_pause()
        elif char.isspace():
            end = self._space()
        else:
            self._letter(char)
        if end == 0:
            self._at += step
        return end

    def _letter(self, char: str) -> None:
        """Anything but white space, ends and pauses: count it, and keep the account of quotes and brackets."""
        unspaced = is_unspaced(char)
        if unspaced and not is_attached(char):
            self._word = self._at
        self._weight += _FULL_WIDTH if unspaced else 1
        self._spoken = self._spoken or char.isalnum()
        if not _close(self._open, char) and char in PAIRS and self._may_open(char):
            self._open.append(PAIRS[char])

    def _may_open(self, char: str) -> bool:
        before = self._text[self._at - 1] if self._at > self._start else " "
        if char in TWO_WAY_QUOTES:
            return before.isspace() or before in PAIRS
        if char == '"':  # not the sign of inches
            return before.isspace() or before in PAIRS or before in "*_:,=" or is_cjk(before)
        return not (char == "(" and before in ":;=-")  # nor a sad face

    def _line_end(self) -> int:
        """A line is a piece, unless there is nothing in it to speak yet, or only the number of what comes next."""
        line = self._text[self._start : self._at]
        if not self._spoken or _BARE_NUMBER.match(line):
            self._open.clear()
            return 0
        return self._at + 1

    def _space(self) -> int:
        before = self._text[self._at - 1] if self._at > self._start else ""
        self._word = self._at + 1
        if before and before in _TIGHT and self._open and self._open[-1] == PAIRS[before]:
            self._open.pop()  # the sign itself is meant: "the ` key"
        if before and before in SPACED_PAUSES and not _RANGE.search(self._text, max(0, self._at - 3), self._at):
            self._pause = self._at + 1
            if self._may_end_first():
                return self._pause
        if before and is_thai(before) and self._at - self._start >= _THAI_MIN and not self._open:
            return self._at + 1
        return 0

    def _full_pause(self) -> int:
        if self._text[self._at - 1 : self._at].isdecimal():  # "１，０００"
            return 0
        self._pause = self._at + 1
        return self._pause if self._may_end_first() else 0

    def _may_end_first(self) -> bool:
        enough = 0 < self._first_clause_min <= self._weight
        return self._first and enough and self._spoken and not self._open

    def _part(self) -> int:
        """Where to part a piece that is too long, 0 if nowhere yet."""
        if self._pause - self._start >= _PAUSE_MIN:
            return self._pause
        if self._word > self._start:
            return self._word
        length = self._at - self._start
        if length < HARD_MAX or (length < 2 * HARD_MAX and is_attached(self._text[self._at])):
            return 0
        return self._at

    def _sentence_end(self, run: int, at_end: bool) -> int | None:
        """Decide about the `run` end marks at `_at`: the end of the piece, None to wait, 0 if they are no end."""
        end = self._at + run
        if end == len(self._text) and not at_end:
            return None
        trail = self._trail(end, at_end)
        if trail is None:
            return None
        if not self._spoken or self._stays_open(end, trail):
            return 0
        if any(char in FULL_ENDS for char in self._text[self._at : end]):
            return 0 if self._goes_on(end, trail) else trail
        if trail < len(self._text) and not self._text[trail].isspace():
            return trail if self._within_cjk(end, trail) else 0
        return self._spaced_end(end, trail, at_end)

    def _spaced_end(self, end: int, trail: int, at_end: bool) -> int | None:
        mark = self._text[self._at : end]
        if mark == "." and self._text[self._at - 1 : self._at].isspace():  # ". . ."
            return 0
        if mark == "." and (number := list_number(self._text, self._start, self._at, self._list_number)):
            self._list_number = number
            return 0
        word = word_before(self._text, self._start, self._at)
        before = self._at - len(word)
        preceding = self._text[max(self._start, before - PRECEDING_MAX) : before]
        ends = ends_sentence(mark, word, trail > end, self._text[trail : trail + LOOK_AHEAD], at_end, preceding)
        if ends is None:
            return None
        return trail if ends else 0

    def _trail(self, end: int, at_end: bool) -> int | None:
        """The end of closed quotes, brackets, emphasis and footnote marks after the mark; None when more may come."""
        if self._opens_next(end):
            return end
        found = _TRAIL.match(self._text, end)
        trail = found.end() if found else end
        if at_end or trail - end >= _RUN_MAX:
            return trail
        return None if _PART_OF_FOOTNOTE.fullmatch(self._text, trail) else trail

    def _opens_next(self, end: int) -> bool:
        """Whether a straight quote follows that none awaits: without spaces, as in Chinese, it begins what comes."""
        return self._text.startswith('"', end) and self._text[end - 1] in FULL_ENDS and '"' not in self._open

    def _stays_open(self, end: int, trail: int) -> bool:
        if not self._open or trail - self._start >= _NESTED_MAX:
            return False
        still = self._open.copy()
        for char in self._text[end:trail]:
            _close(still, char)
        return bool(still)

    def _goes_on(self, end: int, trail: int) -> bool:
        """ "３．５", and 「行く。」と言った: in Japanese the sentence around a quotation goes on with a particle."""
        following = self._text[trail : trail + 1]
        if trail == end:
            return self._text[self._at - 1 : self._at].isdecimal() and following.isdecimal()
        return is_hiragana(following)

    def _within_cjk(self, end: int, trail: int) -> bool:
        """Chinese and Japanese with the marks of Latin script and no spaces: "你好!我是"."""
        one = self._text[self._at : end].strip("!?") in ("", ".")
        return one and self._at > self._start and is_cjk(self._text[self._at - 1]) and is_cjk(self._text[trail])


def _length_of_run(text: str, at: int) -> int:
    length = 1
    while length < _RUN_MAX and text[at + length : at + length + 1] in _ENDS_SET:
        length += 1
    return length


def _close(awaited: list[str], char: str) -> bool:
    """If `char` closes a pair, close the innermost one and what was left open inside it; return whether it does."""
    closer = char
    if char in TWO_WAY_QUOTES and char not in awaited:  # "»So»", as in Swedish
        closer = PAIRS[char]
    if closer not in awaited:
        return False
    while awaited.pop() != closer:
        pass
    return True
