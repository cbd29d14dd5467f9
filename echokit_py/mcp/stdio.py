"""A server that is a program of ours: starts it, carries the SDK's messages over its pipes, ends it with its children.

Not the SDK's own transport: that one logs what a server says, has no bound for a line, takes up to 6 s to close, and
leaves the server's children behind when we are killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared._context_streams import ContextReceiveStream, ContextSendStream, create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from echokit_py.config.settings import McpServer
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.log import sanitize
from echokit_py.mcp.delivery import DELIVERY
from echokit_py.mcp.large import MOST, LongAnswers
from echokit_py.mcp.lines import Lines
from echokit_py.mcp.mask import Mask

log = logging.getLogger(__name__)

_LAUNCHER = Path(__file__).with_name("launcher.py")
EXIT_S = 1.0  # after the end of its input, for a server to leave by itself
TERM_S = 0.5  # after SIGTERM
_TAIL = 4
_LOOK_EVERY_S = 0.05
_READ = 1 << 16
_MOST_OF_STDERR = 2000

Incoming = ContextSendStream[SessionMessage | Exception]
Outgoing = ContextReceiveStream[SessionMessage]


class Child:
    """The running program."""

    def __init__(self, server: McpServer, process: Process, answers: LongAnswers, hide: Mask) -> None:
        self._name = server.name
        self._process = process
        self._answers = answers
        self._hide = hide
        self._tail: deque[str] = deque(maxlen=_TAIL)
        self._garbage = 0
        self._stderr = asyncio.create_task(self._read_stderr(), name=f"stderr of {server.name}")

    async def last_words(self, with_stderr: bool) -> str:
        """How it ended, and the last it said to its standard error."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EXIT_S):
                await self._process.wait()
                await asyncio.wait([self._stderr])
        code = self._process.returncode
        how = "closed its output" if code is None else f"ended with exit status {code}"
        return how + (f": {' | '.join(self._tail)}" if self._tail and with_stderr else "")

    async def read(self, incoming: Incoming) -> None:
        """Pass on its messages until its output ends."""
        assert self._process.stdout is not None
        lines = Lines(MOST)
        try:
            while data := await self._process.stdout.read(_READ):
                for line in lines.feed(data):
                    await self._pass_on(line, incoming)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # nobody listens any more
        finally:
            incoming.close()

    async def _pass_on(self, line: bytes, incoming: Incoming) -> None:
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(self._answers.shrink(line), by_name=False)
        except ValueError:
            self._garbage += 1
            level = logging.DEBUG if self._garbage > 1 else logging.WARNING
            log.log(level, "the MCP server %s writes to its standard output what is no message; skipped", self._name)
            return
        await incoming.send(SessionMessage(message))

    async def write(self, outgoing: Outgoing) -> None:
        """Send messages until there are no more, or it doesn't read any more."""
        assert self._process.stdin is not None
        try:
            async for message in outgoing:
                context = outgoing.last_context
                if context is not None and (delivery := context.get(DELIVERY)) is not None:
                    delivery.sent = True
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._process.stdin.write(text.encode() + b"\n")
                await self._process.stdin.drain()
        except OSError:
            pass  # its end is noticed by the reader
        finally:
            outgoing.close()

    async def watch(self) -> None:
        """When it has ended, end what it has started: that may hold its output open, and we would read on for ever."""
        await self._gone(math.inf)
        _signal_group(self._process.pid, signal.SIGKILL)

    async def end(self) -> None:
        """End it and its children: end of input, SIGTERM after a second, SIGKILL."""
        process = self._process
        assert process.stdin is not None
        process.stdin.close()
        if not await self._gone(EXIT_S):
            _signal_group(process.pid, signal.SIGTERM)
            await self._gone(TERM_S)
        _signal_group(process.pid, signal.SIGKILL)  # what it has started and left behind, too
        await self._gone(TERM_S)
        self._stderr.cancel()
        await asyncio.wait([self._stderr])
        # A process that took itself out of the group may still hold the pipes; we let go of them.
        process._transport.close()  # type: ignore[attr-defined]

    async def _gone(self, limit_s: float) -> bool:
        # Not `wait()`: that waits for the ends of the pipes too, which a child of the server may hold.
        deadline = asyncio.get_running_loop().time() + limit_s
        while self._process.returncode is None and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_EVERY_S)
        return self._process.returncode is not None

    async def _read_stderr(self) -> None:
        """Pass what it says to our log. At DEBUG: it may be what users said."""
        assert self._process.stderr is not None
        lines = Lines(_MOST_OF_STDERR)
        while data := await self._process.stderr.read(_READ):
            for line in lines.feed(data):
                if text := sanitize(self._hide(line.decode(errors="replace")), 300):
                    self._tail.append(text)
                    log.debug("the MCP server %s: %s", self._name, text)


@asynccontextmanager
async def start(server: McpServer, answers: LongAnswers, hide: Mask) -> AsyncIterator[tuple[Any, Any, Child]]:
    """Start the program; yield the SDK's two streams, and the child. It is gone, with its children, after the block.

    Raises:
        BackendError: there is no such program.
    """
    child = await _spawn(server, answers, hide)
    incoming, read = create_context_streams[SessionMessage | Exception](0)
    write, outgoing = create_context_streams[SessionMessage](0)
    tasks = [
        asyncio.create_task(child.read(incoming), name=f"output of {server.name}"),
        asyncio.create_task(child.write(outgoing), name=f"input of {server.name}"),
        asyncio.create_task(child.watch(), name=f"end of {server.name}"),
    ]
    try:
        yield read, write, child
    finally:
        for stream in (incoming, read, write, outgoing):
            stream.close()
        await child.end()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _spawn(server: McpServer, answers: LongAnswers, hide: Mask) -> Child:
    environment = get_default_environment() | server.env
    program = shutil.which(server.command, path=environment.get("PATH"))
    if program is None:
        raise BackendError(Stage.TOOL, ErrorKind.CONNECT, f"there is no program {sanitize(server.command, 80)}")
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), program, *server.args),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise BackendError(Stage.TOOL, ErrorKind.CONNECT, f"can't be started: {sanitize(error)}") from error
    return Child(server, process, answers, hide)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
