"""The dialogue with the model in one turn: ask, run the tools it calls, ask again, until there is an answer.

What follows a step is decided in `llm/rounds.py`; how a call is run is `calls.py`.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.llm.base import RefusedCall, Step, ToolCall
from echokit_py.llm.history import History
from echokit_py.llm.ladder import Descent, Ladder
from echokit_py.llm.rounds import MAX_CALLS, AskAgain, Finish, GiveUp, Rounds, Run, refusal
from echokit_py.log import sanitize
from echokit_py.session.boundary import Waiting
from echokit_py.session.calls import Calls, Say
from echokit_py.session.piece import Piece
from echokit_py.session.services import Services
from echokit_py.session.thinker import think
from echokit_py.session.turn import Turn
from echokit_py.tools.base import ToolResult

log = logging.getLogger(__name__)


class Dialogue:
    """One turn's dialogue; what it stores goes to the history's current turn. `waiting` is kept up to date."""

    def __init__(self, turn: Turn, history: History, ladder: Ladder, services: Services, waiting: Waiting) -> None:
        tools = services.tools.tools()
        self._turn = turn
        self._history = history
        self._ladder = ladder
        self._services = services
        self._waiting = waiting
        self._device = turn.record.device
        self._tools = tools
        self._rounds = Rounds(tools, services.tool_rounds)
        self._calls = Calls(tools, history, services, self._device)

    async def run(self, pieces: asyncio.Queue[Piece | None]) -> None:
        """Answer the history's question; what is to be spoken goes into `pieces`. Raises BackendError (LLM)."""
        while True:
            descent = Descent(self._ladder, self._history, self._rounds.note)
            step = await think(descent, self._rounds.tools, pieces, self._services, self._turn)
            self._still_ours()
            match self._rounds.judge(step):
                case Run(calls, refused):
                    say = None if _is_spoken(step) else partial(_say, pieces)
                    await self._run(step, calls[:MAX_CALLS], refused[:MAX_CALLS], say)
                case AskAgain():
                    self._history.add_step(step.text)  # what was said stays
                    log.info("%s: the LLM's step is of no use, it is asked again (%s)", self._device, _why(step))
                case Finish():
                    self._history.add_step(step.text, (), step.reasoning)
                    return
                case GiveUp(reason):
                    self._history.add_step(step.text)
                    raise BackendError(Stage.LLM, ErrorKind.BAD_ANSWER, f"{reason} ({_why(step)})")

    async def _run(
        self, step: Step, calls: tuple[ToolCall, ...], refused: tuple[RefusedCall, ...], say: Say | None
    ) -> None:
        mended = [ToolCall("", call.name, call.raw) for call in refused]
        kept = self._history.add_step(step.text, [*calls, *mended], step.reasoning)
        taken = list(zip(kept[len(calls) :], (refusal(call, self._tools) for call in refused), strict=True))
        for call, result in taken:
            self._history.add_result(call.id, f"Error: {result.text}")
        if calls:
            names = ", ".join(dict.fromkeys(call.name for call in calls))
            log.info("%s: tools: %s", self._device, sanitize(names))
            self._turn.show(names)
            self._waiting.stage = Stage.TOOL
            results: list[ToolResult] = await self._calls.run(kept[: len(calls)], say)
            self._waiting.stage = Stage.LLM
            self._still_ours()
            taken = [*zip(kept, results, strict=False), *taken]
        self._rounds.take(taken)
        if self._rounds.without_effect:
            log.info("%s: %d tool calls in a row without effect", self._device, self._rounds.without_effect)

    def _still_ours(self) -> None:
        # A task that outlived its cancellation must not write into the turn that began meanwhile.
        if self._turn.over:
            raise asyncio.CancelledError


def _is_spoken(step: Step) -> bool:
    """Whether the model itself says something in this step: then nobody waits in silence for its tools."""
    return any(map(str.isalnum, step.text))


def _say(pieces: asyncio.Queue[Piece | None], filler: str) -> None:
    """Have a tool's filler spoken. Not when the voice is behind: then the user hears enough."""
    if not pieces.full():
        pieces.put_nowait(Piece(filler, kept=False))


def _why(step: Step) -> str:
    """For the log: no words of the model."""
    if step.refused:
        return "calls refused: " + ", ".join(call.reason for call in step.refused[:5])
    if step.call_text:
        return "a call written as text"
    return f"nothing usable, finish reason {step.finish_reason!r:.40}"
