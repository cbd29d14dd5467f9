"""The `session` cases of the public bug reports: on real sockets, and in virtual time where only the order counts.

The data stand beside the checkout (../shared/corpus) and are not part of it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from aiohttp import web
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from echokit_py.llm.base import LlmEvent, Message, Step, TextDelta, Tool
from echokit_py.llm.message_rules import check
from echokit_py.server import app
from echokit_py.server.origins import Origins
from echokit_py.session.devices import Devices
from echokit_py.session.outbox import Outbox
from echokit_py.session.session import Session
from echokit_py.session.turn import Turn
from firmware_protocol.codec import decode_event
from firmware_protocol.events import EndResponse, HelloEnd, ServerEvent, StartAudio, StartChat, Text
from firmware_protocol.link import LinkParameters
from tests.beside import Case, cases, needs_corpus
from tests.fakes.providers import SECOND, Scripted, ScriptedLlm, ScriptedTts, scripted, silence, speech
from tests.fakes.reading import take
from tests.fakes.virtual_time import InlineExecutor, run

LIMIT_S = 60.0  # of any wait here: the machine's slowness, not what is tested
SOCKET = "echokit_py.server.device_socket"

pytestmark = needs_corpus


def case(name: str) -> Case:
    return next(each for each in cases("session") if each["id"] == name)


@dataclass(frozen=True, slots=True)
class Running:
    """A server on a loopback port, and what a test looks at from inside."""

    devices: Devices
    runner: web.AppRunner
    port: int

    @property
    def transports(self) -> list[asyncio.Transport]:
        """The server's ends of the open connections."""
        server = self.runner.server
        assert server is not None
        return [each.transport for each in server.connections if each.transport is not None]

    def connect(self, device: str, flags: str = "reconnect=true", **options: Any) -> connect:
        return connect(f"ws://127.0.0.1:{self.port}/ws/{device}?{flags}", compression=None, **options)


@asynccontextmanager
async def running(made: Scripted) -> AsyncIterator[Running]:
    readiness = app.Readiness()
    readiness.ready.set()
    devices = Devices(made.services)
    runner = web.AppRunner(
        app.build(devices, made.services.journal, readiness, Origins()), access_log=None, shutdown_timeout=5
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield Running(devices, runner, int(runner.addresses[0][1]))
    finally:
        await runner.cleanup()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not condition():
            await asyncio.sleep(0.01)


async def events(end: ClientConnection, last: ServerEvent) -> list[ServerEvent]:
    """Read up to `last`."""
    found: list[ServerEvent] = []
    async with asyncio.timeout(LIMIT_S):
        while not found or found[-1] != last:
            message = await end.recv()
            assert isinstance(message, bytes)
            found.append(decode_event(message))
    return found


async def utter(end: ClientConnection) -> list[ServerEvent]:
    """A whole turn by microphone."""
    await end.send('{"event":"StartChat"}')
    for part in (speech(0.512), speech(0.512), silence(0.512), silence(0.512)):
        await end.send(part)
    return await events(end, EndResponse())


async def test_a_connection_that_died_unseen_is_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    assert case("sess-01")["expect"]["reply_to"] == ["c2"]
    monkeypatch.setattr(f"{SOCKET}.CLOSE_LIMIT_S", 0.1)
    with scripted() as made:
        async with running(made) as server, server.connect("dev-1", "stream_asr=true") as first:
            await first.send('{"event":"StartChat"}')
            await until(lambda: server.devices.connected == 1)
            first.transport.pause_reading()  # the network is gone: it takes nothing, not even a Close
            async with server.connect("dev-1", "stream_asr=true&reconnect=true") as second:
                answer = await utter(second)
                assert any(isinstance(event, StartAudio) for event in answer)
                await until(lambda: len(server.transports) == 1)
                assert (server.devices.connected, len(server.devices)) == (1, 1)
                first.transport.resume_reading()
                with pytest.raises(ConnectionClosed):
                    assert decode_event(await first.recv(decode=False)) is None  # nothing of the answer came this way


class Endless(ScriptedTts):
    """Speaks without an end, one second at a time, and counts the bytes."""

    made: int = 0

    async def synthesize(self, text: str) -> AsyncGenerator[bytes, None]:
        for _ in range(int(case("sess-03")["input"]["events"][3]["bytes"]) // SECOND if "Endless" in text else 1):
            self.made += SECOND
            yield speech(1)


async def test_a_device_that_stops_reading_costs_little_and_troubles_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = case("sess-03")["expect"]
    sent: dict[str, float] = {}
    note = Turn._sent

    def noting(turn: Turn, seconds: float) -> None:
        sent[turn.record.device] = sent.get(turn.record.device, 0.0) + seconds
        note(turn, seconds)

    monkeypatch.setattr(Turn, "_sent", noting)
    monkeypatch.setattr(f"{SOCKET}.CLOSE_LIMIT_S", 0.1)
    monkeypatch.setattr(f"{SOCKET}.SEND_STALL_S", 2.0)
    with scripted() as made:
        made.llm.deltas = ("Endless speech. ",)
        voice = Endless()
        async with running(replace(made, services=replace(made.services, tts=voice))) as server:
            deaf = socket.create_connection(("127.0.0.1", server.port))
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            async with server.connect("dev-1", sock=deaf) as first, server.connect("dev-2") as second:
                await until(lambda: server.devices.connected == 2)
                first.transport.pause_reading()
                for end in server.transports:  # else the kernel takes some megabytes, which are not counted
                    end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
                await first.send('{"event":"Text","input":"Tell me a story."}')
                await until(lambda: any(end.get_write_buffer_size() for end in server.transports))
                most, before, same = 0, -1, 0
                while same < 10:  # until it makes no more
                    await asyncio.sleep(0.02)
                    same, before = (same + 1, before) if voice.made == before else (0, voice.made)
                    waiting = sum(end.get_write_buffer_size() for end in server.transports)
                    most = max(most, voice.made - int(sent.get("dev-1", 0.0) * SECOND) + waiting)
                assert most <= expected["max_buffered_bytes"]["c1"]
                made.llm.deltas = ("Hello.",)
                await second.send('{"event":"Text","input":"Hello?"}')
                assert any(event == StartAudio("Hello.") for event in await events(second, EndResponse()))
                await until(lambda: server.devices.connected == 1)
                await until(lambda: len(server.transports) == 1)
                first.transport.abort()  # it would wait long for the answer to its Close


@dataclass
class SlowLlm(ScriptedLlm):
    """Answers the newest question as the case says, after its time."""

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AsyncGenerator[LlmEvent, None]:
        self.asked.append(list(messages))
        question = str(messages[-1]["content"])  # a question that went unanswered may stand before it
        spoken = [
            event
            for event in case("sess-07")["input"]["events"]
            if "text" in event and question.endswith(event["text"])
        ]
        text = spoken[0]["llm_reply"] if spoken else "Nothing else."
        await asyncio.sleep(spoken[0]["llm_ms"] / 1000 if spoken else 0)
        yield TextDelta(text)
        yield Step(text, "", "stop")


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "spoken"])
def test_a_second_question_before_the_first_is_answered(typed: bool) -> None:
    given, expected = case("sess-07")["input"]["events"], case("sess-07")["expect"]
    problems: list[Any] = []

    async def story(made: Scripted, llm: SlowLlm) -> None:
        session, outbox = Session("dev-1", replace(made.services, llm=llm)), Outbox()
        await session.attach(outbox, LinkParameters(stream_asr=True, reconnect=True))
        loop = asyncio.get_running_loop()
        began = loop.time()
        for event in given[1:]:
            await asyncio.sleep(began + event["t"] / 1000 - loop.time())
            made.asr.text = event["text"]
            if typed:
                await session.command(outbox, Text(event["text"]))
                continue
            await session.command(outbox, StartChat())
            for part in (speech(0.6), silence(0.6)):
                await session.audio(outbox, part)
        heard: list[ServerEvent] = []
        while heard.count(EndResponse()) < 1:
            heard.append(await take(outbox))
        assert [event.text for event in heard if isinstance(event, StartAudio)] == [given[-1]["llm_reply"]]
        await asyncio.sleep(10)
        await session.command(outbox, Text("What is on my list?"))
        await asyncio.sleep(10)
        await session.close()
        messages = [message for message in llm.asked[-1][:-1] if message["role"] != "system"]
        assert check(llm.asked[-1]) == []
        assert any(fits(messages, shape) for shape in expected["history_roles_any_of"]), messages
        assert not any(fits(messages, shape) for shape in expected["forbidden_orders"])

    with scripted(encoder=InlineExecutor()) as made:
        run(story(made, SlowLlm()), problems.append)
    assert problems == []


