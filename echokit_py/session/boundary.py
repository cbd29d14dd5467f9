"""The boundary of a turn's work: whatever happens inside comes out as a value. What follows is the session's to say."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

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


@dataclass(slots=True)
class Waiting:
    """What a part of a turn waits for at the moment; it is named when the turn's time is up."""

    stage: Stage


async def limited(work: Callable[[], Awaitable[Input]], turn: Turn, seconds: float, waiting: Waiting) -> Input:
    """Do a part of a turn under the turn's deadline: `seconds` after its utterance was over, or its text came, and
    later by what `turn` puts it off. Raises BackendError (TIMEOUT)."""
    now = time.monotonic()
    deadline = asyncio.timeout(turn.record.marks.get(Mark.DECIDED, now) + seconds - now)
    try:
        async with deadline as turn.deadline:
            return await work()
    except TimeoutError:
        if not deadline.expired():
            raise
        raise BackendError(waiting.stage, ErrorKind.TIMEOUT, f"the turn took longer than {seconds:g} s") from None
    finally:
        turn.deadline = None
