"""Recognition over HTTP, against the fake of OpenAI's server on a real socket: what is sent, read, and refused."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from echokit_py.asr.base import Asr, Transcript
from echokit_py.asr.openai import MAX_ANSWER, build, read_transcript
from echokit_py.audio.wav import Wav
from echokit_py.config.settings import OpenAiAsr
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.http import HttpClient
from tests.fakes.faults import Fault
from tests.fakes.speech_server import SpeechServer

KEY = "sk-secret-0123456789"
SECOND = bytes(range(256)) * 125  # 1 s: s16le, mono, 16 kHz


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    made = HttpClient(connect_s=10)
    yield made
    await made.close()


@pytest.fixture
async def server() -> AsyncIterator[SpeechServer]:
    async with SpeechServer(texts=["What time is it?"], key=KEY) as made:
        yield made


def asr(server: SpeechServer, http: HttpClient, *, key: str = KEY, **settings: Any) -> Asr:
    values: dict[str, Any] = {"model": "whisper-1", **settings}
    return build(OpenAiAsr(url=server.asr_url, api_key=SecretStr(key), **values), http=http, models=None)


async def test_an_utterance_becomes_text(server: SpeechServer, http: HttpClient) -> None:
    recogniser = asr(server, http, lang="en", prompt="Hello\n你好\n(noise)\n")
    await recogniser.start()
    heard = await recogniser.transcribe(SECOND)
    assert heard == Transcript("What time is it?", "english", no_speech_prob=0.02, compression_ratio=1.1)
    await recogniser.close()
    (request,) = server.transcriptions
    assert request.wav == Wav(16_000, 1, SECOND)
    assert request.fields == {
        "response_format": "verbose_json",
        "model": "whisper-1",
        "language": "en",
        "prompt": "Hello\n你好\n(noise)\n",
    }


async def test_a_long_utterance_is_sent_without_a_warning(server: SpeechServer, http: HttpClient) -> None:
    """60 s are above 1 MiB, where aiohttp warns of bodies given as bytes; warnings are errors here."""
    await asr(server, http).transcribe(SECOND * 60)
    assert server.transcriptions[0].wav.pcm == SECOND * 60


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        ({"model": "gpt-4o-transcribe"}, {"model": "gpt-4o-transcribe"}),
        ({"model": "gpt-4o-transcribe", "lang": "auto"}, {"model": "gpt-4o-transcribe"}),
        ({"lang": "auto", "model": ""}, {"language": "auto"}),
        ({"lang": "zh", "model": ""}, {"language": "zh"}),
    ],
)
async def test_what_is_not_set_is_not_sent(
    server: SpeechServer, http: HttpClient, settings: dict[str, str], fields: dict[str, str]
) -> None:
    server.strict = False
    await asr(server, http, **settings).transcribe(SECOND)
    assert server.transcriptions[0].fields == {"response_format": "json", **fields}


@pytest.mark.parametrize("model", ["whisper-1", "openai/whisper-large-v3", "Whisper-large-v3-turbo"])
async def test_a_whisper_is_asked_how_sure_it_was(server: SpeechServer, http: HttpClient, model: str) -> None:
    assert (await asr(server, http, model=model).transcribe(SECOND)).no_speech_prob == 0.02


async def test_a_server_that_refuses_the_details_is_asked_for_the_words_only(http: HttpClient) -> None:
    formats: list[object] = []

    async def plain_only(request: web.Request) -> web.Response:
        formats.append((await request.post())["response_format"])
        if formats[-1] != "json":
            return web.json_response({"error": {"message": "response_format is not supported"}}, status=400)
        return web.json_response({"text": "Hello."})

    app = web.Application()
    app.router.add_post("/asr", plain_only)
    async with TestServer(app, host="127.0.0.1") as there:
        recogniser = build(OpenAiAsr(url=str(there.make_url("/asr")), model="whisper-1"), http=http, models=None)
        assert await recogniser.transcribe(SECOND) == Transcript("Hello.")
        assert await recogniser.transcribe(SECOND) == Transcript("Hello.")
    assert formats == ["verbose_json", "json", "json"]


async def test_many_at_once_get_their_own_text(server: SpeechServer, http: HttpClient) -> None:
    server.texts = lambda wav: f"{len(wav.pcm)} bytes"
    recogniser = asr(server, http)
    lengths = [8000 + 2 * number for number in range(20)]
    heard = await asyncio.gather(*(recogniser.transcribe(bytes(length)) for length in lengths))
    assert [transcript.text for transcript in heard] == [f"{length} bytes" for length in lengths]


async def test_probe(server: SpeechServer, http: HttpClient) -> None:
    assert await asr(server, http).probe() == "whisper-1 answers"
    assert server.transcriptions[0].wav == Wav(16_000, 1, bytes(16_000))
    server.strict = False
    assert await asr(server, http, model="").probe() == "the default model answers"


# --- faults ---------------------------------------------------------------------------------------------------------

KINDS = {
    Fault.REFUSE: ErrorKind.BROKEN_OFF,
    Fault.STATUS_500: ErrorKind.SERVER,
    Fault.STATUS_429: ErrorKind.RATE_LIMIT,
    Fault.GARBAGE: ErrorKind.BAD_ANSWER,
    Fault.HTML: ErrorKind.BAD_ANSWER,
    Fault.EMPTY: ErrorKind.BAD_ANSWER,
    Fault.CUT_FIRST: ErrorKind.BROKEN_OFF,
    Fault.CUT_MIDDLE: ErrorKind.BROKEN_OFF,
    Fault.CUT_LAST: ErrorKind.BROKEN_OFF,
}


@pytest.mark.parametrize(("fault", "kind"), KINDS.items())
async def test_a_fault_is_an_error_and_the_next_request_works(
    server: SpeechServer, http: HttpClient, fault: Fault, kind: ErrorKind, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    recogniser = asr(server, http)
    server.asr_fault = fault
    with pytest.raises(BackendError) as caught:
        await recogniser.transcribe(SECOND)
    assert (caught.value.stage, caught.value.kind) == (Stage.ASR, kind)
    assert KEY not in "".join(traceback.format_exception(caught.value)) + caplog.text
    server.asr_fault = None
    assert (await recogniser.transcribe(SECOND)).text == "What time is it?"


def test_every_fault_is_covered() -> None:
    assert set(KINDS) | {Fault.HANG, Fault.STALL, Fault.SLOW} == set(Fault)


async def test_a_slow_answer_is_waited_for(server: SpeechServer, http: HttpClient) -> None:
    server.asr_fault = Fault.SLOW
    assert (await asr(server, http).transcribe(SECOND)).text == "What time is it?"


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.STALL])
async def test_a_request_that_hangs_can_be_cancelled(server: SpeechServer, http: HttpClient, fault: Fault) -> None:
    recogniser = asr(server, http)
    server.asr_fault = fault
    task = asyncio.create_task(recogniser.transcribe(SECOND))
    await asyncio.wait_for(server.until(lambda: server.open_requests == 1), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(server.until(lambda: server.open_requests == 0), 20)
    server.asr_fault = None
    assert (await recogniser.transcribe(SECOND)).text == "What time is it?"


async def test_a_server_that_is_gone_and_comes_back(server: SpeechServer, http: HttpClient) -> None:
    recogniser = asr(server, http)
    await recogniser.transcribe(SECOND)
    await server.kill()
    with pytest.raises(BackendError) as caught:
        await recogniser.transcribe(SECOND)
    assert caught.value.kind is ErrorKind.CONNECT
    await server.revive()
    assert (await recogniser.transcribe(SECOND)).text == "What time is it?"


async def test_a_wrong_key(server: SpeechServer, http: HttpClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(BackendError) as caught:
        await asr(server, http, key="sk-wrong-42").transcribe(SECOND)
    assert caught.value.kind is ErrorKind.AUTH
    assert str(caught.value).endswith("Incorrect API key provided: ***.; check api_key")
    assert "sk-wrong-42" not in caplog.text


async def test_a_retry_time_reaches_the_caller(server: SpeechServer, http: HttpClient) -> None:
    server.asr_fault = Fault.STATUS_429
    with pytest.raises(BackendError) as caught:
        await asr(server, http).transcribe(SECOND)
    assert caught.value.retry_after == 7.0


async def test_a_web_page_is_named(server: SpeechServer, http: HttpClient) -> None:
    server.asr_fault = Fault.HTML
    with pytest.raises(BackendError, match=r"no transcript but an HTML page \(Welcome to nginx!\); check url"):
        await asr(server, http).transcribe(SECOND)


async def test_an_answer_without_end_is_not_kept(server: SpeechServer, http: HttpClient) -> None:
    server.asr_answer = web.Response(text=json.dumps({"text": "x" * MAX_ANSWER}), content_type="application/json")
    with pytest.raises(BackendError, match="longer than 1024 KiB"):
        await asr(server, http).transcribe(SECOND)


# --- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ('{"text": " Hello. "}', "application/json", "Hello."),
        ('{"text": "你好", "usage": {"type": "tokens"}}', "application/json", "你好"),
        ('{"text": ""}', "application/json", ""),
        ('{"text": "Hello."}', "text/plain", "Hello."),
        ('"Hello."', "application/json", "Hello."),
        ("Hello.\n", "text/plain", "Hello."),
        ("Hello.", "application/octet-stream", "Hello."),
        ("42", "text/plain", "42"),
        ("", "text/plain", ""),
        ('{"text": "[00:00.000 --> 00:02.000]  Hi.\\n[00:02.000 --> 00:03.000] Bye."}', "text/plain", "Hi.\nBye."),
        ('{"text": "Item [1] is right."}', "application/json", "Item [1] is right."),
        ('{"text": "[BLANK_AUDIO]"}', "application/json", "[BLANK_AUDIO]"),
        ('{"text": "(noise)"}', "application/json", "(noise)"),
    ],
)  # fmt: skip
def test_what_a_transcript_looks_like(body: str, content_type: str, text: str) -> None:
    assert read_transcript(body.encode(), content_type) == Transcript(text)


def test_the_evidence_of_verbose_answers() -> None:
    body = {
        "text": "Hello. Bye.",
        "language": "english",
        "segments": [
            {"no_speech_prob": 0.6, "avg_logprob": -1.5, "compression_ratio": 0.9},
            {"no_speech_prob": 0.1, "avg_logprob": -0.4, "compression_ratio": 2.6},
            {"no_speech_prob": None, "compression_ratio": float("nan")},
            "odd",
        ],
    }
    heard = read_transcript(json.dumps(body).encode(), "application/json")
    assert heard == Transcript("Hello. Bye.", "english", no_speech_prob=0.1, avg_logprob=-0.4, compression_ratio=2.6)


@pytest.mark.parametrize("extra", [{"segments": None, "language": ""}, {"segments": {"a": 1}, "language": 3}])
def test_odd_extras_are_no_evidence(extra: dict[str, Any]) -> None:
    assert read_transcript(json.dumps({"text": "Hello.", **extra}).encode(), "application/json") == Transcript("Hello.")


@pytest.mark.parametrize(
    ("body", "content_type", "said"),
    [
        (b"", "application/json", "nothing"),
        (b'{"text": nul', "application/json", '{"text": nul'),
        (b'{"text": nul', "text/plain", '{"text": nul'),
        (b'{"text": null}', "application/json", '{"text": null}'),
        (b'{"text": 3}', "application/json", '{"text": 3}'),
        (b'{"error": {"message": "model is loading"}}', "application/json", "model is loading"),
        (b'{"error": "no model"}', "text/plain", "no model"),
        (b"[]", "application/json", "[]"),
        (b"null", "application/json", "null"),
        (b"<html><title>Login</title>", "text/plain", "an HTML page (Login)"),
        (b"Hello.", "application/json", "Hello."),
        (b"data: {}\n\n", "text/event-stream", "data: {}"),
        (b"\xff\xfe", "text/plain", "\ufffd\ufffd"),
        (b"[" * 100_000, "application/json", "[[["),
    ],
)
def test_what_is_no_transcript(body: bytes, content_type: str, said: str) -> None:
    with pytest.raises(BackendError) as caught:
        read_transcript(body, content_type)
    assert (caught.value.kind, caught.value.retryable) == (ErrorKind.BAD_ANSWER, False)
    assert str(caught.value).startswith(f"asr bad_answer: the answer holds no transcript but {said}")


# --- the fake itself ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": ""}, "you must provide a model parameter"),
        ({"lang": "english"}, "Invalid language 'english'"),
    ],
)
async def test_the_fake_is_as_strict_as_the_real_one(
    server: SpeechServer, http: HttpClient, settings: dict[str, str], words: str
) -> None:
    with pytest.raises(BackendError) as caught:
        await asr(server, http, **settings).transcribe(SECOND)
    assert (caught.value.kind, caught.value.status) == (ErrorKind.REFUSED, 400)
    assert words in str(caught.value)
    with pytest.raises(BackendError, match="Audio file is too short"):
        await asr(server, http).transcribe(bytes(3000))
