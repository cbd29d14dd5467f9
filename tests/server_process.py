"""Runs the real program, `echokit-py serve`, in a process of its own, for tests and benchmarks."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

START_LIMIT_S = 120.0
STOP_LIMIT_S = 20.0


class ServerProcess:
    """`async with ServerProcess(config) as server`: it listens on a free loopback port, and its models are loaded.

    Attributes:
        url: what a board is set to, `ws://127.0.0.1:PORT/ws/`.
        listening_s, ready_s: seconds from the process's start to the listening socket, and to loaded models.
        log: the last lines of its log.
    """

    def __init__(self, config: Path, *, environ: Mapping[str, str] | None = None) -> None:
        self._config = config
        self._environ = {**os.environ, "ECHOKIT_OFFLINE": "1", **(environ or {})}
        self.log: deque[str] = deque(maxlen=2000)
        self.url = ""
        self.listening_s = self.ready_s = 0.0

    @property
    def base(self) -> str:
        """The address of its HTTP side, `http://127.0.0.1:PORT`."""
        return self.url.replace("ws://", "http://").removesuffix("/ws/")

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def __aenter__(self) -> Self:
        began = time.monotonic()
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "echokit_py", "serve", str(self._config), "--addr", "127.0.0.1:0"),
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=self._environ,
        )
        self._news = asyncio.Event()
        self._reader = asyncio.create_task(self._read_log())
        try:
            found = await self.logged(r"boards connect to (ws://\S+)", START_LIMIT_S)
            self.url, self.listening_s = found[1], time.monotonic() - began
            await self.logged(r": ready$", START_LIMIT_S)
            self.ready_s = time.monotonic() - began
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def logged(self, pattern: str, limit_s: float = 30.0) -> re.Match[str]:
        """Wait until a line of the log fits. Raises AssertionError, with the log, when none comes."""
        try:
            async with asyncio.timeout(limit_s):
                while True:
                    for line in self.log:
                        if found := re.search(pattern, line):
                            return found
                    if self._reader.done():
                        break
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass
        raise AssertionError(f"no {pattern!r} in the log:\n" + "\n".join(self.log))

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop it with a signal; return its exit code. Raises AssertionError when it doesn't end."""
        if self._process.returncode is None:
            self._process.send_signal(number)
        try:
            async with asyncio.timeout(STOP_LIMIT_S):
                code = await self._process.wait()
                await self._reader
        except TimeoutError:
            self._process.kill()
            raise AssertionError("the server did not stop:\n" + "\n".join(self.log)) from None
        return code

    async def _read_log(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            self.log.append(line.decode(errors="replace").rstrip())
            self._news.set()
        self._news.set()
