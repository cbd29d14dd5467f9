"""A scripted HTTP server on a real loopback socket that answers POSTs, for the fakes of LLM APIs. Knows no API.

Each request takes the next answer; the last one is repeated. An answer can be a function of the request's JSON.
Nothing here sleeps: what hangs does so until the client leaves or the server stops, and an `asyncio.Event` among the
pieces of an answer holds it until the test sets it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from aiohttp import web

from tests.fakes.faults import GARBAGE, PAGE, Fault

Piece = bytes | asyncio.Event
"""What a body is made of: bytes to write, or an event to wait for."""

End = Literal["clean", "cut", "reset", "hang"]
"""How an answer ends: regularly, with the connection (FIN or RST) in the middle of the body, or never."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Any HTTP answer. With `begin` False not even the status line comes before the end."""

    pieces: Sequence[Piece] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)
    end: End = "clean"
    begin: bool = True

    @property
    def body(self) -> bytes:
        """All of its bytes."""
        return b"".join(piece for piece in self.pieces if isinstance(piece, bytes))


Script = Answer | Fault | Callable[[dict[str, Any]], Answer | Fault]


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent."""

    json: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Its messages (chat completions)."""
        messages: list[dict[str, Any]] = self.json["messages"]
        return messages

    @property
    def input(self) -> list[dict[str, Any]]:
        """Its input items (Responses)."""
        items: list[dict[str, Any]] = self.json["input"]
        return items


def status(number: int, message: str = "told to fail", code: str | None = None, **headers: str) -> Answer:
    """An error answer; `Retry_After="2"` becomes the header Retry-After."""
    body = json.dumps({"error": {"message": message, "type": "error", "param": None, "code": code}}).encode()
    return Answer([body], number, "application/json", {name.replace("_", "-"): headers[name] for name in headers})


def slow(answer: Answer) -> Answer:
    """The same answer, each byte written by itself."""
    return replace(answer, pieces=list(_bytewise(answer.pieces)))


def faults_of(answer: Answer, *, stall: Answer, cut_middle: Sequence[Piece]) -> Mapping[Fault, Answer]:
    """What the faults mean for a server of streams; where they leave something of an answer, it is of `answer`."""
    return {
        Fault.REFUSE: Answer(begin=False, end="reset"),
        Fault.STATUS_500: status(500),
        Fault.STATUS_429: status(429, Retry_After="7"),
        Fault.HANG: Answer(begin=False, end="hang"),
        Fault.GARBAGE: Answer([GARBAGE]),
        Fault.HTML: Answer([PAGE], content_type="text/html"),
        Fault.EMPTY: Answer(),
        Fault.STALL: stall,
        Fault.SLOW: slow(answer),
        Fault.CUT_FIRST: Answer([answer.body[:1]], end="cut"),
        Fault.CUT_MIDDLE: Answer(cut_middle, end="cut"),
        Fault.CUT_LAST: Answer([answer.body[:-1]], end="cut"),
    }


def _bytewise(pieces: Sequence[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        if isinstance(piece, asyncio.Event):
            yield piece
        else:
            yield from (bytes([byte]) for byte in piece)


@dataclass(frozen=True, slots=True)
class Api:
    """What a fake is a fake of.

    `refusal` says what is wrong with a request's JSON, each a sentence; `faults` what the faults that all fakes know
    mean here.
    """

    path: str
    refusal: Callable[[dict[str, Any]], list[str]]
    faults: Mapping[Fault, Answer]


class ScriptedServer:
    """The server: an asynchronous context manager.

    Attributes:
        answers: may be changed while it runs; the first is the next, the last one stays.
        fault: while it is set, it answers instead, and no answer is used up.
        strict: refuse (400) what the API refuses. `faults` has what was refused so far.
        requests: what came, in order.
        open_requests: how many are being answered just now.
        disconnects: how many answers the client left before their end.
    """

    def __init__(self, api: Api, answers: Sequence[Script], *, strict: bool) -> None:
        self._api = api
        self.answers: list[Script] = list(answers)
        self.fault: Fault | None = None
        self.strict = strict
        self.faults: list[str] = []
        self.requests: list[Request] = []
        self.open_requests = 0
        self.disconnects = 0
        self.connections: set[int] = set()  # the clients' ports, to see whether connections are used again
        self.changed = asyncio.Condition()
        self._port = 0
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        await self.revive()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    @property
    def url(self) -> str:
        """Where to post. Stays the same over `kill` and `revive`."""
        return f"http://127.0.0.1:{self._port}{self._api.path}"

    async def kill(self) -> None:
        """Stop: all connections end, the port refuses."""
        self._closing.set()
        for _ in range(3):  # a connection that is just being accepted belongs to nobody yet
            await asyncio.sleep(0)
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def revive(self) -> None:
        """Start, after `kill` on the same port again."""
        self._closing = asyncio.Event()
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post(self._api.path, self._answer)
        # A client that leaves cancels its handler, which is how the test learns of it.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds; it is looked at whenever a request begins or ends."""
        async with self.changed:
            await self.changed.wait_for(condition)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        peer = request.transport.get_extra_info("peername") if request.transport else None
        self.connections |= {peer[1]} if peer else set()
        async with self._watched():
            self.requests.append(Request(body, dict(request.headers)))
            return await self._play(request, self._next(body))

    def _next(self, body: dict[str, Any]) -> Answer:
        faults = self._api.refusal(body) if self.strict else []
        self.faults += faults
        if faults:
            return status(400, faults[0])
        script: Script | None = self.fault
        if script is None:
            script = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(script) and not isinstance(script, Fault):
            script = script(body)
        return self._api.faults[script] if isinstance(script, Fault) else script

    async def _play(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        headers = {"Content-Type": answer.content_type, "Cache-Control": "no-cache", **answer.headers}
        response = web.StreamResponse(status=answer.status, headers=headers)
        response.enable_chunked_encoding()
        if answer.begin:
            await response.prepare(request)
        for piece in answer.pieces:
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            else:
                await response.write(piece)
        if answer.end == "hang":
            await self._closing.wait()
        elif answer.end == "clean":
            await response.write_eof()
        elif request.transport is not None:
            _end(request.transport, reset=answer.end == "reset")
        return response

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        await self._count(1)
        try:
            yield
        except (asyncio.CancelledError, ConnectionError):
            self.disconnects += not self._closing.is_set()
            raise
        finally:
            await self._count(-1)

    async def _count(self, step: int) -> None:
        async with self.changed:
            self.open_requests += step
            self.changed.notify_all()


def _end(transport: asyncio.Transport, *, reset: bool) -> None:
    """End the connection: what was written is sent and the body stays open, or RST, as from a crashed process."""
    if not reset:
        transport.close()
        return
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
