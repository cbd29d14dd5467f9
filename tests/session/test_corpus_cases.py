"""Public bug reports as turns of a running server: scripted LLM and tools behind it, driven over /ws.

The data stand beside the checkout (../shared/corpus) and are not part of it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from echokit_py.config.settings import Timeouts
from echokit_py.llm.message_rules import check
from echokit_py.llm.responses import OpenAiResponses
from echokit_py.tools.base import ToolResult
from firmware_protocol.events import EndAudio, ServerEvent
from tests.beside import Case, cases, needs_corpus
from tests.fakes.chat_server import Answer, ChatServer, call, event, say, status
from tests.fakes.responses_server import ResponsesServer
from tests.fakes.responses_server import call as call_in_items
from tests.fakes.responses_server import say as say_in_items
from tests.fakes.talking import Bench, Build, Talk, chat_client, sorry, spoken, talking

pytestmark = needs_corpus


def streams() -> list[Case]:
    return [case for case in cases("sse", "toolcall") if "llm_script" not in case["input"]]


def scripts() -> list[Case]:
    return [case for case in cases("toolcall") if "llm_script" in case["input"]]


def recorded(given: Case) -> Answer:
    """The body that a case describes."""
    if "wire_chunks_b64" in given:
        pieces = [base64.b64decode(chunk) for chunk in given["wire_chunks_b64"]]
    else:
        pieces = [event(payload) for payload in given["payloads"]]
    return Answer(pieces, end="clean" if given["end"] == "clean" else "reset")


@asynccontextmanager
async def server_for(api: str, *answers: Answer, bench: Bench, **options: Any) -> AsyncIterator[tuple[Any, Talk]]:
    """A scripted server of the API, and a conversation with it."""
    server: ChatServer | ResponsesServer
    server = ChatServer(*answers) if api == "chat" else ResponsesServer(*answers)
    async with server:
        build: Build = chat_client(server.url)
        if api == "responses":
            build = lambda http: OpenAiResponses(  # noqa: E731
                http, url=server.url, api_key="", model="m", instructions="", extra={}
            )
        async with talking(build, bench, **options) as talk:
            yield server, talk


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("case", streams(), ids=lambda case: str(case["id"]))
async def test_an_answer_over_the_socket(case: Case) -> None:
    given, expected = case["input"], case["expect"]
    api = given["api"]
    healthy = say("All well.") if api == "chat" else say_in_items("All well.")
    fails = expected["turn"] in {"failed", "empty"}
    answers = [recorded(given)] if fails else [recorded(given), healthy]
    async with server_for(api, *answers, bench=Bench().offer(*given["tools"])) as (server, talk):
        heard = await talk.ask()
        assert_dispatch(talk, expected)
        assert_speech(heard, expected)
        asked = json.dumps([request.json for request in server.requests], ensure_ascii=False)
        assert not [text for text in expected.get("must_not_contain", []) if text in asked + str(spoken(heard))]
        if not fails and (expected["dispatch"] or expected["refused"]):
            assert_told(server.requests[1].json, expected)
            assert_shape(server.requests[1].json.get("messages", []), expected)
        server.answers = [healthy]
        assert spoken(await talk.ask()) == ["All well."]
        assert server.faults == []
        assert_nothing_added(talk.next_request(), expected)


def assert_dispatch(talk: Talk, expected: Case) -> None:
    wanted = [(call["name"], call["arguments"]) for call in expected["dispatch"]]
    assert sorted(map(repr, talk.tools.called)) == sorted(map(repr, wanted))
    for forbidden in expected.get("must_not_dispatch", []):
        assert (forbidden["name"], forbidden["arguments"]) not in talk.tools.called


def assert_speech(heard: list[ServerEvent], expected: Case) -> None:
    text = " ".join(spoken(heard))
    assert squeezed(text).startswith(squeezed(expected["text"]))
    for number, sentence in enumerate(expected.get("spoken", [])):
        assert spoken(heard)[number].strip() == sentence.strip()
    assert sorry(heard) is bool(expected.get("spoken_fallback"))
    assert not [word for word in expected.get("must_not_speak", []) if word in text]


def assert_told(body: Case, expected: Case) -> None:
    """What the model reads of its calls in the request after them."""
    messages = body.get("messages") or body["input"]
    results = [message for message in messages if message.get("role") == "tool" or "output" in message]
    ids = [message.get("tool_call_id") or message.get("call_id") for message in results]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    assert {call["id"] for call in expected["dispatch"]} - {"*"} <= set(ids)
    told = json.dumps(messages)
    assert all(word in told for word in expected.get("tool_message_contains", []))


def assert_shape(messages: list[Case], expected: Case) -> None:
    for wanted in expected.get("history_shape", []):
        assert any(fits(message, wanted) for message in messages), wanted


def assert_nothing_added(messages: list[Case], expected: Case) -> None:
    if expected.get("history_adds_assistant") is False or "history_empty_assistant" in expected:
        assert [message["role"] for message in messages].count("assistant") == 1  # the healthy turn's


def fits(message: Case, wanted: Case) -> bool:
    """Whether a message is as a shape of the corpus wants it."""
    content = str(message.get("content") or "")
    return all(
        [
            message["role"] == wanted["role"],
            wanted.get("contains", "") in content,
            wanted.get("content", content) == content,
            wanted.get("tool_call_id") == message.get("tool_call_id") or "tool_call_id" not in wanted,
            wanted.get("tool_call_ids") == [call["id"] for call in message.get("tool_calls", [])]
            or "tool_call_ids" not in wanted,
            wanted.get("reasoning_content") == message.get("reasoning_content") or "reasoning_content" not in wanted,
        ]
    )


@pytest.mark.parametrize("case", scripts(), ids=lambda case: str(case["id"]))
async def test_a_model_that_goes_on(case: Case) -> None:
    given, expected = case["input"], case["expect"]
    bench = Bench().offer(*given["tools"])
    for name, entries in given["tool_script"].items():
        bench.results[name] = [ToolResult(entry["text"], entry.get("is_error", False)) for entry in entries]
    step = iter(range(given["llm_script"]["turns"]))

    def answer(_: Case) -> Answer:
        number = next(step)
        cycle = given["llm_script"]["cycle"]
        calls = [
            (f"c{number}-{place}", entry["name"], json.dumps(entry["arguments"]).replace("$turn", str(number)))
            for place, entry in enumerate(cycle[number % len(cycle)])
        ]
        return call(*calls)

    rounds = given["config"]["max_tool_rounds"]
    async with ChatServer(answer) as server, talking(chat_client(server.url), bench, rounds=rounds) as talk:
        assert sorry(await talk.ask()) is expected["spoken_fallback"]
        assert max(Counter(map(repr, bench.called)).values()) <= expected["max_identical_dispatches"]
        assert len(server.requests) <= expected["max_llm_requests"]
        assert server.faults == []
        talk.next_request()


# --- http ------------------------------------------------------------------------------------------------------------


def answers_of(given: Case) -> list[Answer]:
    found = []
    for entry in given["responses"]:
        pieces = [event(payload) for payload in entry["payloads"]] if "payloads" in entry else [entry["body"].encode()]
        end = {"stall": "hang", "reset": "reset"}.get(entry.get("end", ""), "clean")
        found.append(
            Answer(pieces, entry["status"], entry["content_type"], entry.get("headers", {}), end)  # type: ignore[arg-type]
        )
    return found


def generated(spec: Case) -> list[Case]:
    """Past turns as a case describes them."""
    messages: list[Case] = []
    for number in range(spec["pairs"]):
        messages.append({"role": "user", "content": f"Question {number}: ".ljust(spec["chars_each"], "q")})
        if number % 3 == 0 and spec.get("every_third_with_tool_call"):
            function = {"name": "get_weather", "arguments": "{}"}
            calls = [{"id": f"h{number}", "type": "function", "function": function}]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            messages.append({"role": "tool", "tool_call_id": f"h{number}", "content": "rain"})
        messages.append({"role": "assistant", "content": f"Answer {number}: ".ljust(spec["chars_each"], "a")})
    return messages


@pytest.mark.parametrize("case", cases("http"), ids=lambda case: str(case["id"]))
async def test_answers_of_the_server(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    given, expected = case["input"], case["expect"]
    for variant in given.get("variants", [given]):
        async with ChatServer(*answers_of(variant)) as server:
            limits = Timeouts(between_bytes_s=0.3) if "idle_timeout_ms" in given.get("config", {}) else None
            async with talking(chat_client(server.url), timeouts=limits) as talk:
                if "history" in given:
                    talk.remember(generated(given["history"]["generate"]))
                heard = await talk.ask(given["user"])
                assert_http(server, heard, expected.get("each", expected))
                if "next_utterance" in given:
                    heard = await talk.ask(given["next_utterance"]["text"])
                    assert spoken(heard) == expected["next_turn"]["spoken"]
                server.answers = [say("All well.")]
                assert spoken(await talk.ask()) == ["All well."]
                assert server.faults == []
                assert_nothing_added(talk.next_request(), expected.get("each", expected))
        if "min_gap_ms" in expected:  # how exactly it is kept is tested in tests/llm/test_retry.py
            assert f"next in {expected['min_gap_ms'][0] / 1000:.1f} s" in caplog.text


def assert_http(server: ChatServer, heard: list[ServerEvent], expected: Case) -> None:
    assert spoken(heard) == expected.get("spoken", spoken(heard))
    assert len(server.requests) == expected.get("requests", len(server.requests))
    starts = expected.get("spoken_starts_with", [])
    assert spoken(heard)[: len(starts)] == starts
    assert sorry(heard) is bool(expected.get("spoken_fallback") or starts)
    assert not [word for word in expected.get("must_not_speak", []) if word in str(spoken(heard))]
    if second := expected.get("second_request"):
        messages = server.requests[1].messages
        assert second["min_messages"] <= len(messages) < len(server.requests[0].messages)
        assert messages[0]["role"] == second["first_role"]
        assert messages[-1]["content"] == second["last_user"]
        assert check(messages) == []


# --- history ---------------------------------------------------------------------------------------------------------


def past(given: Case) -> tuple[str, list[Case], str]:
    """The system prompt, the messages that were stored, and the question that stands at the end of them."""
    messages = list(given["messages"])
    system = messages.pop(0)["content"] if messages and messages[0]["role"] == "system" else "Be brief."
    question = messages.pop()["content"] if messages and messages[-1]["role"] == "user" else ""
    return system, messages, question


class Story:
    """Tells the events of a case: what the model does in a turn, what the user does, what runs."""

    def __init__(self, talk: Talk, server: Any) -> None:
        self.talk, self.server = talk, server

    async def tell(self, events: list[Case]) -> None:
        for number, happened in enumerate(events):
            if "user" in happened:
                self.server.answers = [self.answer(events[number + 1 :])]
                await self.talk.type(happened["user"])
                if "user" not in str(events[number + 1 :]) or "llm_http" in str(events[number + 1 : number + 2]):
                    await self.talk.read()
            elif "tool_started" in happened:
                async with asyncio.timeout(10):
                    await self.talk.tools.started.wait()
            elif "played_sentence" in happened:
                await self.played(happened["played_sentence"])
            elif "barge_in" in happened:
                await self.talk.interrupt()

    def answer(self, following: list[Case]) -> Answer:
        """What the model answers to the question that these events follow."""
        chat = isinstance(self.server, ChatServer)
        if following:
            happened = following[0]
            if "llm_calls" in happened:
                calls = [
                    (entry["id"], entry["name"], json.dumps(entry["arguments"])) for entry in happened["llm_calls"]
                ]
                for entry in happened["llm_calls"]:
                    self.talk.tools.gates[entry["name"]] = asyncio.Event()
                return call(*calls) if chat else call_in_items(*calls)
            if "llm_text" in happened:
                self.talk.made.tts.fails = lambda text: not happened["llm_text"].startswith(text)
                self.talk.made.tts.gate = asyncio.Event()
                return say(happened["llm_text"])
            if "llm_http" in happened:
                return status(happened["llm_http"]["status"], happened["llm_http"]["body"])
        self.talk.made.tts.gate = None
        return say("All well.") if chat else say_in_items("All well.")

    async def played(self, sentence: str) -> None:
        """Wait until the board has played it."""
        await self.talk.read(lambda event: event == EndAudio())
        turn = self.talk.devices.session("board")._turn
        assert turn is not None
        async with asyncio.timeout(10):
            while turn.playout.heard(time.monotonic()) != sentence:
                await asyncio.sleep(0.005)


@pytest.mark.parametrize("case", cases("history"), ids=lambda case: str(case["id"]))
async def test_the_next_request(case: Case) -> None:
    given, expected = case["input"], case["expect"]
    system, messages, question = past(given)
    bench = Bench().offer("get_weather", "set_light", "lock_door", "run_report")
    api = given.get("api", "chat")
    turns = 0 if "max_messages" in given else 10
    async with server_for(api, bench=bench, system=system, history_turns=turns) as (server, talk):
        talk.remember(messages)
        if "llm_stream" in given:
            bench.results = {name: [entry["text"] for entry in script] for name, script in given["tool_script"].items()}
            healthy = say("All well.")
            server.answers = [Answer([event(payload) for payload in given["llm_stream"]]), healthy]
        if question:
            heard = str(spoken(await talk.ask(question)))
            assert not [word for word in expected.get("must_not_speak", []) if word in heard]
        await Story(talk, server).tell(given.get("events", []))
        assert server.faults == []
        assert_request(server.requests[-1].json, expected)


def assert_request(body: Case, expected: Case) -> None:
    if "items_any_of" in expected:
        items = [{"type": "message", **item} if "role" in item else item for item in body["input"]]
        assert any(all_fit(items, shape, fits_item) for shape in expected["items_any_of"]), items
        return
    messages = body["messages"]
    assert check(messages) == []
    if "any_of" in expected:
        assert any(all_fit(messages, shape, fits) for shape in expected["any_of"]), messages
    if "last" in expected:
        assert fits(messages[-1], expected["last"])
    assert len(messages) <= expected.get("max_len", len(messages))
    assert not [text for text in expected.get("must_not_contain", []) if text in json.dumps(messages)]
    if call_id := expected.get("tool_message_not_success"):
        [told] = [message["content"] for message in messages if message.get("tool_call_id") == call_id]
        assert "not known" in told


def all_fit(found: list[Case], shape: list[Case], one: Any) -> bool:
    return len(found) == len(shape) and all(one(item, wanted) for item, wanted in zip(found, shape, strict=True))


def fits_item(item: Case, wanted: Case) -> bool:
    same = all(item.get(key) == wanted[key] for key in ("type", "role", "call_id") if key in wanted)
    return same and wanted.get("contains", "") in json.dumps(item.get("content", ""))
