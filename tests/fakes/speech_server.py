"""A scripted server of OpenAI's audio API on a real loopback socket. As strict as the real one, and faulty on request.

Source: OpenAI's API reference, "Create transcription" (/v1/audio/transcriptions), "Create speech" (/v1/audio/speech)
and "Errors". The WAV header with sizes 0xFFFFFFFF is what the real service streams.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import av
import numpy as np
from aiohttp import web

from echokit_py.audio.pcm import AudioError
from echokit_py.audio.wav import Wav, read_wav
from tests.fakes.faults import Fault, error, replacement, send

RATE = 24_000  # Hz, of the speech it answers
PIECE = 4800  # bytes in a piece of streamed speech: 100 ms
_TYPES = {
    "wav": "audio/wav",
    "pcm": "audio/pcm",
    "mp3": "audio/mpeg",
    "flac": "audio/flac",
    "opus": "audio/ogg",
    "aac": "audio/aac",
}
_CODECS = {
    "mp3": ("libmp3lame", "mp3"),
    "flac": ("flac", "flac"),
    "opus": ("libopus", "ogg"),
    "aac": ("aac", "adts"),
}
_FILE_TYPES = ("flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm")
_ASR_FIELDS = ("file", "model", "language", "prompt", "response_format", "temperature")
_TTS_FIELDS = ("model", "input", "voice", "response_format", "speed", "instructions", "stream_format")


@dataclass(frozen=True, slots=True)
class Transcription:
    """A request for a transcription that was accepted: its text fields, and the audio."""

    fields: dict[str, str]
    wav: Wav
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Speech:
    """A request for speech that was accepted: its JSON body."""

    body: dict[str, Any]
    headers: dict[str, str]


def tone(text: str) -> bytes:
    """40 ms of a 440 Hz tone for each character of `text` (s16le, mono, 24 kHz): a stand-in for its speech."""
    times = np.arange(len(text) * RATE // 25) / RATE
    return (np.sin(2 * np.pi * 440 * times) * 8000).astype("<i2").tobytes()


def encode(pcm: bytes, form: str) -> bytes:
    """`pcm` (s16le, mono, 24 kHz) as a file in one of the API's formats."""
    if form == "pcm":
        return pcm
    if form == "wav":
        sizes = 0xFFFFFFFF
        head = struct.pack("<4sI4s4sIHHIIHH", b"RIFF", sizes, b"WAVE", b"fmt ", 16, 1, 1, RATE, RATE * 2, 2, 16)
        return head + struct.pack("<4sI", b"data", sizes) + pcm
    codec, container = _CODECS[form]
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        stream = output.add_stream(codec, rate=RATE)
        assert isinstance(stream, av.AudioStream)
        frame = av.AudioFrame.from_ndarray(np.frombuffer(pcm, "<i2").reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = RATE
        output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return file.getvalue()


class SpeechServer:
    """The server, an asynchronous context manager.

    Args:
        texts: what it hears: texts in turn (the last one again and again), or a function of the audio.
        voice: how it speaks: a function from the text to s16le mono 24 kHz audio.
        form: the format it answers, whatever was asked for; "" answers what was asked for.
        key: the API key it wants; "" accepts all.
        strict: as OpenAI: a model is required, a language is an ISO 639-1 code. Else as LlamaEdge's servers.

    `asr_fault` and `tts_fault` may be set at any time and hold until they are set to None.
    """

    def __init__(
        self,
        *,
        texts: Sequence[str] | Callable[[Wav], str] = ("Hello.",),
        voice: Callable[[str], bytes] = tone,
        form: str = "",
        key: str = "",
        strict: bool = True,
    ) -> None:
        self.texts = texts
        self.voice = voice
        self.form = form
        self.key = key
        self.strict = strict
        self.asr_fault: Fault | None = None
        self.tts_fault: Fault | None = None
        self.asr_answer: web.Response | None = None  # given to every request instead of the script's
        self.tts_answer: web.Response | None = None
        self.transcriptions: list[Transcription] = []
        self.speeches: list[Speech] = []
        self.open_requests = 0  # being answered just now
        self.connections = 0  # opened so far
        self.changed = asyncio.Condition()  # notified when a request begins or ends
        self._port = 0
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> SpeechServer:
        await self.revive()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.kill()

    @property
    def asr_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1/audio/transcriptions"

    @property
    def tts_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1/audio/speech"

    async def kill(self) -> None:
        """Stop: all connections end, the port refuses. Requests that hang are let go."""
        self._closing.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def revive(self) -> None:
        """Start, after `kill` on the same port again."""
        self._closing = asyncio.Event()
        app = web.Application(client_max_size=25 * 1024 * 1024, middlewares=[self._watch])
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        app.router.add_post("/v1/audio/speech", self._speak)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds; it is looked at whenever a request begins or ends."""
        async with self.changed:
            await self.changed.wait_for(condition)

    @web.middleware
    async def _watch(self, request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        await self._count(1)
        try:
            problem = self._wrong_key(request)
            answer: web.StreamResponse = problem if problem is not None else await handler(request)
            return answer
        finally:
            await self._count(-1)

    async def _count(self, step: int) -> None:
        async with self.changed:
            self.open_requests += step
            self.changed.notify_all()

    def _wrong_key(self, request: web.Request) -> web.Response | None:
        sent = request.headers.get("Authorization", "")
        if not self.key or sent == f"Bearer {self.key}":
            return None
        if not sent:
            return error(401, "You didn't provide an API key.")
        # The real one masks the key; others repeat it whole, which must not reach our logs.
        return error(401, f"Incorrect API key provided: {sent.removeprefix('Bearer ')}.", code="invalid_api_key")

    async def _transcribe(self, request: web.Request) -> web.StreamResponse:
        taken = await self._read_form(request)
        if isinstance(taken, web.Response):
            return taken
        if answer := await replacement(request, self.asr_fault, "application/json", self._closing):
            return answer
        self.transcriptions.append(taken)
        if self.asr_answer is not None:
            return self.asr_answer
        body, content_type = self._transcript(taken)
        return await send(request, [body], content_type=content_type, fault=self.asr_fault, closing=self._closing)

    async def _read_form(self, request: web.Request) -> Transcription | web.Response:
        if request.content_type != "multipart/form-data":
            return error(400, "Could not parse multipart form")
        form = await request.post()
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
        if unknown := sorted(set(form) - set(_ASR_FIELDS)):
            return error(400, f"Unrecognized request argument supplied: {unknown[0]}")
        if len(set(form)) != len(form):
            return error(400, "A field was sent twice")
        if self.strict and not fields.get("model"):
            return error(400, "you must provide a model parameter")
        if self.strict and "language" in fields and not re.fullmatch("[a-z]{2,3}", fields["language"]):
            return error(
                400, f"Invalid language '{fields['language']}'. Language parameter must be in ISO-639-1 format."
            )
        wav = self._read_file(form.get("file"))
        return wav if isinstance(wav, web.Response) else Transcription(fields, wav, dict(request.headers))

    def _read_file(self, upload: object) -> Wav | web.Response:
        if not isinstance(upload, web.FileField):
            return error(400, "'file' is a required property")
        with upload.file:
            data = upload.file.read()
        if upload.filename.rpartition(".")[2] not in _FILE_TYPES:
            return error(400, f"Invalid file format. Supported formats: {list(_FILE_TYPES)}")
        try:
            wav = read_wav(data)
        except AudioError:
            return error(400, "Audio file might be corrupted or unsupported", param="file", code="invalid_value")
        if len(wav.pcm) < wav.rate * wav.channels * 2 // 10:
            return error(400, "Audio file is too short. Minimum audio length is 0.1 seconds.", code="audio_too_short")
        return wav

    def _transcript(self, taken: Transcription) -> tuple[bytes, str]:
        if callable(self.texts):
            text = self.texts(taken.wav)
        else:
            text = self.texts[min(len(self.transcriptions), len(self.texts)) - 1]
        if taken.fields.get("response_format") == "text":
            return text.encode() + b"\n", "text/plain; charset=utf-8"
        answer: dict[str, Any] = {"text": text}
        if taken.fields.get("response_format") == "verbose_json":
            segment = {"id": 0, "text": text, "no_speech_prob": 0.02, "compression_ratio": 1.1}
            answer |= {"task": "transcribe", "language": "english", "segments": [segment]}
        return json.dumps(answer).encode(), "application/json"

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        try:
            body = json.loads(await request.read())
        except ValueError:
            return error(400, "We could not parse the JSON body of your request.")
        if problem := self._wrong_speech(body):
            return problem
        form = self.form or body.get("response_format", "mp3")
        if answer := await replacement(request, self.tts_fault, _TYPES[form], self._closing):
            return answer
        self.speeches.append(Speech(body, dict(request.headers)))
        if self.tts_answer is not None:
            return self.tts_answer
        data = await asyncio.to_thread(encode, self.voice(body["input"]), form)
        pieces = [data[start : start + PIECE] for start in range(0, len(data), PIECE)]
        return await send(request, pieces, content_type=_TYPES[form], fault=self.tts_fault, closing=self._closing)

    def _wrong_speech(self, body: Any) -> web.Response | None:
        if not isinstance(body, dict):
            return error(400, "Invalid type for the body: expected an object.")
        for name in ("model", "input", "voice") if self.strict else ("input",):
            if not isinstance(body.get(name), str) or not body[name]:
                return error(
                    400, f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter"
                )
        if unknown := sorted(set(body) - set(_TTS_FIELDS)):
            return error(400, f"Unknown parameter: '{unknown[0]}'.", param=unknown[0], code="unknown_parameter")
        if len(body["input"]) > 4096:
            return error(400, "String too long: expected at most 4096 characters.", code="string_above_max_length")
        speed = body.get("speed", 1.0)
        right = {
            "response_format": body.get("response_format", "mp3") in _TYPES,
            "speed": isinstance(speed, int | float) and 0.25 <= speed <= 4,
        }
        wrong = [name for name, fine in right.items() if not fine]
        return (
            error(400, f"Invalid value: '{body[wrong[0]]}'.", param=wrong[0], code="invalid_value") if wrong else None
        )
