"""What of the content is visible: neither reasoning in tags nor calls written as text, however the content is cut."""

from __future__ import annotations

import pytest

from echokit_py.llm import names
from echokit_py.llm.content_filter import ContentFilter, Kind

OFFER = names.offer(["open_blind"])


def sort(pieces: list[str]) -> tuple[str, str, str]:
    """Return the visible text, the reasoning and the calls."""
    content_filter = ContentFilter(OFFER)
    found = [part for piece in pieces for part in content_filter.feed(piece)] + content_filter.flush()
    texts = {kind: "".join(text for one, text in found if one is kind) for kind in Kind}
    if any(kind is Kind.WAS_REASONING for kind, _ in found):
        place = [kind for kind, _ in found].index(Kind.WAS_REASONING)
        before = "".join(text for kind, text in found[:place] if kind is Kind.TEXT)
        texts[Kind.REASONING] = before + texts[Kind.REASONING]
        texts[Kind.TEXT] = texts[Kind.TEXT].removeprefix(before)
    assert not texts[Kind.HEADER]
    assert not texts[Kind.NOISE]
    return texts[Kind.TEXT], texts[Kind.REASONING], texts[Kind.CALL]


CASES = [
    ("It is half past three.", "It is half past three.", "", ""),
    ("1 < 2, [see] `x`, <b>, {", "1 < 2, [see] `x`, <b>, {", "", ""),
    ("ends with <thi", "ends with <thi", "", ""),
    ("<think>Hm. <b>?</think>\nYes.", "\nYes.", "Hm. <b>?", ""),
    ("<think>never closed", "", "never closed", ""),
    ("[THINK]a[/THINK]b<thought>c</thought>", "b", "ac", ""),
    ("Let me see</think>Yes.", "Yes.", "Let me see", ""),
    ("◁think▷Hm, ◁.◁/think▷Yes.", "Yes.", "Hm, ◁.", ""),
    ("Let me see◁/think▷Yes.", "Yes.", "Let me see", ""),
    (
        "<seed:think>Hm.<seed:cot_budget_reflect>9</seed:cot_budget_reflect></seed:think>Yes.",
        "Yes.",
        "Hm.<seed:cot_budget_reflect>9</seed:cot_budget_reflect>",
        "",
    ),
    ("Let me see</seed:think>Yes.", "Yes.", "Let me see", ""),
    (
        "<seed:tool_call><function=a></function></seed:tool_call>",
        "",
        "",
        "<seed:tool_call><function=a></function></seed:tool_call>",
    ),
    ("<reasoning>a < b</reasoning>\n<answer>Yes.</answer>", "\n<answer>Yes.</answer>", "a < b", ""),
    (
        "<thinking>a<reflection>b</reflection>c</thinking><output>Yes.",
        "<output>Yes.",
        "a<reflection>b</reflection>c",
        "",
    ),
    ("Well. <reflection>No.</reflection>Yes.", "Well. Yes.", "No.", ""),
    ("<scratchpad>1 + 1 = 2</scratchpad>Two.", "Two.", "1 + 1 = 2", ""),
    ("<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>", "Yes.", "Hm.", ""),
    (
        "<|START_THINKING|>Hm.<|END_THINKING|><|START_ACTION|>[]<|END_ACTION|>",
        "",
        "Hm.",
        "<|START_ACTION|>[]<|END_ACTION|>",
    ),
    (
        "◁ and ▷, <reason>, <seed>, <summary>s</summary> stay",
        "◁ and ▷, <reason>, <seed>, <summary>s</summary> stay",
        "",
        "",
    ),
    ("<think>a</think>b</think>c", "bc", "a", ""),
    ("Between `<think>` and `</think>` it thinks.", "Between `<think>` and `</think>` it thinks.", "", ""),
    ("The “<thinking>” tag, „<think>“.", "The “<thinking>” tag, „<think>“.", "", ""),
    ('I say "Yes"</think>"Yes."', '"Yes."', 'I say "Yes"', ""),
    ("Run `ls`<think>Hm.</think> now.", "Run `ls` now.", "Hm.", ""),
    ("`<|im_end|><think>`", "`", "`", ""),
    ("The `<think>", "The `<think>", "", ""),
    ("Sure. <tool_call>\n{}\n</tool_call> Done.", "Sure.  Done.", "", "<tool_call>\n{}\n</tool_call>"),
    ("<function=open_blind>{}</function>", "", "", "<function=open_blind>{}</function>"),
    ("[TOOL_CALLS]open_blind{}", "", "", "[TOOL_CALLS]open_blind{}"),
    ("<|python_tag|>open_blind()<|eom_id|>", "", "", "<|python_tag|>open_blind()<|eom_id|>"),
    ("```tool_code\nopen_blind()\n```ok", "ok", "", "```tool_code\nopen_blind()\n```"),
    (
        "a<|tool_calls_section_begin|><|tool_call_begin|>x<|tool_call_end|><|tool_calls_section_end|>",
        "a",
        "",
        "<|tool_calls_section_begin|><|tool_call_begin|>x<|tool_call_end|><|tool_calls_section_end|>",
    ),
    ("No call.</tool_call><|im_end|>", "No call.", "", ""),
    (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>",
        "Yes.",
        "Hm.",
        "",
    ),
    (
        "<|channel|>commentary to=functions.open_blind <|constrain|>json<|message|>{}<|call|>",
        "",
        "",
        "commentary to=functions.open_blind <|constrain|>json<|message|>{}<|call|>",
    ),
    ("<|channel|>no message", "", "", "no message"),
    ('{"name": "open_blind", "arguments": {"n": 1}}', "", "", '{"name": "open_blind", "arguments": {"n": 1}}'),
    ('{"function": {"name": "a", "parameters": {}}} ok', "", "", '{"function": {"name": "a", "parameters": {}}} ok'),
    ('{"name": "Ann", "age": 3}', '{"name": "Ann", "age": 3}', "", ""),
    ('{"name": "Ann", <think>', '{"name": "Ann", <think>', "", ""),
    ('{"colour": "red"} is JSON.', '{"colour": "red"} is JSON.', "", ""),
    ("{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}", "{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}", "", ""),
    ('See {"name": "open_blind", "arguments": {}}', 'See {"name": "open_blind", "arguments": {}}', "", ""),
    ("[open_blind(room='attic')]", "", "", "[open_blind(room='attic')]"),
    ("[open window]", "[open window]", "", ""),
    ("[open", "[open", "", ""),
    ("  \n", "  \n", "", ""),
    ("", "", "", ""),
]


