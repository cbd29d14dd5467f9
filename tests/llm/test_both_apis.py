"""What holds for the clients of both APIs alike, against scripted servers on real sockets. Looks at no request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import cast

import pytest

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.http import HttpClient
from echokit_py.llm import request
from echokit_py.llm.base import LlmEvent, Refusal, Step, TextDelta
from tests.fakes.chat_server import START, chunk, event
from tests.fakes.faults import Fault
from tests.fakes.responses_server import Stream
from tests.fakes.scripted_server import Answer, Script, slow, status
from tests.llm.apis import CHAT, HI, LIGHT, RESPONSES, Api, ask, step_of, text_of

both = pytest.mark.parametrize("api", [CHAT, RESPONSES], ids=str)


@both
async def test_only_offered_tools_are_called(http: HttpClient, api: Api) -> None:
    async with api.server(api.call(("c1", "set_light", "{}"))) as server:
        step = step_of((await ask(api.client(http, server)))[0])
        assert step.calls == ()
        assert [(refused.name, refused.reason) for refused in step.refused] == [("set_light", Refusal.UNKNOWN_TOOL)]


@both
async def test_reading_stops_at_the_last_event(http: HttpClient, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "END_GRACE_S", 0)
    async with api.server(Answer(api.say("Hello there.").pieces, end="hang")) as server:
        events, error = await ask(api.client(http, server))
        assert (text_of(events), error) == ("Hello there.", None)
        await server.until(lambda: server.disconnects == 1)


@both
async def test_the_connection_is_used_again(http: HttpClient, api: Api) -> None:
    async with api.server() as server:
        for _ in range(3):
            await ask(api.client(http, server))
        assert len(server.connections) == 1


@both
async def test_deltas_come_as_they_are_sent(http: HttpClient, api: Api) -> None:
    gate = asyncio.Event()
    async with api.server(api.say("Hello. ", gate, "Bye.")) as server:
        events = aiter(api.client(http, server).stream(HI))
        assert await anext(events) == TextDelta("Hello. ")
        gate.set()
        assert [happened async for happened in events][-1] == Step("Hello. Bye.", "", "stop")


@both
async def test_byte_by_byte(http: HttpClient, api: Api) -> None:
    async with api.server(slow(api.say("Grüße, 世界 😀."))) as server:
        events, error = await ask(api.client(http, server))
        assert (text_of(events), error) == ("Grüße, 世界 😀.", None)


@both
async def test_a_whole_answer_instead_of_a_stream_is_taken(http: HttpClient, api: Api) -> None:
    async with api.server(Answer([api.says_hi], content_type="application/json")) as server:
        events, error = await ask(api.client(http, server))
        assert error is None
        assert (text_of(events), events[-1]) == ("Hi!", Step("Hi!", "", "stop"))


FAILURES: list[tuple[Api, Script, ErrorKind, str]] = [
    *(
        (api, script, kind, said)
        for api in (CHAT, RESPONSES)
        for script, kind, said in (
            (Fault.REFUSE, ErrorKind.BROKEN_OFF, ""),
            (Fault.STATUS_500, ErrorKind.SERVER, ""),
            (Fault.STATUS_429, ErrorKind.RATE_LIMIT, ""),
            (Fault.GARBAGE, ErrorKind.BROKEN_OFF, ""),
            (Fault.HTML, ErrorKind.BAD_ANSWER, ""),
            (Fault.EMPTY, ErrorKind.BROKEN_OFF, ""),
            (Fault.CUT_FIRST, ErrorKind.BROKEN_OFF, ""),
            (Fault.CUT_MIDDLE, ErrorKind.BROKEN_OFF, "Hello. "),
            (api.broken_off("Hello. ", "I am"), ErrorKind.BROKEN_OFF, "Hello. I am"),
            (api.broken_off("Hello. ", "I am", end="clean"), ErrorKind.BROKEN_OFF, "Hello. I am"),
            (api.broken_off(), ErrorKind.BROKEN_OFF, ""),
            (status(401), ErrorKind.AUTH, ""),
            (status(404, "no such model"), ErrorKind.REFUSED, ""),
            (status(400, "maximum context length is 4096", "context_length_exceeded"), ErrorKind.CONTEXT, ""),
            (status(400, "exceeds the context window", "context_length_exceeded"), ErrorKind.CONTEXT, ""),
            (Answer([b'{"error": {"message": "boom"}}'], content_type="application/json"), ErrorKind.SERVER, ""),
        )
    ),
    (CHAT, Answer([event({"error": {"message": "no such model", "code": 404}})]), ErrorKind.REFUSED, ""),
    (CHAT, Answer([START, chunk({"content": "Hi. "}), CHAT.error_event("boom")]), ErrorKind.SERVER, "Hi. "),
    # Within the event that would have proved it:
    (RESPONSES, Fault.CUT_LAST, ErrorKind.BROKEN_OFF, "Hello. I am here."),
    (
        RESPONSES,
        Answer([*RESPONSES.broken_off("Hi. ").pieces, RESPONSES.error_event("boom")]),
        ErrorKind.SERVER,
        "Hi. ",
    ),
    (RESPONSES, Stream().failed("rate_limit_exceeded", "Please try again in 7 s."), ErrorKind.RATE_LIMIT, ""),
    (RESPONSES, Stream().failed("server_error", "The model failed."), ErrorKind.SERVER, ""),
]


@pytest.mark.parametrize(("api", "script", "kind", "said"), FAILURES)
async def test_failures(http: HttpClient, api: Api, script: Script, kind: ErrorKind, said: str) -> None:
    async with api.server(script, api.say("Hello there.")) as server:
        events, error = await ask(api.client(http, server))
        assert error is not None
        assert (error.stage, error.kind, text_of(events)) == (Stage.LLM, kind, said)
        assert not any(isinstance(happened, Step) for happened in events)
        assert len(server.requests) == 1  # nothing is tried again here
        events, error = await ask(api.client(http, server))
        assert (text_of(events), error) == ("Hello there.", None)


@pytest.mark.parametrize(
    ("api", "script"),
    [
        *((api, script) for api in (CHAT, RESPONSES) for script in (api.answer, Fault.SLOW)),
        (CHAT, Fault.CUT_LAST),
        (RESPONSES, Answer(RESPONSES.answer.pieces, end="cut")),
    ],
)
async def test_an_answer_that_was_whole_counts_however_its_connection_ends(
    http: HttpClient, api: Api, script: Script
) -> None:
    async with api.server(script) as server:
        events, error = await ask(api.client(http, server))
        assert error is None
        assert events[-1] == Step("Hello. I am here.", "", "stop")


@both
async def test_a_call_whose_stream_was_cut_is_not_run(http: HttpClient, api: Api) -> None:
    whole = api.call(("c1", "set_light", "{}"))
    async with api.server(Answer(whole.pieces[: -api.ending], end="reset")) as server:
        events, error = await ask(api.client(http, server), LIGHT)
        assert error is not None
        assert (error.kind, events) == (ErrorKind.BROKEN_OFF, [])


@both
async def test_a_server_that_is_gone_and_comes_back(http: HttpClient, api: Api) -> None:
    async with api.server() as server:
        llm = api.client(http, server)
        await ask(llm)
        await server.kill()
        _, error = await ask(llm)
        assert error is not None
        assert error.kind is ErrorKind.CONNECT
        await server.revive()
        assert text_of((await ask(llm))[0]) == "Hello there."


@both
async def test_a_key_that_the_server_repeats_is_hidden(http: HttpClient, api: Api) -> None:
    leaks = Answer([api.error_event("bad key s3cret-123456")]), status(401, "s3cret-123456")
    async with api.server(*leaks) as server:
        for _ in leaks:
            _, error = await ask(api.client(http, server, "s3cret-123456"))
            assert error is not None
            assert "s3cret" not in str(error)


@both
@pytest.mark.parametrize("fault", [Fault.HANG, Fault.STALL])
async def test_cancelling_closes_the_request(http: HttpClient, api: Api, fault: Fault) -> None:
    async with api.server(fault, api.say("Hello there.")) as server:
        task = asyncio.create_task(ask(api.client(http, server)))
        await server.until(lambda: server.open_requests == 1)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()
        await server.until(lambda: server.disconnects == 1)
        assert text_of((await ask(api.client(http, server)))[0]) == "Hello there."


@both
async def test_closing_the_generator_closes_the_request(http: HttpClient, api: Api) -> None:
    async with api.server(Fault.STALL) as server:
        stream = cast(AsyncGenerator[LlmEvent, None], api.client(http, server).stream(HI))
        async with aclosing(stream) as events:
            assert await anext(events) == TextDelta("Hello. ")
        await server.until(lambda: server.disconnects == 1)


@both
async def test_probe(http: HttpClient, api: Api) -> None:
    async with api.server(Fault.STALL) as server:  # one token is enough
        assert await api.client(http, server).probe() == "model gpt answers"
        server.fault = Fault.STATUS_500
        with pytest.raises(BackendError) as caught:
            await api.client(http, server).probe()
        assert caught.value.kind is ErrorKind.SERVER


@both
async def test_probe_does_not_wait_for_ever(http: HttpClient, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "PROBE_S", 0)
    async with api.server(Fault.HANG) as server:
        with pytest.raises(BackendError) as caught:
            await api.client(http, server).probe()
        assert caught.value.kind is ErrorKind.TIMEOUT
