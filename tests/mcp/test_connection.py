"""A connection over streamable HTTP, to a server that does what the test says (2025-06-18)."""

from __future__ import annotations

import asyncio
import gc
import json
from contextlib import AbstractAsyncContextManager
from typing import Any
from unittest.mock import patch

import pytest
from aiohttp import web

from echokit_py.config.settings import McpServer
from echokit_py.errors import ErrorKind
from echokit_py.mcp import upkeep
from echokit_py.mcp.base import Refused, Unanswered
from echokit_py.mcp.connection import Connection
from tests.fakes import virtual_time
from tests.mcp.legacy_server import LegacyServer, event, named, reply, serving
from tests.mcp.opened import LIMIT_S, Open
from tests.mcp.opened import opened as open_to


def entry(server: LegacyServer, **settings: Any) -> McpServer:
    return McpServer.model_validate({"server": server.url, "name": "home", **settings})


def opened(server: LegacyServer, **settings: Any) -> AbstractAsyncContextManager[Open]:
    return open_to(entry(server, **settings))


async def test_it_lists_calls_and_says_goodbye() -> None:
    async with serving() as server:
        server.pages = [[named("on"), named("off")], [], [named("dim")]]
        async with opened(server) as connection:
            assert connection.lists == [["on", "off", "dim"]]
            assert await connection.call("off") == "done"
            assert server.posts[-1]["params"]["name"] == "off"
            assert not connection.connection.speaks_2026
        assert server.methods()[-1] == "DELETE"


async def test_key_and_headers_go_with_each_request() -> None:
    async with (
        serving() as server,
        opened(server, api_key="Bearer key-1", headers={"X-Home": "flat 2"}) as connection,
    ):
        await connection.call()
        assert server.headers["Authorization"] == "Bearer key-1"
        assert server.headers["X-Home"] == "flat 2"
        assert server.headers["mcp-session-id"] == "s1"


async def test_a_header_of_the_configuration_takes_the_place_of_ours() -> None:
    headers = {"authorization": "Token t", "accept-encoding": "gzip"}
    async with serving() as server, opened(server, api_key="key-1", headers=headers) as connection:
        await connection.call()
        found = {name.lower(): value for name, value in server.headers.items()}
        assert (found["authorization"], found["accept-encoding"]) == ("Token t", "identity")


async def test_one_that_can_not_be_read_does_not_cost_the_others_of_a_long_list() -> None:
    async with serving() as server:

        async def page(post: dict[str, Any]) -> web.Response:
            tools = [named("on", description="d" * 20_000), named("odd", inputSchema={"maximum": "TOO BIG"})]
            text = json.dumps({"jsonrpc": "2.0", "id": post["id"], "result": {"tools": tools}})
            return web.Response(text=text.replace('"TOO BIG"', "1e999"), content_type="application/json")

        server.answers["tools/list"] = page
        async with opened(server) as connection:
            assert connection.lists == [["on"]]


async def test_one_bad_tool_does_not_cost_the_others() -> None:
    async with serving() as server:
        server.pages = [
            [named("on"), {"name": None}, {"name": "bare"}, {"name": "odd", "inputSchema": {"$schema": "x"}}]
        ]
        async with opened(server) as connection:
            assert connection.lists == [["on", "bare", "odd"]]
            assert connection.tools[2].input_schema == {"$schema": "x"}


async def test_a_long_list_comes_through_whole_and_in_order() -> None:
    async with serving() as server:
        tools = [named(f"t{number}", description="é" * 900, outputSchema={"type": "array"}) for number in range(155)]
        server.pages = [tools[:100], tools[100:]]
        async with opened(server) as connection:
            assert connection.lists == [[f"t{number}" for number in range(155)]]
            assert {tool.description for tool in connection.tools} == {"é" * 900}


