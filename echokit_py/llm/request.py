"""A streaming request to an LLM server, whatever its API: posts the body, reads the answer. Knows no API's fields.

How tools are written is `offer.py`; what the answer's bytes mean is decided in `stream.py`, and whether a failed
request is tried again in `retry.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Protocol

import aiohttp

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.http import HttpClient
from echokit_py.llm.base import LlmEvent, Message
from echokit_py.llm.stream import Delta, Outcome

PROBE_S = 30  # a local model may have to be loaded first; who checks a configuration can wait that long
PROBE: list[Message] = [{"role": "user", "content": "Say OK."}]
# A body that ends right after its last event leaves its connection to the next request, which saves a TLS handshake
# (50 to 150 ms). Servers that hold the body open longer don't get to delay the turn.
END_GRACE_S = 0.05


class Reader(Protocol):
    """Reads one answer: `ChatStream` or `ResponsesStream`."""

    def feed(self, data: bytes, /) -> list[Delta]: ...

    @property
    def done(self) -> bool: ...

    def close(self, clean: bool) -> Outcome: ...


class Endpoint:
    """An address that answers with a stream of events.

    Args:
        http: the connections.
        url: the full address, or a function that tells it when a request is made.
        api_key: sent as bearer token; "" sends none.
    """

    def __init__(self, http: HttpClient, *, url: Callable[[], str] | str, api_key: str) -> None:
        self._http = http
        self._url = url
        self._api_key = api_key

    async def stream(self, body: Mapping[str, Any], reader: Reader) -> AsyncGenerator[LlmEvent, None]:
        """Post `body` as JSON; yield deltas as they come, then a `Step`. Never asks twice.

        `msgspec.Raw` in the body is JSON that is written already.
        Closing the generator or cancelling closes the connection. Raises BackendError.
        """
        outcome: Outcome | None = None
        broken: BackendError | None = None
        try:
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


async def probe(answer: AsyncGenerator[LlmEvent, None], model: str) -> str:
    """Wait for the first token of `answer`, which `PROBE` was asked for; say what answers. Raises BackendError."""
    try:
        async with asyncio.timeout(PROBE_S), aclosing(answer) as events:
            await anext(events)
    except TimeoutError:
        raise BackendError(Stage.LLM, ErrorKind.TIMEOUT, f"no answer within {PROBE_S} s") from None
    return f"model {model} answers" if model else "the server's own model answers"


async def _read(response: aiohttp.ClientResponse, reader: Reader) -> AsyncGenerator[LlmEvent, None]:
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
