"""Runs the calls of one step of the model, each once, and stores what they came to. Decides not what is run.

What the model reads when a tool has not answered stands in `Missing` (llm/history.py), and else here.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence

from echokit_py.errors import BackendError, ErrorKind
from echokit_py.llm.base import ToolCall
from echokit_py.llm.history import History, Missing
from echokit_py.log import sanitize
from echokit_py.session.services import Services
from echokit_py.session.tasks import stop
from echokit_py.tools.base import Tool, ToolResult

log = logging.getLogger(__name__)

PARALLEL = 4  # at once, of one device: a hub at home serves other things too
# A source has time-outs of its own; this is for one that forgets.
CALL_LIMIT_S = 60.0
# For a source that says when it ends a call: to do so, and to tell the other side.
GRACE_S = 5.0
# Checking arguments longer than this takes more than a moment of the event loop; it is done in a thread.
LONG_ARGUMENTS = 10_000

_UNKNOWN = "Whether the call took effect is not known: outcome unknown."
_NOT_RUN = "The call was not run."
_NO_TOOL = "there is no tool {}"
_NOT_REACHED = "Error: the tool can't be reached. {}"
_FAILED = f"Error: the tool failed. {_UNKNOWN}"

Say = Callable[[str], None]
"""Says something to the user while tools run."""


class Calls:
    """The calls of one turn. `tools`: those that were offered in it."""

    def __init__(self, tools: Sequence[Tool], history: History, services: Services, device: str) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._history = history
        self._services = services
        self._device = device
        self._slots = asyncio.Semaphore(PARALLEL)

    async def run(self, calls: Sequence[ToolCall], say: Say | None = None) -> list[ToolResult]:
        """Run calls that the history has taken in, a few at a time; their results in the same order.

        `say` gets the filler of the first tool that is waited for so long that it has one to be said, once.

        When it is cancelled the tools are too, and it waits for them a moment. What has completed by then is stored,
        and so is what a tool says that doesn't heed its cancellation.
        """
        tasks = [asyncio.create_task(self._run(call), name=f"call {call.name}") for call in calls]
        try:
            if say is not None:
                await self._fill(list(zip(calls, tasks, strict=True)), say)
            await asyncio.wait(tasks)
        finally:
            await stop(tasks)
        return [task.result() for task in tasks]

    async def _fill(self, running: Sequence[tuple[ToolCall, asyncio.Task[ToolResult]]], say: Say) -> None:
        """Wait until all have ended, or something was said."""
        now = asyncio.get_running_loop().time
        began = now()
        tools = [(tool, task) for call, task in running if (tool := self._tools.get(call.name)) and tool.filler]
        for tool, task in sorted(tools, key=lambda pair: pair[0].filler_after_s):
            _, left = await asyncio.wait(
                [task for _, task in running], timeout=max(0.0, began + tool.filler_after_s - now())
            )
            if task in left:
                say(tool.filler)
                return

    async def _run(self, call: ToolCall) -> ToolResult:
        async with self._slots:
            fault = await self._fault(call)
            if fault:
                log.info("%s: a call of %s is refused: its arguments don't fit", self._device, sanitize(call.name))
                return self._store(call, ToolResult(f"Error: {fault}. {_NOT_RUN}", is_error=True))
            work = asyncio.create_task(self._ask(call), name=f"tool {call.name}")
            try:
                ended, _ = await asyncio.wait([work], timeout=self._limit(call))
            finally:
                await stop([work])
            if work.done() and not work.cancelled():
                return work.result()
            # A tool may cancel itself; that is no time-out.
            return self._store(call, ToolResult(Missing.ERROR if ended else Missing.TIMEOUT, is_error=True))

    def _limit(self, call: ToolCall) -> float:
        timeout_s = self._tools[call.name].timeout_s
        return max(CALL_LIMIT_S, timeout_s + GRACE_S) if timeout_s else CALL_LIMIT_S

    async def _fault(self, call: ToolCall) -> str:
        tool = self._tools.get(call.name)
        if tool is None:
            return _NO_TOOL.format(call.name)
        await self._services.schemas.prepare(tool)
        if len(call.arguments) > LONG_ARGUMENTS:
            return await asyncio.to_thread(self._check, tool, call)
        return self._check(tool, call)

    def _check(self, tool: Tool, call: ToolCall) -> str:
        return self._services.schemas.fault(tool, json.loads(call.arguments))

    async def _ask(self, call: ToolCall) -> ToolResult:
        try:
            result = await self._services.tools.call(call.name, json.loads(call.arguments))
        except TimeoutError:
            log.warning("%s: the tool %s did not answer in time", self._device, sanitize(call.name))
            return self._store(call, ToolResult(Missing.TIMEOUT, is_error=True))
        except BackendError as error:
            log.warning("%s: the tool %s: %s", self._device, sanitize(call.name), sanitize(error))
            told = _NOT_REACHED.format(_NOT_RUN if error.kind is ErrorKind.CONNECT else _UNKNOWN)
            return self._store(call, ToolResult(told, is_error=True))
        except Exception:  # the boundary of a tool: whatever it does wrong is told to the model, and ends no turn
            log.exception("%s: the tool %s failed by a fault of its own", self._device, sanitize(call.name))
            return self._store(call, ToolResult(_FAILED, is_error=True))
        if result.is_error and not result.text.lower().startswith("error"):
            result = ToolResult(f"Error: {result.text}", is_error=True)
        return self._store(call, result)

    def _store(self, call: ToolCall, result: ToolResult) -> ToolResult:
        self._history.add_result(call.id, result.text)
        return result
