"""The Responses client against llama.cpp's own server: it takes our input, tool steps too, and we its stream."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest

from echokit_py.errors import ModelError
from echokit_py.http import HttpClient
from echokit_py.llm.base import Step, TextDelta, Tool, ToolCall
from echokit_py.llm.history import History
from echokit_py.llm.llama_supervisor import LlamaServer, Options
from echokit_py.llm.responses import OpenAiResponses
from echokit_py.models.choose import PACKAGED_LLM
from echokit_py.models.store import ModelStore

pytestmark = pytest.mark.models

LIMIT_S = 60
TOOL = Tool("get_weather", "Tells the weather.", {"type": "object", "properties": {"city": {"type": "string"}}})


@pytest.fixture
async def llm() -> AsyncIterator[OpenAiResponses]:
    try:
        path = await ModelStore().path(PACKAGED_LLM)
    except ModelError as error:
        pytest.skip(f"no model to test with: {error}")
    options = Options(str(path), PACKAGED_LLM, context=1024, parallel=1, threads=1, api_key=secrets.token_urlsafe())
    server, http = LlamaServer(options), HttpClient(connect_s=5)
    async with asyncio.timeout(LIMIT_S):
        await server.start()
    url = server.chat_url().removesuffix("/chat/completions") + "/responses"
    extra = {"max_output_tokens": 24, "temperature": 0}
    yield OpenAiResponses(
        http, url=url, api_key=options.api_key, model=PACKAGED_LLM, instructions="Answer briefly.", extra=extra
    )
    await server.close()
    await http.close()


async def test_every_form_of_a_history_with_tool_steps_is_answered(llm: OpenAiResponses) -> None:
    history = History([{"role": "system", "content": "You are a weather assistant."}])
    history.begin_turn("Hello!")
    history.add_step("Hello. Which city?")
    history.commit()
    history.begin_turn("Oslo and Rome.")
    calls = [
        ToolCall(call_id, "get_weather", f'{{"city": "{city}"}}') for call_id, city in (("a", "Oslo"), ("b", "Rome"))
    ]
    history.add_step("One moment.", calls, "They want two.")
    history.add_result("a", "-3 degrees, snow")
    history.add_result("b", "21 degrees, sunny")
    for form in history.forms():
        async with asyncio.timeout(LIMIT_S):
            events = [event async for event in llm.stream(form.messages, [TOOL])]
        assert isinstance(events[-1], Step), form.name
        assert events[-1].finish_reason is not None
        said = "".join(event.text for event in events if isinstance(event, TextDelta))
        assert said == events[-1].text
        assert said or events[-1].calls or events[-1].refused, form.name


async def test_probe(llm: OpenAiResponses) -> None:
    assert PACKAGED_LLM in await llm.probe()
