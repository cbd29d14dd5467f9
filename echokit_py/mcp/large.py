"""Carries long answers past the SDK, whose check of 250 kB of tools holds the event loop up for 30 ms. Does no I/O.

A transport gives each message to `shrink`, which puts a mark in the place of a long result; after the SDK has matched
the answer with its request, `take` gives the result back, still as JSON.
"""

from __future__ import annotations

import re
import secrets
from typing import Any

import msgspec

LARGE = 16 * 1024  # bytes; what is below takes the SDK about 1 ms
MOST = (
    16 * 1024 * 1024
)  # bytes of one message; escaped, and said twice (as text and as structure), a text takes 12 fold
# Of answers that nobody takes any more, because their calls were given up.
_MOST_ANSWERS = 64
MOST_KEPT = 4 * MOST  # bytes
_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n|\Z))")


class _Answer(msgspec.Struct):
    id: int | str
    result: msgspec.Raw


_read_answer = msgspec.json.Decoder(_Answer).decode
_MARK = "echokit.long-answer"


class LongAnswers:
    """The long results of one connection, between its transport and whoever asked."""

    def __init__(self) -> None:
        self._secret = secrets.token_hex(16)  # so that no server can write a mark
        self._kept: dict[str, msgspec.Raw] = {}
        self._size = 0
        self._count = 0

    def shrink(self, message: bytes) -> bytes:
        """Return a JSON-RPC message as it is, or, if it is a long answer, with a mark as its result."""
        if len(message) < LARGE:
            return message
        try:
            answer = _read_answer(message)
        except (msgspec.DecodeError, RecursionError):
            return message
        self._count += 1
        mark = f"{self._secret}:{self._count}"
        result = answer.result.copy()
        self._kept[mark] = result
        self._size += len(memoryview(result))
        while len(self._kept) > _MOST_ANSWERS or self._size > MOST_KEPT:
            self._take(next(iter(self._kept)))
        return msgspec.json.encode({"jsonrpc": "2.0", "id": answer.id, "result": {_MARK: mark}})

    def take(self, result: dict[str, Any]) -> msgspec.Raw | None:
        """Return what a result with a mark stands for; None for any other."""
        mark = result.get(_MARK)
        return self._take(mark) if isinstance(mark, str) else None

    def _take(self, mark: str) -> msgspec.Raw | None:
        result = self._kept.pop(mark, None)
        if result is not None:
            self._size -= len(memoryview(result))
        return result


class TooLong(Exception):
    """A message of more than `MOST` bytes."""


class EventStream:
    """Shrinks the long answers in a stream of server-sent events; passes everything else as it came."""

    def __init__(self, answers: LongAnswers) -> None:
        self._answers = answers
        self._pieces: list[bytes] = []  # of the event that isn't complete, without its last bytes
        self._size = 0
        self._last = b""  # these may be a part of the blank line that ends it

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return those of the events that are complete. Raises TooLong."""
        text = self._last + data
        ready: list[bytes] = []
        begin = 0
        while end := _BLANK_LINE.search(text, begin):
            ready.append(self._event(b"".join([*self._pieces, text[begin : end.end()]])))
            self._pieces, self._size, begin = [], 0, end.end()
        cut = max(begin, len(text) - 3)
        self._pieces.append(text[begin:cut])
        self._size += cut - begin
        self._last = text[cut:]
        if self._size > MOST:
            raise TooLong
        return b"".join(ready)

    def flush(self) -> bytes:
        """The end of the stream: return what is left of it."""
        rest = b"".join([*self._pieces, self._last])
        self._pieces, self._size, self._last = [], 0, b""
        return self._event(rest)

    def _event(self, event: bytes) -> bytes:
        if len(event) < LARGE:
            return event
        lines = event.splitlines()
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
        short = self._answers.shrink(data)
        if short is data:
            return event
        others = [line for line in lines if line and not line.startswith(b"data:")]
        return b"\n".join([*others, b"data: " + short, b"", b""])
