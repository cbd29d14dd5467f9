"""The board's sense of time, so that tests can bring their own. Measures nothing."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """A source of time in seconds, from any beginning; it never goes back."""

    def now(self) -> float:
        """The time in seconds."""
        ...

    async def sleep_until(self, when: float) -> None:
        """Return at `when`; for a time that has passed at once, but not before other tasks had their turn."""
        ...


class MonotonicClock:
    """The machine's time."""

    def now(self) -> float:
        """Seconds of `time.monotonic`."""
        return time.monotonic()

    async def sleep_until(self, when: float) -> None:
        """Sleep, on the event loop."""
        await asyncio.sleep(max(0.0, when - self.now()))