@pytest.mark.parametrize(("content", "text", "reasoning", "call"), CASES)
def test_the_same_however_the_content_is_cut(content: str, text: str, reasoning: str, call: str) -> None:
    assert sort([content]) == (text, reasoning, call)
    assert sort(list(content)) == (text, reasoning, call)
    for cut in range(len(content) + 1):
        assert sort([content[:cut], content[cut:]]) == (text, reasoning, call)


def test_plain_text_is_certain_at_once() -> None:
    content_filter = ContentFilter(OFFER)
    assert content_filter.feed("It is ") == [(Kind.TEXT, "It is ")]
    assert content_filter.feed("<b") == [(Kind.TEXT, "<b")]
    assert content_filter.feed("<t") == []
    assert content_filter.feed("d>") == [(Kind.TEXT, "<td>")]


def test_reasoning_streams() -> None:
    content_filter = ContentFilter(OFFER)
    content_filter.feed("<think>")
    assert content_filter.feed("a long thought") == [(Kind.REASONING, "a long ")]


def test_white_space_before_a_call_is_nothing_to_speak() -> None:
    text, _, call = sort(["\n", ' {"name": "open_blind", "arguments": "{}"}'])
    assert text.strip() == ""
    assert call.strip() == '{"name": "open_blind", "arguments": "{}"}'


def test_a_header_without_end_is_no_text() -> None:
    assert sort(["<|start|>", "x" * 300, "y"]) == ("", "", "x" * 300 + "y")


def test_an_endless_object_is_let_go() -> None:
    content = '{"name": "' + "x" * 100_000
    content_filter = ContentFilter(OFFER)
    assert content_filter.feed(content) == [(Kind.TEXT, content)]
    assert content_filter.feed("yz") == [(Kind.TEXT, "yz")]
    assert sort(['{"name":' + "[" * 60_000]) == ('{"name":' + "[" * 60_000, "", "")


def test_without_an_offer_no_name_begins_a_call() -> None:
    content_filter = ContentFilter(None)
    assert content_filter.feed("[open_blind(1)]") == [(Kind.TEXT, "[open_blind(1)]")]
