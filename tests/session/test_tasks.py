"""Owned tasks: stopped with a limit, their errors seen, queues ended."""

from __future__ import annotations

import asyncio

import pytest

from echokit_py.session import tasks
from echokit_py.session.tasks import alongside, ending, gone, stop


async def test_stop_waits_for_the_clean_up() -> None:
    done = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            done.append(True)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await stop([task])
    assert task.cancelled()
    assert done == [True]


async def test_what_ignores_its_cancellation_is_named_and_cancelled_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tasks, "CANCEL_LIMIT_S", 0.01)

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()

    task = asyncio.create_task(stubborn(), name="mule")
    await asyncio.sleep(0)
    task.cancel()
    assert await gone([task]) == {task}
    assert "mule ignores its cancellation" in caplog.text
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_alongside_stops_its_task_and_shows_its_error_to_who_awaits_it() -> None:
    async with alongside(asyncio.sleep(1000), "sleeper") as task:
        assert task.get_name() == "sleeper"
    assert task.cancelled()

    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        async with alongside(fail(), "failing") as task:
            await task


async def test_ending_ends_the_queue_unless_its_reader_is_gone() -> None:
    queue: asyncio.Queue[int | None] = asyncio.Queue()
    async with ending(queue):
        await queue.put(1)
    assert [queue.get_nowait(), queue.get_nowait()] == [1, None]
    with pytest.raises(ValueError, match="no"):
        async with ending(queue):
            raise ValueError("no")
    assert queue.get_nowait() is None

    with pytest.raises(asyncio.CancelledError):  # of something that was awaited: the reader is still there
        async with ending(queue):
            raise asyncio.CancelledError
    assert queue.get_nowait() is None

    async def work() -> None:
        async with ending(queue):
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await stop([task])
    assert queue.empty()
