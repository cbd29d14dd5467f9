"""What follows a step of the model: run its calls, ask again, speak, or give up. Pure: runs and asks nothing itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from echokit_py.llm.base import Refusal, RefusedCall, Step, ToolCall
from echokit_py.llm.message_rules import read_arguments
from echokit_py.tools.base import Tool, ToolResult

ROUNDS = 8
"""Steps with calls in one turn. A request by voice seldom needs more than three; who waits longer has given up."""

SAME = 3
"""Rounds with the same call and the same outcome: a fourth would bring nothing new either."""

FAILED_STEPS = 2
"""Of one turn, that are asked for again: each costs the user a second or more."""

MAX_CALLS = 32
"""Calls of one step that are answered: all lamps of a house, not a model that cannot stop."""


@dataclass(frozen=True, slots=True)
class Run:
    """Run `calls`, and tell the model what is wrong with those in `refused`; then ask again."""

    calls: tuple[ToolCall, ...]
    refused: tuple[RefusedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class AskAgain:
    """The step is of no use: ask for it once more, with a word to the model that is not kept."""

    note: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The step is the answer."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """There will be no answer; `reason` is for the log."""

    reason: str


Move = Run | AskAgain | Finish | GiveUp

LAST_NOTE = "Tools can't be called any more now. Answer in words, with what is known by now."

_NOTES = {
    Refusal.TRUNCATED: "Your tool call was cut off because it was too long, and was not run. Make it much shorter.",
    Refusal.NO_NAME: "Your tool call had no name and was not run. Call the tool again by its name.",
    Refusal.UNKNOWN_TOOL: "There is no such tool. Answer in words.",
}
_BROKEN_NOTE = "The arguments of your tool call were not a JSON object. It was not run. Call the tool again, correctly."
_TEXT_NOTE = "You wrote a tool call as text; that runs nothing. Call the tool properly, or answer in words."
_NOTHING_NOTE = "Your last answer was empty. Call a tool, or answer in words."


class Rounds:
    """The count of one turn.

    Args:
        tools: those offered in this turn.
        limit: steps with calls; then one last request is made without tools.

    Attributes:
        note: what goes to the model with the next request, "" for nothing.
        without_effect: calls in a row that failed, or only repeated what an earlier one had brought.
    """

    def __init__(self, tools: Sequence[Tool], limit: int = ROUNDS) -> None:
        self._tools = tuple(tools)
        self._limit = limit
        self._rounds = 0
        self._failed = 0
        self._last = False
        self._seen: Counter[tuple[str, ...]] = Counter()
        self.note = ""
        self.without_effect = 0

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of the next request; none in the last one."""
        return () if self._last else self._tools

    def judge(self, step: Step) -> Move:
        """Say what follows `step`, the answer to the last request."""
        move = self._move(step)
        self.note = move.note if isinstance(move, AskAgain) else ""
        return move

    def take(self, results: Sequence[tuple[ToolCall, ToolResult]]) -> None:
        """Take in what the calls of a `Run` came to, in order, those refused too: may tools be offered once more?"""
        keys: set[tuple[str, ...]] = set()
        for call, result in results:
            found = _outcomes(call, result)
            repeated = any(self._seen[key] for key in found)
            self.without_effect = self.without_effect + 1 if result.is_error or repeated else 0
            keys |= found
        self._seen.update(keys)  # a round counts once: a call doubled in one step is no repetition yet
        self._rounds += 1
        if self._rounds >= self._limit or any(self._seen[key] >= SAME for key in keys):
            self._last, self.note = True, LAST_NOTE

    def _move(self, step: Step) -> Move:
        refused = tuple(call for call in step.refused if call.name)
        if not self._last and (step.calls or any(self._answerable(call) for call in refused)):
            return Run(step.calls, refused)
        fault = self._fault(step)
        if not fault or (self._last and step.text.strip()):
            return Finish()
        if self._last:
            return GiveUp("no words came after the last round of tools either")
        self._failed += 1
        if self._failed > FAILED_STEPS:
            return GiveUp(f"no usable answer in {self._failed} tries")
        return AskAgain(fault)

    def _answerable(self, call: RefusedCall) -> bool:
        """Whether the call itself is whole, so that the tool message is the place to say what is wrong with it."""
        whole = call.reason is Refusal.UNKNOWN_TOOL or (call.reason is Refusal.BAD_JSON and not call.raw.strip())
        return bool(self._tools) and whole

    def _fault(self, step: Step) -> str:
        """The note that a failed step is answered with; "" for one that is an answer."""
        if step.refused:
            return _NOTES.get(step.refused[0].reason, _BROKEN_NOTE)
        if step.call_text.strip():
            return _TEXT_NOTE
        announced = step.finish_reason in {"tool_calls", "function_call"} and bool(self._tools)
        return _NOTHING_NOTE if announced or not step.text.strip() else ""


def refusal(call: RefusedCall, tools: Sequence[Tool]) -> ToolResult:
    """What the model reads in place of a refused call's result."""
    if call.reason is Refusal.UNKNOWN_TOOL:
        names = ", ".join(tool.name for tool in tools)
        return ToolResult(f"there is no tool of this name. The tools are: {names}", is_error=True)
    what = "the arguments were not a whole JSON object" if call.raw.strip() else "the arguments are missing"
    return ToolResult(f"{what}; the call was not run", is_error=True)


def _outcomes(call: ToolCall, result: ToolResult) -> set[tuple[str, ...]]:
    """What counts as the same again: the call with its outcome, and an error of this tool whatever the arguments."""
    arguments = read_arguments(call.arguments)
    text = call.arguments if arguments is None else json.dumps(arguments, sort_keys=True)
    found: set[tuple[str, ...]] = {(call.name, text, result.text)}
    return found | ({(call.name, result.text)} if result.is_error else set())
