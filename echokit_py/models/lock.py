"""Keeps two processes (or two tasks) from fetching the same model at once. Waits without blocking the event loop."""

from __future__ import annotations

import asyncio
import fcntl
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

log = logging.getLogger(__name__)

_POLL_S = 0.2  # flock has no asynchronous form; a model takes seconds to minutes, so 0.2 s more is nothing


@asynccontextmanager
async def locked(path: Path) -> AsyncIterator[None]:
    """Hold the lock file `path` inside the block. The system frees it when its holder dies. Raises OSError.

    The file stays: removing it would let a third process lock a new one while a second still waits for the old.
    """
    with path.open("wb") as file:
        told = False
        while not _try(file.fileno()):
            if not told:
                log.info("another process is fetching %s; waiting for it", path.parent.name)
                told = True
            await asyncio.sleep(_POLL_S)
        yield


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
