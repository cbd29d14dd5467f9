"""Runs a stream ahead of its reader and passes on, in order, what came. Reads nothing into it.

What a reader gets is what it would have got by asking later, only sooner: the items, and at the end the same error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, Generic, TypeVar, cast

from echokit_py.session.tasks import cancelled_from_outside, stop

Item = TypeVar("Item")


class _Ended(Exception):
    """The stream ended normally."""


class Relay(Generic[Item]):
    """A stream that is being read.

    Args:
        stream: an asynchronous generator; it is closed in any case.
        bound: items that may wait for the reader; then the stream waits.
        on_item: told each item when it comes.

    Attributes:
        task: what reads; cancelling it closes the stream, and its reader gets no more.
        error: what the stream failed with, if it has.
    """

    def __init__(self, stream: AsyncIterator[Item], bound: int, on_item: Callable[[Item], None], name: str) -> None:
        self.error: BaseException | None = None
        self._arrived: asyncio.Queue[tuple[Item] | BaseException] = asyncio.Queue(bound)
        self.task = asyncio.create_task(self._read(stream, on_item), name=name)

    async def items(self) -> AsyncGenerator[Item, None]:
        """All items, those to come too; to be read once. Raises what the stream raised. Closing it closes the stream.

        It must not be read once `task` was cancelled: nothing would come.
        """
        try:
            while not isinstance(arrived := await self._arrived.get(), BaseException):
                yield arrived[0]
            if not isinstance(arrived, _Ended):
                raise arrived
        finally:
            await stop([self.task])

    async def _read(self, stream: AsyncIterator[Item], on_item: Callable[[Item], None]) -> None:
        end: BaseException = _Ended()
        try:
            async with aclosing(cast(Any, stream)):
                async for item in stream:
                    if cancelled_from_outside():  # which some library took for its own
                        raise asyncio.CancelledError
                    on_item(item)
                    await self._arrived.put((item,))
        except asyncio.CancelledError as error:
            if cancelled_from_outside():
                raise
            end = self.error = error  # something that the stream waited for was called off
        except Exception as error:  # noqa: BLE001 - the boundary of a task: whatever it is, it is the reader's to see
            end = self.error = error
        await self._arrived.put(end)
