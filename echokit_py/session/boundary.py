"""The boundary of a turn's work: whatever happens inside comes out as a value. What follows is the session's to say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.session.journal import Mark
from echokit_py.session.outbox import OutboxClosed
from echokit_py.session.tasks import cancelled_from_outside
from echokit_py.session.turn import Turn
from echokit_py.session.turns import Input

log = logging.getLogger(__name__)


async def outcome(work: Awaitable[Input | None], device: str) -> Input | BackendError | None:
    """Await a part of a turn: the input that it leads to, or its failure; None when nothing follows, as when the
    connection is gone. Raises CancelledError when the running task was cancelled, and nothing else."""
    try:
        return await work
    except BackendError as error:
        return error
    except OutboxClosed:
        log.info("%s: the connection ended during a turn", device)
        return None
    except asyncio.CancelledError:
        if cancelled_from_outside():
            raise
        log.exception("%s: a turn failed, something that it waited for was cancelled", device)
    except Exception:  # a fault of ours must leave the device listening, not dead
        log.exception("%s: a turn failed by a fault of this server", device)
    return BackendError(Stage.TOOL, ErrorKind.INTERNAL, "a fault of this server")


async def limited(work: Callable[[], Awaitable[Input]], turn: Turn, seconds: float) -> Input:
    """Do a part of a turn under its deadline, which `turn` can put off. Raises BackendError (TIMEOUT)."""
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline as turn.deadline:
            return await work()
    except TimeoutError:
        if not deadline.expired():
            raise
        stage = Stage.LLM if Mark.LLM_REQUEST in turn.record.marks else Stage.ASR
        raise BackendError(stage, ErrorKind.TIMEOUT, f"the turn took longer than {seconds:g} s") from None
