"""The chat client against a scripted server on a real socket: requests as they must be, and every way to fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

import pytest

from echokit_py.config.settings import OpenAiChatLlm
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.http import HttpClient
from echokit_py.http.body import encode
from echokit_py.llm import request
from echokit_py.llm.base import LlmEvent, Message, ReasoningDelta, Step, TextDelta, Tool, ToolCall
from echokit_py.llm.chat import OpenAiChat, build, request_body, to_tool
from echokit_py.llm.offer import Offers
from tests.fakes.chat_server import (
    ANSWER,
    DONE,
    FAULTS,
    START,
    Answer,
    ChatServer,
    End,
    Script,
    broken_off,
    call,
    chunk,
    event,
    say,
    slow,
    status,
)
from tests.fakes.faults import Fault

HI: list[Message] = [{"role": "user", "content": "Hi"}]
LIGHT = Tool("set_light", "Switch a light.", {"type": "object", "properties": {"room": {"type": "string"}}})


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient(connect_s=5)
    yield client
    await client.close()


def client(http: HttpClient, server: ChatServer, api_key: str = "", model: str = "m", **extra: Any) -> OpenAiChat:
    return OpenAiChat(http, url=server.url, api_key=api_key, model=model, extra=extra)


async def ask(llm: OpenAiChat, *tools: Tool) -> tuple[list[LlmEvent], BackendError | None]:
    """All events, and the error at the end if there was one."""
    events: list[LlmEvent] = []
    try:
        async for happened in llm.stream(HI, tools):
            events.append(happened)
    except BackendError as error:
        return events, error
    return events, None


def text_of(events: list[LlmEvent]) -> str:
    return "".join(happened.text for happened in events if isinstance(happened, TextDelta))


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


async def test_only_offered_tools_are_called(http: HttpClient) -> None:
    async with ChatServer(call(("c1", "set_light", "{}"))) as server:
        events, _ = await ask(client(http, server))
        assert isinstance(events[-1], Step)
        assert events[-1].calls == ()
        assert [refused.name for refused in events[-1].refused] == ["set_light"]


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


async def test_reading_stops_at_done(http: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "END_GRACE_S", 0)
    async with ChatServer(Answer(say("Hello there.").pieces, end="hang")) as server:
        events, error = await ask(client(http, server))
        assert (text_of(events), error) == ("Hello there.", None)
        await server.until(lambda: server.disconnects == 1)


async def test_what_comes_after_done_is_not_read(http: HttpClient) -> None:
    gate = asyncio.Event()
    gate.set()
    pieces = [*say("Hello").pieces, gate, chunk({"content": " again"})]
    async with ChatServer(Answer(pieces), Answer(pieces, end="cut"), Answer(pieces, end="reset")) as server:
        for _ in range(3):
            events, error = await ask(client(http, server))
            assert (text_of(events), error) == ("Hello", None)


async def test_the_connection_is_used_again(http: HttpClient) -> None:
    async with ChatServer() as server:
        for _ in range(3):
            await ask(client(http, server))
        assert len(server.connections) == 1


async def test_deltas_come_as_they_are_sent(http: HttpClient) -> None:
    gate = asyncio.Event()
    async with ChatServer(say("Hello. ", gate, "Bye.")) as server:
        events = client(http, server).stream(HI)
        assert await anext(events) == TextDelta("Hello. ")
        gate.set()
        assert [happened async for happened in events][-1] == Step("Hello. Bye.", "", "stop")


async def test_byte_by_byte(http: HttpClient) -> None:
    async with ChatServer(slow(say("Grüße, 世界 😀."))) as server:
        events, error = await ask(client(http, server))
        assert (text_of(events), error) == ("Grüße, 世界 😀.", None)


async def test_a_whole_answer_instead_of_a_stream_is_taken(http: HttpClient) -> None:
    body = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi!"}, "finish_reason": "stop"}]}'
    async with ChatServer(Answer([body], content_type="application/json")) as server:
        events, error = await ask(client(http, server))
        assert error is None
        assert (text_of(events), events[-1]) == ("Hi!", Step("Hi!", "", "stop"))


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        (Fault.REFUSE, ErrorKind.BROKEN_OFF, ""),
        (Fault.STATUS_500, ErrorKind.SERVER, ""),
        (Fault.STATUS_429, ErrorKind.RATE_LIMIT, ""),
        (Fault.GARBAGE, ErrorKind.BROKEN_OFF, ""),
        (Fault.HTML, ErrorKind.BAD_ANSWER, ""),
        (Fault.EMPTY, ErrorKind.BROKEN_OFF, ""),
        (Fault.CUT_FIRST, ErrorKind.BROKEN_OFF, ""),
        (Fault.CUT_MIDDLE, ErrorKind.BROKEN_OFF, "Hello. "),
        (broken_off("Hello. ", "I am"), ErrorKind.BROKEN_OFF, "Hello. I am"),
        (broken_off("Hello. ", "I am", end="clean"), ErrorKind.BROKEN_OFF, "Hello. I am"),
        (broken_off(), ErrorKind.BROKEN_OFF, ""),
        (status(401), ErrorKind.AUTH, ""),
        (status(404, "no such model"), ErrorKind.REFUSED, ""),
        (status(400, "maximum context length is 4096", "context_length_exceeded"), ErrorKind.CONTEXT, ""),
        (Answer([event({"error": {"message": "no such model", "code": 404}})]), ErrorKind.REFUSED, ""),
        (Answer([b'{"error": {"message": "boom"}}'], content_type="application/json"), ErrorKind.SERVER, ""),
        (Answer([START, chunk({"content": "Hi. "}), event({"error": {"message": "boom"}})]), ErrorKind.SERVER, "Hi. "),
    ],
)  # fmt: skip
async def test_failures(http: HttpClient, script: Script, kind: ErrorKind, said: str) -> None:
    async with ChatServer(script, say("Hello there.")) as server:
        events, error = await ask(client(http, server))
        assert error is not None
        assert (error.stage, error.kind, text_of(events)) == (Stage.LLM, kind, said)
        assert not any(isinstance(happened, Step) for happened in events)
        assert len(server.requests) == 1  # nothing is tried again here
        events, error = await ask(client(http, server))
        assert (text_of(events), error) == ("Hello there.", None)


@pytest.mark.parametrize("script", [ANSWER, Fault.SLOW, Fault.CUT_LAST])
async def test_an_answer_that_was_whole_counts_however_its_connection_ends(http: HttpClient, script: Script) -> None:
    async with ChatServer(script) as server:
        events, error = await ask(client(http, server))
        assert error is None
        assert events[-1] == Step("Hello. I am here.", "", "stop")


@pytest.mark.parametrize(("end", "kind"), [("clean", None), ("reset", ErrorKind.BROKEN_OFF)])
async def test_text_that_only_the_end_makes_certain(http: HttpClient, end: End, kind: ErrorKind | None) -> None:
    """The start of what may be a tag is held back until it is clear that it is none."""
    pieces = [START, chunk({"content": "2 <thin"}), *([chunk({}, "stop")] if end == "clean" else [])]
    async with ChatServer(Answer(pieces, end=end)) as server:
        events, error = await ask(client(http, server))
        assert (text_of(events), error.kind if error else None) == ("2 <thin", kind)


async def test_a_call_whose_stream_was_cut_is_not_run(http: HttpClient) -> None:
    whole = call(("c1", "set_light", "{}"))
    async with ChatServer(Answer(whole.pieces[:-2], end="reset")) as server:
        events, error = await ask(client(http, server), LIGHT)
        assert error is not None
        assert error.kind is ErrorKind.BROKEN_OFF
        assert events == []


async def test_a_server_that_is_gone_and_comes_back(http: HttpClient) -> None:
    async with ChatServer() as server:
        llm = client(http, server)
        await ask(llm)
        await server.kill()
        _, error = await ask(llm)
        assert error is not None
        assert error.kind is ErrorKind.CONNECT
        await server.revive()
        assert text_of((await ask(llm))[0]) == "Hello there."


async def test_a_key_that_the_server_repeats_is_hidden(http: HttpClient) -> None:
    async with ChatServer(
        Answer([event({"error": {"message": "bad key s3cret-123456"}})]), status(401, "s3cret-123456")
    ) as server:
        for _ in range(2):
            _, error = await ask(client(http, server, "s3cret-123456"))
            assert "s3cret" not in str(error)


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.STALL])
async def test_cancelling_closes_the_request(http: HttpClient, fault: Fault) -> None:
    async with ChatServer(fault, say("Hello there.")) as server:
        task = asyncio.create_task(ask(client(http, server)))
        await server.until(lambda: server.open_requests == 1)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()
        await server.until(lambda: server.disconnects == 1)
        assert text_of((await ask(client(http, server)))[0]) == "Hello there."


async def test_closing_the_generator_closes_the_request(http: HttpClient) -> None:
    async with ChatServer(Fault.STALL) as server:
        async with aclosing(client(http, server).stream(HI)) as events:
            assert await anext(events) == TextDelta("Hello. ")
        await server.until(lambda: server.disconnects == 1)


async def test_probe(http: HttpClient) -> None:
    async with ChatServer(FAULTS[Fault.STALL]) as server:  # one token is enough
        assert await client(http, server, model="gpt").probe() == "model gpt answers"
        assert await client(http, server, model="").probe() == "the server's own model answers"
        server.fault = Fault.STATUS_500
        with pytest.raises(BackendError):
            await client(http, server).probe()


async def test_probe_does_not_wait_for_ever(http: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "PROBE_S", 0)
    async with ChatServer(Fault.HANG) as server:
        with pytest.raises(BackendError) as caught:
            await client(http, server).probe()
        assert caught.value.kind is ErrorKind.TIMEOUT


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
