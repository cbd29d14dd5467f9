"""One HTTP client for all back ends: connections, keys, failures as BackendError. Knows no back end's format.

How long an answer may take is not decided here: the session's runner watches that and cancels.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import re
import ssl
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import aiohttp
from yarl import URL

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.http import answers
from echokit_py.http.body import encode, payload
from echokit_py.log import sanitize

_log = logging.getLogger(__name__)

# A school with 200 boards: in the worst moment each has two sentences at the TTS and one request at the LLM. With the
# boards' own 200 sockets that stays below 1024, the number of open files a Linux process may have by default.
MAX_CONNECTIONS = 640
# Long enough for the next turn of a conversation to find its connection open (a TLS handshake costs 50 to 150 ms), and
# shorter than the 75 s after which nginx, and the minutes after which home routers, forget an idle one.
KEEPALIVE_S = 60
MAX_ERROR_BODY = 64 * 1024  # an error's sentence stands near the start; the rest may be a whole web page
ERROR_BODY_S = 2  # an error body that takes longer than this isn't worth the user's time

_FAILURES = (aiohttp.ClientError, ConnectionError, ssl.SSLError)
"""What aiohttp raises for faults of network and server. Not OSError: that would take time-outs and decoders' errors."""

# What it means that a request got no answer, the first match counts. {} is the exception's own detail.
_UNSENT: tuple[tuple[type[Exception], ErrorKind, str], ...] = (
    (aiohttp.ConnectionTimeoutError, ErrorKind.TIMEOUT, "gave no connection in time"),
    (aiohttp.InvalidURL, ErrorKind.REFUSED, "is not an HTTP URL; check url"),
    (aiohttp.NonHttpUrlClientError, ErrorKind.REFUSED, "is not an HTTP URL; check url"),
    (aiohttp.ClientHttpProxyError, ErrorKind.CONNECT, "can't be reached: the proxy refuses"),
    (aiohttp.ClientConnectorDNSError, ErrorKind.CONNECT, "can't be reached: its host name is not known; check url"),
    (aiohttp.ClientConnectorCertificateError, ErrorKind.CONNECT, "has no certificate that we trust: {}"),
    (aiohttp.ClientConnectorError, ErrorKind.CONNECT, "can't be reached: {}"),
    (aiohttp.ClientResponseError, ErrorKind.BAD_ANSWER, "does not answer in HTTP; check url"),
    (aiohttp.ServerDisconnectedError, ErrorKind.BROKEN_OFF, "closed the connection without an answer"),
    (aiohttp.ClientOSError, ErrorKind.BROKEN_OFF, "closed the connection without an answer"),
    (Exception, ErrorKind.CONNECT, "can't be reached: {}"),
)


class HttpClient:
    """Connections to all back ends, shared by all devices.

    `connect_s` (seconds) bounds name resolution, connecting, TLS and the wait for a free connection together.
    """

    def __init__(self, connect_s: float) -> None:
        self._connect_s = connect_s
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def close(self) -> None:
        """Close all connections, those in use too. A later `post` raises BackendError."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def post(
        self,
        stage: Stage,
        url: str,
        *,
        key: str = "",
        json: object | None = None,
        form: aiohttp.FormData | None = None,
        accept: str = "*/*",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; inside the block stands its 2xx answer, the body still unread.

        `key` goes out as a bearer token ("" sends none); `json` may hold `msgspec.Raw`, JSON that is written already.
        Raises BackendError: for every other status, for failing to connect, and for an answer whose connection breaks
        while the block reads it. Leaving the block early closes the connection without reading on. No BackendError
        that leaves here holds the key or a secret of the URL.
        """
        request = _Request.of(stage, url, key)
        try:
            response = await self._send(request, encode(json) if form is None else form(), accept)
        except _FAILURES as error:
            raise _unsent(request, error) from None
        try:
            if not 200 <= response.status < 300:
                raise await _refusal(request, response)
            yield response
        except BackendError as error:
            error.args = (request.hide(str(error.args[0])),)  # a server may repeat the key in what it says
            raise
        except _FAILURES as error:
            raise _broken(request, error) from None
        finally:
            response.close()

    async def _send(self, request: _Request, body: Any, accept: str) -> aiohttp.ClientResponse:
        """POST, a second time at once when a kept connection turns out to be dead: the server closed it just now.

        A `body` of bytes is JSON.
        """
        session = self._open()
        is_json = isinstance(body, bytes)
        headers = {"Accept": accept} | ({"Authorization": f"Bearer {request.key}"} if request.key else {})
        reuse = SimpleNamespace(happened=False)

        async def attempt() -> aiohttp.ClientResponse:
            return await session.post(
                request.url,
                headers=headers | ({"Content-Type": "application/json"} if is_json else {}),
                data=payload(body) if is_json else body,
                proxy=_proxy(request.url) or None,
                allow_redirects=False,  # a POST that follows 301 or 302 becomes a GET
                trace_request_ctx=reuse,
            )

        try:
            return await attempt()
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if not reuse.happened:
                raise
        _log.debug("%s: the kept connection was closed, connecting anew", request.stage)
        return await attempt()

    def _open(self) -> aiohttp.ClientSession:
        """The session, made when the first request comes: aiohttp binds it to the running loop."""
        if self._closed:
            raise aiohttp.ClientConnectionError("the HTTP client is closed")
        if self._session is None:
            traces = aiohttp.TraceConfig()
            traces.on_connection_reuseconn.append(_note_reuse)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=MAX_CONNECTIONS, keepalive_timeout=KEEPALIVE_S),
                timeout=aiohttp.ClientTimeout(total=None, connect=self._connect_s),
                cookie_jar=aiohttp.DummyCookieJar(),  # devices share the client: no back end may tell them apart by it
                headers={"User-Agent": "echokit-py"},
                trace_configs=[traces],
            )
        return self._session


