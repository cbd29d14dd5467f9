"""The HTTP client against servers on real sockets: every way to fail, and that nothing secret gets out."""

from __future__ import annotations

import asyncio
import io
import logging
import socket
import ssl
import subprocess
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from echokit_py.config.settings import Timeouts
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.http import HttpClient, client, read_body
from tests.fakes import virtual_time

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
KEY = "sk-secret-0123456789"


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    made = HttpClient(connect_s=10)
    yield made
    await made.close()


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """A server that answers every POST with `handler`; gives its base URL, without a slash at the end."""
    app = web.Application(client_max_size=8 * 1024 * 1024)
    app.router.add_post("/{path:.*}", handler)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def raw_server(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """A server without HTTP of its own: `talk` has each connection. Gives its port."""

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(session, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """One request with a Content-Length."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return head + await reader.readexactly(int(length.split(b":")[1]))


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def failing(http: HttpClient, url: str, *, key: str = KEY, stage: Stage = Stage.LLM) -> BackendError:
    """The error of a request that must fail, its body read."""
    with pytest.raises(BackendError) as caught:
        async with http.post(stage, url, key=key, json={"a": 1}) as response:
            await response.read()
    assert caught.value.stage is stage
    return caught.value


# --- what is sent ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "header"),
    [
        ("sk-1", "Bearer sk-1"),
        ("Bearer gaia-1234", "Bearer gaia-1234"),
        ("bearer  gaia-1234", "Bearer gaia-1234"),
        (" sk-1\n", "Bearer sk-1"),
        ("", None),
    ],
)
async def test_the_key_is_a_bearer_token(http: HttpClient, key: str, header: str | None) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response(
            [request.headers.get("Authorization"), request.headers["Accept"], await request.json()]
        )

    async with (
        serving(answer) as base,
        http.post(Stage.LLM, f"{base}/v1", key=key, json={"n": "é"}, accept="text/event-stream") as response,
    ):
        assert await response.json() == [header, "text/event-stream", {"n": "é"}]


async def test_a_key_takes_the_place_of_user_and_password_in_the_url(http: HttpClient) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response(request.headers.get("Authorization"))

    async with serving(answer) as base:
        url = base.replace("//", "//user:hunter22@") + "/v1"
        async with http.post(Stage.LLM, url, json={}) as response:
            assert (await response.json()).startswith("Basic ")
        async with http.post(Stage.LLM, url, key="sk-1", json={}) as response:
            assert await response.json() == "Bearer sk-1"


async def test_a_form_is_sent_as_multipart(http: HttpClient) -> None:
    async def answer(request: web.Request) -> web.Response:
        form = await request.post()
        upload = form["file"]
        assert isinstance(upload, web.FileField)
        with upload.file:
            return web.json_response([form["model"], upload.filename, upload.content_type, len(upload.file.read())])

    form = aiohttp.FormData()
    # More than 1 MiB: with bytes aiohttp would warn, and warnings are errors here.
    form.add_field("file", io.BytesIO(bytes(3_000_000)), filename="audio.wav", content_type="audio/wav")
    form.add_field("model", "m")
    async with serving(answer) as base, http.post(Stage.ASR, base, form=form) as response:
        assert await response.json() == ["m", "audio.wav", "audio/wav", 3_000_000]


# --- answers with another status ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "hint"),
    [
        (400, ErrorKind.REFUSED, ""),
        (401, ErrorKind.AUTH, "; check api_key"),
        (403, ErrorKind.AUTH, "; check api_key"),
        (404, ErrorKind.REFUSED, "; check url and model"),
        (413, ErrorKind.CONTEXT, ""),
        (429, ErrorKind.RATE_LIMIT, ""),
        (500, ErrorKind.SERVER, ""),
        (503, ErrorKind.SERVER, ""),
    ],
)
async def test_a_bad_status_is_an_error_of_its_kind(http: HttpClient, status: int, kind: ErrorKind, hint: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "No, not\nso."}}, status=status, headers={"Retry-After": "7"})

    async with serving(answer) as base:
        error = await failing(http, f"{base}/v1/x")
    assert (error.kind, error.status, error.retry_after) == (kind, status, 7.0)
    reason = {400: "Bad Request", 413: "Request Entity Too Large"}.get(status)
    assert str(error).startswith(f"llm {kind}: {base}/v1/x answered {status} {reason or ''}".rstrip())
    assert str(error).endswith(f": No, not so.{hint}")


async def test_an_error_about_the_context_is_known_by_its_code(http: HttpClient) -> None:
    async def answer(_: web.Request) -> web.Response:
        body = {"error": {"code": 400, "message": "too big", "type": "exceed_context_size_error", "n_ctx": 4096}}
        return web.json_response(body, status=400)

    async with serving(answer) as base:
        assert (await failing(http, base)).kind is ErrorKind.CONTEXT
        assert (await failing(http, base, stage=Stage.ASR)).kind is ErrorKind.REFUSED


async def test_no_money_left_is_not_worth_another_try(http: HttpClient) -> None:
    async def answer(_: web.Request) -> web.Response:
        body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
        return web.json_response(body, status=429)

    async with serving(answer) as base:
        error = await failing(http, base)
    assert (error.kind, error.retryable) == (ErrorKind.REFUSED, False)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_says_which_url_to_configure(http: HttpClient, status: int) -> None:
    async def answer(request: web.Request) -> web.Response:
        assert request.path == "/v1"
        return web.Response(status=status, headers={"Location": "https://u:pass99@other.example/v2/?token=abcdef#x"})

    async with serving(answer) as base:
        error = await failing(http, f"{base}/v1")
    assert error.kind is ErrorKind.REFUSED
    assert "put https://other.example/v2/?token=… in the configuration as url" in str(error)


async def test_a_redirect_to_a_path_is_completed(http: HttpClient) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "/v1/"})

    async with serving(answer) as base:
        assert f"put {base}/v1/ in the configuration" in str(await failing(http, f"{base}/v1"))


@pytest.mark.parametrize("headers", [{}, {"Location": "http://[::1"}])
async def test_a_redirect_to_nowhere(http: HttpClient, headers: dict[str, str]) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=302, headers=headers)

    async with serving(answer) as base:
        assert "a redirect to nowhere; check url" in str(await failing(http, base))


async def test_of_an_endless_error_page_only_the_start_is_read(http: HttpClient) -> None:
    written = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal written
        response = web.StreamResponse(status=500)
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65536)
                written += 65536
        except ConnectionError:
            return response

    async with serving(answer) as base:
        error = await failing(http, base)
    assert error.kind is ErrorKind.SERVER
    assert len(str(error)) < 400
    assert 0 < written < 64 * 1024 * 1024  # what the sockets' buffers took, no more


async def test_an_error_that_never_ends_is_an_error_all_the_same(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ERROR_BODY_S", 0.05)

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=401)
        await response.prepare(request)
        await response.write(b"wrong key, b")
        await asyncio.Event().wait()
        return response

    async with serving(answer) as base:
        error = await failing(http, base)
    assert (error.kind, error.status) == (ErrorKind.AUTH, 401)
    assert "wrong key, b; check api_key" in str(error)


async def test_an_error_that_breaks_off_is_an_error_all_the_same(http: HttpClient) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\nloading")

    async with raw_server(talk) as port:
        error = await failing(http, f"http://127.0.0.1:{port}/")
    assert (error.kind, error.status) == (ErrorKind.SERVER, 503)
    assert str(error).endswith("503 Busy: loading")


# --- no connection --------------------------------------------------------------------------------------------------


async def test_a_port_where_nobody_listens(http: HttpClient) -> None:
    url = f"http://127.0.0.1:{unused_port()}/v1"
    error = await failing(http, url)
    assert (error.kind, error.retryable) == (ErrorKind.CONNECT, True)
    assert str(error) == f"llm connect: {url} can't be reached: Connection refused"


async def test_an_unknown_host(http: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    error = await failing(http, "http://speech.example/v1")
    assert error.kind is ErrorKind.CONNECT
    assert str(error).endswith("can't be reached: its host name is not known; check url")


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_connection_that_does_not_come_about_times_out(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    never = asyncio.Event()

    async def silent(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await never.wait()  # no TLS handshake

    async def no_answer(*_: object, **__: object) -> None:
        await never.wait()

    http = HttpClient(connect_s=0.05)
    async with raw_server(silent) as port:
        if scheme == "http":
            monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", no_answer)
        host = {"http": "speech.example", "https": "127.0.0.1"}[scheme]
        error = await failing(http, f"{scheme}://{host}:{port}/")
        never.set()
        await http.close()
    assert (error.kind, error.retryable) == (ErrorKind.TIMEOUT, True)
    assert str(error).endswith("gave no connection in time")


@contextmanager
def full_backlog() -> Iterator[int]:
    """A server that never accepts, and has no room for one more to wait: the kernel drops what asks for a connection.
    Gives its port."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield server.getsockname()[1]


@pytest.mark.parametrize("seconds", [Timeouts().connect_s, 2.5])
def test_a_server_that_never_accepts_is_given_its_time(seconds: float) -> None:
    async def ask(port: int) -> float:
        http = HttpClient(seconds)
        began = asyncio.get_running_loop().time()
        error = await failing(http, f"http://127.0.0.1:{port}/")
        assert (error.kind, error.retryable) == (ErrorKind.TIMEOUT, True)
        took = asyncio.get_running_loop().time() - began
        await http.close()
        return took

    problems: list[dict[str, Any]] = []
    with full_backlog() as port:
        assert virtual_time.run(ask(port), problems.append) == pytest.approx(seconds, abs=0.01)
    assert problems == []


async def test_the_wait_for_a_free_connection_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"a")
        await done.wait()
        return response

    done = asyncio.Event()
    monkeypatch.setattr(client, "MAX_CONNECTIONS", 1)
    http = HttpClient(connect_s=0.2)
    async with serving(slow) as url:
        async with http.post(Stage.LLM, url + "/"):
            error = await failing(http, url + "/")
            done.set()
        await http.close()
    assert (error.kind, error.retryable) == (ErrorKind.TIMEOUT, True)


async def test_https_to_a_server_without_tls(http: HttpClient) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with raw_server(talk) as port:
        error = await failing(http, f"https://127.0.0.1:{port}/")
    assert error.kind is ErrorKind.CONNECT
    assert "can't be reached: no TLS (" in str(error)


@pytest.fixture
def homemade_tls(tmp_path: Path) -> ssl.SSLContext:
    """A server's TLS with a certificate that no authority signed."""
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem"
    try:
        subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is needed to make a certificate")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return context


async def test_a_certificate_that_nobody_vouches_for(http: HttpClient, homemade_tls: ssl.SSLContext) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=homemade_tls)
    async with server:
        error = await failing(http, f"https://localhost:{server.sockets[0].getsockname()[1]}/")
    assert error.kind is ErrorKind.CONNECT
    assert "has no certificate that we trust: " in str(error)
    assert "self-signed" in str(error) or "self signed" in str(error)


