"""The bodies of HTTP answers, within bounds of size and time, with long MCP answers shrunk. Sends nothing."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable

import httpx2

from echokit_py.mcp.large import EventStream, LongAnswers, TooLong


class Events(httpx2.AsyncByteStream):
    """The body of an event stream, with long answers shrunk. `quiet`: a break looks like a normal end."""

    def __init__(
        self,
        response: httpx2.Response,
        answers: LongAnswers,
        deadline: float,
        *,
        on_break: Callable[[], None],
        quiet: bool = False,
    ) -> None:
        self._response = response
        self._events = EventStream(answers)
        self._deadline = deadline
        self._on_break = on_break
        self._quiet = quiet

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(_chunks(self._response))
        try:
            while (chunk := await self._next(chunks)) is not None:
                yield self._events.feed(chunk)
            yield self._events.flush()
        except (httpx2.TransportError, TooLong, TimeoutError) as error:
            if not self._quiet:
                self._on_break()
                raise httpx2.ReadError(f"the stream broke off: {type(error).__name__}") from None
        if self._quiet:
            self._on_break()

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        async with until(self._deadline):
            return await anext(chunks, None)

    async def aclose(self) -> None:
        await self._response.aclose()


def until(deadline: float) -> asyncio.Timeout:
    return asyncio.timeout_at(None if math.isinf(deadline) else deadline)


def _chunks(response: httpx2.Response) -> AsyncIterator[bytes]:
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    return aiter(response.stream)


async def read_body(response: httpx2.Response, limit: int) -> bytes:
    """Read the whole body and close the response. Raises TooLong."""
    body = bytearray()
    try:
        async for chunk in _chunks(response):
            body += chunk
            if len(body) > limit:
                raise TooLong
    finally:
        await response.aclose()
    return bytes(body)


def with_body(response: httpx2.Response, content: bytes | httpx2.AsyncByteStream) -> httpx2.Response:
    """The same answer with another body."""
    headers = [
        (name, value)
        for name, value in response.headers.multi_items()
        if name.lower() not in {"content-length", "transfer-encoding"}
    ]
    if isinstance(content, bytes):
        return httpx2.Response(response.status_code, headers=headers, content=content)
    return httpx2.Response(response.status_code, headers=headers, stream=content, extensions=response.extensions)
