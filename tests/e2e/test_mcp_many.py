"""Twenty devices call slow tools of one real MCP server at once: each gets its own result, the loop stays free."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from queue import Queue
from typing import Any

import pytest

from tests.fakes.chat_server import Answer, ChatServer, call, say
from tests.fakes.talking import Talk, chat_client, spoken, talking
from tests.mcp_servers.ledger import Hold, Ledger
from tests.mcp_servers.process import HttpProcess, module
from tests.mcp_servers.talk import bench_of, over_http, source_of, until

DEVICES = 20
AT_ONCE = 8  # calls of one server, for all devices together
LIMIT_S = 0.020
WORTH_A_LOOK_S = 0.002


class Callbacks:
    """How long single callbacks held this thread's event loop: in its own time, since the machine may be busy.

    Collections of garbage are counted apart: this process holds all that the tests before have left, so they say
    nothing of a server.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.collected_s = self._collecting_s = 0.0
        self.long: list[tuple[float, float, str]] = []  # seconds of the thread, seconds of the clock, what it was
        plain, ours = asyncio.events.Handle._run, threading.get_ident()

        def run(handle: asyncio.Handle) -> None:
            cpu, clock = time.thread_time(), time.perf_counter()
            plain(handle)
            if threading.get_ident() != ours:
                return
            taken_s = time.thread_time() - cpu - self._collecting_s
            self.collected_s, self._collecting_s = max(self.collected_s, self._collecting_s), 0.0
            self.count += 1
            if taken_s > WORTH_A_LOOK_S:
                whose = getattr(handle._callback, "__self__", handle)  # type: ignore[attr-defined]  # CPython has it
                self.long.append((taken_s, time.perf_counter() - clock, repr(whose)[:300]))

        def collect(phase: str, _: dict[str, int]) -> None:
            if threading.get_ident() == ours:
                self._collecting_s += time.thread_time() if phase == "stop" else -time.thread_time()

        monkeypatch.setattr(asyncio.events.Handle, "_run", run)
        gc.callbacks.append(collect)
        self.stop = partial(gc.callbacks.remove, collect)

    def report(self) -> str:
        """The longest ones, longest first."""
        longest = sorted(self.long, reverse=True)[:5]
        lines = [f"{cpu * 1000:.1f} ms ({clock * 1000:.1f} by the clock): {what}" for cpu, clock, what in longest]
        garbage = f"{self.collected_s * 1000:.1f} ms: the longest collection of garbage, beside these"
        return "\n  ".join([f"{self.count} callbacks of the event loop; the longest:", *lines, garbage])


def script(body: dict[str, Any]) -> Answer:
    """ "Device 7" is answered with a call for it, and its result with itself."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return say(last["content"] + ".")
    number = last["content"].split()[-1]
    return call((f"call-{number}", "read_sensor", f'{{"id": "{number}"}}'))


def boards(talk: Talk) -> Iterator[Talk]:
    """A board for each device."""
    for number in range(DEVICES):
        yield replace(talk, url=talk.url.replace("/board", f"/device-{number}"), socket=None)


@contextmanager
def model() -> Iterator[ChatServer]:
    """The scripted model in a thread and an event loop of its own: the 260 kB of each request hold up nobody else."""
    started: Queue[tuple[ChatServer, asyncio.AbstractEventLoop, asyncio.Event]] = Queue()

    async def serve() -> None:
        async with ChatServer(script) as server:
            over = asyncio.Event()
            started.put((server, asyncio.get_running_loop(), over))
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    server, loop, over = started.get(timeout=60)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()


async def test_twenty_devices_call_slow_tools_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        Ledger("read_sensor") as ledger,
        HttpProcess(module("faulty", "http", "--name", "sensors", "--ledger", str(ledger.port))) as sensors,
        HttpProcess(module("big", "http")) as big,
        source_of(over_http("sensors", sensors.url), over_http("big", big.url)) as source,
    ):
        with model() as chat:
            async with talking(chat_client(chat.url), bench_of(source)) as talk:
                await until(lambda: len(source.tools()) > 150, "all tools")
                callbacks = Callbacks(monkeypatch)
                try:
                    heard = await all_ask(list(boards(talk)), ledger, big)
                    await until(lambda: len(source.tools()) > 150, "all tools again")
                finally:
                    monkeypatch.undo()
                    callbacks.stop()
            assert chat.faults == []
    assert heard == [[f"Sensor {number} says {number * number}."] for number in range(DEVICES)]
    assert [ledger.ran(str(number)) for number in range(DEVICES)] == [1] * DEVICES
    with capsys.disabled():
        print(f"\n{callbacks.report()}")  # noqa: T201
    assert not [cpu for cpu, _, _ in callbacks.long if cpu > LIMIT_S], callbacks.report()


async def all_ask(asking: list[Talk], ledger: Ledger, other: HttpProcess) -> list[list[str]]:
    """What each board hears. While the tools work, another server goes, and comes back with its 155 tools."""
    held = {str(number): Hold(text=f"Sensor {number} says {number * number}") for number in range(DEVICES)}
    ledger.then = {number: [hold] for number, hold in held.items()}
    turns = [asyncio.create_task(board.ask(f"I am device {number}")) for number, board in enumerate(asking)]
    try:
        # As many as may run at once do; the others come as these end.
        await ledger.until(lambda: sum(ledger.ran(number) for number in held) == AT_ONCE)
        await other.kill()
        await other.start()
        for hold in held.values():
            hold.set()
        return [spoken(events) for events in await asyncio.gather(*turns)]
    finally:
        for board in asking:
            await board.disconnect()
