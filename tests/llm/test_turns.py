"""How texts and calls are mended, cut to what was heard, and read back."""

from __future__ import annotations

import json

import pytest

from echokit_py.llm.message_rules import read_arguments
from echokit_py.llm.turns import (
    BRIEF_CHARS,
    MAX_ARGUMENTS_CHARS,
    MAX_ID_CHARS,
    MAX_MESSAGE_CHARS,
    StoredCall,
    Turn,
    Unit,
    clean,
    clean_arguments,
    clean_name,
    clean_result,
    keep_heard,
    parse,
    to_text,
    unique_id,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("grüß 😀", "grüß 😀"),
        ("a\ud83db", "a\ufffdb"),
        ("a\ude00", "a\ufffd"),
        ("\ud83d\ude00", "😀"),  # the halves of a pair are joined
        ("x" * (MAX_MESSAGE_CHARS + 1), "x" * MAX_MESSAGE_CHARS),
    ],
)
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_results_say_that_they_were_cut() -> None:
    assert clean_result("ok") == "ok"
    assert clean_result(" \n") == "The tool answered with no text."
    cut = clean_result("x" * 20_000)
    assert len(cut) == MAX_MESSAGE_CHARS
    assert cut.endswith("… (cut: 20000 characters in all)")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("get_weather", "get_weather"), ("home.light/set", "home_light_set"), ("x" * 70, "x" * 64), ("", "unnamed")],
)
def test_clean_name(name: str, expected: str) -> None:
    assert clean_name(name) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (' { "b" : 1 , "b" : 2 } ', ' { "b" : 1 , "b" : 2 } '),  # what is valid stays as the model wrote it
        ("", "{}"),
        ('{"city": "Os', "{}"),
        ('["Oslo"]', "{}"),
        ('{"n": NaN}', "{}"),
        ('{"n": 1e999}', "{}"),
        ('{"a": "x\\ud83d", "n": 12}', '{"a": "x\ufffd", "n": 12}'),
        ('{"a": "x\ud83d"}', '{"a": "x\ufffd"}'),
        ('{"a":' * 100_000, "{}"),
        ('{"a": "' + "x" * MAX_ARGUMENTS_CHARS + '"}', "{}"),
        ('{"a": "\\ud83d' + "\x00".join(["\\u00e4"] * 9) + '"}', "{}"),
    ],
)
def test_clean_arguments(text: str, expected: str) -> None:
    assert clean_arguments(text) == expected
    assert read_arguments(clean_arguments(text)) is not None


def test_unique_id() -> None:
    assert unique_id("call_abc", {"x"}) == "call_abc"
    for unusable in ("", "  ", "x", "\ud83d", "y" * (MAX_ID_CHARS + 1)):
        assert unique_id(unusable, {"x", "call00001"}) == "call00002"


def units_after(texts: list[str], heard: str | None) -> list[str]:
    turn = Turn("?", [Unit(text) for text in texts])
    keep_heard(turn, heard)
    return [unit.text for unit in turn.units]


@pytest.mark.parametrize(
    ("texts", "heard", "kept"),
    [
        (["Rinse it. Use two cups."], None, ["Rinse it. Use two cups."]),
        (["Rinse it. Use two cups."], "", []),
        (["Rinse it. Use two cups."], "Rinse it.", ["Rinse it."]),
        (["Rinse it. Use two cups."], "Rinse it. Use two cups.", ["Rinse it. Use two cups."]),
        (["**Rinse**  it! *Use* two."], "Rinse it!", ["**Rinse**  it!"]),  # heard came through a filter for speech
        (["A. B.", "C. D."], "A. B. C.", ["A. B.", "C."]),
        (["A. B.", "C. D."], "A.", ["A."]),
        (["你好。我是回声。"], "你好。", ["你好。"]),
        (["नमस्ते। फिर।"], "नमस्ते।", ["नमस्ते।"]),
        (["😀 Hi. There."], "Hi.", ["😀 Hi."]),
        (["…"], "Hi.", ["…", "Hi."]),
        ([], "I am", ["I am"]),  # cut in before the step was whole
        (["Let me see."], "Let me see. It is", ["Let me see.", "It is"]),
        (["It costs 5 %."], "It costs five percent.", ["It costs 5 %."]),  # read out differently: nothing is invented
        (["Straße."], "Straße. Dann", ["Straße.", "Dann"]),
    ],
)
def test_keep_heard(texts: list[str], heard: str | None, kept: list[str]) -> None:
    assert units_after(texts, heard) == kept


def test_calls_stay_though_nothing_was_heard() -> None:
    turn = Turn("?", [Unit("I lock it.", [StoredCall("a", "lock", "{}")]), Unit("Done.")])
    keep_heard(turn, "")
    assert turn.units == [Unit("", [StoredCall("a", "lock", "{}")])]


def test_brief_text_cuts_results() -> None:
    turn = Turn("?", [Unit("", [StoredCall("a", "lock", "{}", "x" * 9999)])])
    [message] = to_text(turn, current=True, brief=True)
    assert len(message["content"]) < BRIEF_CHARS + 50
    assert len(to_text(turn, current=True)[0]["content"]) > 9999


def test_parse_takes_what_it_can() -> None:
    system, turns = parse(
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "assistant", "content": "Welcome!"},
            {"role": "tool", "tool_call_id": "x", "content": "orphan"},
            {"role": "user", "content": [{"type": "text", "text": "Weather "}, {"type": "text", "text": "here?"}, 7]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "a", "function": {"name": "w", "arguments": '{"c": 1}'}},
                    {"id": "b", "function": {"name": None, "arguments": "{"}},
                    {"id": None, "function": {}},
                    "rubbish",
                ],
            },
            {"role": "tool", "tool_call_id": "b", "content": ""},
            {"role": "tool", "tool_call_id": "b", "content": "twice"},
            {"role": "function", "content": "old"},
            {"role": "user", "content": " "},
            {"role": "assistant", "content": {"odd": 1}, "tool_calls": {"odd": 1}},
            {"role": "assistant", "content": ""},
            {"content": "no role"},
            {"role": "assistant", "content": "Rain."},
        ]
    )
    assert system == ["Be brief.", "You opened the conversation with: Welcome!"]
    [turn] = turns
    assert turn.user == "Weather here?"
    assert [unit.text for unit in turn.units] == ["", "Rain."]
    assert [(call.id, call.name, call.arguments, call.settled) for call in turn.calls] == [
        ("a", "w", '{"c": 1}', False),
        ("b", "unnamed", "{}", True),
        ("", "unnamed", "{}", False),
    ]
    assert turn.calls[1].result == "The tool answered with no text."


def test_a_long_system_prompt_is_never_cut() -> None:
    text = json.dumps(list(range(10_000)))
    assert parse([{"role": "system", "content": text}]) == ([text], [])
