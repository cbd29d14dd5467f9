"""The cancelled tasks of one device that may not be gone yet, so that new work can wait for them. Starts none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from echokit_py.session.tasks import gone


class Leaving:
    """Tasks on their way out."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def add(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        """Cancel tasks; those that have ended already don't matter."""
        for task in tasks:
            if not task.done():
                task.cancel()
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def gone(self) -> None:
        """Wait until they are gone, with a limit. One that stays holds up what waits now, and nothing after that."""
        self._tasks -= await gone(set(self._tasks))
