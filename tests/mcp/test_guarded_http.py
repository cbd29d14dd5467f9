"""What becomes of requests that are of no use any more; without a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from echokit_py.errors import BackendError
from echokit_py.mcp.delivery import DELIVERY, Delivery
from echokit_py.mcp.guarded_http import GuardedTransport
from echokit_py.mcp.large import LongAnswers
from tests.fakes import virtual_time


class Endless(httpx2.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        await asyncio.sleep(3600)
        yield b""


class Inner(httpx2.AsyncBaseTransport):
    """Opens a stream on which nothing is said."""

    def __init__(self) -> None:
        self.requests = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        return httpx2.Response(200, stream=Endless())


class Nobody:
    def lost(self, error: BackendError) -> None: ...

    def suspect(self) -> None: ...


@pytest.mark.parametrize("left_s", [-1.0, 5.0])
def test_a_broken_answer_is_resumed_only_as_long_as_somebody_waits_for_it(left_s: float) -> None:
    async def work() -> None:
        inner = Inner()
        transport = GuardedTransport(inner, LongAnswers(), Nobody(), by_stream=False)
        now = asyncio.get_running_loop().time
        began = now()
        DELIVERY.set(Delivery(deadline=began + left_s))
        request = httpx2.Request("GET", "http://127.0.0.1:1/mcp", headers={"Last-Event-ID": "1"})
        response = await transport.handle_async_request(request)
        if left_s < 0:
            assert (response.status_code, inner.requests) == (503, 0)
            return
        await response.aread()
        assert now() - began == pytest.approx(left_s, abs=0.1)

    virtual_time.run(work(), lambda context: pytest.fail(str(context)))
