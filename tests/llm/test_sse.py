"""The decoder of server-sent events: the same events however the bytes are cut, and none that never ends."""

from __future__ import annotations

import random

import pytest

from echokit_py.llm.sse import SseDecoder, SseError, SseEvent

# Every rule of the format in one body: byte order mark, comments, fields in all spellings, several data lines, an
# event without data, characters of two to four bytes, and a last event without its blank line.
LINES = [
    "\ufeff: hello",
    "data: first",
    "",
    "event: note",
    "id: 7",
    "retry: 20",
    "data:  two spaces, one is kept",
    "data:no space",
    "",
    ": just to keep the line open",
    "",
    "event: dropped",
    "",
    "data: ø 橋 🎈",
    "unknown: field",
    "data",
    "",
    "data: not ended",
]
EVENTS = [
    SseEvent("", b"first"),
    SseEvent("note", b" two spaces, one is kept\nno space"),
    SseEvent("", "ø 橋 🎈\n".encode()),
    SseEvent("", b"not ended"),
]


def decode(pieces: list[bytes]) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.flush()


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
def test_the_same_events_whole_and_byte_by_byte(line_end: str) -> None:
    body = line_end.join(LINES).encode()
    assert decode([body]) == EVENTS
    assert decode([body[place : place + 1] for place in range(len(body))]) == EVENTS


def test_the_same_events_with_mixed_line_ends_and_random_cuts() -> None:
    chance = random.Random(5)
    for _ in range(100):
        # A lone CR before an LF would be one line end, so an empty line never follows a CR with an LF.
        body = "".join(line + (chance.choice(["\n", "\r\n"])) for line in LINES[:-1]).encode() + LINES[-1].encode()
        cuts = sorted(chance.sample(range(len(body)), 12))
        pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
        assert decode(pieces) == EVENTS


def test_a_line_feed_that_comes_later_belongs_to_its_carriage_return() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\r") == []
    assert decoder.feed(b"") == []
    assert decoder.feed(b"\ndata: b\r\n\r") == [SseEvent("", b"a\nb")]
    assert decoder.feed(b"\ndata: c\n\n") == [SseEvent("", b"c")]


def test_an_event_comes_at_once_with_its_blank_line() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\n") == []
    assert decoder.feed(b"\n") == [SseEvent("", b"a")]


def test_bytes_that_are_no_utf_8_are_passed_on_as_they_are() -> None:
    assert decode([b"event: \xff\ndata: \xff\n\n"]) == [SseEvent("\ufffd", b"\xff")]


def test_nothing_comes_of_nothing() -> None:
    assert decode([]) == []
    assert decode([b"\n\n\n"]) == []


@pytest.mark.parametrize("body", [b"data: " + b"x" * 30, b"data: 12345678\n" * 3, b": " + b"x" * 30])
def test_an_event_that_does_not_end_is_refused(body: bytes) -> None:
    decoder = SseDecoder(max_event_bytes=30)
    with pytest.raises(SseError, match="longer than 30 bytes"):
        for place in range(len(body)):
            decoder.feed(body[place : place + 1])


def test_many_short_events_are_no_long_one() -> None:
    decoder = SseDecoder(max_event_bytes=30)
    assert len(decoder.feed(b"data: 12345678\n\n" * 100)) == 100
