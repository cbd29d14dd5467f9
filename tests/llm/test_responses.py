"""The Responses client against a scripted server on a real socket: what is its own, above all its requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from echokit_py.config.settings import OpenAiResponsesLlm
from echokit_py.errors import ErrorKind
from echokit_py.http import HttpClient
from echokit_py.http.body import encode
from echokit_py.llm import responses
from echokit_py.llm.base import ReasoningDelta, Refusal, Step, TextDelta, ToolCall
from echokit_py.llm.history import History
from echokit_py.llm.offer import Offers
from echokit_py.llm.responses import KeptReasoning, build, request_body, to_tool
from echokit_py.llm.responses_input import Item
from echokit_py.llm.stream import ResponsesStream
from tests.beside import STREAMS, needs_corpus
from tests.fakes.responses_server import (
    ResponsesServer,
    Stream,
    call,
    say,
)
from tests.fakes.scripted_server import Answer
from tests.llm.apis import HI, LIGHT, ask, step_of, text_of
from tests.llm.apis import responses as client


async def test_an_answer(http: HttpClient) -> None:
    async with ResponsesServer(say("Hello", " there.", reasoning="A greeting.")) as server:
        events, error = await ask(client(http, server, "s3cret"))
        assert error is None
        assert events == [
            ReasoningDelta("A greeting."),
            TextDelta("Hello"),
            TextDelta(" there."),
            Step("Hello there.", "A greeting.", "stop"),
        ]
        [got] = server.requests
        assert got.json == {
            "model": "gpt",
            "instructions": "You are helpful.",
            "input": [{"type": "message", "role": "user", "content": "Hi"}],
            "store": False,
            "stream": True,
        }
        assert got.headers["Authorization"] == "Bearer s3cret"
        assert got.headers["Accept"] == "text/event-stream"


async def test_a_system_prompt_overrides_the_instructions(http: HttpClient) -> None:
    async with ResponsesServer() as server:
        await ask(client(http, server), messages=[{"role": "system", "content": "Be brief."}, *HI])
        assert server.requests[0].json["instructions"] == "Be brief."
        assert "Authorization" not in server.requests[0].headers


async def test_a_tool_call_its_output_and_the_answer(http: HttpClient) -> None:
    script = [call(("call_7", "set_light", '{"room": "hall"}'), text="Sure. ", size=1), say("Done.")]
    async with ResponsesServer(*script) as server:
        llm, history = client(http, server), History()
        history.begin_turn("Light!")
        step = step_of((await ask(llm, LIGHT, messages=history.render()))[0])
        assert (step.calls, step.text) == ((ToolCall("call_7", "set_light", '{"room": "hall"}'),), "Sure. ")
        assert step.finish_reason == "tool_calls"
        history.add_step(step.text, step.calls, step.reasoning)
        history.add_result("call_7", "The light is on.")
        events, error = await ask(llm, LIGHT, messages=history.render())
        assert (text_of(events), error) == ("Done.", None)
        assert server.requests[1].input[1:] == [
            {"type": "message", "role": "assistant", "content": "Sure."},
            {"type": "function_call", "call_id": "call_7", "name": "set_light", "arguments": '{"room": "hall"}'},
            {"type": "function_call_output", "call_id": "call_7", "output": "The light is on."},
        ]
        offered = {"name": "set_light", "description": "Switch a light.", "parameters": LIGHT.parameters}
        assert server.requests[0].json["tools"] == [{"type": "function", **offered, "strict": False}]


async def test_encrypted_reasoning_goes_back_within_the_turn(http: HttpClient) -> None:
    script = [call(("call_7", "set_light", "{}"), encrypted="SECRET"), say("Done."), say("Bye.")]
    async with ResponsesServer(*script) as server:
        llm, history = client(http, server, include=["reasoning.encrypted_content"]), History()
        history.begin_turn("Light!")
        step = step_of((await ask(llm, LIGHT, messages=history.render()))[0])
        history.add_step(step.text, step.calls)
        history.add_result("call_7", "On.")
        step = step_of((await ask(llm, LIGHT, messages=history.render()))[0])
        history.add_step(step.text)
        history.commit()
        history.begin_turn("Thanks!")
        assert text_of((await ask(llm, LIGHT, messages=history.render()))[0]) == "Bye."
        kept = {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": "SECRET"}
        assert server.requests[0].json["include"] == ["reasoning.encrypted_content"]
        assert [item for item in server.requests[1].input if item["type"] == "reasoning"] == [kept]
        assert server.requests[1].input.index(kept) == 1
        assert [item for item in server.requests[2].input if item["type"] == "reasoning"] == []
        assert server.faults == []


async def test_a_simpler_form_of_the_history_has_no_reasoning(http: HttpClient) -> None:
    """A gateway that spreads requests over several accounts can't decrypt what another one wrote, and refuses."""
    async with ResponsesServer(call(("call_7", "set_light", "{}"), encrypted="SECRET"), say("Done.")) as server:
        llm, history = client(http, server), History()
        history.begin_turn("Light!")
        history.add_step("", step_of((await ask(llm, LIGHT, messages=history.render()))[0]).calls)
        for form in history.forms():
            await ask(llm, LIGHT, messages=form.messages)
        with_reasoning = [any(item["type"] == "reasoning" for item in one.input) for one in server.requests[1:]]
        assert with_reasoning == [True, *([False] * (len(with_reasoning) - 1))]
        assert len(with_reasoning) >= 3


