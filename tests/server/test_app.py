"""The HTTP side: what is refused and how, what a handshake negotiates, takeovers, health."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from echokit_py.mcp.base import ServerStatus, State
from echokit_py.server import app
from echokit_py.server.device_socket import DeviceSocket
from echokit_py.server.origins import Origins
from echokit_py.session.devices import Devices
from firmware_protocol.codec import decode_event
from firmware_protocol.events import EndResponse, EndVad, HelloEnd, HelloStart, ServerEvent
from tests.fakes.providers import Scripted, scripted, silence, speech
from tests.server.running_app import RunningApp


@dataclass
class Running:
    """A server on a loopback port."""

    made: Scripted
    server: RunningApp
    devices: Devices
    readiness: app.Readiness

    def url(self, path: str) -> str:
        return f"ws://127.0.0.1:{self.server.port}{path}"

    def connect(self, path: str, **options: object) -> connect:
        return connect(self.url(path), **{"compression": None, **options})  # type: ignore[arg-type]


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    with scripted(hello=b"\x01\x00" * 100) as made:
        readiness = app.Readiness()
        readiness.ready.set()
        devices = Devices(made.services, limit=3)
        origins = Origins(["https://friend.example"])
        server = await RunningApp.start(app.build(devices, made.services.journal, readiness, origins))
        yield Running(made, server, devices, readiness)
        await server.close()


async def receive(socket: ClientConnection, last: ServerEvent) -> list[ServerEvent]:
    """Read events up to `last`."""
    events = []
    async with asyncio.timeout(10):
        while True:
            message = await socket.recv()
            assert isinstance(message, bytes)
            events.append(decode_event(message))
            if events[-1] == last:
                return events


async def ask(socket: ClientConnection) -> None:
    await socket.send('{"event":"StartChat"}')
    for part in (speech(0.512), speech(0.512), silence(0.512), silence(0.512)):
        await socket.send(part)


async def test_version_health_and_turns(running: Running) -> None:
    async with aiohttp.ClientSession(running.server.make_url("/")) as http:
        async with http.get("/version") as answer:
            assert set(await answer.json()) == {"version"}
        async with http.get("/health") as answer:
            assert answer.status == 200
            assert await answer.json() == {"status": "ok", "devices": 0, "sessions": 0, "mcp_servers": []}
        running.readiness.ready.clear()
        async with http.get("/health") as answer:
            assert answer.status == 503
            assert (await answer.json())["status"] == "the models are being loaded"
        async with http.get("/api/turns") as answer:
            assert await answer.json() == []


async def test_mcp_servers_are_shown_and_nothing_depends_on_them() -> None:
    servers = [
        ServerStatus("clock", State.CONNECTED, since=1.0, tools=2),
        ServerStatus("house", State.DOWN, since=2.0, last_error="http://secret.example refuses"),
    ]
    with scripted() as made:
        readiness, devices = app.Readiness(), Devices(made.services)
        readiness.ready.set()
        application = app.build(devices, made.services.journal, readiness, Origins(), lambda: servers)
        server = await RunningApp.start(application)
        async with aiohttp.ClientSession() as http, http.get(server.make_url("/health")) as answer:
            assert answer.status == 200
            text = await answer.text()
        await server.close()
    assert json.loads(text)["mcp_servers"] == [
        {"name": "clock", "state": "connected", "tools": 2},
        {"name": "house", "state": "down", "tools": 0},
    ]
    assert "secret" not in text


@pytest.mark.parametrize("path", ["/ws/abc", "/v2/stable_ws/abc"])
async def test_a_turn_over_the_socket(running: Running, path: str) -> None:
    async with running.connect(f"{path}?stream_asr=true") as socket:
        hello = await receive(socket, HelloEnd())
        assert hello[0] == HelloStart()
        await ask(socket)
        events = await receive(socket, EndResponse())
        assert events[0] == EndVad()
    async with aiohttp.ClientSession(running.server.make_url("/")) as http, http.get("/api/turns") as answer:
        assert [turn["outcome"] for turn in await answer.json()] == ["answered"]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/ws/", 400, "a device id is"),
        ("/ws/a%2Fb", 400, "a device id is"),
        ("/ws/../etc", 400, "a device id is"),
        ("/ws/..%2F..", 400, "a device id is"),
        ("/ws/" + "a" * 65, 400, "a device id is"),
        ("/ws/a%0Ab", 400, "a device id is"),
        ("/ws/abc?opus=1", 400, "opus must be true or false"),
        ("/ws/abc?record=true", 501, "record mode"),
        ("/ws/abc", 426, "WebSocket"),
        ("/nothing", 404, ""),
    ],
)
async def test_refusals(running: Running, path: str, status: int, says: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", running.server.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: board\r\nConnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    assert answer.split()[1] == str(status)
    assert says in answer


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 101),
        ("https://friend.example", 101),
        ("http://127.0.0.1:{port}", 101),
        ("https://evil.example", 403),
        ("http://127.0.0.1", 403),
        ("null", 403),
    ],
)
async def test_origins(running: Running, origin: str | None, status: int) -> None:
    origin = origin and origin.format(port=running.server.port)
    try:
        async with running.connect("/ws/abc", origin=origin):
            found = 101
    except InvalidStatus as refused:
        found = refused.response.status_code
    assert found == status


def test_any_origin_can_be_allowed() -> None:
    assert Origins(["*"]).allows("https://anywhere.example", "board:8080")


async def test_compression_is_never_negotiated(running: Running) -> None:
    async with running.connect("/ws/abc", compression="deflate") as socket:
        assert socket.response is not None
        assert "Sec-WebSocket-Extensions" not in socket.response.headers


async def test_rubbish_is_ignored(running: Running) -> None:
    async with running.connect("/ws/abc?stream_asr=true&reconnect=true") as socket:
        for message in ("", "{", "[]", '{"event":"Nothing"}', '{"event":7}', "\ud7ff" * 100, b"", b"\x01"):
            await socket.send(message)
        await ask(socket)
        assert (await receive(socket, EndResponse()))[0] == EndVad()


async def test_a_frame_of_more_than_a_mebibyte_is_refused(running: Running) -> None:
    async with running.connect("/ws/abc?reconnect=true") as socket:
        await socket.send(b"\0" * (1 << 20))
        await socket.send(b"\0" * ((1 << 20) + 1))
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


async def test_a_second_connection_takes_over(running: Running) -> None:
    async with running.connect("/ws/abc?reconnect=true&stream_asr=true") as first:
        await ask(first)
        async with running.connect("/ws/abc?reconnect=true&stream_asr=true") as second:
            with pytest.raises(ConnectionClosed):
                async with asyncio.timeout(10):
                    while True:
                        await first.recv()
            await ask(second)
            assert (await receive(second, EndResponse()))[0] == EndVad()
            assert running.devices.connected == 1


async def test_a_storm_of_reconnects_leaves_one_session(running: Running) -> None:
    async def once() -> None:
        async with running.connect("/ws/abc?reconnect=true&stream_asr=true") as socket:
            await socket.send('{"event":"StartChat"}')
            await socket.send(speech(0.5))

    for _ in range(5):
        await asyncio.gather(*(once() for _ in range(5)), return_exceptions=True)
    async with running.connect("/ws/abc?reconnect=true&stream_asr=true") as socket:
        await ask(socket)
        await receive(socket, EndResponse())
        assert len(running.devices) == 1
        names = [task.get_name() for task in asyncio.all_tasks()]
        assert len([name for name in names if name.startswith("writer")]) == 1
        assert [name for name in names if name.startswith("turn")] == []


async def test_sessions_are_bounded(running: Running) -> None:
    async with running.connect("/ws/a"), running.connect("/ws/b"), running.connect("/ws/c") as third:
        await receive(third, HelloEnd())
        async with running.connect("/ws/d") as fourth:
            with pytest.raises(ConnectionClosed) as closed:
                await fourth.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1013
    async with asyncio.timeout(20):
        while running.devices.connected:
            await asyncio.sleep(0.01)
    async with running.connect("/ws/d") as fourth:  # the idle ones made room
        await receive(fourth, HelloEnd())
    assert len(running.devices) == 3


async def test_a_handshake_waits_for_the_models(running: Running) -> None:
    running.readiness.ready.clear()
    waiting = asyncio.create_task(asyncio.wait_for(connect(running.url("/ws/abc")), 10))
    await asyncio.sleep(0)
    running.readiness.ready.set()
    socket = await waiting
    await receive(socket, HelloEnd())
    await socket.close()


async def test_a_handshake_does_not_wait_for_ever(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echokit_py.server.device_socket.READY_LIMIT_S", 0.01)
    running.readiness.ready.clear()
    with pytest.raises(InvalidStatus) as refused:
        await connect(running.url("/ws/abc"))
    assert refused.value.response.status_code == 503


async def test_a_board_that_takes_no_data_is_given_up(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echokit_py.server.device_socket.SEND_STALL_S", 0.05)
    running.made.llm.deltas = ["One two three four five six seven eight nine ten. "] * 2000
    async with running.connect("/ws/abc?reconnect=true&stream_asr=true", max_queue=1) as socket:
        await ask(socket)
        async with asyncio.timeout(20):
            while running.devices.connected == 1 or len(running.devices) == 0:
                await asyncio.sleep(0.01)
        socket.transport.abort()  # reading nothing, it would wait 10 s for the answer to its Close
    assert running.made.llm.running == 0


async def test_shutdown_says_goodbye(running: Running) -> None:
    async with running.connect("/ws/abc?reconnect=true") as socket:
        await socket.ping()
        await running.server.close()
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001


async def test_a_device_that_leaves_while_it_waits_for_the_models(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    running.readiness.ready.clear()
    reader, writer = await asyncio.open_connection("127.0.0.1", running.server.port)
    writer.write(
        b"GET /ws/abc HTTP/1.1\r\nHost: board\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
    )
    await writer.drain()
    async with aiohttp.ClientSession(running.server.make_url("/")) as http, http.get("/version"):
        pass  # answered later than the handshake began
    writer.transport.abort()
    async with aiohttp.ClientSession(running.server.make_url("/")) as http, http.get("/version"):
        pass
    running.readiness.ready.set()
    async with running.connect("/ws/xyz") as socket:
        await receive(socket, HelloEnd())
    assert len(running.devices) == 1
    assert caplog.text == ""
    assert await reader.read() == b""


async def test_no_device_is_taken_while_the_server_goes_away(running: Running) -> None:
    socket = DeviceSocket(running.devices, running.readiness.ready, Origins())
    await socket.close()
    request = make_mocked_request("GET", "/ws/abc", {"Upgrade": "websocket"}, match_info={"id": "abc"})
    with pytest.raises(web.HTTPServiceUnavailable):
        await socket.handle(request)
    assert len(running.devices) == 0


async def test_a_peer_that_does_not_answer_our_close_is_cut_off(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("echokit_py.server.device_socket.CLOSE_LIMIT_S", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", running.server.port)
    writer.write(
        b"GET /ws/abc?reconnect=true HTTP/1.1\r\nHost: board\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
    )
    await reader.readuntil(b"\r\n\r\n")
    async with running.connect("/ws/abc?reconnect=true") as second, asyncio.timeout(10):
        await second.ping()
        with suppress(ConnectionError):
            while await reader.read(100):
                pass  # our Close frame, then the end, though this peer says nothing
    writer.close()
