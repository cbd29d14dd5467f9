"""The chat client against a scripted server on a real socket: what is its own, above all its requests."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from echokit_py.config.settings import OpenAiChatLlm
from echokit_py.errors import BackendError, ErrorKind
from echokit_py.http import HttpClient
from echokit_py.http.body import encode
from echokit_py.llm.base import ReasoningDelta, Step, TextDelta, Tool, ToolCall
from echokit_py.llm.chat import OpenAiChat, build, request_body, to_tool
from echokit_py.llm.offer import Offers
from tests.fakes.chat_server import (
    DONE,
    START,
    Answer,
    ChatServer,
    End,
    call,
    chunk,
    say,
)
from tests.fakes.faults import Fault
from tests.llm.apis import HI, LIGHT, ask, text_of
from tests.llm.apis import chat as client


async def test_an_answer(http: HttpClient) -> None:
    async with ChatServer(say("Hello", " there.", reasoning="A greeting.")) as server:
        events, error = await ask(client(http, server, "s3cret", "gpt"))
        assert error is None
        assert events == [
            ReasoningDelta("A greeting."),
            TextDelta("Hello"),
            TextDelta(" there."),
            Step("Hello there.", "A greeting.", "stop"),
        ]
        [request] = server.requests
        assert request.json == {"model": "gpt", "messages": HI, "stream": True}
        assert request.headers["Authorization"] == "Bearer s3cret"
        assert request.headers["Accept"] == "text/event-stream"
        assert request.headers["Content-Type"].startswith("application/json")


async def test_no_key_and_no_model_send_none(http: HttpClient) -> None:
    async with ChatServer() as server:
        await ask(client(http, server, model=""))
        assert "Authorization" not in server.requests[0].headers
        assert "model" not in server.requests[0].json


async def test_the_address_may_be_known_late(http: HttpClient) -> None:
    async with ChatServer() as server:
        llm = OpenAiChat(http, url=lambda: server.url, api_key="", model="", extra={})
        assert text_of((await ask(llm))[0]) == "Hello there."


async def test_calls(http: HttpClient) -> None:
    async with ChatServer(call(("c1", "set_light", '{"room": "hall"}'), text="Sure. ", size=1)) as server:
        events, _ = await ask(client(http, server), LIGHT)
        assert isinstance(events[-1], Step)
        assert events[-1].calls == (ToolCall("c1", "set_light", '{"room": "hall"}'),)
        assert events[-1].finish_reason == "tool_calls"
        function = {"name": "set_light", "description": "Switch a light.", "parameters": LIGHT.parameters}
        assert server.requests[0].json["tools"] == [{"type": "function", "function": function}]


async def sent(extra: dict[str, Any], *tools: Tool) -> dict[str, Any]:
    """A request's body as the server reads it."""
    body: dict[str, Any] = json.loads(encode(request_body("m", await Offers(to_tool, extra).members(tools), HI)))
    return body


async def test_extra_wins_but_for_messages_and_stream() -> None:
    search = {"type": "web_search"}
    extra = {"model": "other", "temperature": 0.2, "messages": [], "stream": False, "tools": [search]}
    body = await sent(extra, LIGHT)
    assert (body["model"], body["temperature"], body["messages"], body["stream"]) == ("other", 0.2, HI, True)
    assert [tool["type"] for tool in body["tools"]] == ["function", "web_search"]
    assert (await sent(extra))["tools"] == [search]
    assert (await sent({"tools": "odd"}))["tools"] == "odd"  # the server shall say what it thinks of it
    assert extra["tools"] == [search]


async def test_without_tools_nothing_is_said_of_them() -> None:
    extra = {"tool_choice": "auto", "parallel_tool_calls": False, "tools": [], "top_p": 1}
    assert await sent(extra) == {"model": "m", "top_p": 1, "messages": HI, "stream": True}
    assert (await sent(extra, LIGHT)).keys() >= {"tools", "tool_choice", "parallel_tool_calls"}


async def test_what_comes_after_done_is_not_read(http: HttpClient) -> None:
    gate = asyncio.Event()
    gate.set()
    pieces = [*say("Hello").pieces, gate, chunk({"content": " again"})]
    async with ChatServer(Answer(pieces), Answer(pieces, end="cut"), Answer(pieces, end="reset")) as server:
        for _ in range(3):
            events, error = await ask(client(http, server))
            assert (text_of(events), error) == ("Hello", None)


@pytest.mark.parametrize(("end", "kind"), [("clean", None), ("reset", ErrorKind.BROKEN_OFF)])
async def test_text_that_only_the_end_makes_certain(http: HttpClient, end: End, kind: ErrorKind | None) -> None:
    """The start of what may be a tag is held back until it is clear that it is none."""
    pieces = [START, chunk({"content": "2 <thin"}), *([chunk({}, "stop")] if end == "clean" else [])]
    async with ChatServer(Answer(pieces, end=end)) as server:
        events, error = await ask(client(http, server))
        assert (text_of(events), error.kind if error else None) == ("2 <thin", kind)


async def test_probe_without_a_model(http: HttpClient) -> None:
    async with ChatServer() as server:
        assert await client(http, server, model="").probe() == "the server's own model answers"


async def test_build(http: HttpClient) -> None:
    async with ChatServer() as server:
        settings = OpenAiChatLlm.model_validate(
            {"url": server.url, "api_key": "k", "model": "m", "history": 5, "extra": {"top_p": 0.5}}
        )
        llm = build(settings, http=http, models=None)
        await llm.start()
        assert text_of((await ask(llm))[0]) == "Hello there."
        await llm.close()
        assert server.requests[0].json["top_p"] == 0.5
        assert server.requests[0].headers["Authorization"] == "Bearer k"


async def test_the_fake_refuses_messages_that_some_server_would_refuse(http: HttpClient) -> None:
    async with ChatServer() as server:
        with pytest.raises(BackendError) as caught:
            await anext(client(http, server).stream([{"role": "assistant", "content": "Hi"}]))
        assert caught.value.kind is ErrorKind.REFUSED
        assert server.faults


async def test_the_fake_answers_by_what_it_is_asked(http: HttpClient) -> None:
    def echo(body: dict[str, Any]) -> Answer:
        return say(f"You said {body['messages'][-1]['content']}.")

    async with ChatServer(echo) as server:
        assert text_of((await ask(client(http, server)))[0]) == "You said Hi."
        assert server.requests[0].messages == HI
        server.answers = [lambda _: Fault.EMPTY, Answer([START, chunk({}, "stop"), DONE])]
        assert (await ask(client(http, server)))[1] is not None
        assert (await ask(client(http, server)))[0] == [Step("", "", "stop")]
