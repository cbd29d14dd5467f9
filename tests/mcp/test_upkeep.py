"""The care for a connection, in virtual time and without a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import mcp_types as types
import pytest
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from echokit_py.errors import BackendError
from echokit_py.mcp import upkeep
from echokit_py.mcp.upkeep import Upkeep
from tests.fakes import virtual_time

_TOOLS = types.ServerCapabilities(tools=types.ToolsCapability(list_changed=True))


def care(session: Any, lost: list[BackendError]) -> Upkeep:
    async def take(_: object) -> None: ...

    return Upkeep("home", session, Any, take, lost.append, lambda: False)  # type: ignore[arg-type]


def session(**members: Any) -> Any:
    return SimpleNamespace(protocol_version=min(MODERN_PROTOCOL_VERSIONS), server_capabilities=_TOOLS, **members)


@pytest.mark.parametrize(
    ("error", "most"),
    [
        (MCPError(code=METHOD_NOT_FOUND, message="no"), 1),
        (MCPError(code=INTERNAL_ERROR, message="no"), 40),
        (SubscriptionLost(), 40),
    ],
    ids=["unknown", "refused", "ended at once"],
)
def test_a_subscription_that_does_not_last_is_tried_ever_less_often(error: Exception, most: int) -> None:
    asked = 0

    @asynccontextmanager
    async def listen(*_: Any, **__: Any) -> AsyncIterator[None]:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        raise error
        yield

    async def work() -> None:
        task = asyncio.create_task(care(session(), []).subscribe())
        await asyncio.sleep(600)
        task.cancel()
        await asyncio.wait([task])

    with patch.object(upkeep, "listen", listen):
        virtual_time.run(work(), lambda context: pytest.fail(str(context)))
    assert min(most, 8) <= asked <= most


@pytest.mark.parametrize(
    ("error", "is_lost"),
    [
        (MCPError(code=METHOD_NOT_FOUND, message="what?"), False),
        (MCPError(code=CONNECTION_CLOSED, message="not now"), False),  # the code is that of any error of a server
        (MCPError(code=CONNECTION_CLOSED, message="Connection closed"), True),
    ],
)
def test_an_answer_is_a_sign_of_life_and_the_word_of_the_sdk_is_none(error: MCPError, is_lost: bool) -> None:
    async def send_discover(_: str) -> None:
        raise error

    async def work() -> None:
        lost: list[BackendError] = []
        await care(session(send_discover=send_discover), lost).ping()
        assert bool(lost) is is_lost

    virtual_time.run(work(), lambda context: pytest.fail(str(context)))
