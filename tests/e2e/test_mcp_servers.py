"""Real MCP servers, none of ours, in one configuration of the real program; a spoken question is answered with a tool.

One over stdio, one over all three transports (both are other people's, in two languages), and one of 155 tools.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import aiohttp
import psutil
import pytest
import pytest_asyncio

from echokit_py.device.board import Outcome
from echokit_py.device.client import Board
from firmware_protocol.events import Action
from tests.beside import AUDIO
from tests.e2e.conftest import load_recording
from tests.fakes.chat_server import Answer, ChatServer, call, say
from tests.mcp_servers.big import COUNT
from tests.mcp_servers.foreign import CannotBeHad, everything_server, time_server
from tests.mcp_servers.process import HttpProcess, free_port, module
from tests.mcp_servers.talk import until
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

RECORDING = AUDIO / "joe_paris.wav"
PARIS = {"timezone": "Europe/Paris"}
OURS = "a secret of this server's own environment"

VOICE = """
[asr]
platform = "faster_whisper"
lang = "en"

[tts]
platform = "piper"
"""


class Script:
    """What the scripted model does: a question is answered with `calls`, and their results with a sentence."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.results: list[str] = []
        self.offered: list[str] = []

    def __call__(self, body: dict[str, Any]) -> Answer:
        """The answer to a request."""
        self.offered = [tool["function"]["name"] for tool in body.get("tools", [])]
        messages = body["messages"]
        last = max(number for number, message in enumerate(messages) if message["role"] == "user")
        self.results = [message["content"] for message in messages[last:] if message["role"] == "tool"]
        if self.calls and not self.results:
            return call(*((f"c{at}", name, json.dumps(given)) for at, (name, given) in enumerate(self.calls)))
        return say(f"It is {self.time():%H:%M} in Paris." if self.calls and self.calls[0][1] == PARIS else "All well.")

    def time(self) -> datetime:
        """What the time server's tool said."""
        return datetime.fromisoformat(json.loads(self.results[0])["datetime"])


