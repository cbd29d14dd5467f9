"""The test's end of `faulty.py`: counts what its processes execute, and tells them what to do. Starts no process.

async with Ledger("turn_on") as ledger:
    ledger.then["c1"] = [Hold(), {"text": "done"}]     # the first execution of call c1 waits, the second answers
    ...
    await ledger.until(lambda: ledger.ran("c1") == 1)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

LIMIT_S = 60.0  # of any wait here: the machine's slowness, not what is tested


class Hold(asyncio.Event):
    """An execution that waits until it is set, and answers then. `answer`: with what."""

    def __init__(self, **answer: Any) -> None:
        super().__init__()
        self.answer = answer


Then = dict[str, Any] | Hold


@dataclass(frozen=True)
class Entry:
    """What a server told. `what`: started, listed, call, cancelled, gone."""

    what: str
    server: str
    members: dict[str, Any] = field(default_factory=dict)

    @property
    def call_id(self) -> str:
        """The id that the model gave as an argument."""
        return str(self.members.get("id", ""))


class Ledger:
    """An asynchronous context manager.

    Attributes:
        tools: by server's name, the tools that it offers; "" for all others.
        then: by call id, what its executions come to, in order; the last one stays. See `faulty.py` for the words.
        start: while it is not set, processes that start wait before they serve.
        entries: all that was told.
    """

    def __init__(self, *tools: str, **by_server: list[str]) -> None:
        self.tools: dict[str, list[str]] = {"": list(tools), **by_server}
        self.then: dict[str, list[Then]] = {}
        self.start = asyncio.Event()
        self.start.set()
        self.entries: list[Entry] = []
        self.pids: dict[str, int] = {}
        self._writers: dict[str, asyncio.StreamWriter] = {}
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 24)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers.values():
            writer.close()

    @property
    def port(self) -> int:
        """What `faulty.py --ledger` wants."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def ran(self, call_id: str) -> int:
        """How often a call was executed."""
        return self.count("call", call_id)

    def count(self, what: str, call_id: str) -> int:
        """How many entries there are of a call."""
        return sum(1 for entry in self.entries if entry.what == what and entry.call_id == call_id)

    def started(self, server: str) -> int:
        """How many processes of a server were started."""
        return sum(1 for entry in self.entries if entry.what == "started" and entry.server == server)

    def gone(self, server: str) -> int:
        """How many processes of a server have ended."""
        return sum(1 for entry in self.entries if entry.what == "gone" and entry.server == server)

    def is_listed(self, server: str) -> bool:
        """Whether somebody has asked the latest process of a server for its tools."""
        told = [entry.what for entry in self.entries if entry.server == server]
        return "started" in told and "listed" in told[len(told) - told[::-1].index("started") :]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until it holds; it is looked at whenever a server told something."""
        async with asyncio.timeout(LIMIT_S), self._changed:
            await self._changed.wait_for(condition)

    def forget(self) -> None:
        """Begin anew, with the processes that run."""
        self.entries = []
        self.then = {}

    def change(self, server: str, *tools: str) -> None:
        """Change what a running server offers; it notifies its clients."""
        self.tools[server] = list(tools)
        self._send(self._writers[server], {"tools": list(tools)})

    def _offered(self, server: str) -> list[str]:
        return self.tools.get(server, self.tools[""])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = ""
        try:
            async for line in reader:
                message = json.loads(line)
                server = message.pop("server", server)
                await self._note(Entry(message["what"], server, message))
                if message["what"] == "started":
                    self._writers[server], self.pids[server] = writer, message["pid"]
                if "number" in message:
                    self._spawn(self._answer(writer, server, message))
        except (ConnectionError, asyncio.CancelledError):
            pass  # killed, or the test is over
        finally:
            writer.close()
            if server:
                await self._note(Entry("gone", server))

    async def _answer(self, writer: asyncio.StreamWriter, server: str, message: dict[str, Any]) -> None:
        if message["what"] == "started":
            await self.start.wait()
            answer: dict[str, Any] = {"tools": self._offered(server)}
        else:
            script = self.then.get(message["id"], [{}])
            then = script[min(self.ran(message["id"]), len(script)) - 1]
            if isinstance(then, Hold):
                await then.wait()
                answer = then.answer
            else:
                answer = then
        self._send(writer, {**answer, "number": message["number"]})

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _send(self, writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        writer.write(json.dumps(message).encode() + b"\n")

    async def _note(self, entry: Entry) -> None:
        async with self._changed:
            self.entries.append(entry)
            self._changed.notify_all()
