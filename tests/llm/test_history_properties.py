"""The history under anything that can happen, in any order: the next request is valid and has the question in it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from echokit_py.llm.base import Message, ToolCall
from echokit_py.llm.history import History, Missing, check
from echokit_py.llm.turns import MAX_MESSAGE_CHARS

SYSTEM: Message = {"role": "system", "content": "You are a home assistant."}
FEW_SHOT: list[Message] = [{"role": "user", "content": "Ping?"}, {"role": "assistant", "content": "Pong."}]

# Texts as models, users and tools may bring them: empty, blank, lone surrogates, controls, long.
texts = st.one_of(
    st.sampled_from(["", " ", "Yes.", "One. Two. Three.", "**Bold** move", "😀", "\ud83d", "\x00\x1f", "你好。再见。"]),
    st.text(st.characters(), max_size=30),
    st.integers(0, MAX_MESSAGE_CHARS * 2).map(lambda size: "x" * size),
)
arguments = st.one_of(
    st.sampled_from(
        ["", "{}", "null", '{"city": "Os', '{"a": "\\ud83d"}', '{"n": NaN}', "[1]", '{"n": 1e999}', "\ud83d"]
    ),
    st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.floats(), st.text(max_size=5))).map(json.dumps),
)
names = st.one_of(st.sampled_from(["lock", "get_weather", "", "a b", "x" * 99]), st.text(max_size=5))
ids = st.one_of(st.sampled_from(["", "call_0", "call_1", "call00001", "\ud83d", " ", "z" * 5000]), st.text(max_size=3))
calls = st.lists(st.builds(ToolCall, ids, names, arguments), max_size=3)
stored_messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool", "developer", "function"])},
        optional={
            "content": st.one_of(texts, st.none(), st.lists(st.fixed_dictionaries({"text": texts}), max_size=2)),
            "tool_call_id": st.one_of(ids, st.none()),
            "tool_calls": st.one_of(
                st.none(),
                st.lists(
                    st.fixed_dictionaries(
                        {},
                        optional={
                            "id": st.one_of(ids, st.none()),
                            "function": st.fixed_dictionaries({}, optional={"name": names, "arguments": arguments}),
                        },
                    ),
                    max_size=2,
                ),
            ),
        },
    ),
    max_size=6,
)


class Conversations(RuleBasedStateMachine):
    """Anything that can happen, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.history = History([SYSTEM], FEW_SHOT, max_turns=3)
        self.question = ""
        self.ids: list[str] = []

    @rule(text=texts)
    def begin(self, text: str) -> None:
        if not text.strip():
            with pytest.raises(ValueError):
                self.history.begin_turn(text)
        else:
            self.history.begin_turn(text)
            self.question = text.strip()[:5]

    @precondition(lambda self: self.history.in_turn)
    @rule(text=texts, calls=calls, reasoning=texts)
    def step(self, text: str, calls: list[ToolCall], reasoning: str) -> None:
        stored = self.history.add_step(text, calls, reasoning)
        assert [(call.name, call.arguments) for call in stored] == [(call.name, call.arguments) for call in calls]
        assert not {call.id for call in stored} & set(self.ids)
        self.ids += [call.id for call in stored]

    @rule(data=st.data(), text=texts)
    def answer(self, data: st.DataObject, text: str) -> None:
        call_id = data.draw(st.sampled_from([*self.ids[-6:], "unknown"]))
        if self.history.add_result(call_id, text):
            assert not self.history.add_result(call_id, "twice")

    @rule(heard=st.none() | texts, missing=st.sampled_from(Missing))
    def commit(self, heard: str | None, missing: Missing) -> None:
        self.history.commit(heard, missing)

    @rule(heard=st.none() | texts)
    def abort(self, heard: str | None) -> None:
        self.history.abort(heard)

    @rule(turns=st.integers(0, 4))
    def keep_last(self, turns: int) -> None:
        self.history.keep_last(turns)

    @rule(messages=stored_messages)
    def restore(self, messages: list[Message]) -> None:
        self.history.restore(messages)
        self.ids = []  # restored calls may bring any of them

    @rule()
    def reset(self) -> None:
        self.history.reset()

    @invariant()
    def the_next_request_is_valid(self) -> None:
        history = self.history
        if not history.in_turn:
            return
        for note in ("", "a note"):
            assert check(history.render(note)) == []
            for form in [*history.forms(note), *history.forms(note, too_long=True)]:
                assert check(form.messages) == [], form.name
                turns = sum(message["role"] == "user" for message in form.messages)
                assert turns <= 1 + 3 + 1 + bool(note)  # few-shot, past, current
                said = "".join(message["content"] for message in form.messages if message["role"] == "user")
                assert self.question.encode("utf-8", "ignore").decode() in said.replace("\ufffd", "")
                if form.name in {"tool steps as text", "only the current question"}:
                    assert check(form.messages, strict=True) == []


Conversations.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestConversations = Conversations.TestCase


@given(system=stored_messages, few_shot=stored_messages)
@settings(deadline=None, max_examples=100)
def test_any_prompts_give_a_valid_request(system: list[Message], few_shot: list[Message]) -> None:
    history = History(system, few_shot)
    history.begin_turn("Hi")
    for form in [*history.forms(), *history.forms(too_long=True)]:
        assert check(form.messages) == []
