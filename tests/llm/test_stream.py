"""From the bytes of an answer to its outcome, over both APIs: what is said, what runs, and how it ended."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echokit_py.errors import ErrorKind
from echokit_py.llm import answer as answer_module
from echokit_py.llm import stream as stream_module
from echokit_py.llm import tool_calls
from echokit_py.llm.base import ReasoningDelta, Refusal, RefusedCall, TextDelta, ToolCall
from echokit_py.llm.sse import SseDecoder
from echokit_py.llm.stream import ChatStream, Delta, Outcome, ResponsesStream

TOOLS = ["open_blind", "count_sheep", "tell_time"]
DONE = b"data: [DONE]\n\n"


def event(value: object, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def delta(finish_reason: str | None = None, **fields: Any) -> bytes:
    return event({"id": "x", "choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]})


def call(index: int | None, name: str = "", arguments: Any = "", **fields: Any) -> bytes:
    entry = {"index": index, "type": "function", "function": {"name": name, "arguments": arguments}, **fields}
    return delta(tool_calls=[{key: value for key, value in entry.items() if value is not None}])


def read(
    *pieces: bytes, clean: bool = True, stream: ChatStream | ResponsesStream | None = None
) -> tuple[list[Delta], Outcome]:
    reader = ChatStream(TOOLS) if stream is None else stream
    deltas = [one for piece in pieces for one in reader.feed(piece)]
    outcome = reader.close(clean)
    deltas += outcome.rest
    return deltas, outcome


def respond(*pieces: bytes, clean: bool = True) -> Outcome:
    return read(*pieces, clean=clean, stream=ResponsesStream(TOOLS))[1]


def ran(outcome: Outcome) -> list[tuple[str, str, str]]:
    assert outcome.error is None
    assert outcome.step.refused == ()
    return [(one.id, one.name, one.arguments) for one in outcome.step.calls]


def failure(outcome: Outcome) -> ErrorKind:
    assert outcome.error is not None
    assert outcome.step.calls == ()
    return outcome.error.kind


CALL = call(0, "count_sheep", '{"n":1}', id="a")


class TestText:
    def test_streams(self) -> None:
        deltas, outcome = read(
            delta(role="assistant", content=""), delta(content="It is "), delta(content="noon."), DONE
        )
        assert deltas == [TextDelta("It is "), TextDelta("noon.")]
        assert outcome.step.text == "It is noon."
        assert outcome.error is None

    def test_and_reasoning_are_kept_apart(self) -> None:
        deltas, outcome = read(
            delta(reasoning_content="Hm", reasoning="Hm"),
            delta(reasoning=" so."),
            delta(reasoning={"vendor": 1}, content="<think>And</thi"),
            delta(content="nk>Yes."),
            delta("stop"),
            DONE,
        )
        assert "".join(one.text for one in deltas if isinstance(one, TextDelta)) == "Yes."
        assert outcome.step.text == "Yes."
        assert outcome.step.reasoning == "Hm so.And"
        assert outcome.step.finish_reason == "stop"

    def test_in_parts(self) -> None:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
        _, outcome = read(
            delta(content=[thinking, {"type": "text", "text": "Yes"}, "."]),
            delta(content=[{"type": "reasoning", "text": "!"}]),
            DONE,
        )
        assert (outcome.step.text, outcome.step.reasoning) == ("Yes.", "Hm!")

    def test_of_a_refusal_is_said(self) -> None:
        assert read(delta(refusal="I won't."), DONE)[1].step.text == "I won't."

    def test_with_characters_cut_in_halves(self) -> None:
        event_with = b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n'
        first, second = event_with % b"a\\ud83c", event_with % b"\\udf88b"
        assert read(first, second, DONE)[1].step.text == "a🎈b"
        assert read(first, DONE)[1].step.text == "a\ufffd"
        assert read(first)[1].step.text == "a\ufffd"

    def test_before_a_closing_tag_was_reasoning(self) -> None:
        _, outcome = read(delta(content="Let me see."), delta(content="</think>Noon."), DONE)
        assert (outcome.step.text, outcome.step.reasoning) == ("Noon.", "Let me see.")

    def test_withheld_to_the_end_comes_with_the_outcome(self) -> None:
        deltas, outcome = read(delta("stop", content="1 <"))
        assert "".join(one.text for one in deltas) == outcome.step.text == "1 <"
        assert outcome.rest == (TextDelta("<"),)
        assert read(delta("stop", content="1 <"), DONE)[1].rest == ()

    def test_of_a_call_is_not_said_and_reported(self) -> None:
        deltas, outcome = read(delta(content="Ok. <tool_"), delta(content="call>{}</tool_call>"), delta("stop"), DONE)
        assert deltas == [TextDelta("Ok. ")]
        assert outcome.step.text == "Ok. "
        assert outcome.call_text == "<tool_call>{}</tool_call>"
        assert outcome.error is None


class TestChatShapes:
    def test_chunks_without_content_say_nothing(self) -> None:
        _, outcome = read(
            event({"choices": [], "usage": {"total_tokens": 3}}),
            event({"choices": None}),
            event(None),
            event({"choices": [None, {"index": 0, "delta": None}, {"finish_reason": None}]}),
            b"data:\n\n",
            b": ping\n\n",
            event({"type": "ping"}, "ping"),
            delta(content="Yes.", tool_calls=None, function_call=None),
            delta("stop"),
            DONE,
        )
        assert outcome.error is None
        assert outcome.step.text == "Yes."

    def test_other_choices_are_passed_over(self) -> None:
        other = {"index": 1, "delta": {"content": "No."}, "finish_reason": "length"}
        first = {"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}
        assert read(event({"choices": [other, first]}), DONE)[1].step.text == "Yes."

    def test_one_call_that_is_no_list(self) -> None:
        entry = {"id": "a", "function": {"name": "tell_time"}}
        assert ran(read(delta(tool_calls=entry), DONE)[1]) == [("a", "tell_time", "{}")]

    def test_the_old_function_call(self) -> None:
        _, outcome = read(
            delta(function_call={"name": "count_sheep", "arguments": '{"n"'}),
            delta(function_call={"arguments": ":1}"}),
            delta("function_call"),
        )
        ((call_id, *rest),) = ran(outcome)
        assert call_id
        assert rest == ["count_sheep", '{"n":1}']

    def test_arguments_as_an_object_keep_their_digits(self) -> None:
        raw = (
            b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":7,"function":{"name":"count_sheep","arguments":'
        )
        _, outcome = read(raw + b'{"n":1.10}}}]}}]}\n\n', DONE)
        assert ran(outcome) == [("7", "count_sheep", '{"n":1.10}')]

    def test_a_message_beside_the_deltas_adds_what_they_lack(self) -> None:
        message = {"content": "All of it.", "tool_calls": [{"id": "a", "function": {"name": "tell_time"}}]}
        both = {"delta": {"content": "All of it."}, "message": message}
        _, outcome = read(event({"choices": [both]}), event({"choices": [{"message": message, "delta": {}}]}), DONE)
        assert outcome.step.text == "All of it."
        assert ran(outcome) == [("a", "tell_time", "{}")]
        _, outcome = read(CALL, event({"choices": [{"delta": {}, "message": message, "finish_reason": "stop"}]}))
        assert outcome.step.text == "All of it."
        assert [one[1] for one in ran(outcome)] == ["count_sheep"]

    def test_a_message_instead_of_deltas_is_one(self) -> None:
        _, outcome = read(
            event({"choices": [{"message": {"content": "Yes"}}]}),
            event({"choices": [{"message": {"content": "."}}]}),
            DONE,
        )
        assert outcome.step.text == "Yes."

    def test_a_message_beside_the_deltas_that_cannot_be_read(self) -> None:
        _, outcome = read(CALL, event({"choices": [{"delta": {}, "message": {"content": 5}}]}), DONE)
        assert failure(outcome) is ErrorKind.BAD_ANSWER

    def test_events_divided_by_one_line_end(self) -> None:
        body = CALL.replace(b"\n\n", b"\n") + delta("stop", content="Ok.").replace(b"\n\n", b"\n") + b"data: [DONE]\n"
        _, outcome = read(body, b"data: {}\n")
        assert ran(outcome) == [("a", "count_sheep", '{"n":1}')]
        assert outcome.step.text == "Ok."

    def test_what_comes_after_done_is_not_read(self) -> None:
        reader = ChatStream(TOOLS)
        reader.feed(CALL)
        assert not reader.done
        reader.feed(DONE + delta(content="More."))
        assert reader.done
        assert reader.feed(delta(content="More.")) == []
        outcome = reader.close(clean=False)
        assert outcome.step.text == ""
        assert ran(outcome) == [("a", "count_sheep", '{"n":1}')]

    def test_nothing_known_of_the_tools(self) -> None:
        _, outcome = read(call(0, "anything", "", id="a"), DONE, stream=ChatStream(None))
        assert ran(outcome) == [("a", "anything", "{}")]


class TestTheEnd:
    def test_a_finish_reason_proves_it(self) -> None:
        assert ran(read(CALL, delta("stop"))[1])
        assert ran(read(CALL, delta("tool_calls"), call(1, "tell_time", id="b"), delta("tool_calls"))[1])

    def test_done_proves_it(self) -> None:
        assert ran(read(call(0, "tell_time", id="a"), DONE)[1])

    def test_a_clean_end_lets_whole_calls_run(self) -> None:
        assert ran(read(CALL)[1])

    @pytest.mark.parametrize("pieces", [[call(0, "tell_time", "{}", id="a")], [CALL, call(1, "tell_time", id="b")]])
    def test_a_clean_end_alone_proves_nothing_else(self, pieces: list[bytes]) -> None:
        _, outcome = read(*pieces)
        assert failure(outcome) is ErrorKind.BROKEN_OFF
        assert {one.reason for one in outcome.step.refused} == {Refusal.STREAM_CUT}

    @pytest.mark.parametrize("reason", ["length", "content_filter", "MAX_TOKENS", "SAFETY", "abort"])
    def test_a_cut_answer_runs_nothing_and_is_no_error(self, reason: str) -> None:
        _, outcome = read(delta(content="I will"), CALL, delta(reason), delta("stop"), DONE)
        assert outcome.error is None
        assert outcome.step.text == "I will"
        assert outcome.step.refused == (RefusedCall("count_sheep", '{"n":1}', Refusal.TRUNCATED),)

    def test_the_servers_own_failure(self) -> None:
        _, outcome = read(CALL, delta("error"))
        assert failure(outcome) is ErrorKind.SERVER
        assert [one.reason for one in outcome.step.refused] == [Refusal.STREAM_ERROR]

    def test_a_reset_voids_the_calls(self) -> None:
        for pieces in ([CALL], [CALL, delta("tool_calls")]):
            _, outcome = read(*pieces, clean=False)
            assert failure(outcome) is ErrorKind.BROKEN_OFF
            assert [one.reason for one in outcome.step.refused] == [Refusal.STREAM_CUT]

    def test_a_reset_after_the_last_word_hurts_nobody(self) -> None:
        assert read(delta("stop", content="Yes."), clean=False)[1].error is None
        assert failure(read(delta(content="Ye"), clean=False)[1]) is ErrorKind.BROKEN_OFF

    def test_text_without_any_end_broke_off(self) -> None:
        deltas, outcome = read(delta(content="Half a"))
        assert deltas == [TextDelta("Half a")]
        assert failure(outcome) is ErrorKind.BROKEN_OFF
        assert outcome.step.text == "Half a"

    @pytest.mark.parametrize("body", [b"", b"\n\n", b": nothing\n\n"])
    def test_an_empty_body(self, body: bytes) -> None:
        assert failure(read(body)[1]) is ErrorKind.BROKEN_OFF

    def test_inside_an_event(self) -> None:
        _, outcome = read(CALL, delta("stop")[:-20])
        assert failure(outcome) is ErrorKind.BROKEN_OFF
        assert [one.reason for one in outcome.step.refused] == [Refusal.STREAM_CUT]

    def test_without_the_last_line_end(self) -> None:
        assert ran(read(CALL, delta("stop")[:-2])[1])


class TestErrors:
    @pytest.mark.parametrize(
        "broken",
        [
            b'data: {"choices":[{"delta":{"tool\n\n',
            b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n',
            b"data: 5\n\n",
            b"data: a\ndata: b\n\n",
            event({"choices": "x"}),
            event({"choices": [7]}),
            delta(tool_calls="x"),
            delta(tool_calls=[5]),
            delta(tool_calls=[{"index": 0, "id": 1.5}]),
            delta(tool_calls=[{"index": 0, "function": "x"}]),
            delta(tool_calls=[{"index": 0, "function": {"name": 5}}]),
            delta(content={"a": 1}),
        ],
    )
    def test_an_event_that_cannot_be_read_voids_the_calls(self, broken: bytes) -> None:
        _, outcome = read(CALL, broken, delta("tool_calls", content="Ok."), DONE)
        assert failure(outcome) is ErrorKind.BAD_ANSWER
        assert [one.reason for one in outcome.step.refused] == [Refusal.CORRUPT_EVENT]
        assert outcome.step.text == "Ok."

    def test_what_stood_before_the_fault_in_an_event_is_said(self) -> None:
        deltas, outcome = read(delta(content="Yes.", tool_calls=[5]), DONE)
        assert deltas == [TextDelta("Yes.")]
        assert outcome.error is not None

    @pytest.mark.parametrize(
        "broken",
        [
            event({"error": {"message": "gone", "code": 500}}),
            event({"error": "gone"}),
            event({"object": "error", "message": "gone"}),
            event({"type": "error", "message": "gone"}),
            event({"message": "gone"}, "error"),
            b"event: error\ndata: gone\n\n",
            event({"choices": [{"index": 0, "delta": {}, "error": {"message": "gone"}}]}),
        ],
    )
    def test_a_reported_error_ends_the_answer(self, broken: bytes) -> None:
        reader = ChatStream(TOOLS)
        reader.feed(CALL + broken + delta("stop", content="More."))
        assert reader.done
        outcome = reader.close(clean=True)
        assert failure(outcome) is ErrorKind.SERVER
        assert outcome.error is not None
        assert outcome.error.retryable
        assert "gone" in str(outcome.error)
        assert [one.reason for one in outcome.step.refused] == [Refusal.STREAM_ERROR]

    def test_the_time_to_wait_is_kept(self) -> None:
        outcome = read(event({"error": {"message": "slow down, try again in 2s", "code": 429}}))[1]
        assert failure(outcome) is ErrorKind.RATE_LIMIT
        assert outcome.error is not None
        assert outcome.error.retry_after == 2.0

    def test_the_first_error_is_the_one_reported(self) -> None:
        _, outcome = read(CALL, b"data: {\n\n", event({"error": {"code": 500}}), clean=False)
        assert failure(outcome) is ErrorKind.BAD_ANSWER


class TestOtherBodies:
    @pytest.mark.parametrize(
        ("body", "kind"),
        [
            (b"<!DOCTYPE html><title>Log in</title>", ErrorKind.BAD_ANSWER),
            (b"\xef\xbb\xbf\n <html>", ErrorKind.BAD_ANSWER),
            (b'{"error":{"message":"no such model","code":404}}\n', ErrorKind.REFUSED),
            (b'{"detail":"no"}', ErrorKind.SERVER),
            (b'{"object":"error","message":"busy","code":503}', ErrorKind.SERVER),
            (b'{"choices":[]}', ErrorKind.BAD_ANSWER),
            (b'{"choices":[{}]}', ErrorKind.BAD_ANSWER),
            (b'{"choices":[{"message":5}]}', ErrorKind.BAD_ANSWER),
            (b'{"half":', ErrorKind.BAD_ANSWER),
            (b"[]", ErrorKind.BAD_ANSWER),
        ],
    )
    def test_that_answer_nothing(self, body: bytes, kind: ErrorKind) -> None:
        for make in (ChatStream, ResponsesStream):
            for pieces in ([body], [body[place : place + 1] for place in range(len(body))]):
                deltas, outcome = read(*pieces, stream=make(TOOLS))
                assert deltas == []
                assert failure(outcome) is kind

    def test_a_completion_in_one_piece_is_an_answer(self) -> None:
        calls = [{"id": "a", "function": {"name": "tell_time", "arguments": "{}"}}, {"function": {"name": "tell_time"}}]
        message = {"content": "Ok.", "reasoning_content": "Hm.", "tool_calls": calls}
        body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).encode()
        deltas, outcome = read(body)
        assert deltas == [ReasoningDelta("Hm."), TextDelta("Ok.")]
        assert [one[1:] for one in ran(outcome)] == [("tell_time", "{}"), ("tell_time", "{}")]
        assert outcome.step.finish_reason == "tool_calls"

    def test_a_cut_completion_in_one_piece_is_none(self) -> None:
        assert failure(read(b'{"choices":[{"message":{"content":"Ok."}}]}', clean=False)[1]) is ErrorKind.BROKEN_OFF
        cut = {
            "choices": [{"message": {"tool_calls": [{"function": {"name": "tell_time"}}]}, "finish_reason": "length"}]
        }
        assert [one.reason for one in read(json.dumps(cut).encode())[1].step.refused] == [Refusal.TRUNCATED]


class TestBounds:
    def test_of_the_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(answer_module, "MAX_CHARACTERS", 50)
        reader = ChatStream(TOOLS)
        reader.feed(delta(content="x" * 60))
        assert reader.done
        assert failure(reader.close(clean=True)) is ErrorKind.BAD_ANSWER

    def test_of_the_calls(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tool_calls, "MAX_CHARACTERS", 50)
        for reader, piece in (
            (ChatStream(TOOLS), call(0, "count_sheep", "x" * 60)),
            (ResponsesStream(TOOLS), item("done", arguments="x" * 60)),
        ):
            reader.feed(piece)
            assert reader.done
            assert failure(reader.close(clean=True)) is ErrorKind.BAD_ANSWER

    def test_of_an_event(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stream_module, "SseDecoder", lambda: SseDecoder(max_event_bytes=50))
        reader = ChatStream(TOOLS)
        reader.feed(b"data: " + b"x" * 60)
        assert reader.done
        assert failure(reader.close(clean=True)) is ErrorKind.BAD_ANSWER

    def test_of_a_body_that_is_no_stream(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stream_module, "MAX_EVENT_BYTES", 50)
        reader = ChatStream(TOOLS)
        for _ in range(10):
            reader.feed(b"<" * 10)
        assert reader.done
        assert failure(reader.close(clean=True)) is ErrorKind.BAD_ANSWER


def item(kind: str, place: int | None = 0, **fields: Any) -> bytes:
    """An output_item event of a function call."""
    call_item = {"type": "function_call", "id": "i1", "call_id": "a", "name": "count_sheep", "arguments": "", **fields}
    value = {"type": f"response.output_item.{kind}", "output_index": place, "item": call_item}
    return event(value)


def arguments(kind: str, text: str, place: int | None = 0, item_id: str | None = "i1") -> bytes:
    field = "delta" if kind == "delta" else "arguments"
    value = {"type": f"response.function_call_arguments.{kind}", "item_id": item_id, "output_index": place, field: text}
    return event({key: one for key, one in value.items() if one is not None})


def completed(*output: dict[str, Any], status: str = "completed", **fields: Any) -> bytes:
    kind = "response.incomplete" if status == "incomplete" else "response.completed"
    return event({"type": kind, "response": {"status": status, "output": list(output), **fields}})


SHEEP = ("a", "count_sheep", '{"n":1}')
WHOLE = {"type": "function_call", "call_id": "a", "name": "count_sheep", "arguments": '{"n":1}'}


class TestResponses:
    @pytest.mark.parametrize(
        "pieces",
        [
            [item("added"), arguments("delta", '{"n"'), arguments("delta", ":1}"), completed()],
            [item("added", arguments='{"n"'), arguments("delta", ":1}"), completed()],
            [item("added"), arguments("done", '{"n":1}'), completed()],
            [item("done", arguments='{"n":1}'), completed()],
            [item("added", arguments='{"n":1}'), completed()],
            [completed(WHOLE)],
            [item("added"), arguments("delta", '{"n"'), completed(WHOLE)],
            [arguments("delta", '{"n"'), item("added"), arguments("delta", ":1}"), completed()],
            # item ids that change with each event, or are missing
            [
                item("added"),
                arguments("delta", '{"n"', item_id="i2"),
                arguments("delta", ":1}", item_id="i3"),
                completed(),
            ],
            [item("added", id=None), arguments("delta", '{"n":1}', item_id=None), item("done", id="i9"), completed()],
            # places in the output that are missing
            [item("added", None), arguments("delta", '{"n":1}', None), item("done", None), completed()],
            [item("added", None), arguments("delta", '{"n":1}', None, "i2"), item("done", None, id="i3"), completed()],
            [arguments("delta", '{"n":1}', None, None), item("added", None), completed()],
            [arguments("delta", '{"n":1}', None, None), item("done", None), completed()],
            # the last event knows the call under other ids
            [item("done", arguments='{"n":1}'), completed({**WHOLE, "call_id": "", "id": "other"})],
        ],
    )
    def test_one_call_in_all_its_forms(self, pieces: list[bytes]) -> None:
        assert ran(respond(*pieces)) == [SHEEP]

    def test_calls_that_alternate(self) -> None:
        outcome = respond(
            item("added", 0),
            item("added", 1, id="i2", call_id="b", name="open_blind"),
            arguments("delta", '{"n"', 0),
            arguments("delta", '{"room"', 1, "i2"),
            arguments("delta", ":1}", 0),
            arguments("delta", ':"attic"}', 1, "i2"),
            completed(),
        )
        assert ran(outcome) == [SHEEP, ("b", "open_blind", '{"room":"attic"}')]

    def test_a_place_that_is_used_again_is_another_call(self) -> None:
        outcome = respond(
            item("added"),
            arguments("delta", '{"n":1}'),
            item("added", id="i2", call_id="b"),
            arguments("delta", '{"n":2}', item_id="i2"),
            completed(),
        )
        assert ran(outcome) == [SHEEP, ("b", "count_sheep", '{"n":2}')]

    def test_calls_without_places(self) -> None:
        outcome = respond(
            arguments("done", '{"n":1}', None, "i1"),
            item("done", None, arguments='{"n":1}'),
            arguments("done", '{"n":2}', None, "i2"),
            item("done", None, id="i2", call_id="b", arguments='{"n":2}'),
            item("done", None, id="i3", call_id="c", arguments='{"n":3}'),
            completed(),
        )
        assert ran(outcome) == [SHEEP, ("b", "count_sheep", '{"n":2}'), ("c", "count_sheep", '{"n":3}')]

    def test_a_call_that_only_the_last_event_has_is_added_and_one_said_again_is_not(self) -> None:
        again = {**WHOLE, "call_id": "z"}
        more = {**WHOLE, "call_id": "b", "arguments": '{"n":2}'}
        outcome = respond(item("done", arguments='{"n":1}'), completed(again, more, {"type": "reasoning"}))
        assert ran(outcome) == [SHEEP, ("b", "count_sheep", '{"n":2}')]

    def test_a_call_that_stays_open_is_refused(self) -> None:
        outcome = respond(item("added"), arguments("delta", '{"n"'), completed())
        assert outcome.step.refused == (RefusedCall("count_sheep", '{"n"', Refusal.BAD_JSON),)

    def test_one_without_a_name_is_refused(self) -> None:
        outcome = respond(item("done", name=None, arguments='{"n":1}'), completed())
        assert outcome.step.refused == (RefusedCall("", '{"n":1}', Refusal.NO_NAME),)

    def test_one_that_the_server_calls_incomplete_is_refused(self) -> None:
        outcome = respond(item("done", arguments='{"n":1}', status="incomplete"), completed())
        assert [one.reason for one in outcome.step.refused] == [Refusal.TRUNCATED]

    @pytest.mark.parametrize(
        ("details", "reason"),
        [
            ({"reason": "max_output_tokens"}, "length"),
            ({"reason": "content_filter"}, "content_filter"),
            (None, "length"),
        ],
    )
    def test_an_incomplete_answer_runs_nothing(self, details: object, reason: str) -> None:
        outcome = respond(item("done", arguments='{"n":1}'), completed(status="incomplete", incomplete_details=details))
        assert outcome.error is None
        assert outcome.step.finish_reason == reason
        assert [one.reason for one in outcome.step.refused] == [Refusal.TRUNCATED]

    @pytest.mark.parametrize(
        "broken",
        [
            event({"type": "error", "code": "server_error", "message": "gone"}),
            event({"type": "response.failed", "response": {"status": "failed", "error": {"message": "gone"}}}),
            event({"type": "response.completed", "response": {"status": "failed", "error": {"message": "gone"}}}),
            event({"error": {"message": "gone"}}),
            event({"message": "gone"}, "error"),
        ],
    )
    def test_a_failure_voids_the_calls(self, broken: bytes) -> None:
        outcome = respond(item("done", arguments='{"n":1}'), broken, completed(WHOLE))
        assert failure(outcome) is ErrorKind.SERVER
        assert "gone" in str(outcome.error)
        assert [one.reason for one in outcome.step.refused] == [Refusal.STREAM_ERROR]

    @pytest.mark.parametrize("broken", [b"data: [1]\n\n", event({"type": "response.output_text.delta", "delta": 5})])
    def test_an_event_that_cannot_be_read_voids_the_calls(self, broken: bytes) -> None:
        assert failure(respond(item("done", arguments='{"n":1}'), broken, completed())) is ErrorKind.BAD_ANSWER

    def test_the_safety_net_is_the_same(self) -> None:
        assert ran(respond(item("done", arguments='{"n":1}'))) == [SHEEP]
        assert failure(respond(item("done", arguments='{"n":1}'), clean=False)) is ErrorKind.BROKEN_OFF
        assert failure(respond(item("added"))) is ErrorKind.BROKEN_OFF

    def test_text_streams_and_is_not_doubled(self) -> None:
        message = {"type": "message", "content": [{"type": "output_text", "text": "Yes."}]}
        deltas, outcome = read(
            event({"type": "response.reasoning_summary_text.delta", "delta": "Hm."}),
            event({"type": "response.reasoning_text.delta", "delta": " So."}),
            event({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": ""}),
            event({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Yes."}),
            event({"type": "response.output_text.done", "output_index": 1, "content_index": 0, "text": "Yes."}),
            event({"type": "response.output_item.done", "output_index": 1, "item": message}),
            completed(message),
            stream=ResponsesStream(TOOLS),
        )
        assert deltas == [ReasoningDelta("Hm."), ReasoningDelta(" So."), TextDelta("Yes.")]
        assert outcome.step.finish_reason == "stop"

    def test_text_that_only_later_events_have(self) -> None:
        message = {"type": "message", "content": [{"text": "Yes."}, {"type": "refusal", "refusal": " No."}]}
        done = event({"type": "response.output_text.done", "text": "Yes."})
        assert (
            respond(done, event({"type": "response.output_text.done", "text": ""}), completed(message)).step.text
            == "Yes."
        )
        by_item = event({"type": "response.output_item.done", "item": message})
        assert respond(by_item, by_item, completed(message)).step.text == "Yes. No."
        assert respond(completed(message)).step.text == "Yes. No."

    def test_refusals_are_said(self) -> None:
        assert respond(event({"type": "response.refusal.delta", "delta": "No."}), completed()).step.text == "No."

    def test_events_named_by_the_event_line_only_and_tools_of_the_server(self) -> None:
        outcome = respond(
            event({"delta": "Yes."}, "response.output_text.delta"),
            event(None),
            event({"type": "response.mcp_call_arguments.delta", "delta": "{", "output_index": 0}),
            event({"type": "response.output_item.added", "item": {"type": "web_search_call"}}),
            event({"type": "response.output_item.done", "item": {"type": "mcp_call", "arguments": "{}"}}),
            completed({"type": "mcp_call", "name": "x", "arguments": "{}"}),
            DONE,
        )
        assert outcome.step.text == "Yes."
        assert ran(outcome) == []

    def test_a_response_in_one_piece_is_an_answer(self) -> None:
        message = {"type": "message", "content": [{"type": "output_text", "text": "Yes."}]}
        for status in ("completed", "incomplete"):
            outcome = respond(json.dumps({"status": status, "output": [message, WHOLE]}).encode())
            assert outcome.step.text == "Yes."
            assert outcome.step.calls == ((ToolCall(*SHEEP),) if status == "completed" else ())

    def test_done_alone_ends_a_stream(self) -> None:
        assert ran(respond(item("done", arguments='{"n":1}'), DONE)) == [SHEEP]


PIECES = st.one_of(
    st.sampled_from(
        [CALL, DONE, delta("stop"), delta("length"), delta(content="<think>"), b"\r\n", b"data: {", b"{", b"<"]
    ),
    st.binary(max_size=20),
    st.builds(delta, content=st.text(max_size=9)),
    st.builds(
        call,
        st.sampled_from([0, 1, None]),
        st.sampled_from(["", "count_sheep", "tell_time", "nothing"]),
        st.sampled_from(["", "{}", '{"n":', "1}", '{"n":1}', {"n": 1}, 5]),
        id=st.sampled_from(["a", "b", "", None]),
    ),
    st.sampled_from(
        [item("added"), item("done", arguments='{"n":1}'), arguments("delta", '{"n":1}'), completed(WHOLE)]
    ),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pieces=st.lists(PIECES, max_size=12), clean=st.booleans(), responses=st.booleans(), size=st.integers(1, 200))
def test_whatever_comes_an_answer_is_whole_or_not_run(
    pieces: list[bytes], clean: bool, responses: bool, size: int
) -> None:
    body = b"".join(pieces)
    make = ResponsesStream if responses else ChatStream
    deltas, outcome = read(*(body[at : at + size] for at in range(0, len(body), size)), clean=clean, stream=make(TOOLS))
    _, whole = read(body, clean=clean, stream=make(TOOLS))
    said = "".join(one.text for one in deltas if isinstance(one, TextDelta))
    assert said.endswith(outcome.step.text)
    assert [one.arguments for one in outcome.step.calls] == [one.arguments for one in whole.step.calls]
    assert (outcome.step.text, str(outcome.error)) == (whole.step.text, str(whole.error))
    assert not (outcome.error and outcome.step.calls)
    assert len({one.id for one in outcome.step.calls}) == len(outcome.step.calls)
    for one in outcome.step.calls:
        assert one.name in TOOLS
        assert isinstance(json.loads(one.arguments), dict)
