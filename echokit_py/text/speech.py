"""Turns a piece of an answer into what a voice may say: no marks, pictures or code. Leaves the text shown alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

from echokit_py.text.characters import FULL_ENDS, FULL_PAUSES
from echokit_py.text.latex import plain
from echokit_py.text.markdown import ADDRESS_START, NO_ADDRESS, words_of
from echokit_py.text.sentences import HARD_MAX

# Said once in the place of a code block: nobody can follow code by ear, but silence would sound like a fault. In the
# language of the words before it, as far as their script tells.
CODE_NOTE = "Code block."
_CODE_NOTES = (
    (re.compile("[\u3041-\u30ff]"), "コードです。"),
    (re.compile("[\uac00-\ud7a3]"), "코드입니다."),
    (re.compile("[\u4e00-\u9fff]"), "代码。"),
    (re.compile("[\u0430-\u044f]"), "Код."),
)
# So many of the characters before it are looked at.
_TAIL = 60
# A longer fence counts for one of so many marks: a row of thousands comes in several pieces.
_FENCE_MAX = 16

# Pictures for the eye: emoji and their modifiers, arrows, technical signs, boxes, shapes, dingbats. Not the digits
# in circles, which are numbers.
_PICTURES = re.compile(
    "[\u2190-\u21ff\u2300-\u23ff\u2500-\u2775\u2794-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001f0ff\U0001f10d-\U0001faff\U000e0020-\U000e007f\ufe00-\ufe0f\u20e3]+"
)
# Joiners shape letters in Persian and in the scripts of India; elsewhere they glue emoji together.
_JOINERS = re.compile("(?<![\u0600-\u0dff])[\u200c\u200d]+")
# Controls, surrogates, private use, soft hyphens, and invisible marks of direction and joining.
_UNSPEAKABLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\uffff"
    "\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff]+"
)
_COLOUR = re.compile("\x1b\\[[0-9;]{0,20}[A-Za-z]")  # and the other orders to a terminal
_EMPTY_BRACKETS = re.compile(r"\(\s*\)|\[\s*\]|（\s*）|【\s*】")
_DRAWN_LINE = re.compile(r"[-=_~]{3,}")
_SPACE_BEFORE_MARK = re.compile(rf"\s+(?:([,.;:!?…]+)(?=\s|$)|([{FULL_ENDS}{FULL_PAUSES}]))")
_OUTSIDE_ADDRESS = re.compile(f"[{NO_ADDRESS}]")
_ADDRESS_START = re.compile(ADDRESS_START, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Block:
    """Something that may span pieces: from `opening` to `closing`."""

    closing: re.Pattern[str]
    is_formula: bool = False
    is_code: bool = False


# Reasoning is taken out of the answer where it streams (echokit_py.llm). What models call it there is listed; a name
# that isn't is known by standing at the beginning of a line or right behind a sentence.
_OPENING = re.compile(
    r"(?P<fence>```+)|^\s*(?P<tildes>~~~+)|(?P<dollars>\$\$)|(?P<bracket>\\\[)|(?P<comment><!--)"
    r"|^\s*(?P<environment>\\begin\{[A-Za-z]{1,20}\*?\})"
    r"|(?P<script><(?:script|style|svg)(?:\s[^<>]*)?>)"
    r"|(?:^\s*|(?<=[.!?…。！？]))(?P<thought><(?:\w+:)?"
    r"(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|monologue)(?:\s[^<>]*)?>)",
    re.M | re.I,
)
_BLOCKS = {
    "dollars": _Block(re.compile(r"\$\$"), is_formula=True),
    "bracket": _Block(re.compile(r"\\\]"), is_formula=True),
    "environment": _Block(re.compile(r"\\end\{[A-Za-z]{1,20}\*?\}"), is_formula=True),
    "comment": _Block(re.compile("-->")),
    "script": _Block(re.compile(r"</(?:script|style|svg)\s*>", re.I)),
    "thought": _Block(re.compile(r"</(?:\w+:)?(?:think|thought|reason|reflect|scratch|analysis|mono)\w*\s*>", re.I)),
}


class SpeechFilter:
    """Filters the pieces of one answer in their order: remembers that a block of code or a formula is open."""

    def __init__(self) -> None:
        self._block: _Block | None = None
        self._in_address = False  # the last piece was parted in the middle of one
        self._tail = ""

    def speakable(self, piece: str) -> str:
        """Return what may be spoken of `piece`, "" when nothing in it has a letter or a digit."""
        parts: list[str] = []
        piece = "\n".join(filter(None, (" ".join(line.split()) for line in piece.splitlines())))
        piece = self._behind_address(piece)
        while piece:
            piece = self._inside(piece, parts) if self._block else self._outside(piece, parts)
        text = " ".join(part for part in map(_tidy, parts) if part)
        self._tail = (self._tail + text)[-_TAIL:]
        return text if any(char.isalnum() for char in text) else ""

    def _behind_address(self, piece: str) -> str:
        """Leave out what is the rest of an address; take note whether the next piece begins with more of it."""
        *before, tail = _OUTSIDE_ADDRESS.split(piece)
        begun = self._in_address
        if self._block or len(piece) < HARD_MAX:
            self._in_address = False
        elif before or not begun:
            self._in_address = bool(_ADDRESS_START.search(tail)) or (piece.endswith(f"]{tail}") and tail[:1] == "(")
        if begun:
            rest = _OUTSIDE_ADDRESS.search(piece)
            return piece[rest.start() :] if rest else ""
        return piece

    def _outside(self, piece: str, parts: list[str]) -> str:
        """Speak up to the next block; return what follows its opening."""
        opening = _OPENING.search(piece)
        parts.append(words_of(piece[: opening.start()] if opening else piece))
        if opening is None:
            return ""
        kind = opening.lastgroup or ""
        self._block = _BLOCKS.get(kind) or _code(kind, opening[kind])
        if self._block.is_code:
            parts.append(_code_note(self._tail + parts[-1]))
        return piece[opening.end() :]

    def _inside(self, piece: str, parts: list[str]) -> str:
        """Pass over the block, or speak it if it is a formula; return what follows its end."""
        block = self._block
        assert block is not None  # `speakable` looked
        closing = block.closing.search(piece)
        if block.is_formula:
            parts.append(words_of(plain(piece[: closing.start()] if closing else piece)))
        if closing is None:
            return ""
        self._block = None
        return piece[closing.end() :]


def speakable(piece: str) -> str:
    """As `SpeechFilter.speakable`, for a text that stands on its own."""
    return SpeechFilter().speakable(piece)


def _code(kind: str, fence: str) -> _Block:
    """A block of code ends with a fence that is at least as long as the one it began with (CommonMark, 4.5)."""
    marks = rf"{fence[0]}{{{min(len(fence), _FENCE_MAX)},}}"
    return _Block(re.compile(rf"^\s*{marks}" if kind == "tildes" else marks, re.M), is_code=True)


def _code_note(before: str) -> str:
    return next((note for script, note in _CODE_NOTES if script.search(before[-_TAIL:])), CODE_NOTE)


def _tidy(text: str) -> str:
    text = _COLOUR.sub("", text)
    text = _JOINERS.sub("", _PICTURES.sub(" ", text))
    text = _UNSPEAKABLE.sub("", text)
    text = _EMPTY_BRACKETS.sub(" ", _DRAWN_LINE.sub(" ", text))
    return _SPACE_BEFORE_MARK.sub(r"\1\2", " ".join(text.split()))
