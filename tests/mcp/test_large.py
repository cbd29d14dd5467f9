"""Long answers are carried past the SDK, and come out as they went in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from echokit_py.mcp.large import LARGE, MOST, MOST_KEPT, EventStream, LongAnswers, TooLong

LONG: dict[str, Any] = {"content": [{"type": "text", "text": "é水\n\r" * (LARGE // 6)}]}


def answer(number: int | str, result: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}, ensure_ascii=False).encode()


def taken(answers: LongAnswers, message: bytes) -> Any:
    raw = answers.take(json.loads(message)["result"])
    return None if raw is None else json.loads(bytes(raw))


def test_a_long_result_is_marked_and_comes_back_once() -> None:
    answers = LongAnswers()
    short = answers.shrink(answer(7, LONG))
    assert len(short) < 300
    assert json.loads(short)["id"] == 7
    assert taken(answers, short) == LONG
    assert taken(answers, short) is None


@pytest.mark.parametrize(
    "message",
    [
        answer(1, {"content": []}),
        json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m" * LARGE}}).encode(),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "d" * LARGE}}).encode(),
        b"x" * (LARGE + 1),
        answer(1, LONG)[:-5],
        b'{"id": 1, "result": ' + b"[" * LARGE,
    ],
    ids=["short", "error", "notification", "garbage", "cut off", "too deep"],
)
def test_everything_else_passes_as_it_is(message: bytes) -> None:
    assert LongAnswers().shrink(message) is message


def test_answers_that_nobody_takes_are_not_kept_for_ever() -> None:
    answers = LongAnswers()
    big = {"content": [{"type": "text", "text": "x" * (MOST // 2)}]}
    marks = [answers.shrink(answer(number, big)) for number in range(10)]
    kept = [number for number, mark in enumerate(marks) if taken(answers, mark) is not None]
    assert kept == list(range(10 - len(kept), 10))  # the last
    assert 2 <= len(kept) <= 2 * MOST_KEPT // MOST
    assert taken(answers, answers.shrink(answer(10, big))) == big


def test_a_server_can_not_write_a_mark() -> None:
    answers = LongAnswers()
    answers.shrink(answer(1, LONG))
    assert answers.take({"echokit.long-answer": "0:1"}) is None
    assert answers.take({"echokit.long-answer": {"a": 1}}) is None


def test_answers_that_nobody_takes_are_forgotten() -> None:
    answers = LongAnswers()
    marked = [answers.shrink(answer(number, {"x": "y" * LARGE})) for number in range(100)]
    assert taken(answers, marked[0]) is None
    assert taken(answers, marked[-1]) == {"x": "y" * LARGE}


STREAM = (
    b": a comment\n\n"
    b"event: message\nid: 5\ndata: " + answer(1, {"content": []}) + b"\n\n"
    b"event: message\r\nid: 6\r\ndata: " + answer(2, LONG) + b"\r\n\r\n"
    b"retry: 10\r\r"
    b"data: " + answer(3, {"x": 1}) + b"\n\n"
)


def read(stream: bytes) -> list[dict[str, str]]:
    """The events, with the lines of each as a dictionary."""
    events = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode().split("\n\n")
    return [dict(line.partition(": ")[::2] for line in event.split("\n")) for event in events if event]


@pytest.mark.parametrize("size", [1, 3, 1000, 1 << 16, len(STREAM)])
def test_a_stream_of_events_is_the_same_however_it_arrives(size: int) -> None:
    answers = LongAnswers()
    stream = EventStream(answers)
    out = b"".join(stream.feed(STREAM[start : start + size]) for start in range(0, len(STREAM), size)) + stream.flush()
    events = read(out)
    assert [event.get("id") for event in events] == [None, "5", "6", None, None]
    assert events[:2] + events[3:] == read(STREAM)[:2] + read(STREAM)[3:]
    assert events[2]["event"] == "message"
    assert taken(answers, events[2]["data"].encode()) == LONG


def test_an_event_passes_as_soon_as_it_is_complete() -> None:
    stream = EventStream(LongAnswers())
    assert stream.feed(b"data: 1\n") == b""
    assert stream.feed(b"\ndata: 2\r\n\r\ndata") == b"data: 1\n\ndata: 2\r\n\r\n"
    assert stream.flush() == b"data"


def test_an_event_has_a_bound() -> None:
    stream = EventStream(LongAnswers())
    piece = b"x" * (1 << 20)
    with pytest.raises(TooLong):
        for _ in range(MOST // len(piece) + 2):
            stream.feed(piece)