def fits(messages: list[Message], shape: list[str]) -> bool:
    """Whether messages are as a shape of the corpus says: "role:words", "role:*"."""
    if len(messages) != len(shape):
        return False
    wanted = [each.partition(":") for each in shape]
    return all(
        message["role"] == role
        and (words == "*" or all(word.lower() in str(message["content"]).lower() for word in words.split()))
        for message, (role, _, words) in zip(messages, wanted, strict=True)
    )


async def test_a_storm_of_reconnects_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    storm, expected = case("sess-08")["input"]["events"][0]["storm"], case("sess-08")["expect"]
    monkeypatch.setattr(f"{SOCKET}.CLOSE_LIMIT_S", 0.5)
    devices, rounds = storm["devices"], storm["rounds"]

    async def join(server: Running, number: int, turn: int) -> ClientConnection | None:
        """One round of a device: leave before the hello is over, or stay."""
        async with asyncio.timeout(LIMIT_S):
            end = await server.connect(f"dev-{number}", "opus=true")
            last = turn == rounds - 1
            if not last and (number + turn) % round(1 / storm["drop_before_hello_share"]) == 0:
                end.transport.abort()
                return None
            await events(end, HelloEnd())
            return end

    with scripted(hello=bytes(6000)) as made:
        async with running(made) as server:
            tasks = len(asyncio.all_tasks())
            ends: list[ClientConnection | None] = []
            for turn in range(rounds):  # the connections of earlier rounds are still there
                ends += await asyncio.gather(*(join(server, number, turn) for number in range(devices)))
            await until(lambda: len(server.transports) == devices)
            live = expected["live_sessions_at"][0]["count"]
            assert (server.devices.connected, len(server.devices)) == (live, live)
            for end in filter(None, ends):
                with suppress(WebSocketException):
                    await end.close()
            await until(lambda: not server.transports)
            await until(lambda: len(asyncio.all_tasks()) <= tasks + expected["leaked_tasks"])
            assert server.devices.connected == expected["leaked_sockets"]
