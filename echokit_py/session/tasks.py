"""Owning tasks: every task has somebody who cancels it and waits for it, with a limit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

log = logging.getLogger(__name__)

# A cancelled task has only its own clean-up left: closing a request, letting go of a thread's result.
CANCEL_LIMIT_S = 2.0


async def stop(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they are gone, at most CANCEL_LIMIT_S; one that stays is named in the log."""
    pending = {task for task in tasks if not task.done()}
    for task in pending:
        task.cancel()
    await gone(pending)


async def gone(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Wait until cancelled tasks are gone, at most CANCEL_LIMIT_S."""
    pending = {task for task in tasks if not task.done()}
    if not pending:
        return
    _, stuck = await asyncio.wait(pending, timeout=CANCEL_LIMIT_S)
    for task in stuck:
        log.error("task %s ignores its cancellation and is left behind", task.get_name())


@asynccontextmanager
async def alongside(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[asyncio.Task[None]]:
    """Run `work` while the block runs; it is stopped when the block is left. To see its errors, await the task."""
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        await stop([task])
        if task.done() and not task.cancelled():
            task.exception()  # seen: the block has awaited it, or left for an error of its own


@asynccontextmanager
async def ending(queue: asyncio.Queue[Any]) -> AsyncIterator[None]:
    """Put None into `queue` when the block is left, also by an error. Not when it is cancelled: then nobody reads on,
    and waiting for room in a full queue would hold the cancellation up."""
    try:
        yield
    except asyncio.CancelledError:
        raise
    except BaseException:
        await queue.put(None)
        raise
    else:
        await queue.put(None)
