"""Servers that are programs: started, understood in spite of noise, and gone with all their children."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from echokit_py.config.settings import McpServer
from echokit_py.errors import BackendError, ErrorKind
from echokit_py.mcp import source, stdio
from echokit_py.mcp.base import State, Unanswered
from echokit_py.mcp.source import McpTools, probe
from tests.mcp.opened import LIMIT_S, Open, opened

# As small as a server can be, in a Python that starts in 20 ms. Its child outlives it, if it is let.
PROGRAM = """
import json, os, subprocess, sys, time
print("starting up ...\\n\\n\\xff{\\"not\\": \\"jsonrpc\\"}", flush=True)
sys.stderr.write("token is tok-123456\\n"); sys.stderr.flush()
child = subprocess.Popen(["sleep", "600"])
def result(message):
    method = message["method"]
    if method == "initialize":
        info = {"name": "p", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": "pids", "inputSchema": {"type": "object"}}, {"name": "die", "inputSchema": {}}]}
    if method == "tools/call":
        if message["params"]["name"] == "die":
            os._exit(7)
        return {"content": [{"type": "text", "text": f"{os.getppid()} {os.getpid()} {child.pid} {sorted(os.environ)}"}]}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "server/discover":
        answer["error"] = {"code": -32601, "message": "Method not found"}
    else:
        answer["result"] = result(message)
    print(json.dumps(answer), flush=True)
    print("noise", flush=True)
"""

STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{PROGRAM}\nwhile True: time.sleep(1)"


def program(code: str = PROGRAM, **settings: object) -> McpServer:
    return McpServer.model_validate(
        {
            "type": "stdio",
            "name": "p",
            "command": sys.executable,
            "args": ["-S", "-E", "-c", code],
            "env": {"API_TOKEN": "tok-123456"},
            **settings,
        }
    )


async def gone(pids: Sequence[int]) -> None:
    """Wait until no process has one of these ids."""
    async with asyncio.timeout(LIMIT_S):
        while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids):
            await asyncio.sleep(0.01)


async def pids_of(server: Open) -> list[int]:
    return [int(word) for word in (await server.call("pids")).split()[:3]]


async def test_noise_is_skipped_and_what_it_says_on_stderr_is_logged_without_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, "echokit_py"):
        async with opened(program()) as server:
            assert "API_TOKEN" in await server.call("pids")
    warned = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert warned == ["the MCP server p writes to its standard output what is no message; skipped"]
    assert "the MCP server p: token is ***" in caplog.text
    assert "tok-123456" not in caplog.text


async def test_it_gets_no_variable_of_ours_that_is_not_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-ours")
    async with opened(program()) as server:
        assert "OPENAI_API_KEY" not in await server.call("pids")


@pytest.mark.parametrize("code", [PROGRAM, STUBBORN], ids=["willing", "stubborn"])
async def test_closing_ends_it_and_what_it_has_started(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if code == STUBBORN:
        monkeypatch.setattr(stdio, "EXIT_S", 0.1)
        monkeypatch.setattr(stdio, "TERM_S", 0.1)
    async with opened(program(code)) as server:
        pids = await pids_of(server)
    await gone(pids)


def test_even_a_stubborn_one_is_ended_before_closing_gives_up() -> None:
    assert stdio.EXIT_S + 2 * stdio.TERM_S < source.CLOSE_LIMIT_S


async def test_its_death_is_noticed_and_takes_its_children_along() -> None:
    async with opened(program()) as server:
        pids = await pids_of(server)
        os.kill(pids[1], signal.SIGKILL)
        assert "exit status 137" in str(await server.end())
    await gone(pids)


async def test_a_call_in_whose_middle_it_died_may_have_run() -> None:
    async with opened(program()) as server:
        with pytest.raises(Unanswered) as raised:
            await server.call("die")
        assert not raised.value.not_run
        assert "exit status 7" in str(await server.end())


async def test_it_goes_when_we_are_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import asyncio\n"
        "from tests.mcp.test_stdio import Open, pids_of, program\n"
        "async def main():\n"
        "    server = Open(program())\n"
        "    await server.listed()\n"
        "    print(*await pids_of(server), flush=True)\n"
        "    await asyncio.sleep(100)\n"
        "asyncio.run(main())\n"
    )
    root = str(Path(__file__).parents[2])
    parent = await asyncio.create_subprocess_exec(
        sys.executable, str(script), stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": root}
    )
    assert parent.stdout is not None
    async with asyncio.timeout(60):
        pids = [int(word) for word in (await parent.stdout.readline()).split()]
    assert len(pids) == 3
    parent.kill()
    await parent.wait()
    await gone(pids)


async def test_why_it_can_not_be_started() -> None:
    error = await Open(program(command="no-such-program-here")).end()
    assert (error.kind, error.args[0]) == (ErrorKind.CONNECT, "there is no program no-such-program-here")
    error = await Open(program("import sys; sys.exit('no tok-123456 here')")).end()
    assert error.args[0] == "ended with exit status 1: no *** here"


async def test_probe_lists_the_tools_and_leaves_nothing_behind() -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    tools = await probe(program())
    assert [tool.name for tool in tools] == ["pids", "die"]
    await gone([child.pid for child in psutil.Process().children(recursive=True) if child.pid not in before])
    with pytest.raises(BackendError, match="there is no program"):
        await probe(program(command="no-such-program-here"))


async def test_one_that_dies_is_started_again_and_close_leaves_nothing() -> None:
    tools = McpTools([program()])
    before = asyncio.all_tasks()
    await tools.start()
    assert tools.tools() == ()  # it returns at once
    pids = await _pids(tools)
    assert "outcome unknown" in (await tools.call("die", {})).text
    again = await _pids(tools)
    assert pids[1] != again[1]
    async with asyncio.timeout(LIMIT_S):
        await tools.close()
    assert asyncio.all_tasks() == before
    await gone(pids + again)
    assert tools.statuses()[0].state is State.CLOSED


async def _pids(tools: McpTools) -> list[int]:
    async with asyncio.timeout(LIMIT_S):
        while not tools.tools():
            await asyncio.sleep(0.01)
    return [int(word) for word in (await tools.call("pids", {})).text.split()[:3]]
