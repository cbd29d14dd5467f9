"""The order in which the devices' audio is encoded."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest

from echokit_py.audio.framer import Frame
from echokit_py.session.encoding import AT_ONCE_S, Encoding, shared


class Pool(Executor):
    """Keeps what it is given until it is told to do it."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.jobs.append((future, lambda: fn(*args, **kwargs)))
        return future

    async def work(self) -> None:
        """Do the oldest job, and let what follows from it happen."""
        future, job = self.jobs.pop(0)
        future.set_result(job())
        for _ in range(5):
            await asyncio.sleep(0)


class Devices:
    """Devices that have something to encode, and the order in which they get it."""

    def __init__(self, lanes: int = 1) -> None:
        self.pool, self.encoding, self.served = Pool(), Encoding(lanes), list[str]()

    async def ask(self, name: str, due: float) -> asyncio.Task[list[Frame]]:
        def work() -> list[Frame]:
            self.served.append(name)
            return []

        task = asyncio.create_task(self.encoding.run(self.pool, due, work))
        for _ in range(3):
            await asyncio.sleep(0)
        return task

    async def serve_all(self) -> list[str]:
        while self.pool.jobs:
            await self.pool.work()
        return self.served


async def test_the_one_that_runs_dry_first_goes_first() -> None:
    devices = Devices()
    for name, due in (("running", 50.0), ("later", 9.0), ("sooner", 3.0), ("new", 0.0), ("as soon", 3.0)):
        await devices.ask(name, due)
    assert len(devices.pool.jobs) == 1
    assert await devices.serve_all() == ["running", "new", "sooner", "as soon", "later"]


async def test_as_many_at_once_as_there_are_lanes() -> None:
    devices = Devices(lanes=2)
    for name in ("one", "two", "three"):
        await devices.ask(name, 0.0)
    assert len(devices.pool.jobs) == 2
    assert await devices.serve_all() == ["one", "two", "three"]
    await devices.ask("four", 0.0)
    await devices.ask("five", 0.0)
    assert len(devices.pool.jobs) == 2


async def test_one_that_is_cancelled_leaves_its_place_to_others() -> None:
    devices = Devices()
    await devices.ask("running", 0.0)
    gone = await devices.ask("gone", 1.0)
    await devices.ask("next", 2.0)
    gone.cancel()
    assert await devices.serve_all() == ["running", "next"]


async def test_one_that_is_cancelled_as_it_gets_its_place_gives_it_on() -> None:
    devices = Devices()
    await devices.ask("running", 0.0)
    gone = await devices.ask("gone", 1.0)
    await devices.ask("next", 2.0)
    devices.encoding._leave()  # as the first one's end does
    gone.cancel()
    for _ in range(3):
        await asyncio.sleep(0)
    assert await devices.serve_all() == ["running", "next"]


async def test_work_that_fails_leaves_its_place_too() -> None:
    encoding = Encoding(1)

    def fail() -> list[Frame]:
        raise ZeroDivisionError

    with ThreadPoolExecutor(1) as pool:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await encoding.run(pool, 0.0, fail)


async def test_frames_are_made_on_the_loop_only_when_they_are_known_to_be_quick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoding, took = Encoding(), [0.0]
    monkeypatch.setattr("echokit_py.session.encoding.time.thread_time", lambda: took[0])

    def work(seconds: float, frames: int) -> list[Frame]:
        took[0] += seconds
        return [Frame(b"", 0, 0.12)] * frames

    with ThreadPoolExecutor(1) as pool:
        assert not encoding.quick  # nothing is known yet
        for seconds, frames, quick in (
            (1.1 * AT_ONCE_S, 1, False),
            (0.0, 0, False),  # a piece too short for a frame says nothing
            (1.9 * AT_ONCE_S, 2, True),
            (3.0 * AT_ONCE_S, 1, True),  # it was disturbed
        ):
            await encoding.run(pool, 0.0, lambda s=seconds, f=frames: work(s, f))
            assert encoding.quick is quick


async def test_work_is_done_in_the_pool() -> None:
    names: list[str] = []

    def work(pcm: bytes) -> list[Frame]:
        names.append(threading.current_thread().name)
        return [Frame(pcm, 0, 0.1)]

    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        assert (await Encoding().run(pool, 0.0, work, b"12"))[0].data == b"12"
    assert names[0].startswith("pool")


def test_there_is_one_for_each_pool_and_it_goes_with_it() -> None:
    pool, other = Pool(), Pool()
    assert shared(pool) is shared(pool)
    assert shared(pool) is not shared(other)
    gone = weakref.ref(shared(pool))
    del pool
    gc.collect()
    assert gone() is None