@pytest.mark.parametrize(
    "url", ["http://[::1", "http:///path", "ftp://host/x", "http://a..b/", "http://h:99999/", "http://xn--a.test/", ""]
)
async def test_what_is_no_url(http: HttpClient, url: str) -> None:
    error = await failing(http, url)
    assert (error.kind, error.retryable) == (ErrorKind.REFUSED, False)


async def test_a_server_that_does_not_speak_http(http: HttpClient) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"220 mail.example ESMTP\r\n")

    async with raw_server(talk) as port:
        error = await failing(http, f"http://127.0.0.1:{port}/")
    assert error.kind is ErrorKind.BAD_ANSWER
    assert str(error).endswith("does not answer in HTTP; check url")


@pytest.mark.parametrize("reset", [True, False])
async def test_a_server_that_hangs_up_is_asked_once(http: HttpClient, reset: bool) -> None:
    connections = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await read_request(reader)
        if reset:
            writer.transport.abort()

    async with raw_server(talk) as port:
        error = await failing(http, f"http://127.0.0.1:{port}/")
    assert (error.kind, error.retryable) == (ErrorKind.BROKEN_OFF, True)
    assert str(error).endswith("closed the connection without an answer")
    assert connections == 1


# --- kept connections -----------------------------------------------------------------------------------------------


