"""Whether and when a failed request to the LLM is made again. Knows the errors, not the requests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import cast

from echokit_py.errors import BackendError
from echokit_py.llm.base import LlmEvent, ReasoningDelta
from echokit_py.log import sanitize

_log = logging.getLogger(__name__)

MAX_TRIES = 3  # a server that fails three times in a row is down; the user should hear that soon
FIRST_PAUSE_S = 0.25  # long enough for a restarted worker, too short to be noticed in a conversation
RESERVE_S = 1.0  # of the turn: an answer that starts later than this before the deadline is never heard


def pause(error: BackendError, tries: int, left_s: float) -> float | None:
    """Seconds to wait before the next try, or None to give up.

    Args:
        error: what the last try ended with.
        tries: how many were made.
        left_s: seconds until the turn's deadline.

    A server's Retry-After (RFC 9110, 10.2.3) is kept exactly, or not tried at all when it is beyond the deadline.
    """
    if not error.retryable or tries >= MAX_TRIES:
        return None
    wait = error.retry_after if error.retry_after is not None else FIRST_PAUSE_S * 4 ** (tries - 1)
    return wait if wait <= left_s - RESERVE_S else None


async def stream_with_retry(
    ask: Callable[[], AsyncIterator[LlmEvent]],
    deadline: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> AsyncIterator[LlmEvent]:
    """The events of `ask()` (a request's generator), asked again as `pause` says while nothing was said.

    `ask` returns a generator, as `Llm.stream` promises; `deadline` is in the seconds of `clock`. Reasoning may come
    twice; nobody hears it, and the `Step` has only that of the try that worked. Raises BackendError: that of the last
    try.
    """
    tries = 0
    while True:
        tries += 1
        said = False
        try:
            async with aclosing(cast("AsyncGenerator[LlmEvent, None]", ask())) as events:
                async for event in events:
                    said = said or not isinstance(event, ReasoningDelta)
                    yield event
            return
        except BackendError as error:
            wait = None if said else pause(error, tries, deadline - clock())
            if wait is None:
                raise
            _log.info("LLM try %d failed, next in %.1f s: %s", tries, wait, sanitize(error))
        await sleep(wait)
