"""What follows a step of the model, as a table, and that no sequence of steps goes on for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echokit_py.llm.base import Refusal, RefusedCall, Step, ToolCall
from echokit_py.llm.rounds import (
    FAILED_STEPS,
    LAST_NOTE,
    SAME,
    AskAgain,
    Finish,
    GiveUp,
    Move,
    Rounds,
    Run,
    refusal,
)
from echokit_py.tools.base import Tool, ToolResult

TOOLS = [Tool("set_light", "", {}), Tool("clock", "", {})]
CALL = ToolCall("c1", "set_light", '{"room": "hall"}')
OK = ToolResult("ok")
FAILED = ToolResult("Error: no", is_error=True)


def refused(reason: Refusal, raw: str = '{"ro', name: str = "set_light") -> RefusedCall:
    return RefusedCall(name, raw, reason)


ANSWER = Step("It is noon.", "", "stop")
WITH_CALL = Step("One moment.", "", "tool_calls", (CALL,))
EMPTY = Step("", "thoughts", "stop")
ANNOUNCED = Step("Let me see.", "", "tool_calls")
AS_TEXT = Step("", "", "stop", call_text="<tool_call>{}</tool_call>")
MANGLED = Step("", "", "tool_calls", (), (refused(Refusal.BAD_JSON),))
UNKNOWN = Step("", "", "tool_calls", (), (refused(Refusal.UNKNOWN_TOOL, "{}", "lights"),))

TABLE: list[tuple[Step, Move | type[Move]]] = [
    (ANSWER, Finish()),
    (Step("Cut in the mid", "", "length"), Finish()),
    (Step("No reason.", "", None), Finish()),
    (WITH_CALL, Run((CALL,))),
    (Step("", "", "stop", (CALL,)), Run((CALL,))),
    (Step("", "", "tool_calls", (CALL,), MANGLED.refused), Run((CALL,), MANGLED.refused)),
    (Step("", "", "stop", (CALL,), call_text="<tool_call>"), Run((CALL,))),
    (Step("", "", "stop", (CALL,), (refused(Refusal.NO_NAME, name=""),)), Run((CALL,))),
    (UNKNOWN, Run((), UNKNOWN.refused)),
    (Step("", "", "stop", (), (refused(Refusal.BAD_JSON, " "),)), Run((), (refused(Refusal.BAD_JSON, " "),))),
    (EMPTY, AskAgain),
    (Step(" \n", "", None), AskAgain),
    (ANNOUNCED, AskAgain),
    (Step("Let me see.", "", "function_call"), AskAgain),
    (AS_TEXT, AskAgain),
    (Step("Sure.", "", "stop", call_text="<tool_call>"), AskAgain),
    (MANGLED, AskAgain),
    (Step("Sure.", "", "length", (), (refused(Refusal.TRUNCATED),)), AskAgain),
    (Step("", "", "stop", (), (refused(Refusal.NOT_AN_OBJECT, "5"),)), AskAgain),
    (Step("", "", "stop", (), (refused(Refusal.NO_NAME, "{}", ""),)), AskAgain),
]


@pytest.mark.parametrize(("step", "move"), TABLE)
def test_the_first_step(step: Step, move: Move | type[Move]) -> None:
    rounds = Rounds(TOOLS)
    found = rounds.judge(step)
    assert found == move or type(found) is move
    assert rounds.note == (found.note if isinstance(found, AskAgain) else "")
    assert bool(rounds.note) == isinstance(found, AskAgain)


@pytest.mark.parametrize("step", [UNKNOWN, AS_TEXT, EMPTY])
def test_without_tools_no_call_is_answered(step: Step) -> None:
    assert isinstance(Rounds([]).judge(step), AskAgain)


def test_without_tools_an_announcement_is_an_answer() -> None:
    assert Rounds([]).judge(ANNOUNCED) == Finish()


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        (Refusal.TRUNCATED, "shorter"),
        (Refusal.NO_NAME, "name"),
        (Refusal.BAD_JSON, "JSON"),
        (Refusal.CORRUPT_EVENT, "JSON"),
    ],
)
def test_the_note_says_what_was_wrong(reason: Refusal, word: str) -> None:
    rounds = Rounds(TOOLS)
    rounds.judge(Step("", "", None, (), (refused(reason),)))
    assert word in rounds.note


def test_failed_steps_are_asked_for_twice_in_a_turn() -> None:
    rounds = Rounds(TOOLS)
    moves = [rounds.judge(step) for step in (EMPTY, AS_TEXT)]
    assert all(isinstance(move, AskAgain) for move in moves)
    assert isinstance(rounds.judge(WITH_CALL), Run)
    rounds.take([(CALL, OK)])
    assert isinstance(rounds.judge(MANGLED), GiveUp)
    assert rounds.note == ""


def test_the_last_round_is_followed_by_one_request_without_tools() -> None:
    rounds = Rounds(TOOLS, limit=2)
    for number in range(2):
        assert rounds.tools == tuple(TOOLS)
        call = ToolCall("c", "clock", f'{{"n": {number}}}')
        assert rounds.judge(Step("", "", "tool_calls", (call,))) == Run((call,))
        rounds.take([(call, OK)])
    assert rounds.tools == ()
    assert rounds.note == LAST_NOTE


def last() -> Rounds:
    rounds = Rounds(TOOLS, limit=1)
    rounds.judge(WITH_CALL)
    rounds.take([(CALL, OK)])
    return rounds


@pytest.mark.parametrize("step", [ANSWER, ANNOUNCED, Step("Sure.", "", "stop", (), MANGLED.refused)])
def test_words_end_the_last_request(step: Step) -> None:
    assert last().judge(step) == Finish()


@pytest.mark.parametrize("step", [EMPTY, AS_TEXT, MANGLED, UNKNOWN, Step("", "", "tool_calls", (CALL,))])
def test_the_last_request_is_the_last(step: Step) -> None:
    assert isinstance(last().judge(step), GiveUp)


def repeat(outcomes: list[tuple[ToolCall, ToolResult]]) -> Rounds:
    rounds = Rounds(TOOLS, limit=50)
    for outcome in outcomes:
        rounds.take([outcome])
    return rounds


def test_the_same_call_with_the_same_outcome() -> None:
    spaced = ToolCall("c2", "set_light", '{"room":"hall"}')
    assert repeat([(CALL, OK)] * (SAME - 1)).tools
    assert not repeat([*[(CALL, OK)] * (SAME - 1), (spaced, OK)]).tools


def test_another_outcome_or_other_arguments_are_progress() -> None:
    assert repeat([(CALL, ToolResult(str(number))) for number in range(20)]).tools
    calls = [ToolCall("c", "set_light", f'{{"room": "{number}"}}') for number in range(20)]
    assert repeat([(call, OK) for call in calls]).tools


def test_the_same_error_of_a_tool_whatever_the_arguments() -> None:
    calls = [ToolCall("c", "set_light", f'{{"room": "{number}"}}') for number in range(SAME)]
    assert not repeat([(call, FAILED) for call in calls]).tools


def test_arguments_that_cannot_be_read_count_as_they_are() -> None:
    call = ToolCall("c", "set_light", '{"ro')
    assert not repeat([(call, FAILED)] * SAME).tools


def test_a_call_doubled_in_one_step_is_no_repetition() -> None:
    rounds = Rounds(TOOLS)
    rounds.take([(CALL, OK)] * SAME)
    assert rounds.tools
    assert rounds.without_effect == 0


def test_calls_without_effect_are_counted() -> None:
    rounds = Rounds(TOOLS)
    rounds.take([(CALL, FAILED), (CALL, FAILED)])
    assert rounds.without_effect == 2
    rounds.take([(CALL, OK)])
    assert rounds.without_effect == 0
    rounds.take([(CALL, OK)])
    assert rounds.without_effect == 1


def test_what_the_model_reads_of_a_refused_call() -> None:
    assert "set_light, clock" in refusal(refused(Refusal.UNKNOWN_TOOL), TOOLS).text
    assert "missing" in refusal(refused(Refusal.BAD_JSON, ""), TOOLS).text
    assert "not a whole JSON object" in refusal(refused(Refusal.TRUNCATED), TOOLS).text
    assert all(refusal(refused(reason), TOOLS).is_error for reason in Refusal)


STEPS = st.sampled_from([step for step, _ in TABLE])
RESULTS = st.builds(ToolResult, st.sampled_from(["a", "b"]), st.booleans())


@given(steps=st.lists(STEPS, min_size=60, max_size=60), results=st.lists(RESULTS, min_size=60, max_size=60))
def test_no_turn_goes_on_for_ever(steps: list[Step], results: list[ToolResult]) -> None:
    limit, requests = 8, 0
    rounds = Rounds(TOOLS, limit)
    for step, result in zip(steps, results, strict=True):
        requests += 1
        without_tools = not rounds.tools
        move = rounds.judge(step)
        if isinstance(move, Finish | GiveUp):
            break
        assert not without_tools
        if isinstance(move, Run):
            assert set(move.calls) <= set(step.calls)
            assert move.calls or move.refused
            rounds.take([(call, result) for call in move.calls] or [(CALL, result)])
    else:
        raise AssertionError("no end")
    assert requests <= limit + FAILED_STEPS + 1
