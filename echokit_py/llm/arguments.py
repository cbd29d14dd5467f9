"""Reads the arguments of a call from its fragments, and refuses what has no honest reading. Repairs nothing.

The meaning of fragments is plain concatenation. Only when that is no JSON are the few other ways tried in which
servers are known to send them, each of which keeps all that the model wrote and adds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from echokit_py.llm.base import Refusal

NO_ARGUMENTS = "{}"


class ArgumentsError(ValueError):
    """The arguments can't be read; `refusal` says why."""

    def __init__(self, refusal: Refusal, message: str) -> None:
        super().__init__(message)
        self.refusal = refusal


def read_object(text: str) -> dict[str, Any]:
    """Return the object that strict JSON (RFC 8259) reads in `text`. Raises ArgumentsError.

    Integers are exact. A number that a double can't hold is refused: it would reach the tool as infinity.
    """
    value = _value(text)
    if not isinstance(value, dict):
        raise ArgumentsError(Refusal.NOT_AN_OBJECT, "the arguments are no JSON object")
    return value


def read_fragments(pieces: Sequence[str], *, nothing_required: bool) -> str:
    """Return the text of the arguments object, as the model wrote it, or `{}` where it wrote nothing.

    Args:
        pieces: the fragments in the order in which they came.
        nothing_required: the tool runs without arguments, as far as is known.

    Raises:
        ArgumentsError: no reading gives an object.
    """
    pieces = [piece for piece in pieces if piece]
    text = "".join(pieces)
    if is_blank(text):
        if nothing_required:
            return NO_ARGUMENTS
        raise ArgumentsError(Refusal.BAD_JSON, "the arguments are missing")
    try:
        value = _value(text)
    except ArgumentsError:
        other = _other_reading(pieces, text)
        if other is None:
            raise
        return other
    if isinstance(value, dict):
        return text
    if value is None and nothing_required:
        return NO_ARGUMENTS
    if isinstance(value, str) and _is_object(value):
        return value  # encoded twice
    raise ArgumentsError(Refusal.NOT_AN_OBJECT, "the arguments are no JSON object")


def is_blank(text: str) -> bool:
    """Whether `text` holds no arguments at all."""
    return not text or text.isspace()


class Closing:
    """Tells, fed with the pieces of a JSON text, whether its outermost value has closed. Checks nothing else."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self.closed = False

    def feed(self, text: str) -> None:
        """Take in the next piece of the text."""
        for character in text:
            if self._in_string:
                self._string(character)
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
                self.closed = False
            elif character in "}]":
                self._depth -= 1
                self.closed = self._depth == 0

    def _string(self, character: str) -> None:
        if self._escaped:
            self._escaped = False
        elif character == "\\":
            self._escaped = True
        elif character == '"':
            self._in_string = False
            self.closed = self._depth == 0


def _other_reading(pieces: Sequence[str], text: str) -> str | None:
    for reading in (_snapshots, _whole_at_the_end, _after_placeholder, _said_again):
        found = reading(pieces, text)
        if found is not None:
            return found
    return None


def _snapshots(pieces: Sequence[str], _text: str) -> str | None:
    """Each fragment repeats all so far and goes on."""
    before = ""
    for piece in pieces:
        if not piece.startswith(before):
            return None
        before = piece
    return before if _is_object(before) else None


def _whole_at_the_end(pieces: Sequence[str], text: str) -> str | None:
    """Fragments, and then the whole once more."""
    last = pieces[-1]
    return last if last.startswith(text[: -len(last)]) and _is_object(last) else None


def _after_placeholder(pieces: Sequence[str], text: str) -> str | None:
    """An empty object that a server put first as a placeholder, then the real one."""
    rest = text[len(pieces[0]) :]
    return rest if pieces[0].strip() == NO_ARGUMENTS and _is_object(rest) else None


def _said_again(pieces: Sequence[str], text: str) -> str | None:
    """The whole twice, each time in any number of fragments, perhaps spaced differently."""
    try:
        first, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    borders = set()
    position = 0
    for piece in pieces:
        position += len(piece)
        borders.add(position)
    whole, again = text[:end], text[end:]
    if end not in borders or not isinstance(first, dict):
        return None
    return whole if _is_object(whole) and _is_object(again) and _canonical(whole) == _canonical(again) else None


def _canonical(text: str) -> object:
    """The value with its numbers as written, so that 1, 1.0 and true stay different."""
    return json.loads(text, parse_int=lambda number: ("number", number), parse_float=lambda number: ("number", number))


def _is_object(text: str) -> bool:
    try:
        return isinstance(_value(text), dict)
    except ArgumentsError:
        return False


def _value(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        if "\\u" in text:
            # Half of a surrogate pair, escaped, is within the grammar but is no character: no tool can be sent it.
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ArgumentsError(Refusal.BAD_JSON, f"the arguments are not JSON: {error}") from None
    return value


def _finite(number: str) -> float:
    value = float(number)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{number[:40]} is too large")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
