"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
from typing import Any

HORIZON_S = 500.0  # sleeps that end later are limits, not work


class ManualClock:
    """Time that a test steps from one due sleep to the next."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._registered = asyncio.Event()

    def now(self) -> float:
        return self._now

    async def sleep_until(self, when: float) -> None:
        if when <= self._now:
            await asyncio.sleep(0)
            return
        sleeper = (when, asyncio.get_running_loop().create_future())
        self._sleepers.append(sleeper)
        self._registered.set()
        try:
            await sleeper[1]
        finally:
            self._sleepers.remove(sleeper)

    def advance(self, duration: float) -> None:
        """Let `duration` seconds pass."""
        self._now += duration
        for when, future in self._sleepers:
            if when <= self._now and not future.done():
                future.set_result(None)

    async def step(self) -> float:
        """Wait until somebody sleeps, let the time pass until the first one wakes, return how much that was."""
        while not (due := [when for when, future in self._sleepers if when < 1000 + HORIZON_S and not future.done()]):
            self._registered.clear()
            await self._registered.wait()
        duration = min(due) - self._now
        self.advance(duration)
        return duration

    async def drive(self, task: asyncio.Task[Any]) -> None:
        """Step until `task` is done."""
        while not task.done():
            step = asyncio.create_task(self.step())
            await asyncio.wait({task, step}, return_when=asyncio.FIRST_COMPLETED)
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)
