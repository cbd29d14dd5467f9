"""What `check` takes and refuses, rule by rule."""

from __future__ import annotations

import pytest

from echokit_py.llm.base import Message
from echokit_py.llm.message_rules import check, read_arguments

SYSTEM: Message = {"role": "system", "content": "You are a home assistant."}
USER: Message = {"role": "user", "content": "Weather?"}
ANSWER: Message = {"role": "assistant", "content": "Rain."}


def called(*ids: str, name: str = "get_weather", arguments: object = "{}", content: str | None = None) -> Message:
    calls = [{"id": i, "type": "function", "function": {"name": name, "arguments": arguments}} for i in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(call_id: str, content: object = "rain") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [SYSTEM, USER],
        [SYSTEM, USER, ANSWER, USER],
        [USER, called("a"), result("a")],
        [USER, called("a", "b", content="Let me see."), result("a"), result("b"), ANSWER, USER],
        [USER, called("a"), result("a"), called("b"), result("b")],
        [USER, called("a"), result("a"), USER],  # an interrupted turn
        [USER, called("a", arguments=' {"a": [1, 2.5, "ü", null]} '), result("a")],
    ],
)
def test_valid(messages: list[Message]) -> None:
    assert check(messages) == []


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([], "there are none"),
        ([SYSTEM], "the last message is not"),
        ([USER, ANSWER], "the last message is not"),
        ([USER, SYSTEM, USER], "system after user"),
        ([SYSTEM, SYSTEM, USER], "system after system"),
        ([USER, USER], "user after user"),
        ([ANSWER, USER], "assistant after nothing"),
        ([SYSTEM, ANSWER, USER], "assistant after system"),
        ([USER, ANSWER, ANSWER, USER], "assistant after assistant"),
        ([{"role": "function", "content": "x"}, USER], "role 'function'"),
        ([{"content": "x"}, USER], "role 'None'"),
        ([{"role": "user", "content": ""}], "content is empty"),
        ([{"role": "user", "content": " \n"}], "content is empty"),
        ([{"role": "user"}], "content is not text"),
        ([{"role": "user", "content": [{"type": "text", "text": "x"}]}], "content is not text"),
        ([USER, {"role": "assistant", "content": None}, USER], "content is not text"),
        ([USER, {"role": "assistant", "content": ""}, USER], "content is empty"),
        ([USER, called("a", content=" "), result("a")], "content is empty"),
        ([USER, called("a", content="\ud83d"), result("a")], "not UTF-8"),
        ([{"role": "user", "content": "x", "\udc00": 1}], "not UTF-8"),
        ([USER, called("a")], "call 'a' has no tool message"),
        ([USER, called("a"), USER], "call 'a' has no tool message"),
        ([USER, called("a", "b"), result("a"), USER], "call 'b' has no tool message"),
        ([USER, called("a", "b"), result("b"), result("a")], "the tool message of 'b' where 'a' is due"),
        ([USER, called("a"), result("a"), result("a")], "a tool message without a call"),
        ([USER, result("a")], "a tool message without a call"),
        ([USER, called("a"), result("a", "")], "content is empty"),
        ([USER, called("a"), result("a", None)], "content is not text"),
        ([USER, called("a", "a"), result("a"), result("a")], "call id 'a' a second time"),
        ([USER, called("a"), result("a"), called("a"), result("a")], "call id 'a' a second time"),
        ([USER, called(""), result("")], "a call without an id"),
        ([USER, called("a", name=""), result("a")], "call name ''"),
        ([USER, called("a", name="get weather"), result("a")], "call name 'get weather'"),
        ([USER, called("a", name="x" * 65), result("a")], "call name"),
        ([USER, called("a", name="x\n"), result("a")], "call name"),
        ([USER, called("a", arguments="{"), result("a")], "arguments that are not a JSON object"),
        ([USER, called("a", arguments=""), result("a")], "arguments that are not a JSON object"),
        ([USER, called("a", arguments={}), result("a")], "arguments that are not a JSON object"),
        ([USER, {"role": "assistant", "content": "x", "tool_calls": []}, USER], "tool_calls is not a list of calls"),
        ([USER, {"role": "assistant", "content": "x", "tool_calls": None}, USER], "tool_calls is not a list of calls"),
        ([USER, {"role": "assistant", "content": "x", "tool_calls": [1]}, USER], "tool_calls is not a list of calls"),
        ([USER, {**called("a"), "tool_calls": [{"id": "a", "type": "function"}]}, result("a")], "call name None"),
        ([USER, {**called("a"), "tool_calls": [{"id": "a"}]}, result("a")], "a call whose type is not function"),
    ],
)
def test_faults(messages: list[Message], fault: str) -> None:
    faults = check(messages)
    assert any(fault in found for found in faults), faults


def test_strict_refuses_tool_steps() -> None:
    assert check([SYSTEM, USER, ANSWER, USER], strict=True) == []
    assert check([USER, called("a"), result("a")], strict=True) == ["message 1: a tool step", "message 2: a tool step"]


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", '"{}"', "1", "{", "{} {}", "{'a': 1}", "\ufeff{}", '{"a": "\n"}'),
        *('{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', '{"a": ' + "9" * 400 + "}", '{"a": ' + "9" * 5000 + "}"),
        *('{"a": "\\ud83d"}', '{"\\udc00": 1}', '{"a":' * 100_000),
    ],
)
def test_no_object(text: str) -> None:
    assert read_arguments(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        (' {"a": 1}\n', {"a": 1}),
        ('{"n": 12345678901234567890, "f": 1.5, "u": "\\ud83d\\ude00"}',
         {"n": 12345678901234567890, "f": 1.5, "u": "😀"}),
    ],
)  # fmt: skip
def test_object(text: str, value: object) -> None:
    assert read_arguments(text) == value
