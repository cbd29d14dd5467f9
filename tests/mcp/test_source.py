"""Calls are routed, bounded, and sent again only where that does no harm; in virtual time and without a server."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import pytest
from mcp import types

from echokit_py.config.settings import McpServer
from echokit_py.mcp.base import Refused, State, Unanswered
from echokit_py.mcp.source import BACK_LIMIT_S, CLOSE_LIMIT_S, OVERALL, PER_SERVER, McpTools
from echokit_py.mcp.supervisor import Connected
from echokit_py.tools.base import ToolResult
from tests.fakes import virtual_time
from tests.mcp.connections import FakeConnection, Script, error, text, tool


async def _here(function: Callable[..., Any], *arguments: Any) -> Any:
    """For virtual time, which waits for no thread."""
    return function(*arguments)


def run(scripts: dict[str, Script], work: Callable[[McpTools], Awaitable[None]], **settings: Any) -> None:
    """Run `work` with the servers of `scripts`, connected as far as they can be."""
    servers = [McpServer(server="http://127.0.0.1:1/mcp", name=name, **settings) for name in scripts]
    problems: list[dict[str, Any]] = []

    async def connect(server: McpServer, handshake_only: bool) -> Connected:
        return await scripts[server.name].connect(server, handshake_only)

    async def with_tools() -> None:
        tools = McpTools(servers, connect=connect)
        await tools.start()
        await asyncio.sleep(0.01)
        try:
            await work(tools)
        finally:
            await tools.close()
        assert {status.state for status in tools.statuses()} == {State.CLOSED}
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with patch("asyncio.to_thread", _here):
        virtual_time.run(with_tools(), problems.append)
    assert problems == []


def test_each_call_goes_to_its_server_under_the_tools_own_name() -> None:
    home, car = Script(tools=[tool("on"), tool("oven.get")]), Script(tools=[tool("on")])

    async def work(tools: McpTools) -> None:
        names = [offered.name for offered in tools.tools()]
        assert len(set(names)) == 3
        for name in names:
            result = await tools.call(name, {"n": 1})
            assert not result.is_error
        assert home.calls == [("on", {"n": 1}), ("oven.get", {"n": 1})]
        assert car.calls == [("on", {"n": 1})]

    run({"home": home, "car": car}, work)


def test_one_that_is_down_offers_nothing_and_costs_nothing() -> None:
    home, car = Script(tools=[tool("on")]), Script(*[error()] * 100, tools=[tool("off")])

    async def work(tools: McpTools) -> None:
        assert [offered.name for offered in tools.tools()] == ["on"]
        assert tools.tools() is tools.tools()
        began = asyncio.get_running_loop().time()
        result = await tools.call("off", {})
        assert result.is_error
        assert "was not run" in result.text
        assert asyncio.get_running_loop().time() == began
        assert [status.state for status in tools.statuses()] == [State.CONNECTED, State.DOWN]

    run({"home": home, "car": car}, work)


def breaking(script: Script, *, not_run: bool, times: int = 1, end: bool = True) -> None:
    """Let the first calls of a server break."""
    left = [None] * times

    async def answer(name: str, _: dict[str, Any]) -> types.CallToolResult:
        if left:
            left.pop()
            if end:
                script.connections[-1].end()
            raise Unanswered("the server closed the connection", not_run=not_run)
        return text("done")

    script.answer = answer


@pytest.mark.parametrize(
    ("not_run", "read_only", "calls", "said"),
    [
        (True, False, 2, "done"),
        (False, True, 2, "done"),
        (False, False, 1, "outcome unknown"),
    ],
    ids=["did not run", "repeatable", "may have run"],
)
@pytest.mark.parametrize("end", [True, False], ids=["connection lost", "connection kept"])
def test_a_call_is_sent_again_only_where_that_does_no_harm(
    not_run: bool, read_only: bool, calls: int, said: str, end: bool
) -> None:
    home = Script(0, 3.0, tools=[tool("on", read_only=read_only)])

    async def work(tools: McpTools) -> None:
        breaking(home, not_run=not_run, end=end)
        result = await tools.call("on", {})
        assert said in result.text
        assert result.is_error is (said != "done")
        assert len(home.calls) == calls

    run({"home": home}, work)


def test_a_call_may_run_twice_at_most() -> None:
    home = Script(tools=[tool("on", read_only=True)])

    async def work(tools: McpTools) -> None:
        breaking(home, not_run=False, times=9)
        result = await tools.call("on", {})
        assert "outcome unknown" in result.text
        assert len(home.calls) == 2

    run({"home": home}, work)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("timeout_sec", [30.0, BACK_LIMIT_S])
@pytest.mark.parametrize("end", [True, False], ids=["connection lost", "connection kept"])
def test_a_call_that_did_not_run_is_sent_again_for_some_seconds(read_only: bool, timeout_sec: float, end: bool) -> None:
    """A server that is being restarted may refuse more than once."""
    home = Script(tools=[tool("on", read_only=read_only)])

    async def comes_back(tools: McpTools) -> None:
        breaking(home, not_run=True, times=9, end=end)
        assert (await tools.call("on", {})).text == "done"

    async def stays_away(tools: McpTools) -> None:
        breaking(home, not_run=True, times=10_000, end=end)
        began = asyncio.get_running_loop().time()
        result = await tools.call("on", {})
        assert "was not run" in result.text
        assert asyncio.get_running_loop().time() - began == pytest.approx(BACK_LIMIT_S, abs=1)
        assert len(home.calls) < 100

    run({"home": home}, comes_back, timeout_sec=timeout_sec)
    home.calls.clear()
    run({"home": home}, stays_away, timeout_sec=timeout_sec)


def test_one_that_does_not_come_back_is_not_waited_for_long() -> None:
    home = Script(0, *[error()] * 100, tools=[tool("on")])

    async def work(tools: McpTools) -> None:
        breaking(home, not_run=True)
        began = asyncio.get_running_loop().time()
        result = await tools.call("on", {})
        assert "can't be reached" in result.text
        assert "was not run" in result.text
        assert asyncio.get_running_loop().time() - began == pytest.approx(BACK_LIMIT_S, abs=0.1)

    run({"home": home}, work)


def test_an_error_of_the_protocol_is_told_to_the_model_and_not_sent_again() -> None:
    home = Script(tools=[tool("on", read_only=True)])

    async def answer(*_: Any) -> types.CallToolResult:
        raise Refused("Unknown tool: on")

    async def work(tools: McpTools) -> None:
        home.answer = answer
        assert await tools.call("on", {}) == ToolResult("Error: Unknown tool: on", is_error=True)
        assert len(home.calls) == 1

    run({"home": home}, work)


def test_a_hung_server_times_out_and_never_slows_another() -> None:
    hung, quick = Script(tools=[tool("hang")]), Script(tools=[tool("go")])

    async def hang(*_: Any) -> types.CallToolResult:
        await asyncio.sleep(1000)
        raise AssertionError

    async def work(tools: McpTools) -> None:
        hung.answer = hang
        loop = asyncio.get_running_loop()
        began = loop.time()
        waiting = [asyncio.create_task(tools.call("hang", {})) for _ in range(PER_SERVER + 2)]
        await asyncio.sleep(1)
        assert (await tools.call("go", {})).text == "go is done"
        assert loop.time() - began == pytest.approx(1, abs=0.01)
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert loop.time() - began == pytest.approx(5, abs=0.1)
        assert [type(result) for result in results[:PER_SERVER]] == [TimeoutError] * PER_SERVER
        for result in results[PER_SERVER:]:  # these had no slot
            assert isinstance(result, ToolResult)
            assert "was not run" in result.text
        assert len(hung.calls) == PER_SERVER
        assert hung.connections[0].suspected > 0

    run({"hung": hung, "quick": quick}, work, timeout_sec=5.0)


def test_no_more_than_so_many_calls_run_at_once() -> None:
    scripts = {f"s{number}": Script(tools=[tool(f"t{number}")]) for number in range(6)}
    running, most = [0], [0]

    async def slow(name: str, _: dict[str, Any]) -> types.CallToolResult:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(1)
        running[0] -= 1
        return text(name)

    async def work(tools: McpTools) -> None:
        for script in scripts.values():
            script.answer = slow
        names = [f"t{number}" for number in range(6)] * PER_SERVER
        results = await asyncio.gather(*(tools.call(name, {}) for name in names))
        assert [result.text for result in results] == names
        assert most[0] == OVERALL

    run(scripts, work)


def test_a_cancelled_call_is_cancelled_with_the_server_and_frees_its_place() -> None:
    home = Script(tools=[tool("on")])
    cancelled = []

    async def slow(*_: Any) -> types.CallToolResult:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        raise AssertionError

    async def work(tools: McpTools) -> None:
        fast, home.answer = home.answer, slow
        tasks = [asyncio.create_task(tools.call("on", {})) for _ in range(PER_SERVER)]
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert len(cancelled) == PER_SERVER
        home.answer = fast
        assert (await tools.call("on", {})).text == "on is done"

    run({"home": home}, work)


def test_a_key_that_a_tool_repeats_does_not_reach_the_model() -> None:
    home = Script(tools=[tool("on")])

    async def answer(*_: Any) -> types.CallToolResult:
        return text("your key is key-abcdef")

    async def work(tools: McpTools) -> None:
        home.answer = answer
        assert (await tools.call("on", {})).text == "your key is ***"

    run({"home": home}, work, api_key="key-abcdef")


def test_a_tool_that_is_left_out_is_named_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    home = Script(tools=[tool("on"), tool("off"), tool("on")])

    async def work(tools: McpTools) -> None:
        for _ in range(3):
            take = home.connections[0].on_tools
            assert take is not None
            await take(home.tools)
        assert {(left.tool, left.by_choice) for left in tools.left_out()} == {("on", False), ("off", True)}

    with caplog.at_level(logging.INFO, "echokit_py.mcp.source"):
        run({"home": home}, work, deny=("off",))
    [line] = [record.message for record in caplog.records]
    assert line == "the tool on of the MCP server home is left out: the server lists another tool of this name"


def test_the_sdk_is_not_imported_before_there_is_a_server_to_connect_to() -> None:
    code = (
        "import asyncio, sys; from echokit_py.mcp.source import McpTools; tools = McpTools([]);"
        "asyncio.run(tools.start()); asyncio.run(tools.close());"
        "print(*(name for name in sys.modules if name.partition('.')[0] in ('mcp', 'mcp_types', 'httpx2')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == ""


def test_closing_leaves_behind_what_does_not_let_go(caplog: pytest.LogCaptureFixture) -> None:
    home, release = Script(tools=[tool("on")]), asyncio.Event()

    async def hold(_: object) -> None:
        with suppress(asyncio.CancelledError):
            await release.wait()
        await release.wait()

    async def work() -> None:
        tools = McpTools([McpServer(server="http://127.0.0.1:1/mcp", name="home")], connect=home.connect)
        with patch.object(FakeConnection, "run", lambda _, on_tools: hold(on_tools)):
            await tools.start()
            await asyncio.sleep(1)
            began = asyncio.get_running_loop().time()
            await tools.close()
        assert asyncio.get_running_loop().time() - began == pytest.approx(CLOSE_LIMIT_S, abs=0.1)
        release.set()

    virtual_time.run(work(), lambda context: pytest.fail(str(context)))
    assert "MCP server home does not let go and is left behind" in caplog.text
