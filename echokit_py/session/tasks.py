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


async def gone(tasks: Iterable[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """Wait until cancelled tasks are gone, at most CANCEL_LIMIT_S; return those that aren't, named in the log.

    These are cancelled once more: mostly some library took the first CancelledError for its own.
    """
    pending = {task for task in tasks if not task.done()}
    if not pending:
        return set()
    _, stuck = await asyncio.wait(pending, timeout=CANCEL_LIMIT_S)
    for task in stuck:
        log.error("task %s ignores its cancellation and is left behind", task.get_name())
        task.add_done_callback(_look)
        task.cancel()
    return stuck


def cancelled_from_outside() -> bool:
    """Whether somebody has cancelled the running task. If not, a CancelledError that arrives comes from something that
    it awaited (a pool that was shut down, a request that was called off) and is a failure like any other."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@asynccontextmanager
async def alongside(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[asyncio.Task[None]]:
    """Run `work` while the block runs; it is stopped when the block is left. To see its errors, await the task."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(_look)  # the block awaits it, or has left for an error of its own
    try:
        yield task
    finally:
        await stop([task])


def _look(task: asyncio.Task[Any]) -> None:
    """Take note of a task's error, so that asyncio doesn't report it as one that nobody saw."""
    if not task.cancelled():
        task.exception()


@asynccontextmanager
async def ending(queue: asyncio.Queue[Any]) -> AsyncIterator[None]:
    """Put None into `queue` when the block is left, also by an error. Not when it is cancelled: then nobody reads on,
    and waiting for room in a full queue would hold the cancellation up."""
    try:
        yield
    finally:
        if not cancelled_from_outside():
            await queue.put(None)
