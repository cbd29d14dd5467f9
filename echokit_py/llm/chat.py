"""A client of OpenAI's streaming chat completions API, which most LLM servers speak. Holds no history, runs no tools.

How a request is made and its answer read is `request.py`; what the server's bytes mean `stream.py`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from echokit_py.config.settings import OpenAiChatLlm
from echokit_py.http import HttpClient
from echokit_py.llm import request
from echokit_py.llm.base import LlmEvent, Message, Tool
from echokit_py.llm.offer import Offers
from echokit_py.llm.stream import ChatStream


class OpenAiChat:
    """A chat completions endpoint, shared by all devices.

    Args:
        http: the connections.
        url: the full address of the endpoint, or a function that tells it when a request is made.
        api_key: sent as bearer token; "" sends none.
        model: "" leaves the choice to the server.
        extra: merged into each request's body; wins over what stands there, but for `messages` and `stream`. Its
            `tools` (run by the server) are added to those offered.
    """

    def __init__(
        self, http: HttpClient, *, url: Callable[[], str] | str, api_key: str, model: str, extra: Mapping[str, Any]
    ) -> None:
        self._endpoint = request.Endpoint(http, url=url, api_key=api_key)
        self._model = model
        self._offers = Offers(to_tool, extra)

    async def start(self) -> None:
        """Nothing to prepare: connections are opened when they are needed."""

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AsyncGenerator[LlmEvent, None]:
        """Ask for one answer: deltas as they come, then a `Step`. Never asks twice.

        Closing the generator or cancelling closes the connection. Raises BackendError.
        """
        body = request_body(self._model, await self._offers.members(tools), messages)
        async with aclosing(self._endpoint.stream(body, ChatStream(tools))) as events:
            async for event in events:
                yield event

    async def probe(self) -> str:
        """Wait for the first token of an answer to a short prompt. Raises BackendError."""
        return await request.probe(self.stream(request.PROBE), self._model)

    async def close(self) -> None:
        """Nothing to do: the connections belong to `http`."""


def to_tool(tool: Tool) -> dict[str, Any]:
    """Return a tool in the form of this API (OpenAI's reference, "Create chat completion", `tools`)."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def request_body(model: str, members: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, Any]:
    """Return the body of a streaming request (OpenAI's reference, "Create chat completion").

    `members`: those of the configuration, with the tools offered (`Offers`).
    """
    return {
        **({"model": model} if model else {}),
        **members,
        "messages": list(messages),
        "stream": True,
    }


def build(settings: OpenAiChatLlm, *, http: HttpClient, models: object) -> OpenAiChat:
    """Return the client that `[llm] platform = "openai_chat"` describes; it needs no model files."""
    return OpenAiChat(
        http,
        url=settings.url,
        api_key=settings.api_key.get_secret_value(),
        model=settings.model,
        extra=settings.extra,
    )
