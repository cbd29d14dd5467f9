"""The HTTP under the SDK's transports: keys, bounds, and failures as answers. Knows no session and no tool.

In the SDK a request that can't be sent ends the connection with all its calls, and nobody learns whose request it was.
So nothing fails here: what goes wrong is noted in the request's `Delivery`, told to the `Watch`, and answered with a
JSON-RPC error that the SDK hands to whoever asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import ssl
import urllib.request
from typing import Protocol
from urllib.parse import urlsplit

import httpcore2  # noqa: F401 - else httpx2 imports it when the first connection is made, on the event loop
import httpx2
import msgspec

from echokit_py.config.settings import McpServer
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.http.answers import error_kind, read_words
from echokit_py.log import sanitize
from echokit_py.mcp.delivery import Delivery, current
from echokit_py.mcp.http_bodies import Events, read_body, until, with_body
from echokit_py.mcp.large import MOST, LongAnswers, TooLong

CONNECT_S = 5.0
GOODBYE_S = 1.0  # for ending the session, when the connection is closed
ERRAND_S = 5.0  # for what has no answer: a cancellation, our own answer to a ping
MAX_ERROR_BODY = 64 * 1024
_CONNECTIONS = 64  # of one server: 8 calls, a few given up whose server doesn't let go, a stream, a ping
# How servers of the SDKs before the rule of 404, and those made after their examples, say that they don't know one.
_NO_SESSION = re.compile(rb"(?i)\b(?:no valid|invalid|unknown|expired) session|\bsession (?:id )?(?:not found|expired)")
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
# A router that forgets idle connections tells nobody; the stream on which a server announces its news is idle for days.
_KEEPALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)] + [
    (socket.IPPROTO_TCP, getattr(socket, option), value)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
    if hasattr(socket, option)
]


class Watch(Protocol):
    """Who wants to know how the connection is."""

    def lost(self, error: BackendError) -> None:
        """It has ended."""
        ...

    def suspect(self) -> None:
        """It may have ended."""
        ...


async def client(server: McpServer, answers: LongAnswers, watch: Watch) -> httpx2.AsyncClient:
    """Make the HTTP client for one connection to `server`."""
    headers = httpx2.Headers({name: value.get_secret_value() for name, value in server.headers.items()})
    if key := server.api_key.get_secret_value():
        headers.setdefault("Authorization", key if key.lower().startswith("bearer ") else f"Bearer {key}")
    headers.update({"Accept-Encoding": "identity", "User-Agent": "echokit-py"})
    # Reading the system's certificates takes 50 to 200 ms, and 13 ms it takes without them.
    context = await asyncio.to_thread(httpx2.create_ssl_context, verify=server.server.startswith("https:"))
    inner = httpx2.AsyncHTTPTransport(
        verify=context,
        limits=httpx2.Limits(max_connections=_CONNECTIONS),
        proxy=_proxy(server.server),
        socket_options=_KEEPALIVE,
    )
    transport = GuardedTransport(inner, answers, watch, by_stream=server.type == "sse")
    # No limit for reading: a tool may take its time. Who waits for it has a limit, and `Delivery.deadline` is it.
    timeout = httpx2.Timeout(CONNECT_S, read=None, write=30.0)
    return httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout, trust_env=False)


class _Message(msgspec.Struct):
    id: int | str | None = None
    method: str = ""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends a connection's requests. `by_stream`: answers come on the one GET stream, as in the older HTTP+SSE."""

    def __init__(
        self, inner: httpx2.AsyncBaseTransport, answers: LongAnswers, watch: Watch, *, by_stream: bool
    ) -> None:
        self._inner = inner
        self._answers = answers
        self._watch = watch
        self._by_stream = by_stream
        self._errands: set[asyncio.Task[None]] = set()
        self._heard = False
        self._deaf = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request`; return its answer, or one that stands for the failure."""
        if request.method == "GET":
            return await self._listen(request)
        if request.method == "DELETE":
            return await self._say(request, GOODBYE_S)
        message = msgspec.json.decode(request.content, type=_Message)
        if message.method and message.id is not None:
            return await self._ask(request)
        if message.method == "notifications/initialized":  # nothing may overtake it
            return await self._say(request, ERRAND_S)
        # The SDK sends one after the other: a server that lets one hang would hold up all further calls.
        if len(self._errands) < _CONNECTIONS // 2:
            task = asyncio.create_task(self._run_errand(request))
            self._errands.add(task)
            task.add_done_callback(self._errands.discard)
        return httpx2.Response(202)

    async def aclose(self) -> None:
        """Close all connections."""
        for task in self._errands:
            task.cancel()
        await asyncio.gather(*self._errands, return_exceptions=True)
        await self._inner.aclose()

    async def _run_errand(self, request: httpx2.Request) -> None:
        response = await self._say(request, ERRAND_S)
        await response.aclose()

    async def _say(self, request: httpx2.Request, limit_s: float) -> httpx2.Response:
        """Send what has no answer."""
        try:
            async with asyncio.timeout(limit_s):
                response = await self._inner.handle_async_request(request)
                await read_body(response, MAX_ERROR_BODY)
        except (httpx2.TransportError, TimeoutError, TooLong):
            return httpx2.Response(503)
        return httpx2.Response(response.status_code)

    async def _ask(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request that has an answer."""
        delivery = current()
        delivery.sent, delivery.failure = True, None
        try:
            async with until(delivery.deadline):
                response = await self._inner.handle_async_request(request)
                return await self._read(request, response, delivery)
        except _NOT_SENT as error:
            delivery.sent = False
            failure = _unreachable(error)
            self._watch.lost(failure)
        except httpx2.TransportError:
            delivery.broken = True
            failure = BackendError(Stage.TOOL, ErrorKind.BROKEN_OFF, "closed the connection without an answer")
            self._watch.suspect()
        except TooLong:
            failure = BackendError(Stage.TOOL, ErrorKind.BAD_ANSWER, f"answered more than {MOST >> 20} MiB")
        except TimeoutError:
            failure = BackendError(Stage.TOOL, ErrorKind.TIMEOUT, "gave no answer in time")
        return self._failed(delivery, failure)

    async def _read(self, request: httpx2.Request, response: httpx2.Response, delivery: Delivery) -> httpx2.Response:
        status = response.status_code
        in_session = self._by_stream or "mcp-session-id" in request.headers
        if status == 404 and in_session:
            await response.aclose()
            return self._forgotten(status, delivery)
        if status >= 400:
            return await self._refused(response, delivery, in_session=in_session)
        kind = response.headers.get("content-type", "").lower()
        if kind.startswith("text/event-stream"):
            stream = Events(response, self._answers, delivery.deadline, on_break=lambda: _break(delivery))
            return with_body(response, stream)
        if kind.startswith("application/json"):
            return with_body(response, self._answers.shrink(await read_body(response, MOST)))
        return response

    def _forgotten(self, status: int, delivery: Delivery) -> httpx2.Response:
        """The server doesn't know our session."""
        delivery.sent = False
        gone = BackendError(Stage.TOOL, ErrorKind.BROKEN_OFF, "has forgotten our session", status=status)
        self._watch.lost(gone)
        return self._failed(delivery, gone)

    async def _refused(self, response: httpx2.Response, delivery: Delivery, *, in_session: bool) -> httpx2.Response:
        """An answer with an error's status; a JSON-RPC error in it is passed on."""
        body = b""
        with contextlib.suppress(TooLong):
            body = await read_body(response, MAX_ERROR_BODY)
        if response.status_code == 400 and in_session and _NO_SESSION.search(body):
            return self._forgotten(400, delivery)
        delivery.failure = _refusal(response.status_code, body)
        # A gateway's error says nothing of what the server behind it did.
        delivery.broken = response.status_code >= 500 and not _is_answer(body)
        if self._by_stream:
            self._watch.lost(delivery.failure)
        return with_body(response, body)

    def _failed(self, delivery: Delivery, failure: BackendError) -> httpx2.Response:
        delivery.failure = failure
        if self._by_stream:
            self._watch.lost(failure)
        error = {"code": -32000, "message": str(failure.args[0])}
        return httpx2.Response(502, json={"jsonrpc": "2.0", "id": 0, "error": error})

    async def _listen(self, request: httpx2.Request) -> httpx2.Response:
        """Open the stream of what the server says by itself, or that of a broken answer which the SDK resumes."""
        deadline = current().deadline  # of the call whose answer it is; the other one has none
        if deadline <= asyncio.get_running_loop().time():  # nobody waits for it, and the SDK would resume it for ever
            return httpx2.Response(503)
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError as error:
            if self._by_stream:
                current().failure = _unreachable(error)
            self._missed()
            return httpx2.Response(503)
        if response.status_code != 200:
            if self._by_stream:
                current().failure = _refusal(response.status_code, b"")
            self._missed()
            return response
        self._heard, self._deaf = True, 0
        return with_body(response, Events(response, self._answers, deadline, on_break=self._silent, quiet=True))

    def _missed(self) -> None:
        """The stream can't be opened. The SDK gives up for good after two tries; if it was open once, we don't."""
        self._deaf += 1
        if self._heard and self._deaf >= 2:
            self._watch.lost(BackendError(Stage.TOOL, ErrorKind.BROKEN_OFF, "opens its stream of events no more"))
        elif self._heard:
            self._watch.suspect()

    def _silent(self) -> None:
        """The stream has ended."""
        if self._by_stream:
            self._watch.lost(BackendError(Stage.TOOL, ErrorKind.BROKEN_OFF, "closed its stream of events"))
        else:
            self._watch.suspect()


class _Error(msgspec.Struct):
    code: int


class _ErrorAnswer(msgspec.Struct):
    error: _Error


def _is_answer(body: bytes) -> bool:
    """Whether this is a JSON-RPC error."""
    try:
        msgspec.json.decode(body, type=_ErrorAnswer)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _refusal(status: int, body: bytes) -> BackendError:
    """The error for an HTTP status of 400 and more."""
    words, _ = read_words(body)
    text = f"answered {status}" + (f": {sanitize(words)}" if words else "")
    return BackendError(Stage.TOOL, error_kind(Stage.TOOL, status, ""), text, status=status)


def _unreachable(error: Exception) -> BackendError:
    return BackendError(Stage.TOOL, ErrorKind.CONNECT, f"can't be reached: {_detail(error)}")


def _break(delivery: Delivery) -> None:
    delivery.broken = True


def _detail(error: Exception) -> str:
    """Why there is no connection, in the words of the system; these name an address at most."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return f"no TLS ({cause.reason})"
        if isinstance(cause, OSError) and cause.strerror:
            return os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror
        cause = cause.__cause__ or cause.__context__
    return "no connection in time" if isinstance(error, httpx2.TimeoutException) else "refused"


def _proxy(address: str) -> str | None:
    """The proxy that the environment names for this address; none for this machine."""
    url = urlsplit(address)
    if url.hostname in {"localhost", "127.0.0.1", "::1"} or urllib.request.proxy_bypass(url.hostname or ""):
        return None
    proxy = urllib.request.getproxies().get(url.scheme, "")
    return proxy if proxy.startswith(("http://", "https://")) else None