@pytest.mark.parametrize("kind", ["the same", "new ones"])
async def test_a_list_without_an_end_is_ended(kind: str) -> None:
    async with serving() as server:

        async def page(post: dict[str, Any]) -> web.Response:
            count = server.methods().count("tools/list")
            return reply(post, {"tools": [], "nextCursor": "x" if kind == "the same" else str(count)})

        server.answers["tools/list"] = page
        async with opened(server) as connection:
            assert connection.lists == [[]]
        assert server.methods().count("tools/list") <= 102


async def test_a_server_without_tools_is_not_asked_for_them() -> None:
    async with serving() as server:

        async def greet(post: dict[str, Any]) -> web.Response:
            info = {"name": "x", "version": "1"}
            return reply(post, {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info})

        server.answers["initialize"] = greet
        async with opened(server) as connection:
            assert connection.lists == [[]]
        assert "tools/list" not in server.methods()


async def test_news_are_followed_and_pings_answered() -> None:
    async with serving() as server, opened(server) as connection:
        await server.say({"jsonrpc": "2.0", "id": 77, "method": "ping"})
        assert (await server.received("answer"))["id"] == 77
        server.pages = [[named("dim")]]
        await server.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        assert await connection.listed(2) == ["dim"]


@pytest.mark.parametrize(
    "answer",
    [
        (404, ""),
        # As servers of the SDKs say it that are older than the rule of 404, and those made after their examples.
        (
            400,
            '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}',
        ),
        (400, "Bad Request: No valid session ID provided"),
    ],
)
async def test_a_forgotten_session_ends_the_connection_and_the_call_did_not_run(answer: tuple[int, str]) -> None:
    async with serving() as server, opened(server) as connection:
        server.known.clear()
        server.unknown = answer
        with pytest.raises(Unanswered) as raised:
            await connection.call()
        assert raised.value.not_run
        assert "forgotten our session" in str(await connection.end())


