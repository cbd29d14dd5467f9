"""Devices on real sockets that do as they like: whatever they did, the next turn is answered, nothing stays behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from echokit_py.server import app
from echokit_py.server.origins import Origins
from echokit_py.session.devices import Devices
from firmware_protocol.codec import decode_event
from firmware_protocol.events import ASR, EndAudio, EndResponse, EndVad, ServerEvent, StartAudio
from tests.fakes.providers import Scripted, scripted, silence, speech

DEVICES = 8
ROUNDS = 6
ANSWER = [EndVad, ASR, StartAudio, EndAudio, StartAudio, EndAudio, EndResponse]


@pytest.fixture
async def running(caplog: pytest.LogCaptureFixture) -> AsyncIterator[tuple[Scripted, Devices, int]]:
    caplog.set_level(logging.WARNING)
    errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    with scripted(hello=bytes(5000)) as made:
        readiness = app.Readiness()
        readiness.ready.set()
        devices = Devices(made.services)
        server = TestServer(app.build(devices, made.services.journal, readiness, Origins()), host="127.0.0.1")
        await server.start_server()
        assert server.port is not None
        yield made, devices, server.port
        await server.close()
    gc.collect()
    assert errors == []
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def url(port: int, device: int, flags: str) -> str:
    return f"ws://127.0.0.1:{port}/ws/device-{device}?{flags}"


async def misbehave(socket: ClientConnection, dice: random.Random) -> None:
    """Some messages in any order, some reading, and an end in one of three ways."""
    commands = ['{"event":"StartChat"}', '{"event":"Submit"}', '{"event":"Text","input":"Hello"}', '{"event":']
    for _ in range(dice.randrange(8)):
        audio = [speech(0.512), speech(4), silence(1), b"\1" * dice.randrange(2000)]
        await socket.send(dice.choice(commands) if dice.random() < 0.5 else dice.choice(audio))
        if dice.random() < 0.3:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    await socket.recv()
    match dice.choice(["closes", "vanishes", "stays"]):
        case "closes":
            await socket.close()
        case "vanishes":
            socket.transport.abort()
        case _:  # the next connection of the same device takes over
            await asyncio.sleep(0)


async def live(port: int, device: int, dice: random.Random) -> None:
    """One device's connections, some of them at the same time."""
    open_ones: list[ClientConnection] = []
    for _ in range(ROUNDS):
        flags = dice.choice(["stream_asr=true", "reconnect=true&stream_asr=true", "reconnect=true", "opus=true"])
        with suppress(WebSocketException, ConnectionError):
            socket = await connect(url(port, device, flags), compression=None)
            open_ones.append(socket)
            await misbehave(socket, dice)
    events = await ask(port, device)
    assert [type(event) for event in events] == ANSWER
    for socket in open_ones:
        await socket.close()


async def ask(port: int, device: int) -> list[ServerEvent]:
    """A well-behaved device's turn; return its events without audio."""
    events: list[ServerEvent] = []
    flags = "reconnect=true&stream_asr=true&opus=true"
    async with connect(url(port, device, flags), compression=None) as socket:
        await socket.send('{"event":"StartChat"}')
        for part in (speech(0.512), speech(0.512), silence(0.512), silence(0.512)):
            await socket.send(part)
        async with asyncio.timeout(30):
            while EndResponse() not in events:
                message = await socket.recv()
                assert isinstance(message, bytes)
                event = decode_event(message)
                if "Chunk" not in type(event).__name__:
                    events.append(event)
    return events


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_devices_do(running: tuple[Scripted, Devices, int], seed: int) -> None:
    made, devices, port = running
    await asyncio.gather(*(live(port, device, random.Random(f"{seed} {device}")) for device in range(DEVICES)))
    async with asyncio.timeout(30):
        while devices.connected:
            await asyncio.sleep(0.01)
    assert len(devices) == DEVICES
    assert made.llm.running == made.tts.running == 0
    names = [task.get_name() for task in asyncio.all_tasks()]
    ours = ("turn", "interim", "thinking", "synthesis", "apology", "reader", "writer")
    assert [name for name in names if name.startswith(ours)] == []
