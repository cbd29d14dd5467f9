"""A client of OpenAI's streaming chat completions API, which most LLM servers speak. Holds no history, runs no tools.

What the server's bytes mean is decided in `stream.py`; whether a failed request is tried again in `retry.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any

import aiohttp

from echokit_py.config.settings import OpenAiChatLlm
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.http import HttpClient
from echokit_py.llm.base import LlmEvent, Message, Tool
from echokit_py.llm.stream import ChatStream, Outcome

PROBE_S = 30  # a local model may have to be loaded first; who checks a configuration can wait that long
PROBE: list[Message] = [{"role": "user", "content": "Say OK."}]
# A body that ends right after its last event leaves its connection to the next request, which saves a TLS handshake
# (50 to 150 ms). Servers that hold the body open longer don't get to delay the turn.
END_GRACE_S = 0.05


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
        self._http = http
        self._url = url
        self._api_key = api_key
        self._model = model
        self._extra = extra

    async def start(self) -> None:
        """Nothing to prepare: connections are opened when they are needed."""

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AsyncGenerator[LlmEvent, None]:
        """Ask for one answer: deltas as they come, then a `Step`. Never asks twice.

        Closing the generator or cancelling closes the connection. Raises BackendError.
        """
        reader = ChatStream(tools)
        outcome: Outcome | None = None
        broken: BackendError | None = None
        try:
            body = request_body(self._model, self._extra, messages, tools)
            async with self._post(body) as response, aclosing(_read(response, reader)) as events:
                async for event in events:
                    yield event
                outcome = reader.close(clean=True)
                for event in outcome.rest:
                    yield event
                if outcome.error is not None:
                    raise outcome.error  # in here, where `http` hides a key that the server repeats
        except BackendError as error:
            if outcome is not None or error.kind is not ErrorKind.BROKEN_OFF:
                raise
            broken = error
        if outcome is None:  # the answer may be whole all the same
            outcome = reader.close(clean=False)
            for event in outcome.rest:
                yield event
            if outcome.error is not None:
                raise outcome.error from broken
        yield outcome.step

    def _post(self, body: object) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        url = self._url if isinstance(self._url, str) else self._url()
        return self._http.post(Stage.LLM, url, key=self._api_key, json=body, accept="text/event-stream")

    async def probe(self) -> str:
        """Wait for the first token of an answer to a short prompt. Raises BackendError."""
        try:
            async with asyncio.timeout(PROBE_S), aclosing(self.stream(PROBE)) as events:
                await anext(events)
        except TimeoutError:
            raise BackendError(Stage.LLM, ErrorKind.TIMEOUT, f"no answer within {PROBE_S} s") from None
        return f"model {self._model} answers" if self._model else "the server's own model answers"

    async def close(self) -> None:
        """Nothing to do: the connections belong to `http`."""


def request_body(
    model: str, extra: Mapping[str, Any], messages: Sequence[Message], tools: Sequence[Tool]
) -> dict[str, Any]:
    """Return the body of a streaming request (OpenAI's reference, "Create chat completion")."""
    offered = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in tools
    ]
    configured = extra.get("tools")
    offered += configured if isinstance(configured, list) else []
    return {
        **({"model": model} if model else {}),
        **extra,
        **({"tools": offered} if offered else {}),
        "messages": list(messages),
        "stream": True,
    }


async def _read(response: aiohttp.ClientResponse, reader: ChatStream) -> AsyncGenerator[LlmEvent, None]:
    """Read the body as far as it says something; yield the deltas."""
    async for chunk in response.content.iter_any():
        for event in reader.feed(chunk):
            yield event
        if reader.done:
            await _let_end(response)
            return


async def _let_end(response: aiohttp.ClientResponse) -> None:
    """Read the rest of a body whose last event is read, for a moment."""
    try:
        async with asyncio.timeout(END_GRACE_S):
            while await response.content.readany():
                pass
    except (TimeoutError, aiohttp.ClientError, ConnectionError):
        pass  # the answer is complete; leaving the block closes the connection


def build(settings: OpenAiChatLlm, *, http: HttpClient, models: object) -> OpenAiChat:
    """Return the client that `[llm] platform = "openai_chat"` describes; it needs no model files."""
    return OpenAiChat(
        http,
        url=settings.url,
        api_key=settings.api_key.get_secret_value(),
        model=settings.model,
        extra=settings.extra,
    )
