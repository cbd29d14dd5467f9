"""Starts, kills and restarts an MCP server that listens on a port, as a process of the test's. Knows no MCP."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]
START_LIMIT_S = 60.0
ENVIRON = {"PYTHONPATH": str(ROOT)}
"""What a server of this folder needs besides the usual environment; also in `env` of a stdio server."""


def module(name: str, *arguments: str) -> list[str]:
    """The command that runs a server of this folder."""
    return [sys.executable, "-m", f"tests.mcp_servers.{name}", *arguments]


def free_port() -> int:
    """A port on which nothing listens now; for servers that won't say which one the system gave them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class HttpProcess:
    """`async with HttpProcess(module("big", "http")) as server`: it is waited for until it says that it listens.

    Attributes:
        port: stays the same over `kill` and `start`.
        log: the last lines that it said.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        says: str = r"listening on \S+:(\d+)",
        environ: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> None:
        self._command, self._says = list(command), says
        self._environ = {**os.environ, **ENVIRON, **(environ or {})}
        self.port = port
        self.log: deque[str] = deque(maxlen=500)
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where it serves MCP."""
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def is_running(self) -> bool:
        """Whether it was started, and neither ended nor was ended."""
        return self._process is not None and self._process.returncode is None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def start(self) -> None:
        """Start it, after `kill` on the same port again."""
        await self.kill()
        again = ["--port", str(self.port)] if self.port and "-m" in self._command else []
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            *again,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self._environ,
        )
        listening: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read(self._process, listening))
        try:
            async with asyncio.timeout(START_LIMIT_S):
                self.port = await listening or self.port
        except TimeoutError:
            await self.kill()
            raise AssertionError("the MCP server did not start:\n" + "\n".join(self.log)) from None

    async def kill(self) -> None:
        """End it at once, as a crash or a lost machine does."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        if self._reading is not None:
            await self._reading

    async def _read(self, process: asyncio.subprocess.Process, listening: asyncio.Future[int]) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self.log.append(line.decode(errors="replace").rstrip())
            found = re.search(self._says, self.log[-1])
            if found and not listening.done():
                listening.set_result(int(found[1]) if found.groups() else 0)
        if not listening.done():
            listening.set_exception(AssertionError("it ended:\n" + "\n".join(self.log)))