def entry(name: str, **options: Any) -> str:
    """A table of the configuration. JSON's strings and lists are TOML's as well."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in {"name": name, **options}.items()]
    return "\n".join(["", "[[llm.mcp_server]]", *lines, ""])


def stdio_entry(name: str, command: list[str]) -> str:
    """A server that our program starts."""
    return entry(name, type="stdio", command=command[0], args=command[1:])


@dataclass
class World:
    """The running program, the scripted model, and the servers that listen."""

    program: ServerProcess
    script: Script
    without_npm: str

    @property
    def copies(self) -> tuple[str, ...]:
        """What the copies of server-everything are called here; none where it can't be had."""
        return () if self.without_npm else ("local", "sse", "http")

    async def ask(self, *calls: tuple[str, Mapping[str, Any]]) -> list[str]:
        """A typed question that the model answers with these calls; their results."""
        self.script.calls = list(calls)
        async with Board(self.program.url, device_id="typing", realtime=False) as board:
            turn = await board.send_text("Do it.")
        assert turn.outcome is Outcome.ANSWERED, turn.detail
        return self.script.results

    async def until_connected(self) -> None:
        """Wait until all servers have listed their tools. That must not hold the program's start up, so it may last."""
        async with aiohttp.ClientSession() as http, asyncio.timeout(100):
            states: list[str] = []
            while set(states) != {"connected"}:
                await asyncio.sleep(0.05)
                async with http.get(f"{self.program.base}/health") as answer:
                    states = [server["state"] for server in (await answer.json())["mcp_servers"]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def everywhere(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """The program that the issue asks for: all servers in one configuration."""
    async with AsyncExitStack() as stack:
        big = await stack.enter_async_context(HttpProcess(module("big", "http")))
        entries, without_npm = [entry("big", server=big.url)], ""
        try:
            entries.append(stdio_entry("time", time_server()))
        except CannotBeHad as why:
            pytest.skip(str(why))
        try:
            entries += await start_copies(everything_server(), stack)
        except CannotBeHad as why:
            without_npm = str(why)
        script = Script()
        chat = await stack.enter_async_context(ChatServer(script))
        llm = f'\n[llm]\nplatform = "openai_chat"\nurl = "{chat.url}"\nmodel = "m"\nhistory = 5\n'
        config = tmp_path_factory.mktemp("everywhere") / "config.toml"
        config.write_text(VOICE + llm + "".join(entries))
        program = await stack.enter_async_context(ServerProcess(config, environ={"OWN_SECRET": OURS}))
        place = World(program, script, without_npm)
        await place.until_connected()
        yield place
        assert chat.faults == []
        assert not [line for line in program.log if "Traceback" in line or OURS in line]


async def start_copies(everything: list[str], stack: AsyncExitStack) -> list[str]:
    """server-everything over each transport: two that listen, one that our program starts."""
    ports = {transport: free_port() for transport in ("sse", "streamableHttp")}
    for transport, port in ports.items():
        listening = HttpProcess([*everything, transport], says=rf"on port {port}", environ={"PORT": str(port)})
        await stack.enter_async_context(listening)
    return [
        stdio_entry("local", [*everything, "stdio"]),
        entry("sse", type="sse", server=f"http://127.0.0.1:{ports['sse']}/sse"),
        entry("http", server=f"http://127.0.0.1:{ports['streamableHttp']}/mcp"),
    ]


# What the three copies of server-everything have in common. Their names clash, so each has its server's before it.
COMMON = ("echo", "get-sum", "get-env", "get-tiny-image", "get-structured-content", "trigger-long-running-operation")
LEFT_OUT = 1  # of the 155: its schema points nowhere


async def test_all_tools_are_offered(everywhere: World) -> None:
    await everywhere.ask()
    names = everywhere.script.offered
    assert len(set(names)) == len(names) >= 2 + 12 * len(everywhere.copies) + COUNT - LEFT_OUT
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
    assert {"get_current_time", "convert_time", "device_000", "device_144"} <= set(names)
    assert {f"{server}_{name}" for server in everywhere.copies for name in COMMON} <= set(names)


@pytest.mark.skipif(not RECORDING.exists(), reason="the spoken sentences (shared/audio) are not here")
async def test_a_spoken_question_is_answered_with_the_time(everywhere: World) -> None:
    """ "What time is it in Paris?", as a person says it."""
    everywhere.script.calls = [("get_current_time", PARIS)]
    async with Board(everywhere.program.url, device_id="speaking", realtime=False) as board:
        turn = await board.say(load_recording(RECORDING.name))
    assert turn.outcome is Outcome.ANSWERED, turn.detail
    assert "paris" in turn.asr.lower()
    assert [event for _, event in turn.events if isinstance(event, Action)] == [Action("get_current_time")]
    told = everywhere.script.time()
    assert abs(told - datetime.now(ZoneInfo("Europe/Paris"))) < timedelta(minutes=5)
    assert turn.answer == (f"It is {told:%H:%M} in Paris.",)
    assert len(turn.audio) > 32_000  # more than a second of speech


async def test_every_server_and_transport_is_called(everywhere: World) -> None:
    device, time = await everywhere.ask(
        ("device_007", {"setting_0": "on"}),
        ("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
    )
    assert device == 'device_007 was called with {"setting_0": "on"}'
    assert "21:00" in time
    if everywhere.without_npm:
        pytest.skip(everywhere.without_npm)
    echoes = await everywhere.ask(*((f"{copy}_echo", {"message": f"to {copy}"}) for copy in everywhere.copies))
    assert echoes == [f"Echo: to {copy}" for copy in everywhere.copies]
    sums = await everywhere.ask(*((f"{copy}_get-sum", {"a": 2, "b": 3}) for copy in everywhere.copies))
    assert all("is 5" in result for result in sums)
    structured, image = await everywhere.ask(
        ("sse_get-structured-content", {"location": "Chicago"}), ("http_get-tiny-image", {})
    )
    assert "temperature" in structured
    assert "image/png" in image
    assert len(image) < 1000  # not the picture itself


async def test_a_server_that_we_start_is_not_given_our_secrets(everywhere: World) -> None:
    if everywhere.without_npm:
        pytest.skip(everywhere.without_npm)
    [environment] = await everywhere.ask(("local_get-env", {}))
    assert "PATH" in environment
    assert OURS not in environment


async def test_no_child_is_left_when_nobody_gets_to_tidy_up(everywhere: World) -> None:
    """The last test here: it kills the program."""
    children = psutil.Process(everywhere.program.pid).children(recursive=True)
    assert len(children) >= 1 + bool(everywhere.copies)  # those that speak stdio
    await everywhere.program.stop(signal.SIGKILL)
    await until(lambda: not any(child.is_running() for child in children), "the end of all children")