async def test_a_connection_is_used_again(http: HttpClient) -> None:
    ports = set()

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername")[1])
        return web.json_response({})

    async with serving(answer) as base:
        for _ in range(3):
            async with http.post(Stage.LLM, base, json={}) as response:
                await response.read()
    assert len(ports) == 1


@pytest.mark.parametrize("form", [True, False])
async def test_a_kept_connection_that_died_is_replaced_at_once(http: HttpClient, form: bool) -> None:
    requests: list[list[bytes]] = []  # by connection

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append([])
        mine = requests[-1]
        mine.append(await read_request(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await reader.read(1)  # the second request arrives, and the server has gone

    def body() -> aiohttp.FormData | None:
        data = aiohttp.FormData()
        data.add_field("file", io.BytesIO(b"\x01\x02" * 800_000), filename="a.wav")
        return data if form else None

    async with raw_server(talk) as port:
        for _ in range(2):
            async with http.post(
                Stage.ASR, f"http://127.0.0.1:{port}/", form=body(), json=None if form else {"a": 1}
            ) as response:
                assert await response.read() == b"ok"
    assert len(requests) == 2
    assert len(requests[0][0]) == len(requests[1][0])  # the whole body once more
    assert requests[1][0].count(b"\x01\x02" * 800_000) == form


async def test_leaving_early_closes_the_connection(http: HttpClient) -> None:
    gone = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return response

    async with serving(answer) as base:
        async with http.post(Stage.LLM, base, json={}) as response:
            assert await response.content.readany() == b"first"
        await asyncio.wait_for(gone.wait(), 20)


async def test_cancelling_closes_the_connection(http: HttpClient) -> None:
    come, gone = asyncio.Event(), asyncio.Event()

    async def answer(_: web.Request) -> web.Response:
        come.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return web.Response()

    async with serving(answer) as base:
        task = asyncio.create_task(failing(http, base))
        await asyncio.wait_for(come.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 20)


# --- reading the body -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"Content-Length: 100", b"half"),
        (b"Transfer-Encoding: chunked", b"4\r\nhalf\r\n"),
        (b"Transfer-Encoding: chunked", b"8\r\nhalf"),
        (b"Transfer-Encoding: chunked", b"4\r\nhalf\r\n0\r\n"),
    ],
)
async def test_an_answer_that_ends_in_the_middle(http: HttpClient, head: bytes, body: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body)

    async with raw_server(talk) as port:
        error = await failing(http, f"http://127.0.0.1:{port}/")
    assert (error.kind, error.retryable) == (ErrorKind.BROKEN_OFF, True)
    assert str(error).endswith("broke off in the middle of the answer")


