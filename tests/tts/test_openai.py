"""Speech over HTTP, against the fake of OpenAI's server on a real socket: what is sent, decoded, and refused."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import numpy as np
import pytest
from aiohttp import web
from pydantic import SecretStr

from echokit_py.audio.pcm import seconds
from echokit_py.config.settings import OpenAiTts
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.http import HttpClient
from echokit_py.tts import openai
from echokit_py.tts.base import Tts
from echokit_py.tts.openai import build, raw_rate
from tests.fakes.faults import Fault
from tests.fakes.speech_server import SpeechServer

KEY = "sk-secret-0123456789"
SENTENCE = "The time is half past ten."  # 26 characters, 40 ms each in the fake: 1.04 s


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    made = HttpClient(connect_s=10)
    yield made
    await made.close()


@pytest.fixture
async def server() -> AsyncIterator[SpeechServer]:
    async with SpeechServer(key=KEY) as made:
        yield made


def tts(server: SpeechServer, http: HttpClient, *, key: str = KEY, **settings: Any) -> Tts:
    values: dict[str, Any] = {"url": server.tts_url, "api_key": SecretStr(key), **settings}
    return build(OpenAiTts(**values), http=http, models=None)


async def speak(voice: Tts, text: str = SENTENCE) -> bytes:
    return b"".join([piece async for piece in voice.synthesize(text)])


def pitch(pcm: bytes) -> float:
    """The strongest frequency of `pcm` (s16le, mono, 16 kHz), in Hz."""
    samples = np.frombuffer(pcm, "<i2")
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum)) * 16_000 / len(samples)


async def test_a_sentence_becomes_audio(server: SpeechServer, http: HttpClient) -> None:
    voice = tts(server, http, model="tts-1", voice="nova")
    await voice.start()
    pcm = await speak(voice)
    await voice.close()
    assert seconds(pcm) == pytest.approx(1.04, abs=0.01)
    assert pitch(pcm) == pytest.approx(440, abs=2)
    assert server.speeches[0].body == {"model": "tts-1", "voice": "nova", "input": SENTENCE, "response_format": "wav"}


@pytest.mark.parametrize(
    ("settings", "extra"), [({"speed": 1.5}, {"model": "gpt-4o-tts", "speed": 1.5}), ({"model": ""}, {})]
)
async def test_what_is_not_set_is_not_sent(
    server: SpeechServer, http: HttpClient, settings: dict[str, Any], extra: dict[str, Any]
) -> None:
    server.strict = False
    await speak(tts(server, http, **settings))
    assert server.speeches[0].body == {"voice": "alloy", "input": SENTENCE, "response_format": "wav", **extra}


@pytest.mark.parametrize("form", ["wav", "pcm", "mp3", "flac", "opus", "aac"])
async def test_whatever_format_comes_is_decoded(server: SpeechServer, http: HttpClient, form: str) -> None:
    """Servers of the API answer what they can, not always what was asked for."""
    server.form = form
    pcm = await speak(tts(server, http))
    assert seconds(pcm) == pytest.approx(1.04, abs=0.15)  # the codecs' own padding
    assert pitch(pcm) == pytest.approx(440, abs=3)


async def test_audio_comes_out_before_the_answer_ends(server: SpeechServer, http: HttpClient) -> None:
    server.tts_fault = Fault.STALL
    async with aclosing(cast(AsyncGenerator[bytes, None], tts(server, http).synthesize(SENTENCE))) as pieces:
        assert await asyncio.wait_for(anext(pieces), 20)
        assert server.open_requests == 1
    await asyncio.wait_for(server.until(lambda: server.open_requests == 0), 20)  # closing closes the request


async def test_many_at_once_get_their_own_audio(server: SpeechServer, http: HttpClient) -> None:
    voice = tts(server, http)
    spoken = await asyncio.gather(*(speak(voice, "x" * length) for length in range(10, 30)))
    assert [round(seconds(pcm) / 0.04) for pcm in spoken] == list(range(10, 30))


async def test_probe(server: SpeechServer, http: HttpClient) -> None:
    assert await tts(server, http, voice="nova").probe() == "gpt-4o-tts, voice nova: 0.2 s of speech"
    server.strict = False
    assert (await tts(server, http, model="").probe()).startswith("the default model, voice alloy: ")


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
    voice = tts(server, http)
    server.tts_fault = fault
    with pytest.raises(BackendError) as caught:
        await speak(voice)
    assert (caught.value.stage, caught.value.kind) == (Stage.TTS, kind)
    assert KEY not in "".join(traceback.format_exception(caught.value)) + caplog.text
    server.tts_fault = None
    assert seconds(await speak(voice)) > 1


def test_every_fault_is_covered() -> None:
    assert set(KINDS) | {Fault.HANG, Fault.STALL, Fault.SLOW} == set(Fault)


async def test_what_came_before_a_cut_was_given(server: SpeechServer, http: HttpClient) -> None:
    server.tts_fault = Fault.CUT_LAST
    heard = bytearray()

    async def listen() -> None:
        async for piece in tts(server, http).synthesize(SENTENCE):
            heard.extend(piece)

    with pytest.raises(BackendError):
        await listen()
    assert seconds(bytes(heard)) > 0.9


async def test_a_slow_answer_is_waited_for(server: SpeechServer, http: HttpClient) -> None:
    server.tts_fault = Fault.SLOW
    assert seconds(await speak(tts(server, http))) == pytest.approx(1.04, abs=0.01)


async def test_a_request_that_hangs_can_be_cancelled(server: SpeechServer, http: HttpClient) -> None:
    voice = tts(server, http)
    server.tts_fault = Fault.HANG
    task = asyncio.create_task(speak(voice))
    await asyncio.wait_for(server.until(lambda: server.open_requests == 1), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(server.until(lambda: server.open_requests == 0), 20)
    server.tts_fault = None
    assert seconds(await speak(voice)) > 1


async def test_a_server_that_is_gone_and_comes_back(server: SpeechServer, http: HttpClient) -> None:
    voice = tts(server, http)
    await speak(voice)
    await server.kill()
    with pytest.raises(BackendError) as caught:
        await speak(voice)
    assert caught.value.kind is ErrorKind.CONNECT
    await server.revive()
    assert seconds(await speak(voice)) > 1


async def test_a_wrong_key(server: SpeechServer, http: HttpClient) -> None:
    with pytest.raises(BackendError) as caught:
        await speak(tts(server, http, key="sk-wrong-42"))
    assert caught.value.kind is ErrorKind.AUTH
    assert "sk-wrong-42" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "content_type", "said"),
    [
        (json.dumps({"error": "no such voice"}), "application/json", "no audio but no such voice; check url"),
        ("<html><title>Login</title>", "text/html", r"no audio but an HTML page \(Login\); check url"),
        ("<html><title>Login</title>", "audio/wav", "a web page"),
        ("Internal problem, try again later", "text/plain", "text instead of audio: Internal problem"),
    ],
)  # fmt: skip
async def test_an_answer_that_is_no_audio_is_quoted(
    server: SpeechServer, http: HttpClient, body: str, content_type: str, said: str
) -> None:
    server.tts_answer = web.Response(text=body, content_type=content_type)
    with pytest.raises(BackendError, match=said) as caught:
        await speak(tts(server, http))
    assert (caught.value.kind, caught.value.retryable) == (ErrorKind.BAD_ANSWER, False)


async def test_a_wav_without_a_sample_is_a_bad_answer(server: SpeechServer, http: HttpClient) -> None:
    server.voice = lambda _: b""
    with pytest.raises(BackendError) as caught:
        await speak(tts(server, http))
    assert caught.value.kind is ErrorKind.BAD_ANSWER


@pytest.mark.parametrize(("name", "value"), [("MAX_SECONDS", 1), ("MAX_BODY", 40_000)])
async def test_speech_without_end_is_stopped(
    server: SpeechServer, http: HttpClient, monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    monkeypatch.setattr(openai, name, value)
    with pytest.raises(BackendError, match="does not end") as caught:
        await speak(tts(server, http))
    assert caught.value.kind is ErrorKind.BAD_ANSWER
    await asyncio.wait_for(server.until(lambda: server.open_requests == 0), 20)


@pytest.mark.parametrize(
    ("content_type", "rate"),
    [
        ("audio/wav", None),
        ("audio/mpeg", None),
        ("", None),
        ("audio/pcm", 24_000),
        ("audio/PCM; charset=x", 24_000),
        ("audio/L16; rate=16000; channels=1", 16_000),
        ("audio/pcm;rate=0", 24_000),
        ("audio/pcm;rate=lots", 24_000),
        ("audio/pcm;rate=\u00b2", 24_000),
    ],
)
def test_rate_of_audio_without_a_header(content_type: str, rate: int | None) -> None:
    assert raw_rate(content_type) == rate


# --- the fake itself ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "text", "words"),
    [
        ({"model": ""}, "Hi.", "Missing required parameter: 'model'."),
        ({}, "", "Missing required parameter: 'input'."),
        ({}, "x" * 4097, "String too long"),
    ],
)
async def test_the_fake_is_as_strict_as_the_real_one(
    server: SpeechServer, http: HttpClient, settings: dict[str, str], text: str, words: str
) -> None:
    with pytest.raises(BackendError) as caught:
        await speak(tts(server, http, **settings), text)
    assert (caught.value.kind, caught.value.status) == (ErrorKind.REFUSED, 400)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"temperature": 1}, "Unknown parameter: 'temperature'."),
        ({"response_format": "ogg"}, "Invalid value: 'ogg'."),
        ({"speed": 5}, "Invalid value: '5'."),
    ],
)
async def test_the_fake_refuses_what_the_api_does_not_know(
    server: SpeechServer, http: HttpClient, body: dict[str, Any], words: str
) -> None:
    request = {"model": "m", "voice": "v", "input": "Hi.", **body}
    with pytest.raises(BackendError, match="400") as caught:
        async with http.post(Stage.TTS, server.tts_url, key=KEY, json=request):
            pass
    assert words in str(caught.value)
