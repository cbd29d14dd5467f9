"""Which pieces go into a run together, who waits for it, and that a fault or a departure concerns nobody else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.vad import batching
from echokit_py.vad.batching import MAX_SAMPLES, TICK_S, Batcher
from echokit_py.vad.silero_model import Heard, Piece
from tests.fakes.virtual_time import InlineExecutor, run

STATE = np.zeros((2, 128), np.float32)
BAD = 99.0


def piece(mark: float, samples: int = 576) -> Piece:
    return Piece(np.full(samples, mark, np.int16), STATE)


class Runs:
    """A model that says of each piece its mark, and fails on a bad one. Waits for `gate` in the thread."""

    def __init__(self) -> None:
        self.marks: list[list[float]] = []
        self.begun = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, pieces: Sequence[Piece]) -> list[Heard]:
        marks = [float(each.samples[0]) for each in pieces]
        self.marks.append(marks)
        self.begun.release()
        assert self.gate.wait(10)
        if BAD in marks:
            raise ValueError("it can't take this\nat all")
        return [Heard([mark], STATE) for mark in marks]


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


@pytest.fixture
def runs() -> Runs:
    return Runs()


@pytest.fixture
def batcher(runs: Runs, thread: ThreadPoolExecutor) -> Batcher:
    return Batcher(runs, thread)


def ask(batcher: Batcher, *marks: float, samples: int = 576) -> list[asyncio.Task[Heard]]:
    return [asyncio.create_task(batcher.hear(object(), piece(mark, samples))) for mark in marks]


async def begun(runs: Runs) -> None:
    """Until the next run is in the thread."""
    assert await asyncio.to_thread(runs.begun.acquire, timeout=10)


async def test_what_comes_together_runs_together(batcher: Batcher, runs: Runs) -> None:
    heard = await asyncio.gather(*ask(batcher, 1, 2, 3))
    assert [each.probabilities for each in heard] == [[1], [2], [3]]
    assert runs.marks == [[1, 2, 3]]


async def test_what_comes_during_a_run_goes_into_the_next(batcher: Batcher, runs: Runs) -> None:
    runs.gate.clear()
    tasks = ask(batcher, 1)
    await begun(runs)
    tasks += ask(batcher, 2)
    await asyncio.sleep(0)
    tasks += ask(batcher, 3)
    await asyncio.sleep(0)
    runs.gate.set()
    await asyncio.gather(*tasks)
    assert runs.marks == [[1], [2, 3]]


async def test_a_stream_that_is_alone_never_waits(
    batcher: Batcher, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "TICK_S", 3600)
    source = object()
    for mark in range(5):
        assert (await batcher.hear(source, piece(mark))).probabilities == [mark]
    assert runs.marks == [[0], [1], [2], [3], [4]]


def test_others_wait_for_the_next_run_together_but_not_long(runs: Runs) -> None:
    async def device(batcher: Batcher, after: float, mark: float) -> float:
        await asyncio.sleep(after)
        begun = asyncio.get_running_loop().time()
        await batcher.hear(object(), piece(mark))
        return asyncio.get_running_loop().time() - begun

    async def work() -> list[float]:
        batcher = Batcher(runs, InlineExecutor())
        return await asyncio.gather(*(device(batcher, mark * 0.002, mark) for mark in (0, 1, 2)))

    waits = run(work(), lambda context: pytest.fail(str(context)))
    assert waits == pytest.approx([0, TICK_S - 0.002, TICK_S - 0.004], abs=0.001)
    assert runs.marks == [[0], [1, 2]]


async def test_a_run_has_a_bound_and_what_is_left_follows_at_once(
    batcher: Batcher, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "TICK_S", 3600)
    await asyncio.gather(*ask(batcher, 1, 2, 3, 4, 5, samples=MAX_SAMPLES // 2))
    assert runs.marks == [[1, 2], [3, 4], [5]]


async def test_a_fault_concerns_only_the_piece_that_has_it(batcher: Batcher, runs: Runs) -> None:
    found = await asyncio.gather(*ask(batcher, 1, BAD, 3), return_exceptions=True)
    match found:
        case [Heard() as first, BackendError() as error, Heard() as last]:
            assert first.probabilities + last.probabilities == [1, 3]
            assert (error.stage, error.kind) == (Stage.VAD, ErrorKind.INTERNAL)
            assert "it can't take this at all" in str(error)
        case _:
            pytest.fail(str(found))
    assert (await asyncio.gather(*ask(batcher, 4)))[0].probabilities == [4]


async def test_who_goes_away_is_in_no_run(batcher: Batcher, runs: Runs) -> None:
    runs.gate.clear()
    running = ask(batcher, 1)
    await begun(runs)
    waiting = ask(batcher, 2, 3)
    await asyncio.sleep(0)
    waiting[0].cancel()
    running[0].cancel()
    runs.gate.set()
    assert (await waiting[1]).probabilities == [3]
    await asyncio.gather(*running, waiting[0], return_exceptions=True)
    assert runs.marks == [[1], [3]]


async def test_when_all_have_gone_away_nothing_runs(batcher: Batcher, runs: Runs) -> None:
    tasks = ask(batcher, 1, 2)
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (await asyncio.gather(*ask(batcher, 3)))[0].probabilities == [3]
    assert runs.marks == [[3]]


async def test_closing_lets_nobody_wait(batcher: Batcher, runs: Runs) -> None:
    runs.gate.clear()
    running = ask(batcher, 1)
    await begun(runs)
    waiting = ask(batcher, 2)
    await asyncio.sleep(0)
    batcher.close()
    with pytest.raises(BackendError, match="closed"):
        await waiting[0]
    with pytest.raises(BackendError, match="closed"):
        await batcher.hear(object(), piece(3))
    runs.gate.set()
    assert (await running[0]).probabilities == [1]
    assert runs.marks == [[1]]


async def test_closing_before_the_first_run(batcher: Batcher, runs: Runs) -> None:
    tasks = ask(batcher, 1)
    await asyncio.sleep(0)
    batcher.close()
    with pytest.raises(BackendError, match="closed"):
        await tasks[0]
    assert runs.marks == []


async def test_the_queue_is_bounded(batcher: Batcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MAX_WAITING", 2)
    found = await asyncio.gather(*ask(batcher, 1, 2, 3), return_exceptions=True)
    assert [isinstance(each, BackendError) for each in found] == [False, False, True]
