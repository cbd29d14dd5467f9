"""Bodies of requests: JSON as any server reads it, in pieces that don't hold the event loop up."""

from __future__ import annotations

import io
import json
from typing import Any

import msgspec
import pytest
from aiohttp import web

from echokit_py.errors import Stage
from echokit_py.http import HttpClient
from echokit_py.http.body import PIECE_BYTES, encode, payload
from tests.http.test_client import serving


@pytest.mark.parametrize(
    "value",
    [{"a": [1, 2.5, None, True, "Küche 厨房 🙂"]}, [2**70, -(2**70)], "half \ud83d", {"half \udc00": '\\ " \n'}],
)
def test_what_is_written_is_read(value: object) -> None:
    assert json.loads(encode(value)) == value


def test_what_is_written_already_stays() -> None:
    tools = msgspec.Raw(b'[ {"name":"a"} ]')
    assert encode({"tools": tools, "n": 1}) == b'{"tools":[ {"name":"a"} ],"n":1}'
    assert json.loads(encode({"tools": tools, "n": "\ud83d"})) == {"tools": [{"name": "a"}], "n": "\ud83d"}


@pytest.mark.parametrize("value", [object(), {"\ud83d": object()}])
def test_what_is_no_json(value: object) -> None:
    with pytest.raises(TypeError):
        encode(value)


def test_a_long_body_is_a_stream() -> None:
    assert payload(b"x" * PIECE_BYTES) == b"x" * PIECE_BYTES
    long = payload(b"x" * (PIECE_BYTES + 1))
    assert isinstance(long, io.BytesIO)
    assert long.read() == b"x" * (PIECE_BYTES + 1)


async def test_a_body_of_some_megabytes_arrives_with_its_length() -> None:
    seen: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.content_length, request.content_type, await request.json()))
        return web.Response()

    value = {"text": "x" * 3_000_000}
    http = HttpClient(connect_s=5)
    async with serving(answer) as base, http.post(Stage.LLM, base, json=value):
        pass
    await http.close()
    assert seen == [(len(encode(value)), "application/json", value)]
