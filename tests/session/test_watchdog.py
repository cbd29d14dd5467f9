"""Time-outs of streams: what is silent for too long is a time-out, what merely isn't read isn't."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.session.watchdog import watched, within
from tests.fakes.virtual_time import run


class Source:
    """A stream that hangs after some items, and knows whether it was closed."""

    def __init__(self, items: int, hang: bool = True) -> None:
        self.items, self.hang, self.closed = items, hang, False

    async def stream(self) -> AsyncIterator[int]:
        try:
            for item in range(self.items):
                yield item
            if self.hang:
                await asyncio.Event().wait()
        finally:
            self.closed = True


async def test_a_stream_passes_through() -> None:
    source = Source(3, hang=False)
    assert [item async for item in watched(source.stream(), Stage.LLM, 10, 10)] == [0, 1, 2]
    assert source.closed


@pytest.mark.parametrize("items", [0, 2])
async def test_silence_is_a_time_out(items: int) -> None:
    source, seen = Source(items), []
    with pytest.raises(BackendError, match=r"llm timeout: no answer for 0\.01 s") as caught:
        async for item in watched(source.stream(), Stage.LLM, 0.01, 0.01):
            seen.append(item)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert seen == list(range(items))
    assert source.closed


def test_the_consumers_time_does_not_count() -> None:
    async def consume() -> list[int]:
        seen = []
        async for item in watched(Source(2, hang=False).stream(), Stage.TTS, 5, 5):
            seen.append(item)
            await asyncio.sleep(60)
        return seen

    assert run(consume(), on_error=lambda context: pytest.fail(str(context))) == [0, 1]


async def test_leaving_early_closes_the_stream() -> None:
    source = Source(2)
    stream = watched(source.stream(), Stage.TTS, 10, 10)
    assert await anext(stream) == 0
    await stream.aclose()
    assert source.closed


async def test_within() -> None:
    async def work() -> str:
        return "done"

    assert await within(work(), Stage.ASR, 10) == "done"
    with pytest.raises(BackendError, match="asr timeout"):
        await within(asyncio.Event().wait(), Stage.ASR, 0.01)