async def test_tools_of_the_server_pass_by(http: HttpClient) -> None:
    stream = Stream()
    stream.reasoning("Look it up.", "")
    stream.web_search("weather in Oslo")
    stream.mcp("get_weather", '{"city": "Oslo"}', "-3 °C")
    stream.message("It is cold", " in Oslo.")
    search = [{"type": "web_search_preview"}, {"type": "mcp", "server_label": "home", "server_url": "https://mcp"}]
    async with ResponsesServer(stream.completed()) as server:
        events, error = await ask(client(http, server, tools=search), LIGHT)
        assert error is None
        assert step_of(events) == Step("It is cold in Oslo.", "Look it up.", "stop")
        assert [tool["type"] for tool in server.requests[0].json["tools"]] == ["function", "web_search_preview", "mcp"]
        assert server.requests[0].json["tools"][1:] == search


async def test_a_tool_of_the_server_and_one_of_ours_in_one_answer(http: HttpClient) -> None:
    stream = Stream()
    stream.call("call_1", "set_light", '{"room": "hall"}')
    stream.web_search("lamps")
    stream.call("call_2", "set_light", '{"room": "attic"}')
    async with ResponsesServer(stream.completed()) as server:
        step = step_of((await ask(client(http, server), LIGHT))[0])
        assert [(one.id, one.arguments) for one in step.calls] == [
            ("call_1", '{"room": "hall"}'),
            ("call_2", '{"room": "attic"}'),
        ]
        assert step.refused == ()


async def test_a_call_of_an_incomplete_answer_is_not_run(http: HttpClient) -> None:
    stream = Stream()
    stream.call("c1", "set_light", "{}")
    async with ResponsesServer(stream.incomplete()) as server:
        step = step_of((await ask(client(http, server), LIGHT))[0])
        assert (step.calls, [one.reason for one in step.refused]) == ((), [Refusal.TRUNCATED])
        assert step.finish_reason == "length"


async def test_extra_wins_but_for_input_and_stream() -> None:
    search = {"type": "web_search"}
    items: list[Item] = [{"type": "message", "role": "user", "content": "Hi"}]
    extra = {"model": "other", "store": True, "input": [], "stream": False, "tools": [search], "top_p": 0.1}
    members = await Offers(to_tool, extra).members([LIGHT])
    body: dict[str, Any] = json.loads(encode(request_body("m", members, "Be brief.", items)))
    assert (body["model"], body["store"], body["top_p"]) == ("other", True, 0.1)
    assert (body["input"], body["stream"], body["instructions"]) == (items, True, "Be brief.")
    assert [tool["type"] for tool in body["tools"]] == ["function", "web_search"]
    assert request_body("", await Offers(to_tool, {}).members([]), "", items) == {
        "store": False,
        "input": items,
        "stream": True,
    }