async def read_body(stage: Stage, response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The whole body, at most `limit` bytes. Raises BackendError BAD_ANSWER when it is longer."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > limit:
            raise BackendError(stage, ErrorKind.BAD_ANSWER, f"the answer is longer than {limit // 1024} KiB")
    return bytes(body)


@dataclass(frozen=True, slots=True)
class _Request:
    """Where a request goes. `shown` is the URL without what may be secret; `secrets` never stand in a message."""

    stage: Stage
    url: URL
    shown: str
    key: str
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, stage: Stage, url: str, key: str) -> _Request:
        key = re.sub(r"^bearer\s+", "", key.strip(), flags=re.IGNORECASE)
        if not re.fullmatch(r"[!-~]*", key):
            raise BackendError(stage, ErrorKind.AUTH, "api_key holds a blank or a character that no key has")
        try:
            target = URL(url.strip())
            (target.host or "").encode("idna")  # else the resolver would stumble over it, with a UnicodeError
        except ValueError:
            raise BackendError(stage, ErrorKind.REFUSED, "url is not a URL") from None
        secrets = (key, target.password or "", *target.query.values())
        if key and target.host:
            target = target.with_user(None)  # the key takes the place of a user and password in the URL
        # Shorter ones are no secrets, but pieces of words ("v=1").
        return cls(stage, target, _show(target), key, tuple(secret for secret in secrets if len(secret) >= 4))

    def error(self, kind: ErrorKind, what: str, **details: Any) -> BackendError:
        return BackendError(self.stage, kind, f"{self.shown} {what}", **details)

    def hide(self, words: str) -> str:
        for secret in self.secrets:
            words = words.replace(secret, "***")
        return words


def _show(url: URL) -> str:
    names = "&".join(f"{name}=…" for name in url.query)
    plain = url.with_user(None) if url.host else url
    return sanitize(plain.with_query(None).with_fragment(None)) + sanitize(f"?{names}" if names else "", 80)


async def _note_reuse(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: object) -> None:
    context.trace_request_ctx.happened = True


def _proxy(url: URL) -> str | None:
    """The proxy that the environment names for this URL (HTTPS_PROXY, HTTP_PROXY, NO_PROXY).

    Not aiohttp's `trust_env`: that reads ~/.netrc too, and a host found there clashes with our Authorization header.
    """
    host = url.host or ""
    if _is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    proxy = urllib.request.getproxies().get(url.scheme, "")
    if "://" in proxy and not proxy.startswith(("http://", "https://")):
        return None  # SOCKS: aiohttp can't
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    """Whether the host is this machine: a model here is never behind a proxy, whatever NO_PROXY forgot."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _unsent(request: _Request, error: Exception) -> BackendError:
    """The error for a request that got no answer."""
    kind, what = next((kind, what) for cause, kind, what in _UNSENT if isinstance(error, cause))
    return request.error(kind, what.format(sanitize(request.hide(_detail(error)))))


def _detail(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return str(error.certificate_error)
        case aiohttp.ClientConnectorError(os_error=ssl.SSLError() as cause):
            return f"no TLS ({cause.reason})"
        case aiohttp.ClientConnectorError(os_error=OSError(errno=int(number))) if number > 0:
            return os.strerror(number)
    return str(error)


def _broken(request: _Request, error: Exception) -> BackendError:
    """The error for an answer that ended in the middle, or whose encoding can't be read."""
    if isinstance(error, aiohttp.ClientResponseError) or "content-encoding" in str(error).lower():
        return request.error(ErrorKind.BAD_ANSWER, "sent an answer that can't be read")
    return request.error(ErrorKind.BROKEN_OFF, "broke off in the middle of the answer")


async def _refusal(request: _Request, response: aiohttp.ClientResponse) -> BackendError:
    """The error for an answer with a status other than 2xx."""
    words, codes = answers.read_words(await _error_body(response))
    kind = answers.error_kind(request.stage, response.status, f"{words} {codes}")
    status = sanitize(f"{response.status} {response.reason or ''}", 60)
    what = f"answered {status}: {sanitize(request.hide(words))}"
    if 300 <= response.status < 400:
        what = f"answered {status}, a redirect{_target(request, response)}"
    elif kind is ErrorKind.AUTH:
        what += "; check api_key"
    elif response.status == 404:
        what += "; check url and model"
    wait = answers.retry_after(response.headers, datetime.now(UTC))
    return request.error(kind, what, status=response.status, retry_after=wait)


def _target(request: _Request, response: aiohttp.ClientResponse) -> str:
    try:
        target = request.url.join(URL(response.headers["Location"]))
    except (KeyError, ValueError):
        return " to nowhere; check url"
    return f"; put {_show(target)} in the configuration as url"


async def _error_body(response: aiohttp.ClientResponse) -> bytes:
    """The start of an error's body: at most 64 KiB, and what came within two seconds."""
    body = bytearray()
    try:
        async with asyncio.timeout(ERROR_BODY_S):
            async for piece in response.content.iter_any():
                body += piece
                if len(body) >= MAX_ERROR_BODY:
                    break
    except (TimeoutError, *_FAILURES):
        pass  # the status says enough
    return bytes(body[:MAX_ERROR_BODY])
