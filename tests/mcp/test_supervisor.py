"""A server is kept connected, in virtual time and without a server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from mcp import types

from echokit_py.config.settings import McpServer
from echokit_py.errors import BackendError
from echokit_py.mcp.backoff import Backoff
from echokit_py.mcp.base import State
from echokit_py.mcp.supervisor import GRACE_S, Supervisor
from tests.fakes import virtual_time
from tests.mcp.connections import Script, error, tool

SERVER = McpServer(server="http://127.0.0.1:1/mcp", name="home")


class Bench:
    """A supervisor at work; what it offered, in order (None: withdrawn)."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.offers: list[list[str] | None] = []
        self.supervisor = Supervisor(SERVER, self._take, connect=script.connect, backoff=Backoff(lambda: 0.0))

    async def _take(self, tools: Sequence[types.Tool] | None) -> None:
        self.offers.append(None if tools is None else [tool.name for tool in tools])


def run(script: Script, work: Callable[[Bench], Awaitable[None]]) -> None:
    """Let `work` run beside the supervisor."""
    problems: list[dict[str, Any]] = []

    async def both() -> None:
        bench = Bench(script)
        task = asyncio.create_task(bench.supervisor.run())
        await work(bench)
        task.cancel()
        await asyncio.wait([task])
        assert bench.supervisor.status.state is State.CLOSED
        assert asyncio.all_tasks() == {asyncio.current_task()}

    virtual_time.run(both(), problems.append)
    assert problems == []


def test_one_that_is_down_is_tried_again_for_ever_with_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    script = Script(*[error()] * 10, tools=[tool("a")])

    async def work(bench: Bench) -> None:
        await asyncio.sleep(62)
        assert bench.supervisor.status.state is State.DOWN
        assert bench.supervisor.status.last_error == "can't be reached: Connection refused"
        assert bench.offers == []
        await bench.supervisor.connected(300)
        now = bench.supervisor.status
        assert (now.state, now.tools) == (State.CONNECTED, 1)

    with caplog.at_level(logging.INFO):
        run(script, work)
    began = script.times[0]
    assert [round(time - began) for time in script.times[:6]] == [0, 1, 3, 7, 15, 31]
    assert [record.message for record in caplog.records] == [
        "the MCP server home is down: it can't be reached: Connection refused; trying again",
        "the MCP server home is connected and lists 1 tools",
    ]


def test_one_that_restarts_is_connected_again_at_once_and_its_tools_stay_offered() -> None:
    script = Script(0, 1.0, tools=[tool("a")])

    async def work(bench: Bench) -> None:
        await bench.supervisor.connected(1)
        await asyncio.sleep(5)
        script.connections[0].end()
        assert (await bench.supervisor.connected(2)) is script.connections[1]
        assert bench.offers == [["a"], ["a"]]
        assert script.times[1] - script.times[0] == pytest.approx(5, abs=0.01)

    run(script, work)


@pytest.mark.parametrize("outcome", [error(), 60.0], ids=["refused", "slow"])
def test_tools_of_one_that_does_not_come_back_are_withdrawn(outcome: float | Exception) -> None:
    script = Script(0, outcome, tools=[tool("a")])

    async def work(bench: Bench) -> None:
        await bench.supervisor.connected(1)
        script.connections[0].end()
        await asyncio.sleep(0.5 if isinstance(outcome, Exception) else GRACE_S + 0.1)
        assert bench.offers == [["a"], None]

    run(script, work)


def test_tools_of_one_that_is_lost_again_and_again_are_not_offered_during_the_pauses() -> None:
    script = Script(tools=[tool("a")])

    async def work(bench: Bench) -> None:
        for number in range(4):  # lost at once each time: the pauses are 0, 1, 2, 4 s
            while len(script.connections) <= number:
                await asyncio.sleep(0.1)
            await asyncio.sleep(0.1)
            script.connections[number].end()
        await asyncio.sleep(GRACE_S + 0.1)
        assert len(script.connections) == 4
        assert bench.offers[:3] == [["a"]] * 3  # the shorter pauses are within the grace
        assert bench.offers[-1] is None

    run(script, work)


def test_a_call_that_waits_makes_the_next_try_come_sooner() -> None:
    script = Script(*[error()] * 6, tools=[tool("a")])

    async def work(bench: Bench) -> None:
        await asyncio.sleep(31.5)  # the next try would be at 63 s
        await bench.supervisor.connected(1)
        assert script.times[-1] - script.times[0] < 33

    run(script, work)


def test_who_waits_for_one_that_stays_away_is_told_why() -> None:
    async def work(bench: Bench) -> None:
        with pytest.raises(BackendError, match="home can't be reached: Connection refused"):
            await bench.supervisor.connected(3)

    run(Script(*[error()] * 20), work)


def test_a_connection_that_has_ended_is_not_handed_out() -> None:
    async def work(bench: Bench) -> None:
        first = await bench.supervisor.connected(1)
        bench.script.connections[0].end()
        assert await bench.supervisor.connected(1) is not first

    run(Script(), work)


def test_a_new_list_is_followed() -> None:
    script = Script(tools=[tool("a")])

    async def work(bench: Bench) -> None:
        await bench.supervisor.connected(1)
        since = bench.supervisor.status.since
        connection = script.connections[0]
        assert connection.on_tools is not None
        await connection.on_tools([tool("b"), tool("c")])
        assert bench.offers == [["a"], ["b", "c"]]
        assert (bench.supervisor.status.tools, bench.supervisor.status.since) == (2, since)

    run(script, work)


def test_an_older_server_is_not_asked_again_for_the_new_protocol_until_it_was_down() -> None:
    script = Script(0, 0, error(), 0)
    script.speaks_2026 = False

    async def work(bench: Bench) -> None:
        for number in (0, 1):
            await asyncio.sleep(0.01)
            script.connections[number].end()
        await asyncio.sleep(10)
        assert script.handshakes == [False, True, True, False]

    run(script, work)


def test_a_fault_of_ours_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def work(bench: Bench) -> None:
        await asyncio.sleep(0.01)
        assert bench.supervisor.status.last_error == "ZeroDivisionError"
        await bench.supervisor.connected(5)

    run(Script(ZeroDivisionError("what a user said")), work)
    assert any("a fault of ours" in record.message for record in caplog.records)


def test_secrets_are_in_no_state_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    server = McpServer.model_validate({"server": "http://127.0.0.1:1/mcp", "api_key": "key-abcdef"})
    script = Script(error("answered 401: key-abcdef is wrong"))

    async def work() -> None:
        async def take(_: object) -> None: ...

        supervisor = Supervisor(server, take, connect=script.connect)
        task = asyncio.create_task(supervisor.run())
        await asyncio.sleep(0.1)
        assert supervisor.status.last_error == "answered 401: *** is wrong"
        task.cancel()
        await asyncio.wait([task])

    virtual_time.run(work(), lambda context: pytest.fail(str(context)))
    assert "key-abcdef" not in caplog.text