async def test_an_answer_with_a_wrong_encoding(http: HttpClient) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip")

    async with raw_server(talk) as port:
        error = await failing(http, f"http://127.0.0.1:{port}/")
    assert error.kind is ErrorKind.BAD_ANSWER


async def test_a_body_that_is_no_json_is_a_bad_answer(http: HttpClient) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="hello", content_type="text/html")

    async with serving(answer) as base:
        with pytest.raises(BackendError) as caught:
            async with http.post(Stage.LLM, base, json={}) as response:
                await response.json()
    assert caught.value.kind is ErrorKind.BAD_ANSWER


@pytest.mark.parametrize("problem", [ValueError("v"), TimeoutError("t"), FileNotFoundError("f"), KeyError("k")])
async def test_errors_of_the_block_itself_pass(http: HttpClient, problem: Exception) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="x" * 100_000)

    async with serving(answer) as base:
        with pytest.raises(type(problem)) as caught:
            async with http.post(Stage.LLM, base, json={}):
                raise problem
    assert caught.value is problem


async def test_a_body_is_read_up_to_a_limit(http: HttpClient) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=b"x" * 2048)

    async with serving(answer) as base:
        async with http.post(Stage.ASR, base, json={}) as response:
            assert await read_body(Stage.ASR, response, 2048) == b"x" * 2048
        with pytest.raises(BackendError, match="asr bad_answer: the answer is longer than 1 KiB"):
            async with http.post(Stage.ASR, base, json={}) as response:
                await read_body(Stage.ASR, response, 2047)


async def test_a_closed_client_refuses(http: HttpClient) -> None:
    await http.close()
    error = await failing(http, "http://127.0.0.1:1/")
    assert str(error).endswith("the HTTP client is closed")


