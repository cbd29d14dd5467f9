"""Messages as input of the Responses API: each form, and that OpenAI would take whatever a history renders."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echokit_py.llm.base import Message, Tool, ToolCall
from echokit_py.llm.history import History
from echokit_py.llm.responses_input import Item, to_input, to_tools
from tests.fakes.responses_rules import refusal


def call(call_id: str, name: str = "get_time", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def thought(number: int) -> Item:
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"E{number}"}


def refused(messages: list[Message], reasoning: dict[str, list[Item]] | None = None) -> list[str]:
    instructions, items = to_input(messages, reasoning)
    return refusal({"model": "m", "instructions": instructions, "input": items, "store": False, "stream": True})


def test_texts() -> None:
    assert to_input(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "Bye"},
        ]
    ) == (
        "Be brief.",
        [
            {"type": "message", "role": "user", "content": "Hi"},
            {"type": "message", "role": "assistant", "content": "Hello."},
            {"type": "message", "role": "user", "content": "Bye"},
        ],
    )


def test_several_system_prompts_become_one() -> None:
    prompts: list[Message] = [{"role": "system", "content": text} for text in ("One.", "Two.")]
    assert to_input([*prompts, {"role": "user", "content": "Hi"}])[0] == "One.\n\nTwo."


def test_a_tool_step() -> None:
    messages: list[Message] = [
        {"role": "user", "content": "Time?"},
        {
            "role": "assistant",
            "content": "Let me see.",
            "reasoning_content": "A clock.",
            "tool_calls": [call("a"), call("b", "get_date", '{"zone": "UTC"}')],
        },
        {"role": "tool", "tool_call_id": "a", "content": "12:00"},
        {"role": "tool", "tool_call_id": "b", "content": "Monday"},
    ]
    instructions, items = to_input(messages)
    assert instructions == ""
    assert items == [
        {"type": "message", "role": "user", "content": "Time?"},
        {"type": "message", "role": "assistant", "content": "Let me see."},
        {"type": "function_call", "call_id": "a", "name": "get_time", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "get_date", "arguments": '{"zone": "UTC"}'},
        {"type": "function_call_output", "call_id": "a", "output": "12:00"},
        {"type": "function_call_output", "call_id": "b", "output": "Monday"},
    ]
    assert refused(messages) == []


def test_reasoning_stands_where_it_came_and_in_the_current_turn_only() -> None:
    def turn(*call_ids: str, text: str | None = None) -> list[Message]:
        calls = [call(call_id) for call_id in call_ids]
        results: list[Message] = [{"role": "tool", "tool_call_id": one, "content": "12:00"} for one in call_ids]
        return [{"role": "assistant", "content": text, "tool_calls": calls}, *results]

    question: Message = {"role": "user", "content": "Time?"}
    reasoning = {"old": [thought(0)], "a": [thought(1)], "b": [thought(2), thought(3)], "other": [thought(4)]}
    messages = [
        question,
        *turn("old"),
        {"role": "assistant", "content": "Noon."},
        question,
        *turn("a", "b", text="Hm."),
    ]
    assert refused(messages, reasoning) == []
    kinds = [item.get("id") or item.get("role") or item["call_id"] for item in to_input(messages, reasoning)[1]]
    assert kinds == ["user", "old", "old", "assistant", "user", "rs_1", "assistant", "a", "rs_2", "rs_3", "b", "a", "b"]


def test_without_a_question_nothing_is_current() -> None:
    assert to_input([{"role": "assistant", "tool_calls": [call("a")]}], {"a": [thought(1)]})[1] == [
        {"type": "function_call", "call_id": "a", "name": "get_time", "arguments": "{}"}
    ]
    assert to_input([]) == ("", [])


def test_tools_are_flat_and_not_strict() -> None:
    schema = {"type": "object", "properties": {}}
    assert to_tools([Tool("now", "Tells the time.", schema)]) == [
        {"type": "function", "name": "now", "description": "Tells the time.", "parameters": schema, "strict": False}
    ]


texts = st.sampled_from(["", " ", "Yes.", "One. Two.", "\ud83d", "\x00"]) | st.text(max_size=20)
names = st.sampled_from(["lock", "", "a b", "x" * 99]) | st.text(max_size=4)
arguments = st.sampled_from(["", "{}", "null", '{"city": "Os', '{"n": NaN}', "[1]", '{"a": "\\ud83d"}', '{"a": [1]}'])
ids = st.sampled_from(["", "call_0", "call_1", "\ud83d", " "]) | st.text(max_size=3)
steps = st.tuples(texts, st.lists(st.builds(ToolCall, ids, names, arguments), max_size=3), texts)
ends = st.sampled_from(["commit", "abort", "heard nothing"])
turns = st.lists(st.tuples(texts.filter(str.strip), st.lists(steps, max_size=3), st.booleans(), ends), max_size=4)


@given(turns=turns, current=st.lists(steps, max_size=2), note=st.sampled_from(["", "Try again."]), data=st.data())
def test_whatever_a_history_renders_is_good_input(
    turns: list[Any], current: list[Any], note: str, data: st.DataObject
) -> None:
    history = History([{"role": "system", "content": "Be brief."}], [], max_turns=3)
    made: list[str] = []

    def add(step: tuple[str, list[ToolCall], str], *, answer: bool) -> None:
        for one in history.add_step(*step):
            made.append(one.id)
            if answer:
                history.add_result(one.id, step[2])

    for question, model_steps, answer, end in turns:
        history.begin_turn(question)
        for step in model_steps:
            add(step, answer=answer)
        {"commit": history.commit, "abort": history.abort, "heard nothing": lambda: history.commit("")}[end]()
    history.begin_turn("And now?")
    for step in current:
        add(step, answer=data.draw(st.booleans()))
    kept = {one: [thought(n)] for n, one in enumerate(made) if data.draw(st.booleans())}
    for form in [*history.forms(note), *history.forms(note, too_long=True)]:
        assert refused(form.messages, kept) == [], form.name
        said = [item["content"] for item in to_input(form.messages)[1] if item["type"] == "message"]
        assert any("And now?" in text for text in said)


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], "Missing required parameter: 'input'."),
        ([{"role": "user", "content": "Hi"}], "Invalid value: 'None' for 'input[0].type'"),
        ([{"type": "message", "role": "system", "content": "Hi"}], "Invalid value: 'system'"),
        ([{"type": "message", "role": "user", "content": " "}], "Invalid type for 'input[0].content'"),
        ([{"type": "message", "role": "user", "content": "Hi", "id": "m"}], "Unknown parameter: 'input[0].id'"),
        (
            [{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}],
            "No tool output found for function call a.",
        ),
        (
            [{"type": "function_call_output", "call_id": "a", "output": "x"}],
            "No tool call found for function call output with call_id a.",
        ),
        ([{**thought(1), "encrypted_content": ""}], "Item with id 'rs_1' not found"),
        ([thought(1), {"type": "message", "role": "user", "content": "Hi"}], "without its required following item"),
    ],
)
def test_the_fake_refuses_what_openai_refuses(items: list[Item], words: str) -> None:
    assert words in refusal({"model": "m", "input": items})[0]
