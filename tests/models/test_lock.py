"""The lock against two fetches of one model."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from echokit_py.models import lock
from echokit_py.models.lock import locked

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "wb")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def poll_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_POLL_S", 0.005)


async def test_another_process_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    told = asyncio.Event()
    monkeypatch.setattr(lock.log, "info", _also(lock.log.info, told))
    path = tmp_path / "model" / ".lock"
    path.parent.mkdir()
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, str(path), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    await holder.stdout.readline()
    entered = asyncio.Event()

    async def enter() -> None:
        async with locked(path):
            entered.set()

    task = asyncio.create_task(enter())
    async with asyncio.timeout(20):
        await told.wait()
    assert "another process is fetching model" in caplog.text
    assert not entered.is_set()
    holder.stdin.close()
    async with asyncio.timeout(20):
        await task
        await holder.wait()
    assert entered.is_set()
    assert len(caplog.records) == 1


def _also(act: Callable[..., None], event: asyncio.Event) -> Callable[..., None]:
    def both(*arguments: object) -> None:
        act(*arguments)
        event.set()

    return both


async def test_tasks_take_turns(tmp_path: Path) -> None:
    inside = 0
    most = 0

    async def work() -> None:
        nonlocal inside, most
        async with locked(tmp_path / ".lock"):
            inside += 1
            most = max(most, inside)
            for _ in range(20):
                await asyncio.sleep(0)
            inside -= 1

    async with asyncio.timeout(20):
        await asyncio.gather(*(work() for _ in range(5)))
    assert most == 1


async def test_the_lock_is_free_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside"):
        async with locked(tmp_path / ".lock"):
            raise ValueError("inside")
    async with asyncio.timeout(20), locked(tmp_path / ".lock"):
        pass