async def test_a_forgotten_session_is_noticed_without_a_call() -> None:
    async with serving() as server, opened(server) as connection:
        await server.say({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        await server.received("answer")
        server.known.clear()
        server.cut_streams()
        assert "forgotten our session" in str(await connection.end())


async def test_a_server_that_is_gone_is_noticed_without_a_call() -> None:
    async with serving() as server, opened(server) as connection:
        await server.say({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        await server.received("answer")
        await server.stop()
        error = await connection.end()
        assert error.kind is ErrorKind.CONNECT
        with pytest.raises(Unanswered) as raised:
            await connection.call()
        assert raised.value.not_run


async def test_a_refused_connection_means_that_the_call_did_not_run() -> None:
    async with serving() as server:
        server.get_status = 405
        async with opened(server) as connection:
            await server.stop()
            with pytest.raises(Unanswered, match="Connection refused") as raised:
                await connection.call()
            assert raised.value.not_run
            assert (await connection.end()).kind is ErrorKind.CONNECT


@pytest.mark.parametrize(
    "how", ["no answer", "half an answer", "a stream without an answer", "status 500 with garbage"]
)
async def test_a_broken_answer_leaves_the_outcome_unknown_and_the_connection_up(how: str) -> None:
    async with serving() as server:

        async def answer(_: dict[str, Any], request: web.Request) -> web.StreamResponse:
            if how == "status 500 with garbage":
                return web.Response(status=500, text="oops")
            content_type = "text/event-stream" if how == "a stream without an answer" else "application/json"
            response = web.StreamResponse(headers={"Content-Type": content_type})
            response.content_length = 1000 if how == "half an answer" else None
            await response.prepare(request)
            await response.write(b'{"jsonrpc"' if how == "half an answer" else b": hello\n\n")
            transport = request.transport
            assert transport is not None
            if how != "a stream without an answer":
                transport.abort()
            return response

        server.raw_answers["tools/call"] = answer
        async with opened(server) as connection:
            with pytest.raises(Unanswered) as raised:
                await connection.call()
            assert not raised.value.not_run
            del server.raw_answers["tools/call"]
            assert await connection.call() == "done"
            assert server.methods().count("tools/call") == 2


async def test_a_status_that_refuses_is_an_error_that_the_model_can_read() -> None:
    async with serving() as server:

        async def refuse(_: dict[str, Any]) -> web.Response:
            return web.Response(status=403, text="not for you")

        server.answers["tools/call"] = refuse
        async with opened(server) as connection:
            with pytest.raises(Refused, match="the server answered 403"):
                await connection.call()


def test_a_call_that_ends_with_an_error_when_nobody_waits_any_more_is_no_fault() -> None:
    problems: list[dict[str, Any]] = []

    async def fail(*_: Any) -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            raise Unanswered("closed the connection", not_run=False) from None

    async def work() -> None:
        connection = Connection(McpServer(server="http://127.0.0.1:1/mcp"))
        with patch.object(connection, "_call", fail):
            task = asyncio.create_task(connection.call("on", {}, 0.0))
            await asyncio.sleep(1)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

    virtual_time.run(work(), problems.append)
    gc.collect()
    assert problems == []


async def test_an_error_of_the_server_is_passed_on() -> None:
    async with serving() as server:

        async def refuse(post: dict[str, Any]) -> web.Response:
            error = {"code": -32602, "message": "Unknown tool:\n\x1b[31mon key-abcdef"}
            return web.json_response({"jsonrpc": "2.0", "id": post["id"], "error": error})

        server.answers["tools/call"] = refuse
        async with opened(server, api_key="key-abcdef") as connection:
            with pytest.raises(Refused) as raised:
                await connection.call()
            assert str(raised.value) == "Unknown tool: [31mon ***"


async def test_a_cancelled_call_is_cancelled_with_the_server_at_once_and_kills_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("echokit_py.mcp.connection.GRACE_S", 1000)  # whoever waited for the answer would wait so long
    async with serving() as server:
        release = asyncio.Event()

        async def hang(post: dict[str, Any]) -> web.Response:
            await release.wait()
            return reply(post, {"content": []})

        server.answers["tools/call"] = hang
        async with opened(server) as connection:
            task = asyncio.create_task(connection.call())
            call = await server.received("tools/call")
            task.cancel()
            async with asyncio.timeout(LIMIT_S):
                await asyncio.wait([task])
            assert task.cancelled()
            told = await server.received("notifications/cancelled")
            assert told["params"]["requestId"] == call["id"]
            release.set()  # the answer comes too late
            del server.answers["tools/call"]
            assert await connection.call() == "done"


async def test_calls_run_side_by_side() -> None:
    async with serving() as server:
        both = asyncio.Barrier(2)

        async def meet(post: dict[str, Any]) -> web.Response:
            async with asyncio.timeout(10):
                await both.wait()
            return reply(post, {"content": [{"type": "text", "text": post["params"]["name"]}]})

        server.answers["tools/call"] = meet
        async with opened(server) as connection:
            assert list(await asyncio.gather(connection.call("a"), connection.call("b"))) == ["a", "b"]


async def test_a_result_that_does_not_fit_its_schema_is_not_thrown_away() -> None:
    async with serving() as server:
        server.pages = [[named("on", outputSchema={"type": "object", "required": ["x"]})]]
        async with opened(server) as connection:
            assert await connection.call() == "done"


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
async def test_a_long_result_comes_through(stream: bool) -> None:
    async with serving() as server:
        words = "é水" * 100_000

        async def answer(post: dict[str, Any]) -> web.Response:
            result = {"content": [{"type": "text", "text": words}], "structuredContent": {"result": words}}
            if stream:
                message = {"jsonrpc": "2.0", "id": post["id"], "result": result}
                return web.Response(body=event(message), content_type="text/event-stream")
            return reply(post, result)

        server.answers["tools/call"] = answer
        async with opened(server) as connection:
            assert await connection.call() == words


async def test_a_server_that_gives_no_sign_of_life_is_given_up() -> None:
    async with serving() as server:
        server.get_status = 405

        async def hang(post: dict[str, Any]) -> web.Response:
            await asyncio.sleep(30)
            return reply(post, {})

        server.answers["ping"] = hang
        with patch.object(upkeep, "PING_LIMIT_S", 0.1):
            async with opened(server) as connection:
                connection.connection.suspect()
                assert "no sign of life" in str(await connection.end())


async def test_one_that_works_at_a_call_may_be_too_busy_for_a_sign_of_life() -> None:
    async with serving() as server:
        server.get_status = 405
        release = asyncio.Event()

        async def hang(post: dict[str, Any]) -> web.Response:
            await release.wait()
            return reply(post, {"content": [{"type": "text", "text": "at last"}]})

        server.answers = {"ping": hang, "tools/call": hang}
        with patch.object(upkeep, "PING_LIMIT_S", 0.05):
            async with opened(server) as connection:
                call = asyncio.create_task(connection.call())
                await server.received("tools/call")
                assert await connection.connection.alive()
                release.set()
                assert await call == "at last"


async def test_one_whose_stream_of_news_can_not_be_opened_again_is_connected_to_afresh() -> None:
    async with serving() as server, opened(server) as connection:
        await server.say({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        await server.received("answer")
        server.get_status = 503
        server.cut_streams()
        assert "opens its stream of events no more" in str(await connection.end())


async def test_http_and_sse_lists_calls_and_notices_the_end() -> None:
    async with serving() as server:
        server.url = server.url.replace("/mcp", "/sse")
        async with opened(server, type="sse") as connection:
            assert connection.lists == [["on"]]
            assert "server/discover" not in server.methods()
            assert await connection.call() == "done"
            await server.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            assert await connection.listed(2) == ["on"]
            server.cut_streams()
            assert "closed its stream of events" in str(await connection.end())


async def test_http_and_sse_with_a_forgotten_session() -> None:
    async with serving() as server:
        server.url = server.url.replace("/mcp", "/sse")
        async with opened(server, type="sse") as connection:
            server.known.clear()
            with pytest.raises(Unanswered) as raised:
                await connection.call()
            assert raised.value.not_run
            assert "forgotten our session" in str(await connection.end())


async def test_why_http_and_sse_can_not_be_used() -> None:
    async with serving() as server:
        server.url = server.url.replace("/mcp", "/sse")
        server.get_status = 401
        error = await Open(entry(server, type="sse")).end()
        assert (error.kind, error.status) == (ErrorKind.AUTH, 401)
    error = await Open(entry(server, type="sse")).end()
    assert (error.kind, error.args[0]) == (ErrorKind.CONNECT, "can't be reached: Connection refused")


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, ErrorKind.AUTH), (403, ErrorKind.AUTH), (500, ErrorKind.SERVER), (404, ErrorKind.REFUSED)],
)
async def test_why_a_server_can_not_be_used(status: int, kind: ErrorKind) -> None:
    async with serving() as server:

        async def refuse(_: dict[str, Any]) -> web.Response:
            return web.Response(status=status)

        server.answers = {"server/discover": refuse, "initialize": refuse}
        error = await Open(entry(server)).end()
        assert (error.kind, error.status) == (kind, status)


async def test_a_server_that_is_not_there() -> None:
    async with serving() as server:
        pass
    error = await Open(entry(server)).end()
    assert (error.kind, error.args[0]) == (ErrorKind.CONNECT, "can't be reached: Connection refused")


async def test_something_that_is_no_mcp_server() -> None:
    async with serving() as server:

        async def greet(_: dict[str, Any]) -> web.Response:
            return web.Response(text="<html>", content_type="text/html")

        server.answers = {"server/discover": greet, "initialize": greet}
        assert (await Open(entry(server)).end()).kind is ErrorKind.BAD_ANSWER