async def test_build(http: HttpClient) -> None:
    prompts = [{"role": "system", "content": "Be brief."}]
    async with ResponsesServer() as server:
        for more in ({}, {"instructions": "Be kind."}, {"sys_prompts": prompts}):
            settings = OpenAiResponsesLlm.model_validate(
                {"llm_responses_url": server.url, "api_key": "k", "extra": {"top_p": 0.5}, **more}
            )
            llm = build(settings, http=http, models=None)
            await llm.start()
            assert text_of((await ask(llm))[0]) == "Hello there."
            await llm.close()
        assert [got.json.get("instructions") for got in server.requests] == [
            "You are a helpful assistant.",
            "Be kind.",
            None,
        ]
        assert (server.requests[0].json["model"], server.requests[0].json["top_p"]) == ("gpt-4.1", 0.5)
        assert server.requests[0].headers["Authorization"] == "Bearer k"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://api.groq.com/openai/v1/chat/responses", "https://api.groq.com/openai/v1/responses"),
        ("https://api.groq.com/openai/v1/responses", "https://api.groq.com/openai/v1/responses"),
        ("https://example.org/openai/v1/chat/responses", "https://example.org/openai/v1/chat/responses"),
    ],
)
def test_the_address_of_groq_in_an_old_example(url: str, address: str) -> None:
    assert OpenAiResponsesLlm(url=url).address == address


async def test_the_fake_refuses_what_openai_refuses(http: HttpClient) -> None:
    async with ResponsesServer() as server:
        _, error = await ask(client(http, server, max_tokens=5))
        assert error is not None
        assert (error.kind, server.faults) == (ErrorKind.REFUSED, ["Unknown parameter: 'max_tokens'."])


# Kept reasoning


def thought(text: str, summary: str = "") -> Item:
    parts = [{"type": "summary_text", "text": summary}] if summary else []
    return {"type": "reasoning", "id": "rs", "summary": parts, "encrypted_content": text}


def test_reasoning_of_an_id_that_comes_twice_belongs_to_nobody() -> None:
    kept = KeptReasoning()
    kept.keep({"call_0": (thought("A"),)})
    assert list(kept.by_call["call_0"]) == [thought("A")]
    for text in ("B", "C"):
        kept.keep({"call_0": (thought(text),)})
        assert list(kept.by_call["call_0"]) == []


def test_the_oldest_reasoning_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "MAX_KEPT_CALLS", 2)
    monkeypatch.setattr(responses, "MAX_KEPT_CHARS", 100)
    kept = KeptReasoning()
    for call_id in "abc":
        kept.keep({call_id: (thought("x"),)})
    assert list(kept.by_call) == ["b", "c"]
    kept.keep({"d": (thought("x" * 60, "y" * 39),)})
    assert list(kept.by_call) == ["c", "d"]
    kept.keep({"e": (thought("x"),)})
    assert list(kept.by_call) == ["d", "e"]
    kept.keep({"f": (thought("x" * 101),)})
    assert list(kept.by_call) == []


def read(answer: Answer) -> ResponsesStream:
    reader = ResponsesStream(None)
    for piece in answer.pieces:
        assert isinstance(piece, bytes)
        reader.feed(piece)
    reader.close(clean=True)
    return reader


def test_which_reasoning_led_to_which_call() -> None:
    stream = Stream()
    stream.reasoning("First.", "A")
    stream.message("Well.")
    stream.reasoning("", "B")
    stream.call("c1", "f", "{}")
    stream.call("c2", "f", "{}")
    stream.reasoning("", "")  # not encrypted: no input
    stream.call("c3", "f", "{}")
    stream.reasoning("", "C")
    stream.call("c4", "f", "{}")
    stream.reasoning("", "D")
    answer = stream.completed()
    first = {"type": "reasoning", "id": "rs_0", "encrypted_content": "A"}
    expected = {
        "c1": (
            {**first, "summary": [{"type": "summary_text", "text": "First."}]},
            {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "B"},
        ),
        "c4": ({"type": "reasoning", "id": "rs_7", "summary": [], "encrypted_content": "C"},),
    }
    assert read(answer).reasoning == expected
    assert read(Answer(answer.pieces[-1:])).reasoning == expected  # where only the last event says all


def test_reasoning_without_an_id() -> None:
    stream = Stream()
    item = {"type": "reasoning", "id": None, "summary": None, "encrypted_content": "E"}
    stream.event("response.output_item.done", output_index=0, item=item)
    stream.call("c1", "f", "{}")
    kept = read(stream.completed()).reasoning
    assert kept == {"c1": ({"type": "reasoning", "summary": [], "encrypted_content": "E"},)}


@needs_corpus
def test_reasoning_as_openai_sends_it() -> None:
    reader = ResponsesStream(None)
    reader.feed((STREAMS / "recorded" / "openai-responses-4.sse").read_bytes())
    [(call_id, items)] = reader.reasoning.items()
    [called] = reader.close(clean=True).step.calls
    assert call_id == called.id
    assert [item["id"][:3] for item in items] == ["rs_"]
