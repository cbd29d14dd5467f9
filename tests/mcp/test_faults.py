"""A real MCP server, of the SDK, fails in each way: the model is told the truth, nothing runs twice, turns go on.

Over both transports, and with both kinds of revisions: 2026-07-28 (in one of the tests over stdio as well) and those
before it, which most servers speak.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psutil
import pytest
import pytest_asyncio

from tests.mcp_servers.ledger import Hold, Ledger
from tests.mcp_servers.process import HttpProcess, module
from tests.mcp_servers.talk import Tooled, over_http, over_stdio, tooled, until

pytestmark = [pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="module")]

KINDS = ["stdio-legacy", "http", "http-legacy"]
every_kind = pytest.mark.parametrize("kind", KINDS)
TOOLS = ("turn_on", "read_lamp", "put_lamp")
UNKNOWN = "outcome unknown"


def command(kind: str, name: str, ledger: Ledger) -> list[str]:
    """A faulty server as an argument of `module`."""
    transport, _, era = kind.partition("-")
    return ["faulty", transport, "--name", name, "--ledger", str(ledger.port), *(["--legacy"] if era else [])]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ledger() -> AsyncIterator[Ledger]:
    async with Ledger(*TOOLS) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def processes(ledger: Ledger) -> AsyncIterator[dict[str, HttpProcess]]:
    """By kind, servers that listen. Each is called as its kind."""
    kinds = [kind for kind in KINDS if kind.startswith("http")]
    found = {kind: HttpProcess(module(*command(kind, kind, ledger))) for kind in kinds}
    await asyncio.gather(*(process.start() for process in found.values()))
    yield found
    await asyncio.gather(*(process.kill() for process in found.values()))


@dataclass
class Lamp:
    """A faulty server of some kind, and the conversation that uses it."""

    name: str
    ledger: Ledger
    process: HttpProcess | None
    tooled: Tooled

    async def kill(self) -> None:
        """End it at once. Over HTTP it stays down until `restart`."""
        gone = self.ledger.gone(self.name) + 1
        if self.process is not None:
            await self.process.kill()
        else:
            os.kill(self.ledger.pids[self.name], signal.SIGKILL)
        await self.ledger.until(lambda: self.ledger.gone(self.name) == gone)

    async def restart(self) -> None:
        """Let it come back; a child of stdio does so by itself, and is waited for."""
        if self.process is not None:
            await self.process.start()
        else:
            await self.ledger.until(lambda: self.ledger.is_listed(self.name))
        await self.tooled.until_offered(*TOOLS)

    async def works(self, call_id: str, tool: str = "turn_on") -> None:
        """A turn with it is as it should be."""
        assert await self.tooled.use((tool, {"id": call_id})) == [f"{self.name} {tool} {call_id}"]
        assert self.ledger.ran(call_id) == 1


async def begin(ledger: Ledger, processes: dict[str, HttpProcess]) -> None:
    """Whatever the test before left: all servers run, offer the same tools, and have run nothing."""
    ledger.tools = {"": list(TOOLS)}
    for process in processes.values():
        if not process.is_running:
            await process.start()
    ledger.forget()


@asynccontextmanager
async def lamp(
    kind: str, ledger: Ledger, processes: dict[str, HttpProcess], timeout_sec: float = 30
) -> AsyncIterator[Lamp]:
    """A conversation with a server of this kind behind it. No task and no child process outlives it."""
    await begin(ledger, processes)
    children, tasks = set(psutil.Process().children(recursive=True)), asyncio.all_tasks()
    process = processes.get(kind)
    options = {"timeout_sec": timeout_sec, "max_result_chars": 1000}
    if process is None:
        entry = over_stdio(kind, *command(kind, kind, ledger), **options)
    else:
        entry = over_http(kind, process.url, **options)
    async with tooled(entry) as conversation:
        await conversation.until_offered(*TOOLS)
        yield Lamp(kind, ledger, process, conversation)
    left = set(psutil.Process().children(recursive=True)) - children
    assert [child.pid for child in left if process is None] == []
    # The test has a few itself, which end with the processes that listen.
    of_ours = {task for task in asyncio.all_tasks() - tasks if not re.search("Ledger|HttpProcess", repr(task))}
    assert of_ours == set()


@every_kind
async def test_killed_between_turns_and_in_the_middle_of_calls(
    kind: str, ledger: Ledger, processes: dict[str, HttpProcess]
) -> None:
    async with lamp(kind, ledger, processes) as server:
        await server.works("before")
        await server.kill()
        await server.restart()
        await server.works("after")

        # `turn_on` must not run again. The other two may: once with the server that died, once with the new one.
        ledger.then = {tool: [Hold(), {"text": f"{tool} is done"}] for tool in TOOLS}
        await server.tooled.begin(*((tool, {"id": tool}) for tool in TOOLS))
        await ledger.until(lambda: all(ledger.ran(tool) == 1 for tool in TOOLS))
        await server.kill()
        await server.restart()
        written, read, put = await server.tooled.end()
        assert written.startswith("Error")
        assert UNKNOWN in written
        assert [read, put] == ["read_lamp is done", "put_lamp is done"]
        await server.works("at last")
        assert [ledger.ran(tool) for tool in TOOLS] == [1, 2, 2]


@every_kind
async def test_hung_and_cut_short(kind: str, ledger: Ledger, processes: dict[str, HttpProcess]) -> None:
    """A call that never ends: the time-out is told to the model, and the server that nobody waits any more."""
    async with lamp(kind, ledger, processes, timeout_sec=2) as server:
        ledger.then = {"hung": [Hold()], "cut": [Hold()]}
        hung, quick = await server.tooled.use(("turn_on", {"id": "hung"}), ("turn_on", {"id": "quick"}))
        assert hung.startswith("Error")
        assert UNKNOWN in hung
        assert quick == f"{kind} turn_on quick"
        await ledger.until(lambda: ledger.count("cancelled", "hung") == 1)

        await server.tooled.begin(("turn_on", {"id": "cut"}))
        await ledger.until(lambda: ledger.ran("cut") == 1)
        await server.tooled.talk.interrupt()  # the user has had enough
        await ledger.until(lambda: ledger.count("cancelled", "cut") == 1)

        await server.works("after")
        assert [ledger.ran(call) for call in ("hung", "quick", "cut")] == [1, 1, 1]
        assert ledger.started(kind) <= 1  # and it is still the same process


@every_kind
async def test_what_it_says(kind: str, ledger: Ledger, processes: dict[str, HttpProcess]) -> None:
    """A huge result, an error, garbage on stdout; and other tools than before."""
    async with lamp(kind, ledger, processes) as server:
        ledger.then = {
            "huge": [{"text": "ä lot ", "times": 250_000}],
            "error": [{"text": "no bulb", "is_error": True}],
            "noise": [{"stdout": 'starting…\n\n{"half": \n{"not": "jsonrpc"}\n', "text": "done"}],
        }
        huge, error = await server.tooled.use(("turn_on", {"id": "huge"}), ("turn_on", {"id": "error"}))
        # By itself: on stdout it must not come in the middle of a message, which nobody could make out any more.
        [noise] = await server.tooled.use(("turn_on", {"id": "noise"}))
        assert huge.startswith("ä lot ä lot")
        assert len(huge) <= 1200
        assert "truncated" in huge
        assert error == "Error: no bulb"
        assert noise == "done"
        assert [ledger.ran(call) for call in ledger.then] == [1, 1, 1]

        ledger.change(kind, "turn_on", "turn_off")
        await server.tooled.until_offered("turn_on", "turn_off")
        await server.works("off", "turn_off")
        [gone] = await server.tooled.use(("read_lamp", {"id": "gone"}))
        assert gone.startswith("Error")
        assert ledger.ran("gone") == 0
        ledger.change(kind, *TOOLS)
        await server.tooled.until_offered(*TOOLS)
        await server.works("after")
        assert ledger.started(kind) <= 1


async def test_down_for_a_while(ledger: Ledger, processes: dict[str, HttpProcess]) -> None:
    async with lamp("http", ledger, processes, timeout_sec=2) as server:
        await server.kill()
        # Nothing has to show that it is down before a model calls it; the call did not run, and that is what it says.
        [late] = await server.tooled.use(("turn_on", {"id": "late"}))
        assert late.startswith("Error")
        assert UNKNOWN not in late
        await server.tooled.until_offered()
        assert await server.tooled.use() == []
        assert "tools" not in server.tooled.chat.requests[-1].json
        await server.restart()
        await server.works("again")
        assert ledger.ran("late") == 0


async def test_slow_to_start(ledger: Ledger) -> None:
    """The server's start isn't held up, turns work meanwhile, and the tools come when they come."""
    ledger.forget()
    ledger.start.clear()
    try:
        async with tooled(over_stdio("slow", *command("stdio", "slow", ledger))) as conversation:
            await ledger.until(lambda: ledger.started("slow") == 1)
            assert await conversation.use() == []
            ledger.start.set()
            await conversation.until_offered(*TOOLS)
            assert await conversation.use(("turn_on", {"id": "slow"})) == ["slow turn_on slow"]
            assert ledger.ran("slow") == 1
    finally:
        ledger.start.set()


async def test_two_servers_with_the_same_names(ledger: Ledger, processes: dict[str, HttpProcess]) -> None:
    """Each tool keeps its name and its place, whichever server goes and comes, and in whichever order they come."""
    await begin(ledger, processes)
    entries = [over_http(kind, process.url) for kind, process in processes.items()]
    gone = processes["http"]
    async with tooled(*entries) as conversation:
        await until(lambda: len(conversation.source.tools()) == 2 * len(TOOLS), "all tools")
        names = {tool.name for tool in conversation.source.tools()}
        assert len(names) == 2 * len(TOOLS)
        calls = [(name, {"id": name}) for name in sorted(names)]
        results = await conversation.use(*calls)
        assert sorted(result.rpartition(" ")[0] for result in results) == sorted(
            f"{kind} {tool}" for kind in processes for tool in TOOLS
        )
        await gone.kill()
        await until(lambda: len(conversation.source.tools()) == len(TOOLS), "the end of one server")
        assert {tool.name for tool in conversation.source.tools()} < names
        await gone.start()
        await conversation.until_offered(*names)
        assert await conversation.use(*calls) == results
    assert all(ledger.ran(name) == 2 for name in names)


async def test_a_hung_server_slows_no_other(ledger: Ledger, processes: dict[str, HttpProcess]) -> None:
    """Ten calls hang with one server, more than it is given at once; a turn with the other goes on meanwhile."""
    await begin(ledger, processes)
    hold = Hold(text="at last")
    ledger.then = {f"hung-{number}": [hold] for number in range(10)}
    async with tooled(*(over_http(kind, process.url) for kind, process in processes.items())) as conversation:
        await until(lambda: len(conversation.source.tools()) == 2 * len(TOOLS), "all tools")
        hung = [
            asyncio.create_task(conversation.source.call("http_turn_on", {"id": call_id})) for call_id in ledger.then
        ]
        await ledger.until(lambda: sum(ledger.ran(call_id) for call_id in ledger.then) == 8)
        assert await conversation.use(("http-legacy_turn_on", {"id": "quick"})) == ["http-legacy turn_on quick"]
        assert not any(call.done() for call in hung)
        hold.set()
        assert {result.text for result in await asyncio.gather(*hung)} == {"at last"}
    assert [ledger.ran(call_id) for call_id in (*ledger.then, "quick")] == [1] * 11
