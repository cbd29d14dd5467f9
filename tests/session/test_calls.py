"""The calls of one step: only what was offered reaches a tool, whoever built the step."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from echokit_py.llm.base import ToolCall
from echokit_py.llm.history import History, Missing
from echokit_py.session.calls import Calls
from tests.fakes.providers import scripted
from tests.fakes.talking import Bench


def history(*calls: ToolCall) -> History:
    found = History()
    found.begin_turn("Do it.")
    found.add_step("", calls)
    return found


async def test_what_was_not_offered_in_this_turn_does_not_run() -> None:
    bench, call = Bench().offer("clock", "lock"), ToolCall("c1", "lock", "{}")
    kept = history(call)
    with scripted() as made:
        services = replace(made.services, tools=bench.source)
        [result] = await Calls(bench.source.tools()[:1], kept, services, "board").run([call])
    assert bench.called == []
    assert result.is_error
    assert kept.render()[-1]["content"] == "Error: there is no tool lock. The call was not run."


async def test_a_call_that_waits_for_its_turn_does_not_run_after_a_cancellation() -> None:
    bench = Bench().offer("clock")
    bench.gates["clock"] = asyncio.Event()
    calls = [ToolCall(f"c{number}", "clock", "{}") for number in range(6)]
    kept = history(*calls)
    with scripted() as made:
        services = replace(made.services, tools=bench.source)
        running = asyncio.create_task(Calls(bench.source.tools(), kept, services, "board").run(calls))
        while bench.running < 4:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert len(bench.called) == 4
    assert bench.running == 0
    kept.commit()
    kept.begin_turn("And now?")
    results = [message["content"] for message in kept.render() if message["role"] == "tool"]
    assert results == [Missing.CANCELLED] * 6
