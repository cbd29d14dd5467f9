"""The time of a real MCP server, asked for by other kinds of model: over the Responses API, and by llama.cpp."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from echokit_py.asr.faster_whisper import build as build_asr
from echokit_py.config.settings import FasterWhisperAsr, PiperTts
from echokit_py.device.client import Board
from echokit_py.http import HttpClient
from echokit_py.llm.base import Llm, Message
from echokit_py.llm.responses import OpenAiResponses
from echokit_py.mcp.source import McpTools
from echokit_py.models.store import ModelStore
from echokit_py.tts.piper import build as build_tts
from echokit_py.vad.silero import build as build_vad
from tests.beside import spoken_texts
from tests.e2e.conftest import load_recording
from tests.fakes.responses_server import ResponsesServer, call, say
from tests.fakes.scripted_server import Answer
from tests.fakes.talking import chat_client, shown, sorry, spoken, talking
from tests.mcp_servers.foreign import CannotBeHad, time_server
from tests.mcp_servers.talk import bench_of, from_command, source_of, until
from tests.session.test_llama_cpp_tools import EXTRA, PATIENT
from tests.session.test_llama_cpp_tools import server as llama_cpp  # noqa: F401  # a fixture

pytestmark = [pytest.mark.models, pytest.mark.timeout(400)]

QUESTION = "What time is it in Paris?"
PARIS = {"timezone": "Europe/Paris"}


@pytest.fixture
async def clock() -> AsyncIterator[McpTools]:
    """The one tool, once it is there."""
    try:
        command = time_server()
    except CannotBeHad as why:
        pytest.skip(str(why))
    async with source_of(from_command("time", command, allow=["get_current_time"])) as source:
        await until(lambda: len(source.tools()) == 1, "the tool")
        yield source


async def test_over_the_responses_api(clock: McpTools) -> None:
    def script(body: dict[str, Any]) -> Answer:
        outputs = [item["output"] for item in body["input"] if item.get("type") == "function_call_output"]
        if not outputs:
            return call(("c1", "get_current_time", json.dumps(PARIS)))
        return say(f"It is {json.loads(outputs[0])['datetime'][11:16]} in Paris.")

    async with ResponsesServer(script) as server:

        def build(http: HttpClient) -> Llm:
            return OpenAiResponses(http, url=server.url, api_key="", model="m", instructions="", extra={})

        async with talking(build, bench_of(clock)) as talk:
            heard = await talk.ask(QUESTION)
        [tool] = server.requests[0].json["tools"]
        assert (tool["type"], tool["name"]) == ("function", "get_current_time")
        result = json.loads(server.requests[1].input[-1]["output"])
        assert result["timezone"] == "Europe/Paris"
        assert shown(heard) == ["get_current_time"]
        assert spoken(heard) == [f"It is {result['datetime'][11:16]} in Paris."]
        assert server.faults == []


def example(number: int, city: str, zone: str, time: str) -> list[Message]:
    """A turn as it should be: SmolLM2 calls tools only after some."""
    function = {"name": "get_current_time", "arguments": json.dumps({"timezone": zone})}
    calls = [{"id": f"e{number}", "type": "function", "function": function}]
    result = {"timezone": zone, "datetime": f"2026-03-02T{time}:00+01:00"}
    return [
        {"role": "user", "content": f"What time is it in {city}?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": f"e{number}", "content": json.dumps(result)},
        {"role": "assistant", "content": f"It is {time} in {city}."},
    ]


EXAMPLES = (
    *example(1, "Berlin", "Europe/Berlin", "10:15"),
    *example(2, "New York", "America/New_York", "04:20"),
    *example(3, "Madrid", "Europe/Madrid", "11:31"),
)


@asynccontextmanager
async def local_voice() -> AsyncIterator[dict[str, Any]]:
    """Real VAD, recogniser and voice."""
    http, models = HttpClient(connect_s=5), ModelStore()
    made: dict[str, Any] = {
        "vad": build_vad(models=models),
        "asr": build_asr(FasterWhisperAsr(), http=http, models=models),
        "tts": build_tts(PiperTts(), http=http, models=models),
    }
    for provider in made.values():
        await provider.start()
    yield made
    for provider in made.values():
        await provider.close()
    await http.close()


@pytest.mark.skipif(not spoken_texts(), reason="the spoken sentences (shared/audio beside the checkout) are not here")
async def test_spoken_to_a_local_model(clock: McpTools, llama_cpp: tuple[str, str]) -> None:  # noqa: F811
    """All of it is real. What counts is what the server did: such a small model may make anything of the time that it
    is told."""
    url, key = llama_cpp
    build, tools = chat_client(url, key, **EXTRA), bench_of(clock)
    async with (
        local_voice() as voice,
        talking(build, tools, timeouts=PATIENT, system="", few_shot=EXAMPLES, **voice) as talk,
        Board(talk.url.removesuffix("board"), device_id="board", realtime=False, limit_s=300) as board,
    ):
        turn = await board.say(load_recording("joe_paris.wav"))
        heard = [event for _, event in turn.events]
        assert turn.asr == QUESTION
        assert turn.audio
        assert shown(heard)[:1] == ["get_current_time"]
        assert spoken(heard)
        assert not sorry(heard)
        told = talk.next_request()[len(EXAMPLES) :]
        assert [message["role"] for message in told[:3]] == ["user", "assistant", "tool"]
        [called] = told[1]["tool_calls"]
        assert json.loads(called["function"]["arguments"]) == PARIS
        assert json.loads(told[2]["content"])["timezone"] == "Europe/Paris"
