"""The fast way for common events: to the same effect as the general one, whatever comes, and really taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echokit_py.llm.answer import Outcome
from echokit_py.llm.common_events import arguments_piece, chat_piece
from echokit_py.llm.stream import ChatStream, ResponsesStream

Stream = Callable[[None], ChatStream | ResponsesStream]

NOTHING = st.sampled_from([None, ""])
ODD = st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.floats(0, 2), st.just("x"), st.just([]), st.just({}))
TEXT = st.sampled_from(["", "{", "}", '{"a": 1}', "Hello. ", "é水", "\\", '"', "<think>", "\ud83d"])


def fields(common: dict[str, st.SearchStrategy[Any]], **odd: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects with any of the members, each mostly of its common form and now and then of an odd one."""
    optional = {key: st.one_of(value, value, value, ODD) for key, value in {**common, **odd}.items()}
    return st.fixed_dictionaries({}, optional=optional)


FUNCTION = fields({"name": st.sampled_from([None, "", "clock"]), "arguments": TEXT})
FRAGMENT = fields({"index": st.integers(0, 2), "id": st.sampled_from([None, "", "c1", "c2"]), "function": FUNCTION})
DELTA = fields(
    {"content": TEXT, "tool_calls": st.lists(FRAGMENT, max_size=2), "role": st.just("assistant")},
    **{key: NOTHING for key in ("reasoning_content", "reasoning", "refusal", "function_call")},
)
CHOICE = fields(
    {"index": st.just(0), "delta": DELTA, "finish_reason": st.sampled_from([None, "", "tool_calls", "length"])},
    message=st.one_of(st.none(), DELTA),
    error=NOTHING,
    logprobs=st.none(),
)
CHUNK = fields(
    {"choices": st.lists(CHOICE, min_size=1, max_size=2), "object": st.just("chat.completion.chunk")},
    error=NOTHING,
    usage=st.none(),
    type=st.none(),
)
EVENT = fields(
    {
        "type": st.sampled_from(
            ["response.function_call_arguments.delta", "response.output_item.added", "response.completed"]
        ),
        "item_id": st.sampled_from(["i1", "i2", ""]),
        "output_index": st.integers(0, 2),
        "delta": TEXT,
        "item": st.fixed_dictionaries(
            {"type": st.just("function_call"), "id": st.sampled_from(["i1", "i2"]), "name": st.just("clock")}
        ),
    }
)


def outcome(stream: ChatStream | ResponsesStream, body: list[bytes]) -> tuple[list[Any], Outcome]:
    deltas = [delta for data in body for delta in stream.feed(data)]
    return deltas, stream.close(clean=True)


def comparable(found: tuple[list[Any], Outcome]) -> Any:
    deltas, end = found
    step = end.step
    calls = [(call.name, call.arguments) for call in step.calls]  # ids may be minted
    ids = [call.id for call in step.calls if not call.id.startswith("call_")]
    return deltas, end.rest, str(end.error), step.text, step.finish_reason, calls, ids, step.refused, end.call_text


@pytest.mark.parametrize(("kind", "events"), [(ChatStream, CHUNK), (ResponsesStream, EVENT)])
@settings(max_examples=150)
@given(data=st.data())
def test_the_fast_way_and_the_general_one_agree(kind: Stream, events: st.SearchStrategy[Any], data: Any) -> None:
    body = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in data.draw(st.lists(events, max_size=5))]
    fast = comparable(outcome(kind(None), body))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("echokit_py.llm.chat_events.chat_piece", lambda _: None)
        patch.setattr("echokit_py.llm.responses_events.arguments_piece", lambda _: None)
        general = comparable(outcome(kind(None), body))
    assert fast == general


def chunk(delta: object, **members: object) -> bytes:
    return json.dumps({"choices": [{"index": 0, "delta": delta, **members}], "usage": None}).encode()


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "Hello."},
        {"role": "assistant", "content": None, "tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
        {"content": "", "tool_calls": [{"index": 1, "id": "c", "type": "function", "function": {"name": "clock"}}]},
    ],
)
def test_pieces_take_the_fast_way(delta: object) -> None:
    assert chat_piece(chunk(delta)) is not None
    assert chat_piece(chunk(delta, finish_reason=None, logprobs=None)) is not None


@pytest.mark.parametrize(
    "data",
    [
        chunk({}),
        chunk({"role": "assistant"}),
        chunk({"content": "Hello."}, finish_reason="stop"),
        chunk({"content": "Hello."}, message={"content": "Hello."}),
        chunk({"content": "Hello.", "reasoning": "Hm."}),
        chunk({"content": ["Hello."]}),
        chunk({"content": "Hello."}).replace(b'"usage"', b'"error": "late", "usage"'),
        chunk({"content": "Hello."}).replace(b'"usage"', b'"x": "\xff", "usage"'),
        b'{"choices": []}',
        b'{"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]}',
        b'{"choices": [{"index": 1, "delta": {"content": "b"}}]}',
        b"[" * 100_000,
    ],
)
def test_what_says_more_goes_the_general_way(data: bytes) -> None:
    assert chat_piece(data) is None


def test_text_that_is_not_ascii_takes_the_fast_way() -> None:
    assert chat_piece('{"choices": [{"delta": {"content": "水"}}]}'.encode()) is not None


def test_a_piece_of_arguments_takes_the_fast_way() -> None:
    event = b'{"type": "response.function_call_arguments.delta", "item_id": "i", "output_index": 0, "delta": "{"}'
    piece = arguments_piece(event)
    assert piece is not None
    assert (piece.item_id, piece.delta) == ("i", "{")
    assert arguments_piece(event.replace(b'"i"', b"null")) is None
    assert arguments_piece(event.replace(b"0", b'"\xff"')) is None
