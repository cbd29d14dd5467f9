"""Time-outs for streams: none may be silent for longer than it is allowed to. Holds no state between streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import aclosing
from typing import Any, TypeVar, cast

from echokit_py.errors import BackendError, ErrorKind, Stage

Item = TypeVar("Item")


def _silent(stage: Stage, seconds: float) -> BackendError:
    return BackendError(stage, ErrorKind.TIMEOUT, f"no answer for {seconds:g} s")


async def watched(
    stream: AsyncIterator[Item], stage: Stage, first_s: float, between_s: float
) -> AsyncGenerator[Item, None]:
    """Pass `stream` on. Raises BackendError (TIMEOUT) when the first item takes longer than `first_s` seconds, or a
    later one longer than `between_s`; the time that the consumer takes doesn't count. Closes `stream` at the end."""
    limit = first_s
    async with aclosing(cast(Any, stream)):
        while True:
            try:
                async with asyncio.timeout(limit):
                    item = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise _silent(stage, limit) from None
            yield item
            limit = between_s


async def within(work: Awaitable[Item], stage: Stage, seconds: float) -> Item:
    """Await `work`. Raises BackendError (TIMEOUT) when it takes longer than `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise _silent(stage, seconds) from None
