"""A whole server on a loopback port, with a language model's client and tools behind it, and a board that types.

Recognition and speech are scripted; what the model's client talks to is the test's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp.test_utils import TestServer
from websockets.asyncio.client import ClientConnection, connect

from echokit_py.config.settings import Timeouts
from echokit_py.http import HttpClient
from echokit_py.llm.base import Llm, Message
from echokit_py.llm.chat import OpenAiChat
from echokit_py.llm.history import History
from echokit_py.llm.message_rules import check
from echokit_py.server import app
from echokit_py.server.origins import Origins
from echokit_py.session.devices import Devices
from echokit_py.tools.base import Tool, ToolResult
from echokit_py.tools.registry import LocalTools
from firmware_protocol.codec import decode_event, encode_command
from firmware_protocol.events import Action, EndResponse, ServerEvent, StartAudio, StartChat, Text
from tests.fakes.providers import Scripted, scripted

LIMIT_S = 200.0  # of any wait here: the machine's slowness, not what is tested
ANY: dict[str, Any] = {"type": "object"}
Build = Callable[[HttpClient], Llm]


@dataclass
class Bench:
    """Tools that note what they were called with and say what they are told to.

    `results`: by name, what comes next; the last one stays. `gates`: by name, what a call waits for. `started` is set
    whenever a call begins.
    """

    source: LocalTools = field(default_factory=LocalTools)
    called: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    results: dict[str, list[str | ToolResult | BaseException]] = field(default_factory=dict)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    running: int = 0
    most: int = 0

    def offer(self, *names: str, parameters: dict[str, Any] | None = None, timeout_s: float = 20.0) -> Bench:
        for name in names:
            self.source.add(Tool(name, f"Does {name}.", parameters or ANY), self._function(name), timeout_s)
        return self

    def _function(self, name: str) -> Callable[[dict[str, Any]], Any]:
        async def function(arguments: dict[str, Any]) -> str | ToolResult:
            self.called.append((name, arguments))
            self.running += 1
            self.most = max(self.most, self.running)
            self.started.set()
            try:
                if name in self.gates:
                    await self.gates[name].wait()
                script = self.results.get(name, ["ok"])
                result = script.pop(0) if len(script) > 1 else script[0]
                if isinstance(result, BaseException):
                    raise result
                return result
            finally:
                self.running -= 1

        return function


@dataclass
class Talk:
    """The board's end. One device, "board"."""

    made: Scripted
    devices: Devices
    url: str
    tools: Bench
    socket: ClientConnection | None = None

    @property
    def history(self) -> History:
        """The session's."""
        return self.devices.session("board")._history

    def remember(self, messages: list[Message]) -> None:
        """The test hook: give the session a history of any shape."""
        self.history.restore(messages)

    async def connect(self, *, reconnect: bool = True) -> None:
        self.socket = await connect(f"{self.url}?reconnect={str(reconnect).lower()}", compression=None)

    async def disconnect(self) -> None:
        if self.socket is not None:
            await self.socket.close()
        self.socket = None

    async def type(self, text: str) -> None:
        """Send a question; don't wait for the answer."""
        if self.socket is None:
            await self.connect()
        assert self.socket is not None
        await self.socket.send(encode_command(Text(text)))

    async def interrupt(self) -> None:
        """Press the button, as one does to cut in."""
        assert self.socket is not None
        await self.socket.send(encode_command(StartChat()))

    async def read(
        self, last: Callable[[ServerEvent], bool] = lambda event: event == EndResponse()
    ) -> list[ServerEvent]:
        """Read events up to the one that is the last."""
        assert self.socket is not None
        events: list[ServerEvent] = []
        async with asyncio.timeout(LIMIT_S):
            while not events or not last(events[-1]):
                message = await self.socket.recv()
                assert isinstance(message, bytes)
                events.append(decode_event(message))
        return events

    async def ask(self, text: str = "What time is it?") -> list[ServerEvent]:
        """A whole turn."""
        await self.type(text)
        return await self.read()

    def next_request(self, question: str = "And now?") -> list[Message]:
        """What the next question would be sent with, once the turn before it has ended and was heard whole."""
        self.history.commit()
        self.history.begin_turn(question)
        messages = self.history.render()
        assert check(messages) == []
        self.history.abort()
        return messages


def spoken(events: list[ServerEvent]) -> list[str]:
    """The sentences that the user heard."""
    return [event.text for event in events if isinstance(event, StartAudio)]


def shown(events: list[ServerEvent]) -> list[str]:
    """The short statuses that the board showed."""
    return [event.action for event in events if isinstance(event, Action)]


def sorry(events: list[ServerEvent]) -> bool:
    """Whether the turn ended with an apology."""
    return bool(spoken(events)) and spoken(events)[-1].startswith("Sorry, ")


def chat_client(url: str, key: str = "", **extra: Any) -> Build:
    """Build the client of a chat completions server."""
    return lambda http: OpenAiChat(http, url=url, api_key=key, model="m", extra=extra)


@asynccontextmanager
async def talking(
    build: Build,
    tools: Bench | None = None,
    *,
    timeouts: Timeouts | None = None,
    rounds: int = 8,
    history_turns: int = 10,
    system: str = "Be brief.",
    few_shot: tuple[Message, ...] = (),
    **providers: Any,
) -> AsyncIterator[Talk]:
    """A running server; it is stopped, with all its sessions, when the block is left. `providers` (`asr`, `tts`, `vad`)
    stand in for the scripted ones."""
    bench, http = tools or Bench(), HttpClient(connect_s=5)
    with scripted(timeouts) as made:
        made.tts.seconds_per_character = 0.002
        services = replace(
            made.services,
            llm=build(http),
            tools=bench.source,
            tool_rounds=rounds,
            history_turns=history_turns,
            system=({"role": "system", "content": system},) if system else (),
            few_shot=few_shot,
            **providers,
        )
        readiness = app.Readiness()
        readiness.ready.set()
        devices = Devices(services)
        server = TestServer(app.build(devices, services.journal, readiness, Origins()), host="127.0.0.1")
        await server.start_server()
        talk = Talk(made, devices, f"ws://127.0.0.1:{server.port}/ws/board", bench)
        try:
            yield talk
        finally:
            await talk.disconnect()
            await devices.close()
            await server.close()
            await http.close()
