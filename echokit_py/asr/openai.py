"""Speech recognition over OpenAI's HTTP API (`POST …/audio/transcriptions`). Judges no text: `sanity.py` does.

Source: OpenAI's API reference, "Create transcription". LlamaEdge, whisper.cpp, vLLM, Groq and others speak it too.
"""

from __future__ import annotations

import io
import json
import math
import re
from typing import Any

import aiohttp

from echokit_py.asr.base import Asr, Transcript
from echokit_py.audio.wav import write_wav
from echokit_py.config.settings import OpenAiAsr
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.http import HttpClient, describe, read_body

# Five minutes of fast speech are 6 KB of text; with a segment list and word times (verbose_json) some 300 KB.
MAX_ANSWER = 1024 * 1024
# Half a second of silence: the least that all servers take (OpenAI wants 0.1 s).
_SILENCE = bytes(16_000)
# Whisper.cpp's servers may begin a line with its time: "[00:00:00.000 --> 00:00:02.000] Hello".
_LINE_PREFIX = re.compile(r"^[ \t]*\[[^\]\n]*\] ", re.MULTILINE)


def build(settings: OpenAiAsr, *, http: HttpClient, models: object) -> Asr:
    """Return the recogniser that `settings` describe."""
    return _OpenAiAsr(settings, http)


class _OpenAiAsr:
    def __init__(self, settings: OpenAiAsr, http: HttpClient) -> None:
        self._settings = settings
        self._http = http
        # Only verbose_json tells how sure the model was. OpenAI's newer models refuse it, and so do some servers; where
        # the model is no Whisper there is nothing to gain.
        self._format = "verbose_json" if settings.model.lower().rpartition("/")[2].startswith("whisper") else "json"

    async def start(self) -> None:
        """Nothing to load; the first request connects."""

    async def transcribe(self, pcm: bytes) -> Transcript:
        if self._format != "json":
            try:
                return await self._ask(pcm, self._format)
            except BackendError as error:
                if error.kind is not ErrorKind.REFUSED:
                    raise
        transcript = await self._ask(pcm, "json")
        self._format = "json"  # which is why it was refused
        return transcript

    async def _ask(self, pcm: bytes, answer_format: str) -> Transcript:
        settings = self._settings
        key = settings.api_key.get_secret_value()
        form = self._form(pcm, answer_format)
        async with self._http.post(Stage.ASR, settings.url, key=key, form=form) as response:
            return read_transcript(await read_body(Stage.ASR, response, MAX_ANSWER), response.content_type)

    async def probe(self) -> str:
        await self.transcribe(_SILENCE)
        return f"{self._settings.model or 'the default model'} answers"

    async def close(self) -> None:
        """Nothing to close: the connections are the shared client's."""

    def _form(self, pcm: bytes, answer_format: str) -> aiohttp.FormData:
        form = aiohttp.FormData()
        # A file object, since aiohttp warns of bytes above 1 MiB (32 s of speech) that they are sent in one piece.
        form.add_field("file", io.BytesIO(write_wav(pcm)), filename="audio.wav", content_type="audio/wav")
        for name, value in {"response_format": answer_format, **form_fields(self._settings)}.items():
            form.add_field(name, value)
        return form


def form_fields(settings: OpenAiAsr) -> dict[str, str]:
    """The fields that the settings add to a request.

    "auto" is a language for whisper.cpp's servers only (their default is English). Servers that ask for a model, as
    OpenAI and Groq do, refuse the word and detect the language when there is none.
    """
    language = "" if settings.lang == "auto" and settings.model else settings.lang
    fields = {"model": settings.model, "language": language, "prompt": settings.prompt}
    return {name: value for name, value in fields.items() if value}


def read_transcript(body: bytes, content_type: str) -> Transcript:
    """Read a transcription answer: `{"text"}`, verbose_json (with `segments`), or plain text.

    Raises:
        BackendError: BAD_ANSWER, the body is something else.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = _plain_text(body, content_type)
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        segments = value.get("segments")
        return _transcript(value["text"], value.get("language"), segments if isinstance(segments, list) else [])
    if isinstance(value, str):
        return _transcript(value, None, [])
    if content_type == "text/plain" and not isinstance(value, dict):
        return _transcript(body.decode(), None, [])  # "42" is JSON too, and words all the same
    raise _bad_answer(body)


def _plain_text(body: bytes, content_type: str) -> str:
    """`body` as the words it is; a web page or broken JSON are none."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise _bad_answer(body) from None
    if content_type not in ("text/plain", "application/octet-stream") or text.lstrip().startswith(("{", "<")):
        raise _bad_answer(body)
    return text


def _bad_answer(body: bytes) -> BackendError:
    return BackendError(
        Stage.ASR, ErrorKind.BAD_ANSWER, f"the answer holds no transcript but {describe(body)}; check url"
    )


def _transcript(text: str, language: object, segments: list[Any]) -> Transcript:
    """The most speech-like segment says whether anybody spoke, the most repetitive one whether the model got stuck."""
    silence = _numbers(segments, "no_speech_prob")
    repetition = _numbers(segments, "compression_ratio")
    return Transcript(
        text=_LINE_PREFIX.sub("", text).strip(),
        language=language if isinstance(language, str) and language else None,
        no_speech_prob=min(silence, default=None),
        avg_logprob=max(_numbers(segments, "avg_logprob"), default=None),
        compression_ratio=max(repetition, default=None),
    )


def _numbers(segments: list[Any], name: str) -> list[float]:
    values = [segment.get(name) for segment in segments if isinstance(segment, dict)]
    return [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]
