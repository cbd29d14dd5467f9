"""Twenty boards call slow tools of a large catalogue at once, over real sockets: each gets its own result, and nothing
holds the event loop up."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import time
from asyncio import events
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from aiohttp import web
from websockets.asyncio.client import connect

from echokit_py.http import HttpClient
from echokit_py.llm.base import Llm
from echokit_py.llm.chat import OpenAiChat
from echokit_py.llm.responses import OpenAiResponses
from echokit_py.session.calls import PARALLEL
from echokit_py.tools.base import Tool
from firmware_protocol.codec import decode_event, encode_command
from firmware_protocol.events import EndResponse, StartAudio, Text
from tests.fakes import chat_server, responses_server
from tests.fakes.scripted_server import Answer
from tests.fakes.talking import LIMIT_S, Bench, Build, talking
from tests.server.running_app import RunningApp

DEVICES = 20
TOOLS = 155
BLOCKED_S = 0.02
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        **{f"member_{n}": {"type": "string", "description": "What it is for. " * 4} for n in range(15)},
        "n": {"type": "integer"},
    },
    "required": ["n"],
}


@contextmanager
def longest_callback(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Notes the processor time of each callback of the event loop: the wall's would be that of the whole machine."""
    spent: list[float] = []
    run = events.Handle._run

    def measured(handle: events.Handle) -> None:
        began = time.thread_time()
        run(handle)
        spent.append(time.thread_time() - began)

    gc.collect()
    gc.freeze()  # what other tests left behind is not searched through again and again
    with monkeypatch.context() as patch:
        patch.setattr(events.Handle, "_run", measured)
        yield spent
    gc.unfreeze()


class SlowTools(Bench):
    """155 tools; no call ends before all devices' calls run."""

    def __init__(self) -> None:
        super().__init__()
        self.together = asyncio.Barrier(DEVICES)
        for number in range(TOOLS):
            self.source.add(Tool(f"tool_{number}", "Does it. " * 10, PARAMETERS), self._slow)

    async def _slow(self, arguments: dict[str, Any]) -> str:
        self.called.append(("", arguments))
        await self.together.wait()
        return f"result {arguments['n']}"


@asynccontextmanager
async def model(say: Callable[[str], Answer], call: Callable[..., Answer]) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that calls the tool of the question's number and then says its result; its address, what it was sent.

    It only looks for these: to parse the catalogue each time would hold up the loop that is watched here.
    """
    bodies: list[bytes] = []

    async def answer(request: web.Request) -> web.Response:
        body = await request.read()
        bodies[:] = [body]
        body = body[-1000:]  # the messages; the tools stand before them
        if found := re.search(rb'"(?:content|output)":"(result \d+)"', body):
            made = say(f"It is {found[1].decode()}.")
        else:
            [number] = re.findall(rb'"content":"(\d+)"', body)
            made = call(("call_1", f"tool_{int(number) * 7}", json.dumps({"n": int(number)})))
        pieces = [piece for piece in made.pieces if isinstance(piece, bytes)]
        return web.Response(body=b"".join(pieces), content_type="text/event-stream")

    app = web.Application(client_max_size=2**20)
    app.router.add_post("/v1", answer)
    server = await RunningApp.start(app)
    yield server.make_url("/v1"), bodies
    await server.close()


async def ask(url: str, number: int) -> list[str]:
    """A turn of one device; what it hears."""
    heard = []
    async with connect(url, compression=None) as socket, asyncio.timeout(LIMIT_S):
        await socket.send(encode_command(Text(str(number))))
        while True:
            message = await socket.recv()
            assert isinstance(message, bytes)
            event = decode_event(message)
            if isinstance(event, StartAudio):
                heard.append(event.text)
            if event == EndResponse():
                return heard


def _chat(url: str) -> Build:
    return lambda http: OpenAiChat(http, url=url, api_key="", model="m", extra={})


def _responses(url: str) -> Build:
    def build(http: HttpClient) -> Llm:
        return OpenAiResponses(http, url=url, api_key="", model="m", instructions="", extra={})

    return build


CASES = {"openai_chat": (_chat, chat_server), "openai_responses": (_responses, responses_server)}


@pytest.mark.parametrize("api", CASES)
async def test_each_device_gets_its_own_result(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PARALLEL < DEVICES  # the limit is one of each device
    build, answers = CASES[api]
    tools = SlowTools()
    async with model(answers.say, answers.call) as (url, bodies), talking(build(url), tools) as talk:
        base = talk.url.rpartition("/")[0]
        with longest_callback(monkeypatch) as spent:
            heard = await asyncio.gather(*(ask(f"{base}/board{n}", n) for n in range(DEVICES)))
        assert heard == [[f"It is result {n}."] for n in range(DEVICES)]
        assert sorted(arguments["n"] for _, arguments in tools.called) == list(range(DEVICES))
        assert len(json.loads(bodies[0])["tools"]) == TOOLS
        assert len(bodies[0]) > 250_000
    assert max(spent) < BLOCKED_S
