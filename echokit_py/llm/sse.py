"""Decodes server-sent events: bytes in, events out. Does no I/O and knows nothing of what the events mean.

Source of the format: WHATWG HTML, "Server-sent events", 9.2.5 and 9.2.6.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_EVENT_BYTES = 8 * 1024 * 1024
"""The longest event taken in. A whole answer in one event (Responses API) stays far below it."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """One event. `data` is UTF-8, not yet decoded, so that its reader notices bytes that are not."""

    event: str
    data: bytes


class SseError(ValueError):
    """The stream breaks a bound: an event that doesn't end."""


class SseDecoder:
    """Takes the body of a response in pieces of any size.

    Lines may end with LF, CR or CRLF, cut anywhere. Time is linear in the bytes, memory bounded by `max_event_bytes`.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._pending = bytearray()  # the line that has not ended yet
        self._ended_with_cr = False
        self._first_line = True
        self._event = ""
        self._data: list[bytes] = []
        self._size = 0  # bytes of the event so far, without the pending line

    def feed(self, data: bytes) -> list[SseEvent]:
        """Take in bytes; return the events they complete. Raises SseError."""
        # A CR ends its line at once (no waiting for an LF that may never come); an LF right after it is part of it.
        if self._ended_with_cr and data:
            data = data.removeprefix(b"\n")
            self._ended_with_cr = False
        if b"\r" in data:
            self._ended_with_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in data:
            self._pending += data
            self._check_bound()
            return []
        lines = data.split(b"\n")
        if self._pending:
            lines[0] = bytes(self._pending) + lines[0]
        self._pending = bytearray(lines.pop())
        events = self._lines(lines)
        self._check_bound()
        return events

    def flush(self) -> list[SseEvent]:
        """Take the end of the body; return the last event where its blank line is missing."""
        last = bytes(self._pending)
        self._pending.clear()
        return self._lines([last, b""] if last else [b""])

    def _lines(self, lines: list[bytes]) -> list[SseEvent]:
        if self._first_line and lines:
            self._first_line = False
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
        events: list[SseEvent] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
                self._size += len(line)
            elif line:
                self._field(line)
            else:
                if self._data:
                    events.append(SseEvent(self._event, b"\n".join(self._data)))
                    self._data = []
                self._event = ""
                self._size = 0
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"event":
            self._event = value.removeprefix(b" ").decode("utf-8", "replace")
        elif line == b"data":
            self._data.append(b"")
        # A comment (empty name), id, retry and unknown fields say nothing to us.

    def _check_bound(self) -> None:
        if self._size + len(self._pending) > self._max:
            raise SseError(f"an event of the stream is longer than {self._max} bytes")
