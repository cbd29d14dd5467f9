"""Speech recognition on this machine: Whisper by faster-whisper (CTranslate2). Judges no text: `sanity.py` does."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from echokit_py.asr.base import Transcript
from echokit_py.audio.pcm import BYTES_PER_SAMPLE, SAMPLE_RATE
from echokit_py.config.settings import FasterWhisperAsr
from echokit_py.errors import BackendError, ErrorKind, ModelError, Stage
from echokit_py.http import HttpClient
from echokit_py.log import sanitize
from echokit_py.models.store import ModelStore

Result = TypeVar("Result")

# Threads of one recognition, unless they are set. Two cores recognise a command in 0.7 s with two threads and in 1.2 s
# with one, and eight commands at once no slower (measured). Machines with more cores have other work for them.
MAX_THREADS = 4

# Requests that may wait for a worker. At half a second each the last of them waits longer than a turn may take.
MAX_WAITING = 128

# A model that is stuck repeats itself up to Whisper's limit of 448 tokens, ten times the cost of a command. People
# speak up to 7 tokens a second (Chinese; English 4), so that this leaves twice as many. Above LONG_S no limit is set:
# it would come near Whisper's own.
TOKENS_PER_SECOND = 16
LONG_S = 12


def build(settings: FasterWhisperAsr, *, http: HttpClient, models: ModelStore) -> LocalWhisper:
    """Return the recogniser that `settings` describe, not yet loaded."""
    return LocalWhisper(settings, models)


class LocalWhisper:
    """One loaded model with `num_workers` threads that recognise for all devices, in the order of the requests."""

    def __init__(self, settings: FasterWhisperAsr, models: ModelStore) -> None:
        self._settings = settings
        self._models = models
        self._model: Any = None
        self._language: str | None = None
        self._waiting = 0
        self._abandoned: set[asyncio.Future[Any]] = set()
        # A guess at an utterance that goes on is soon replaced by the next: that one had better wait, since while it
        # waits it can still be called off for nothing, than take the last worker and be abandoned as well.
        self._most_abandoned = max(1, settings.num_workers // 2)
        self._executor = ThreadPoolExecutor(settings.num_workers, thread_name_prefix="asr")

    async def start(self) -> None:
        """Load the model and run it once, since the first run takes longer.

        Raises:
            ModelError: no such model, the package is not installed, or `lang` is no language of the model.
            BackendError: the files are there and can't be used (damaged, no such device).
        """
        path = await self._models.path(self._settings.model)
        await self._run(self._load, path)
        await self.transcribe(bytes(SAMPLE_RATE))

    async def transcribe(self, pcm: bytes) -> Transcript:
        """Recognise an utterance (s16le, mono, 16 kHz).

        Windows of up to 30 s that Whisper takes for silence by its own rule (no_speech_prob > 0.6 and a mean log
        probability < -1) give no text; nothing else is dropped. Of several windows the most speech-like gives
        `no_speech_prob`, the surest `avg_logprob`, the most repetitive one `compression_ratio`.

        A cancelled request doesn't run when it has not begun; one that runs is abandoned: it ends with the window that
        it is at, since CTranslate2 can't be interrupted inside one. Raises BackendError.
        """
        if self._waiting >= MAX_WAITING:
            raise BackendError(Stage.ASR, ErrorKind.RATE_LIMIT, f"{MAX_WAITING} utterances wait for recognition")
        self._waiting += 1
        unwanted = threading.Event()
        try:
            while len(self._abandoned) >= self._most_abandoned:
                await asyncio.wait(self._abandoned, return_when=asyncio.FIRST_COMPLETED)
            return await self._run(self._transcribe, pcm, unwanted)
        finally:
            unwanted.set()
            self._waiting -= 1

    async def probe(self) -> str:
        """Recognise half a second of silence; return what runs here. Raises BackendError."""
        await self.transcribe(bytes(SAMPLE_RATE))
        settings = self._settings
        return f"Whisper {settings.model} on {settings.device}, {settings.compute_type}, beam {settings.beam_size}"

    async def close(self) -> None:
        """Let go of the model and its threads; requests that wait are cancelled, those that run are waited for."""
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)
        self._model = None

    async def _run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        try:
            running = self._executor.submit(work, *arguments)
            result = asyncio.wrap_future(running)
            try:
                return await asyncio.shield(result)
            except asyncio.CancelledError:
                if not running.cancel():
                    self._abandon(result)
                raise
        except ModelError:
            raise
        except Exception as error:  # CTranslate2 and tokenizers raise all sorts: RuntimeError, ValueError, Exception
            message = f"Whisper {self._settings.model} failed: {sanitize(error)}"
            raise BackendError(Stage.ASR, ErrorKind.INTERNAL, message) from error

    def _abandon(self, result: asyncio.Future[Any]) -> None:
        """Note what still runs though nobody waits for it."""

        def ended(result: asyncio.Future[Any]) -> None:
            self._abandoned.discard(result)
            if not result.cancelled():
                result.exception()  # else asyncio reports that nobody saw it

        self._abandoned.add(result)
        result.add_done_callback(ended)

    def _load(self, path: Path) -> None:
        try:
            from faster_whisper import WhisperModel  # an extra, and it takes half a second
        except ImportError as error:
            message = f"[asr] faster_whisper can't run here ({error}): pip install 'echokit-py[local]'"
            raise ModelError(message) from error
        settings = self._settings
        self._model = WhisperModel(
            str(path),
            device=settings.device,
            compute_type=settings.compute_type,
            cpu_threads=settings.cpu_threads or min(os.cpu_count() or 1, MAX_THREADS),
            num_workers=settings.num_workers,
            local_files_only=True,
        )
        self._language = choose_language(settings.lang, self._model.supported_languages)

    def _transcribe(self, pcm: bytes, unwanted: threading.Event) -> Transcript:
        samples = np.frombuffer(pcm[: len(pcm) // BYTES_PER_SAMPLE * BYTES_PER_SAMPLE], "<i2")
        seconds = len(samples) / SAMPLE_RATE
        found, info = self._model.transcribe(
            samples.astype(np.float32) / 32_768,
            language=self._language,
            beam_size=self._settings.beam_size,
            initial_prompt=self._settings.prompt or None,
            # The usual ladder of temperatures is up to six recognitions for one utterance, the later ones random. Where
            # the first is poor the others seldom help, and the user waits.
            temperature=0.0,
            # A wrong window must not lead the next one astray; times inside the text are of no use here.
            condition_on_previous_text=False,
            without_timestamps=True,
            vad_filter=False,
            max_new_tokens=round((seconds + 1) * TOKENS_PER_SECOND) if seconds < LONG_S else None,
        )
        segments = []  # they are recognised one after the other, while they are asked for
        while not unwanted.is_set() and (segment := next(found, None)) is not None:
            segments.append(segment)
        return Transcript(
            text=" ".join(segment.text.strip() for segment in segments).strip(),
            language=info.language,
            no_speech_prob=min((segment.no_speech_prob for segment in segments), default=None),
            avg_logprob=max((segment.avg_logprob for segment in segments), default=None),
            compression_ratio=max((segment.compression_ratio for segment in segments), default=None),
        )


def choose_language(lang: str, supported: list[str]) -> str | None:
    """Whisper's code for the `lang` of the settings ("zh-CN" is "zh"); None = detect it, unless there is only one.

    Raises ModelError for a language that the model doesn't know.
    """
    code = lang.strip().lower().replace("_", "-").split("-")[0]
    if code in supported:
        return code
    if code in ("", "auto"):
        return None if len(supported) > 1 else supported[0]
    if len(supported) == 1:
        raise ModelError(
            f"[asr] lang = {lang!r}: this model knows {supported[0]} only; take one without .en in its name"
        )
    raise ModelError(f"[asr] lang = {lang!r} is no language of Whisper's; it takes codes such as en, zh, de, ja")
