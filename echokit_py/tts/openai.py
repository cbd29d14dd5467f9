"""Speech over OpenAI's HTTP API (`POST …/audio/speech`), decoded while it comes in. Splits and cleans no text.

Source: OpenAI's API reference, "Create speech". LocalAI, Kokoro-FastAPI, LlamaEdge, Groq and others speak it too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import aiohttp

from echokit_py.audio.decode import StreamDecoder
from echokit_py.audio.pcm import BYTES_PER_SECOND, AudioError, seconds
from echokit_py.config.settings import OpenAiTts
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.http import HttpClient, describe, read_body
from echokit_py.tts.base import Tts

# A sentence lasts seconds; what goes on for five minutes is a model that got stuck, or a radio station.
MAX_SECONDS = 300
# Five minutes of CD-like audio (48 kHz, stereo, 16 bit), whatever the decoder makes of it.
MAX_BODY = 64 * 1024 * 1024
MAX_ERROR_BODY = 64 * 1024
RAW_RATE = 24_000  # OpenAI's `pcm` format: "24kHz (16-bit signed, low-endian)", without a header


def build(settings: OpenAiTts, *, http: HttpClient, models: object) -> Tts:
    """Return the voice that `settings` describe."""
    return _OpenAiTts(settings, http)


class _OpenAiTts:
    def __init__(self, settings: OpenAiTts, http: HttpClient) -> None:
        self._settings = settings
        self._http = http

    async def start(self) -> None:
        """Nothing to load; the first request connects."""

    async def synthesize(self, text: str) -> AsyncIterator[bytes]:
        settings = self._settings
        key = settings.api_key.get_secret_value()
        body = request_body(settings, text)
        async with self._http.post(Stage.TTS, settings.url, key=key, json=body) as response:
            if response.content_type in ("application/json", "text/html"):
                words = describe(await read_body(Stage.TTS, response, MAX_ERROR_BODY))
                raise _bad_answer(f"the answer holds no audio but {words}; check url")
            try:
                async with aclosing(_decode(response)) as pieces:
                    async for piece in pieces:
                        yield piece
            except AudioError as error:
                raise _bad_answer(str(error)) from None

    async def probe(self) -> str:
        length = 0.0
        async for piece in self.synthesize("Hello."):
            length += seconds(piece)
        return f"{self._settings.model or 'the default model'}, voice {self._settings.voice}: {length:.1f} s of speech"

    async def close(self) -> None:
        """Nothing to close: the connections are the shared client's."""


def request_body(settings: OpenAiTts, text: str) -> dict[str, Any]:
    """The request for `text`. WAV, since it needs no decoder that looks ahead: the first sample comes first."""
    body: dict[str, Any] = {"voice": settings.voice, "input": text, "response_format": "wav"}
    if settings.model:
        body["model"] = settings.model
    if settings.speed is not None:
        body["speed"] = settings.speed
    return body


def raw_rate(content_type: str) -> int | None:
    """The sampling rate of a body without a header (`audio/pcm; rate=16000`), None for a format that names its own."""
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    if kind not in ("audio/pcm", "audio/l16", "audio/raw", "audio/x-raw"):
        return None
    rates = [value for name, _, value in (part.partition("=") for part in parameters) if name == "rate"]
    return int(rates[0]) if rates and rates[0].isdecimal() and 8_000 <= int(rates[0]) <= 192_000 else RAW_RATE


async def _decode(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """The audio of an answer, piece by piece (s16le, mono, 16 kHz). Raises AudioError, BackendError."""
    decoder = StreamDecoder(raw_rate(response.headers.get("Content-Type", "")))
    received = spoken = 0
    async for data in response.content.iter_any():
        received += len(data)
        pcm = decoder.feed(data) if decoder.quick(data) else await asyncio.to_thread(decoder.feed, data)
        spoken += len(pcm)
        if received > MAX_BODY or spoken > MAX_SECONDS * BYTES_PER_SECOND:
            raise _bad_answer(f"the speech for one sentence does not end: more than {MAX_SECONDS} s, or 64 MiB")
        if pcm:
            yield pcm
    if pcm := decoder.flush() if decoder.quick(b"") else await asyncio.to_thread(decoder.flush):
        yield pcm


def _bad_answer(message: str) -> BackendError:
    return BackendError(Stage.TTS, ErrorKind.BAD_ANSWER, message)
