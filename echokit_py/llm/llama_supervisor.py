"""Runs llama.cpp's server in a child process and keeps it running. What is asked of the model is `llama_cpp.py`'s.

A crash, a lack of memory or a runaway prompt takes the child along and not the voice server: the child is started
again after 1 s, then 2, 4 … 60 s, for ever, until `close()`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from echokit_py.errors import BackendError, ErrorKind, ModelError, Stage
from echokit_py.log import sanitize

log = logging.getLogger(__name__)

_CHILD = Path(__file__).with_name("llama_child.py")
_LOAD_LIMIT_S = 300.0  # a large model from a slow disk
_EXIT_LIMIT_S = 5.0
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_HEALTHY_AFTER_S = 60.0  # after such a life the pauses begin anew
_TAIL_LINES = 20
_MOST_LINE = 2000
_ERROR = re.compile(r"[\d.]+ E (.*)")  # llama.cpp's time and level before each line


@dataclass(frozen=True, slots=True)
class Options:
    """What the child needs. `context`: tokens of one conversation; `parallel`: answers at a time."""

    model: str
    alias: str
    context: int
    parallel: int
    threads: int
    api_key: str


class LlamaServer:
    """The supervised child, running `program`. `pause(seconds)` is what waits between restarts."""

    def __init__(
        self,
        options: Options,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        program: Path = _CHILD,
    ) -> None:
        self._options = options
        self._pause = pause
        self._program = program
        self._process: Process | None = None
        self._url: str | None = None
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._log_task: asyncio.Task[None] | None = None
        self._watch_task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the child that serves, None while there is none."""
        return self._process.pid if self._process and self._url else None

    def chat_url(self) -> str:
        """The address for chat completions. Raises BackendError at once while the child is down."""
        if self._url is None:
            raise BackendError(Stage.LLM, ErrorKind.CONNECT, "the local language model is being restarted")
        return f"{self._url}/v1/chat/completions"

    async def start(self) -> None:
        """Start the child and wait until its model is loaded. Raises ModelError with the end of what it said."""
        await self._spawn()
        self._watch_task = asyncio.create_task(self._watch(), name="llama-supervisor")

    async def close(self) -> None:
        """Stop the child for good: end of input, then SIGKILL after 5 s."""
        if self._watch_task is not None:
            self._watch_task.cancel()
            await asyncio.wait([self._watch_task])
            self._watch_task = None
        await self._stop()

    async def _spawn(self) -> None:
        """Start one child. On any failure, cancellation too, no process is left."""
        options = self._options
        # Threads that wait must sleep, not spin: with another load on the machine (speech recognition), spinning ones
        # made an answer 4 to 10 times slower here.
        environment = {"OMP_WAIT_POLICY": "passive", **os.environ}
        # -P: the child's own folder must not come before the standard library.
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", str(self._program), stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment
        )
        self._process = process
        self._tail.clear()
        self._log_task = asyncio.create_task(self._read_log(process), name="llama-log")
        request = {**asdict(options), "parent": os.getpid(), "verbose": log.isEnabledFor(logging.DEBUG)}
        try:
            self._url = await self._greet(process, json.dumps(request).encode() + b"\n")
        except BaseException:  # also a cancellation; raised again once no process is left
            await self._stop()
            raise

    async def _greet(self, process: Process, request: bytes) -> str:
        """Hand over the options; return the address that the child announces. Raises ModelError."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_LOAD_LIMIT_S):
                process.stdin.write(request)
                await process.stdin.drain()
                line = await process.stdout.readline()
            return str(json.loads(line)["url"])
        except TimeoutError as error:
            raise ModelError(f"{self._options.model} was not loaded within {_LOAD_LIMIT_S:.0f} s") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"llama.cpp can't serve {self._options.model}: {await self._last_words()}") from error

    async def _last_words(self) -> str:
        """Why a child that ended could not start. (Of one that served, this could hold what users said.)"""
        if self._log_task is not None:
            await asyncio.wait([self._log_task], timeout=_EXIT_LIMIT_S)
        if any("No module named 'xllamacpp'" in line for line in self._tail):
            return "the package xllamacpp is not installed; install echokit-py with its extra `local`"
        errors = dict.fromkeys(found[1] for line in self._tail if (found := _ERROR.match(line)))
        return " | ".join(list(errors)[:2] or list(self._tail)[-4:]) or "it ended without a word"

    async def _read_log(self, process: Process) -> None:
        """Pass the child's standard error to our log, with bounded lines, and keep the last ones."""
        assert process.stderr is not None
        rest = b""
        while data := await process.stderr.read(1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[:_MOST_LINE]
            for line in lines:
                text = sanitize(line.decode(errors="replace"), 300)
                if text:
                    self._tail.append(text)
                    log.debug("llama.cpp: %s", text)

    async def _watch(self) -> None:
        """Restart the child whenever it ends. Runs until cancelled."""
        pause_s = _FIRST_PAUSE_S
        while True:
            assert self._process is not None
            born = time.monotonic()
            status = await self._process.wait()
            self._url = None
            if time.monotonic() - born > _HEALTHY_AFTER_S:
                pause_s = _FIRST_PAUSE_S
            log.warning("llama.cpp ended (%s); starting it again in %.0f s", _cause(status), pause_s)
            pause_s = await self._restart(pause_s)

    async def _restart(self, pause_s: float) -> float:
        """Try until a child serves; return the pause before the next restart."""
        while True:
            await self._pause(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            try:
                await self._spawn()
            except (ModelError, OSError) as error:
                log.warning("%s; trying again in %.0f s", sanitize(error), pause_s)
            else:
                log.info("llama.cpp serves again")
                return pause_s

    async def _stop(self) -> None:
        self._url = None
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                async with asyncio.timeout(_EXIT_LIMIT_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        if self._log_task is not None:
            await asyncio.wait([self._log_task], timeout=_EXIT_LIMIT_S)
            self._log_task.cancel()
            self._log_task = None


def _cause(status: int) -> str:
    """A process's exit status in words; SIGKILL from outside is how Linux ends whoever takes too much memory."""
    if status >= 0:
        return f"exit status {status}"
    name = signal.Signals(-status).name
    return f"{name}, perhaps out of memory" if name == "SIGKILL" else name
