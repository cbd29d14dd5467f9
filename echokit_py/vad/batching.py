"""Gathers audio of many streams for one run of the model at a time, in its thread. Knows neither model nor endpointing.

A run costs little more for ten streams than for one. So what has come since the last run goes into the next, and runs
begin at least TICK_S apart: nobody waits longer than that and the run before. A stream that is alone never waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.log import sanitize
from echokit_py.vad.silero_model import Heard, Piece

# What is added to a frame's way at most, but for the run before: far below the 512 ms that a board gathers anyway.
TICK_S = 0.015
# Samples of one run: what 16 boards send at a time, about 10 ms of work, for which those that come meanwhile wait.
MAX_SAMPLES = 16 * 8192
# A stream has one piece here at most: so many devices are more than this server can serve.
MAX_WAITING = 1024

Run = Callable[[Sequence[Piece]], list[Heard]]


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    source: object
    piece: Piece
    heard: asyncio.Future[Heard]


class Batcher:
    """Runs pieces of audio through `run` in `thread` (an executor of one worker). For one event loop."""

    def __init__(self, run: Run, thread: Executor) -> None:
        self._run = run
        self._thread = thread
        self._waiting: deque[_Job] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._running = False
        self._closed = False
        self._behind = False  # the last run could not take all
        self._not_before = 0.0
        self._last: frozenset[object] = frozenset()

    async def hear(self, source: object, piece: Piece) -> Heard:
        """Run the next piece of `source`, whose last one is done. When cancelled, it takes part in no further run.

        Raises BackendError.
        """
        if self._closed or len(self._waiting) >= MAX_WAITING:
            raise failed("it is closed" if self._closed else "too many devices speak at once")
        job = _Job(source, piece, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._arm()
        return await job.heard

    def close(self) -> None:
        """Let nobody wait any longer: who still does gets BackendError."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        while self._waiting:
            _settle(self._waiting.popleft(), failed("it is closed"))

    def _arm(self) -> None:
        if not self._waiting or self._running or self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        alone = len(self._waiting) == 1 and self._last == {self._waiting[0].source}
        delay = 0 if alone or self._behind else max(0, self._not_before - loop.time())
        self._timer = loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        jobs = self._take()
        if not jobs:
            return
        loop = asyncio.get_running_loop()
        self._running = True
        self._not_before = loop.time() + TICK_S
        self._last = frozenset(job.source for job in jobs)
        outcomes = loop.run_in_executor(self._thread, self._each, [job.piece for job in jobs])
        outcomes.add_done_callback(partial(self._done, jobs))

    def _take(self) -> list[_Job]:
        jobs: list[_Job] = []
        samples = 0
        while self._waiting and samples < MAX_SAMPLES:
            job = self._waiting.popleft()
            if not job.heard.done():  # its device hasn't gone meanwhile
                jobs.append(job)
                samples += len(job.piece.samples)
        self._behind = bool(self._waiting)
        return jobs

    def _done(self, jobs: list[_Job], outcomes: asyncio.Future[list[Heard | BackendError]]) -> None:
        self._running = False
        for job, outcome in zip(jobs, outcomes.result(), strict=True):
            _settle(job, outcome)
        self._arm()

    def _each(self, pieces: list[Piece]) -> list[Heard | BackendError]:
        """In the thread: run the pieces together; when that fails, each by itself, to find the one at fault."""
        try:
            return [*self._run(pieces)]
        except Exception as error:  # noqa: BLE001  onnxruntime's errors have no other base in common
            if len(pieces) == 1:
                return [failed(sanitize(error))]
        return [outcome for piece in pieces for outcome in self._each([piece])]


def _settle(job: _Job, outcome: Heard | BackendError) -> None:
    if job.heard.done():
        return
    if isinstance(outcome, BackendError):
        job.heard.set_exception(outcome)
    else:
        job.heard.set_result(outcome)


def failed(reason: str) -> BackendError:
    """The error of a detector that did not do its work."""
    return BackendError(Stage.VAD, ErrorKind.INTERNAL, f"the voice activity detector failed: {reason}")
