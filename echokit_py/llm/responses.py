"""A client of OpenAI's Responses API, streaming and stateless. Holds no history, runs no tools.

Our own history goes along with each request: nothing is stored at the server, and no `previous_response_id` can go
stale. How a request is made and its answer read is `request.py`; what the server's bytes mean `stream.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from echokit_py.config.settings import OpenAiResponsesLlm
from echokit_py.http import HttpClient
from echokit_py.llm import request
from echokit_py.llm.base import LlmEvent, Message, Step, Tool
from echokit_py.llm.offer import Offers
from echokit_py.llm.responses_input import Item, to_input, to_tools
from echokit_py.llm.stream import ResponsesStream

MAX_KEPT_CALLS = 512
"""Calls whose reasoning is kept, of all devices together: fifty devices, each in a long tool loop."""

MAX_KEPT_CHARS = 8_000_000
"""Of encrypted reasoning, all together. A thought of 1,000 tokens takes about 6,000 characters."""


class OpenAiResponses:
    """A Responses endpoint, shared by all devices.

    Encrypted reasoning that a server sends goes back to it within the tool loop of the turn, as OpenAI asks of
    stateless clients. It is never asked for: models that don't reason, and servers that don't know it, refuse a
    request that does. Who wants it writes `include = ["reasoning.encrypted_content"]` into `extra`.

    Args:
        http: the connections.
        url: the full address of the endpoint.
        api_key: sent as bearer token; "" sends none.
        model: "" leaves the choice to the server.
        instructions: what is sent when the messages hold no system prompt; "" sends none.
        extra: merged into each request's body; wins over what stands there, but for `input` and `stream`. Its `tools`
            (run by the server, such as web_search) are added to those offered.
    """

    def __init__(
        self, http: HttpClient, *, url: str, api_key: str, model: str, instructions: str, extra: Mapping[str, Any]
    ) -> None:
        self._endpoint = request.Endpoint(http, url=url, api_key=api_key)
        self._model = model
        self._instructions = instructions
        self._offers = Offers(to_tool, extra)
        self._reasoning = KeptReasoning()

    async def start(self) -> None:
        """Nothing to prepare: connections are opened when they are needed."""

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AsyncGenerator[LlmEvent, None]:
        """Ask for one answer: deltas as they come, then a `Step`. Never asks twice.

        Closing the generator or cancelling closes the connection. Raises BackendError.
        """
        instructions, items = to_input(messages, self._reasoning.by_call)
        members = await self._offers.members(tools)
        body = request_body(self._model, members, instructions or self._instructions, items)
        reader = ResponsesStream(tools)
        async with aclosing(self._endpoint.stream(body, reader)) as events:
            async for event in events:
                if isinstance(event, Step):
                    self._reasoning.keep(reader.reasoning)
                yield event

    async def probe(self) -> str:
        """Wait for the first token of an answer to a short prompt. Raises BackendError."""
        return await request.probe(self.stream(request.PROBE), self._model)

    async def close(self) -> None:
        """Nothing to do: the connections belong to `http`."""


class KeptReasoning:
    """Encrypted reasoning, until the calls that it led to are answered. Bounded: the oldest goes first.

    What is lost costs the model a thought, and nothing else. `by_call`: call id → items.
    """

    def __init__(self) -> None:
        self.by_call: OrderedDict[str, Sequence[Item]] = OrderedDict()
        self._size = 0

    def keep(self, reasoning: Mapping[str, Sequence[Item]]) -> None:
        """Take in what one answer brought. A call id that comes twice belongs to nobody from then on: servers that
        count their calls from 0 would mix up the thoughts of two devices."""
        for call_id, items in reasoning.items():
            before = self.by_call.get(call_id)
            kept = items if before is None else ()
            self.by_call[call_id] = kept
            self._size += _size(kept) - _size(before or ())
        while len(self.by_call) > MAX_KEPT_CALLS or self._size > MAX_KEPT_CHARS:
            self._size -= _size(self.by_call.popitem(last=False)[1])


def _size(items: Sequence[Item]) -> int:
    thoughts = sum(len(item["encrypted_content"]) for item in items)
    return thoughts + sum(len(part["text"]) for item in items for part in item["summary"])


def to_tool(tool: Tool) -> Item:
    """Return a tool in the form of this API."""
    return to_tools([tool])[0]


def request_body(model: str, members: Mapping[str, Any], instructions: str, items: Sequence[Item]) -> dict[str, Any]:
    """Return the body of a streaming request (OpenAI's reference, "Create a model response").

    `members`: those of the configuration, with the tools offered (`Offers`).
    """
    return {
        **({"model": model} if model else {}),
        **({"instructions": instructions} if instructions else {}),
        "store": False,
        **members,
        "input": list(items),
        "stream": True,
    }


def build(settings: OpenAiResponsesLlm, *, http: HttpClient, models: object) -> OpenAiResponses:
    """Return the client that `[llm] platform = "openai_responses"` describes; it needs no model files."""
    return OpenAiResponses(
        http,
        url=settings.address,
        api_key=settings.api_key.get_secret_value(),
        model=settings.model,
        # System prompts override them, also where a form of the history for odd servers leaves them out.
        instructions="" if settings.sys_prompts else settings.instructions,
        extra=settings.extra,
    )