# --- secrets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["sk-a b", "sk-\u201cquoted\u201d", "sk-1\r\nX-Evil: 1", "sk-\x00"])
async def test_a_key_that_cannot_be_sent_is_refused_unnamed(http: HttpClient, key: str) -> None:
    error = await failing(http, "http://127.0.0.1:1/", key=key)
    assert error.kind is ErrorKind.AUTH
    assert "sk-" not in str(error)


@pytest.mark.parametrize("status", [200, 302, 401, 429, 500])
async def test_no_secret_gets_out(http: HttpClient, caplog: pytest.LogCaptureFixture, status: int) -> None:
    """Not in the message, not in the traceback, not in the log, though the server repeats everything."""
    secrets = (KEY, "hunter22", "query-secret")

    async def answer(request: web.Request) -> web.Response:
        headers = {"Location": f"/x?key={KEY}"}
        return web.Response(text=f"{request.headers} {request.url} hunter22", status=status, headers=headers)

    caplog.set_level(logging.DEBUG)
    async with serving(answer) as base:
        url = base.replace("//", "//user:hunter22@") + "/v1?api_key=query-secret&v=1"
        with pytest.raises(BackendError) as caught:
            async with http.post(Stage.TTS, url, key=f"Bearer {KEY}", json={}) as response:
                raise BackendError(Stage.TTS, ErrorKind.BAD_ANSWER, f"it said {await response.text()}")
    logging.getLogger("test").error("failed", exc_info=caught.value)
    shown = "".join(traceback.format_exception(caught.value)) + str(caught.value) + repr(caught.value) + caplog.text
    assert [secret for secret in secrets if secret in shown] == []
    assert "/v1?api_key=…&v=…" in shown or status == 200


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/?key=query-secret", "http:///?key=query-secret"])
async def test_no_secret_of_the_url_gets_out_without_a_connection(http: HttpClient, url: str) -> None:
    error = await failing(http, url)
    assert "query-secret" not in "".join(traceback.format_exception(error))


# --- proxies --------------------------------------------------------------------------------------------------------


@pytest.fixture
def proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


async def test_the_environment_names_the_proxy(http: HttpClient, proxies: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also when ~/.netrc knows the host, which aiohttp's own way (`trust_env`) does not survive."""
    (tmp_path / "netrc").write_text("default login me password hunter22\n")
    proxies.setenv("NETRC", str(tmp_path / "netrc"))
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await read_request(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")

    async with raw_server(talk) as port:
        for value in (f"http://127.0.0.1:{port}", f"127.0.0.1:{port}"):
            proxies.setenv("http_proxy", value)
            async with http.post(Stage.LLM, "http://speech.example/v1", key=KEY, json={}) as response:
                assert await response.read() == b"ok"
    assert [request.split(b"\r\n")[0] for request in heard] == [b"POST http://speech.example/v1 HTTP/1.1"] * 2
    assert f"Authorization: Bearer {KEY}".encode() in heard[0]


async def test_this_machine_is_never_behind_a_proxy(http: HttpClient, proxies: pytest.MonkeyPatch) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="direct")

    proxies.setenv("http_proxy", f"http://127.0.0.1:{unused_port()}")
    async with serving(answer) as base:
        for url in (base, base.replace("127.0.0.1", "localhost")):
            async with http.post(Stage.LLM, url, json={}) as response:
                assert await response.text() == "direct"


@pytest.mark.parametrize(
    ("name", "value"), [("no_proxy", "example"), ("http_proxy", "socks5://127.0.0.1:1"), ("http_proxy", "")]
)
async def test_hosts_that_are_asked_directly(
    http: HttpClient, proxies: pytest.MonkeyPatch, name: str, value: str
) -> None:
    asked = []

    async def unknown(host: str, *_: object, **__: object) -> None:
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    proxies.setenv("http_proxy", "http://proxy.example:8080")
    proxies.setenv(name, value)
    proxies.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    await failing(http, "http://speech.example/v1")
    assert set(asked) == {"speech.example"}


async def test_a_proxy_that_refuses(http: HttpClient, proxies: pytest.MonkeyPatch) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    async with raw_server(talk) as port:
        proxies.setenv("https_proxy", f"http://me:hunter22@127.0.0.1:{port}")
        error = await failing(http, "https://speech.example/v1")
    assert error.kind is ErrorKind.CONNECT
    assert str(error).endswith("can't be reached: the proxy refuses")
