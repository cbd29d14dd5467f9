"""A stream that is read ahead of its reader comes out as it is, whatever happens to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import pytest

from echokit_py.session.relay import Relay

BOUND = 5


class Source:
    """A stream of numbers that counts what was taken from it."""

    def __init__(self, count: int, error: BaseException | None = None, *, hangs: bool = False) -> None:
        self._count, self._error, self._hangs = count, error, hangs
        self.given = 0
        self.closed = False

    async def stream(self) -> AsyncGenerator[int, None]:
        try:
            for number in range(self._count):
                self.given += 1
                yield number
            if self._error is not None:
                raise self._error
            if self._hangs:
                await asyncio.Event().wait()
        finally:
            self.closed = True


def relay(source: Source, seen: list[int] | None = None) -> Relay[int]:
    return Relay(source.stream(), BOUND, (seen if seen is not None else []).append, "relay")


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_items_come_in_order_whether_read_early_or_late() -> None:
    for late in (False, True):
        seen: list[int] = []
        source = Source(3)
        found = relay(source, seen)
        if late:
            await settle()
            assert seen == [0, 1, 2]
        assert [item async for item in found.items()] == [0, 1, 2]
        assert source.closed
        assert found.task.done()


async def test_a_reader_that_does_not_come_holds_the_stream_up() -> None:
    source = Source(2 * BOUND)
    found = relay(source)
    for _ in range(4 * BOUND):
        await asyncio.sleep(0)
    assert source.given == BOUND + 1
    assert len([item async for item in found.items()]) == 2 * BOUND


@pytest.mark.parametrize("error", [ZeroDivisionError(), asyncio.CancelledError()], ids=["fault", "called off"])
async def test_an_error_comes_after_what_came_before_it(error: BaseException) -> None:
    found = relay(Source(2, error))
    await settle()
    assert found.error is error
    got: list[int] = []
    with pytest.raises(type(error)):
        async for item in found.items():
            got.append(item)
    assert got == [0, 1]


async def test_who_stops_reading_closes_the_stream() -> None:
    source = Source(2, hangs=True)
    found = relay(source)
    async with aclosing(found.items()) as items:
        assert await anext(items) == 0
        assert not source.closed
    assert source.closed
    assert found.task.cancelled()


async def test_one_that_nobody_reads_is_cancelled_by_its_owner() -> None:
    source = Source(2, hangs=True)
    found = relay(source)
    await settle()
    found.task.cancel()
    await asyncio.wait([found.task])
    assert source.closed
    assert found.error is None


async def test_a_stream_that_forgets_its_cancellation_is_read_no_more() -> None:
    gate = asyncio.Event()
    seen: list[int] = []

    async def stubborn() -> AsyncGenerator[int, None]:
        with suppress(asyncio.CancelledError):
            await gate.wait()
        for number in range(1000):
            yield number

    found = Relay(stubborn(), BOUND, seen.append, "relay")
    await settle()
    found.task.cancel()
    await asyncio.wait([found.task], timeout=5)
    assert found.task.cancelled()
    assert seen == []
