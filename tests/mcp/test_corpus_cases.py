"""Public bug reports about MCP clients as turns of a running server, with scripted MCP servers behind it.

The data stand beside the checkout (../shared/corpus) and are not part of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Set
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from echokit_py.config.mcp_server import McpServer
from tests.beside import Case, cases, needs_corpus
from tests.fakes.talking import shown
from tests.mcp_servers.scripted import ScriptedMcp
from tests.mcp_servers.talk import Tooled, over_http, over_stdio, tooled, until

pytestmark = needs_corpus

CASES = {case["id"]: case for case in cases("mcp")}
OVER_HTTP = [name for name, case in CASES.items() if case["input"]["servers"][0]["transport"] == "streamable_http"]
TIMED = [name for name in OVER_HTTP if "timeline" in CASES[name]["input"]["servers"][0]]
TOLD_AT_ONCE = sorted(set(OVER_HTTP) - set(TIMED))
OVER_STDIO = sorted(set(CASES) - set(OVER_HTTP))


def options(case: Case) -> dict[str, Any]:
    """The configuration that a case asks for. A limit in bytes is kept by one of a fourth in characters."""
    config = case["input"].get("config", {})
    found: dict[str, Any] = {}
    if "max_tool_result_bytes" in config:
        found["max_result_chars"] = config["max_tool_result_bytes"] // 4
    if "tool_timeout_ms" in config:
        found["timeout_sec"] = config["tool_timeout_ms"] / 1000
    return found


@asynccontextmanager
async def over_scripts(case: Case, *, sse: bool) -> AsyncIterator[tuple[Tooled, list[ScriptedMcp]]]:
    """A conversation with the scripted servers of a case behind it. They have answered with their tools."""
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(ScriptedMcp(given, sse=sse)) for given in case["input"]["servers"]]
        entries = [over_http(server.name, server.url, **options(case)) for server in servers]
        conversation = await stack.enter_async_context(tooled(*entries))
        count = case["expect"].get("exposed_count", len(case["input"]["servers"]))
        least = max(count, len({call["tool"] for call in case["input"].get("calls", [])}))
        await until(lambda: len(conversation.source.tools()) >= least, "the tools")
        yield conversation, servers


@pytest.mark.parametrize("sse", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("name", TOLD_AT_ONCE)
async def test_a_case(name: str, sse: bool) -> None:
    case = CASES[name]
    expected = case["expect"]
    async with over_scripts(case, sse=sse) as (conversation, servers):
        await check_offer(conversation, expected)
        if case["input"].get("call_each_exposed"):
            await check_routes(conversation, servers, expected["routes"])
        if calls := case["input"].get("calls"):
            exposed = conversation.offered()
            results = await conversation.use(*((exposed[call["tool"]], call["arguments"]) for call in calls))
            for result, wanted in zip(results, expected["results"], strict=True):
                check_result(result, wanted, said(case))
        for server in servers:
            assert server.violations == []
            assert server.script == []
            for tool, times in expected.get("server_executions", {}).items():
                assert server.executions[tool] == times
        assert await conversation.use() == []  # the next turn; a history that isn't valid would be refused


async def check_offer(conversation: Tooled, expected: Case) -> None:
    """What the model is offered, as it stands in the request."""
    await conversation.use()
    functions = [tool["function"] for tool in conversation.chat.requests[-1].json["tools"]]
    names = [function["name"] for function in functions]
    assert len(set(names)) == len(names) == expected.get("exposed_count", len(names))
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
    originals = [function["description"] for function in functions]
    assert sorted(originals) == sorted(expected.get("exposed_original_names", originals))
    for function in functions:
        schema = function["parameters"]
        wanted = expected.get("schemas", {}).get(function["description"], {})
        assert "$schema" not in schema
        assert {key: schema.get(key) for key in wanted} == wanted


async def check_routes(conversation: Tooled, servers: list[ScriptedMcp], routes: list[Case]) -> None:
    """Each offered name leads to a tool of its own."""
    offered = [tool.name for tool in conversation.source.tools()]
    results = [result for name in offered for result in await conversation.use((name, {}))]
    assert sorted(results) == sorted(f"{route['server']} ran {route['tool']}" for route in routes)
    ran = [(server.name, tool, times) for server in servers for tool, times in server.executions.items()]
    assert sorted(ran) == sorted((route["server"], route["tool"], 1) for route in routes)


def said(case: Case) -> set[str]:
    """The texts of results as the servers of a case write them."""
    steps = [step for server in case["input"]["servers"] for step in server.get("script", [])]
    return {part.get("text", "") for step in steps for part in step.get("result", {}).get("content", [])}


def check_result(result: str, wanted: Case, said: Set[str] = frozenset()) -> None:
    """One tool message; `said` is what servers say themselves."""
    assert result.strip()
    # `marked_as_error`: a tool message has no other place for it. A text that begins like that by itself isn't marked.
    assert (result.startswith("Error") and result not in said) is wanted["is_error"]
    assert wanted.get("contains", "") in result
    assert any(word in result for word in wanted.get("contains_any", [""]))
    assert not [word for word in wanted.get("not_contains", []) if word in result]
    size = len(result.encode())  # raises for what is no valid UTF-8
    assert wanted.get("min_bytes_utf8", 0) <= size <= wanted.get("max_bytes_utf8", size)
    if wanted.get("mentions_truncation"):
        assert any(hint in result for hint in wanted["truncation_hints"])


@pytest.mark.parametrize("name", TIMED)
async def test_a_list_that_changes(name: str) -> None:
    case = CASES[name]
    timeline = case["input"]["servers"][0]["timeline"]
    given = {**case["input"]["servers"][0], "tools": timeline[0]["tools"]}
    async with over_scripts({**case, "input": {"servers": [given]}}, sse=False) as (conversation, [server]):
        first, then = (at["names"] for at in case["expect"]["offered_original_names_at"])
        await check_offer(conversation, {"exposed_original_names": first})
        await server.change(*timeline[1]["tools"])
        await conversation.until_offered(*then)
        await check_offer(conversation, {"exposed_original_names": then})
        for called, wanted in zip(case["input"]["calls_after"], case["expect"]["results"], strict=True):
            [result] = await conversation.use((called["llm_calls"], {}))
            check_result(result, wanted)
        assert server.executions == {"lamp_dim": 1}
        assert server.violations == []


@pytest.mark.parametrize("name", OVER_STDIO)
async def test_noise_on_stdout(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    [given] = case["input"]["servers"]
    script, starts = tmp_path / "script.json", tmp_path / "starts"
    script.write_text(json.dumps(given["stdout"]), "utf-8")
    entry: McpServer = over_stdio(given["name"], "scripted_stdio", str(script), str(starts))
    async with tooled(entry) as conversation:
        await conversation.until_offered(*case["expect"]["exposed_original_names"])
        [call] = case["input"]["calls"]
        [result] = await conversation.use((call["tool"], call["arguments"]))
        check_result(result, case["expect"]["results"][0])
        assert len(starts.read_text()) <= case["expect"]["max_process_starts"]


async def test_a_ping_is_answered_also_while_a_tool_runs() -> None:
    """No case of the corpus; from the same specification ("Utilities", "Ping")."""
    script = [{"expect": "tools/call", "then": "never_answer"}]
    given: Case = {"name": "slow", "protocol": "2025-11-25", "tools": ["scan"], "script": script}
    async with ScriptedMcp(given) as server, tooled(over_http("slow", server.url, timeout_sec=0.5)) as conversation:
        await conversation.until_offered("scan")
        await conversation.begin(("scan", {}))
        await conversation.talk.read(lambda event: shown([event]) == ["scan"])
        await server.ping()
        [result] = await conversation.end()
        assert result.startswith("Error")
