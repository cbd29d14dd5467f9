"""An event loop whose clock jumps to the next timer when nothing else is left to do: hours in milliseconds.

For tests without sockets, processes or threads (what a thread works on takes no virtual time, so the loop would not
wait for it): give the code under test an `InlineExecutor`.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from typing import Any, TypeVar
from unittest.mock import patch

Result = TypeVar("Result")


class InlineExecutor(Executor):
    """Runs what is submitted at once, in the caller's thread."""

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        future: Future[Result] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's
            future.set_exception(error)
        return future


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: it moves the clock instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if events or (timeout is not None and timeout <= 0):
            return events
        if timeout is None:
            raise RuntimeError("nothing is left to do, and something is still waited for")
        # A hair more than asked for: the sum may be rounded down, and then the timer would not be due.
        self.now += timeout + 1e-6
        return events


def run(work: Coroutine[Any, Any, Result], on_error: Callable[[dict[str, Any]], None]) -> Result:
    """Run `work` on a loop of its own in virtual time, which `time.monotonic` tells too.

    `on_error` gets what the loop's exception handler gets: errors of callbacks, and of tasks that nobody looked at.
    """
    selector = _JumpingSelector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.set_exception_handler(lambda _, context: on_error(context))
    with patch("time.monotonic", lambda: selector.now):
        try:
            return loop.run_until_complete(work)
        finally:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
