"""Connections that can't be made: one sentence each."""

from __future__ import annotations

import http
import socket

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from echokit_py.device.connection import open_connection
from echokit_py.device.errors import DeviceError
from firmware_protocol.link import LinkParameters

LINK = LinkParameters(opus=True)


async def refusal(url: str, device_id: str = "a") -> str:
    with pytest.raises(DeviceError) as caught:
        await open_connection(url, device_id, LINK)
    return str(caught.value)


async def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        url = f"ws://127.0.0.1:{taken.getsockname()[1]}/ws/"
        assert await refusal(url) == f"no connection to {url}: Connection refused"


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("http://127.0.0.1:1/ws/", "scheme isn't ws or wss"),
        ("ws://127.0.0.1:99999/ws/", "Port out of range"),
        ("ws://127.0.0.1:x/ws/", "no connection to"),
        ("/", "no connection to /"),
        ("ws://127.0.0.1:1/ws", "must end with /"),
        ("", "must end with /"),
    ],
)
async def test_no_address_of_a_server(url: str, part: str) -> None:
    assert part in await refusal(url)


async def test_the_server_refuses() -> None:
    def refuse(connection: ServerConnection, request: Request) -> Response:
        return connection.respond(http.HTTPStatus.BAD_REQUEST, f"not an id:\n{request.path}")

    async def never(connection: ServerConnection) -> None:
        raise AssertionError

    async with serve(never, "127.0.0.1", 0, process_request=refuse) as server:
        url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/ws/"
        expected = f"{url} answered 400 Bad Request instead of a WebSocket: not an id: /ws/a%2Fb%20c?opus=true"
        assert await refusal(url, "a/b c") == expected


async def test_the_server_is_no_web_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echokit_py.device.connection._OPEN_S", 0.01)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"ws://127.0.0.1:{silent.getsockname()[1]}/ws/"
        assert await refusal(url) == f"no connection to {url}: no answer within 0.01 s"


async def test_the_resolver_s_own_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr("echokit_py.device.connection.connect", fail)
    assert await refusal("ws://nowhere.invalid/ws/") == (
        "no connection to ws://nowhere.invalid/ws/: Name or service not known"
    )
