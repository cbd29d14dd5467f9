"""The order in which all devices' audio is encoded: whose audio runs out first comes first. Encodes nothing itself.

Synthesis is faster than speech, so a sentence's audio comes in bursts of 50 ms of encoding; first come, first served,
the first packet of an answer would wait behind the middle of other answers that have seconds in hand.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import time
from collections.abc import Callable
from concurrent.futures import Executor
from itertools import count
from weakref import WeakKeyDictionary

from echokit_py.audio.framer import Frame
from echokit_py.audio.opus import Encoders

# Jobs at once, and threads that a pool needs: those that wait do so here, where they can be overtaken. One core is the
# event loop's. A second of speech takes 10 ms of another: one thread keeps up with a hundred boards.
LANES = max(1, min(2, (os.cpu_count() or 1) - 1))
# What the event loop may be kept busy with. A packet takes 0.8 ms on a slow x86 core, more on small boards.
AT_ONCE_S = 0.002

Work = Callable[..., list[Frame]]


class Encoding:
    """A pool's work in order of need. One object serves all devices of an event loop.

    Attributes:
        encoders: what they encode with.
    """

    def __init__(self, lanes: int = LANES) -> None:
        self.encoders = Encoders()
        self._free = lanes
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._frame_s = float("inf")

    @property
    def quick(self) -> bool:
        """Whether a single frame takes so little that it may be made on the event loop: with many devices the way to a
        thread and back is ten times as long as the work. By the processor time of the quickest that the pool has made:
        what others took longer, they were disturbed."""
        return self._frame_s < AT_ONCE_S

    async def run(self, pool: Executor, due: float, work: Work, *pcm: bytes) -> list[Frame]:
        """Run `work(*pcm)` in `pool`. Who waits with the smallest `due` goes first: when its device has
        played all that it has, in monotonic seconds."""
        await self._lane(due)
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, self._measured, work, *pcm)
        finally:
            self._leave()

    def _measured(self, work: Work, *pcm: bytes) -> list[Frame]:
        began = time.thread_time()
        frames = work(*pcm)
        if frames:
            self._frame_s = min(self._frame_s, (time.thread_time() - began) / len(frames))
        return frames

    async def _lane(self, due: float) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (due, next(self._numbers), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was given the lane in the same moment
                self._leave()
            raise

    def _leave(self) -> None:
        while self._waiting:
            turn = heapq.heappop(self._waiting)[-1]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


_SHARED: WeakKeyDictionary[Executor, Encoding] = WeakKeyDictionary()


def shared(pool: Executor) -> Encoding:
    """The one of a pool, and so of all devices that use it."""
    if pool not in _SHARED:
        _SHARED[pool] = Encoding()
    return _SHARED[pool]
