"""`check` asks the MCP servers: their tools with the names they have here, what is left out, and which don't answer."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from echokit_py.commands import check_tools as module
from echokit_py.commands.check import check
from echokit_py.commands.check_tools import check_tools
from echokit_py.config.load import parse
from echokit_py.config.mcp_server import McpServer
from echokit_py.config.positions import locate
from echokit_py.errors import BackendError, ErrorKind, Stage
from tests.fakes.chat_server import ChatServer
from tests.fakes.speech_server import SpeechServer

CONFIG = """\
[asr]
platform = "openai"
url = "{asr}"
[tts]
platform = "openai"
url = "{tts}"
[llm]
platform = "openai_chat"
url = "{llm}"
"""

SERVERS = """\
[[llm.mcp_server]]
server = "http://one.local/mcp"
api_key = "s3cret"
name = "one"
allow = [
  "on",
  "nothing_*",
]
[[llm.mcp_server]]
type = "stdio"
command = "two"
[[llm.mcp_server]]
server = "http://three.local/mcp"
deny = ["*_all"]
"""


def tool(name: str, schema: dict[str, Any] | None = None) -> types.Tool:
    return types.Tool(name=name, input_schema=schema or {"type": "object"})


def refused(kind: ErrorKind) -> BackendError:
    return BackendError(Stage.TOOL, kind, "no")


async def run(
    capsys: pytest.CaptureFixture[str], answers: dict[str, list[types.Tool] | BackendError]
) -> tuple[list[str], list[str]]:
    """The faults and the lines for what each server answers; one that isn't named never does."""
    text = CONFIG.format(asr="http://a", tts="http://t", llm="http://l") + SERVERS
    servers = parse(text, "f.toml").settings.llm.mcp_server

    async def ask(server: McpServer) -> list[types.Tool]:
        answer = answers.get(server.name)
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, BackendError):
            raise answer
        return answer or []

    faults = await check_tools(Path("f.toml"), servers, locate(text), ask)
    return [str(fault) for fault in faults], capsys.readouterr().out.splitlines()


async def test_the_tools_and_what_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    faults, lines = await run(
        capsys,
        {
            "one": [tool("on"), tool("off")],
            "two": [tool("on"), tool("a.b"), tool("bad\x07", {"type": "array"})],
            "three_local": [],
        },
    )
    assert faults == []
    assert lines == [
        "tools of one: 1 of 2",
        "  one_on (there: on)",
        "  left out: off: allow doesn't name it",
        'f.toml:16: llm.mcp_server[0].allow[1]: "nothing_*" fits none of its tools (warning)',
        "tools of two: 2 of 3",
        "  two_on (there: on)",
        "  two_a_b (there: a.b)",
        '  left out: bad: its arguments are no object but "array"',
        "tools of three_local: 0",
        'f.toml:23: llm.mcp_server[2].deny[0]: "*_all" fits none of its tools (warning)',
    ]


async def test_each_that_fails_is_a_fault_of_its_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LIMIT_S", 0)
    faults, lines = await run(capsys, {"one": refused(ErrorKind.AUTH), "two": refused(ErrorKind.CONNECT)})
    assert lines == []
    assert faults == [
        "f.toml:12: llm.mcp_server[0].api_key: tool auth: no",
        "f.toml:20: llm.mcp_server[1].command: tool connect: no",
        "f.toml:22: llm.mcp_server[2].server: tool timeout: no answer for 0 s",
    ]


async def test_the_whole_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the real client: a program that is none, and one that is no MCP server."""
    async with SpeechServer() as speech, ChatServer() as chat:
        path = tmp_path / "config.toml"
        stdio = '[[llm.mcp_server]]\ntype = "stdio"\ncommand = "{}"\n'
        path.write_text(
            CONFIG.format(asr=speech.asr_url, tts=speech.tts_url, llm=chat.url)
            + stdio.format("/nowhere/no-such-program")
            + stdio.format(sys.executable)
            + 'args = ["-c", "pass"]\n'
        )
        assert await check(path, offline=False) == 1
    faults = [line for line in capsys.readouterr().out.splitlines() if "mcp_server" in line]
    assert [fault.split(": ")[:2] for fault in faults] == [
        [f"{path}:12", "llm.mcp_server[0].command"],
        [f"{path}:15", "llm.mcp_server[1].command"],
    ]
