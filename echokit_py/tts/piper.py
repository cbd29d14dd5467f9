"""Speech synthesis on this machine: Piper voices on onnxruntime. What may be spoken is decided in `text`, not here."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from echokit_py.audio.pcm import BYTES_PER_SECOND
from echokit_py.audio.resample import Resampler
from echokit_py.config.settings import PiperTts
from echokit_py.errors import BackendError, ErrorKind, ModelError, Stage
from echokit_py.http import HttpClient
from echokit_py.log import sanitize
from echokit_py.models.store import ModelStore

Result = TypeVar("Result")

# Two threads make a sentence in six tenths of the time that one takes, and two sentences one after the other need
# half the memory of two at once (170 MB for one of 8 s): so a worker for every two cores, up to a limit.
THREADS = 2
MAX_WORKERS = 4

# Audio goes out in pieces of at most this, so that nobody downstream has to do ten seconds' work in one go.
PIECE = BYTES_PER_SECOND // 2


def build(settings: PiperTts, *, http: HttpClient, models: ModelStore) -> LocalPiper:
    """Return the voice that `settings` describe, not yet loaded."""
    return LocalPiper(settings, models)


class LocalPiper:
    """One loaded voice and the workers that speak with it for all devices, a sentence at a time."""

    def __init__(self, settings: PiperTts, models: ModelStore) -> None:
        self._settings = settings
        self._models = models
        self._voice: Any = None
        workers = max(1, min(MAX_WORKERS, (os.cpu_count() or 1) // THREADS))
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="tts")

    async def start(self) -> None:
        """Load the voice and speak a word, since the first one takes longer.

        Raises:
            ModelError: no such voice, no such speaker in it, or the package is not installed.
            BackendError: the files are there and can't be used.
        """
        path = await self._models.path(self._settings.voice)
        await self._run(self._load, path)
        await self.probe()

    async def synthesize(self, text: str) -> AsyncGenerator[bytes, None]:
        """Speak `text`: s16le mono 16 kHz in pieces of at most PIECE bytes. Piper makes a sentence at a time, and only
        when it is asked for, so that a generator that is closed stops after the sentence in work.

        Two renderings of a text differ (Piper varies pitch and length at random). Raises BackendError.
        """
        speech = await self._run(self._begin, text)
        spoke = False
        while (audio := await self._run(speech.next_sentence)) is not None:
            for start in range(0, len(audio), PIECE):
                spoke = True
                yield audio[start : start + PIECE]
        if not spoke:
            raise BackendError(Stage.TTS, ErrorKind.BAD_ANSWER, "the voice found nothing to speak in the text")

    async def probe(self) -> str:
        """Speak a short word; return what runs here. Raises BackendError."""
        async for _ in self.synthesize("Hello."):
            pass
        return f"Piper {self._settings.voice}, {self._voice.config.sample_rate} Hz"

    async def close(self) -> None:
        """Let go of the voice and its workers; sentences that wait are cancelled, those in work are waited for."""
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)
        self._voice = None

    async def _run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)
        except ModelError:
            raise
        except Exception as error:  # onnxruntime's errors, and those of Piper's phonemizers, have no other base
            message = f"Piper {self._settings.voice} failed: {sanitize(error)}"
            raise BackendError(Stage.TTS, ErrorKind.INTERNAL, message) from error

    def _load(self, path: Path) -> None:
        try:
            from piper import PiperVoice  # an extra, and it takes a third of a second
            from piper.config import PiperConfig
        except ImportError as error:
            message = f"[tts] piper can't run here ({error}): pip install 'echokit-py[local]'"
            raise ModelError(message) from error
        config = PiperConfig.from_dict(_read_config(path))
        speaker = self._settings.speaker
        if speaker is not None and speaker >= config.num_speakers:
            message = f"[tts] speaker = {speaker}: {path.name} has {config.num_speakers} speaker(s), counted from 0"
            raise ModelError(message)
        self._voice = PiperVoice(session=_session(path), config=config)

    def _begin(self, text: str) -> _Speech:
        from piper.config import SynthesisConfig

        settings = self._settings
        length = self._voice.config.length_scale / settings.speed
        options = SynthesisConfig(speaker_id=settings.speaker, length_scale=length, volume=settings.volume)
        return _Speech(self._voice.synthesize(text, options), self._voice.config.sample_rate)


class _Speech:
    """The sentences of one text, made one by one in a worker."""

    def __init__(self, chunks: Iterator[Any], rate: int) -> None:
        self._chunks = chunks
        self._resampler = Resampler(rate)

    def next_sentence(self) -> bytes | None:
        """The audio of the next sentence, s16le mono 16 kHz; None after the last."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return self._resampler.flush() or None
        return self._resampler.feed(chunk.audio_int16_bytes)


def _read_config(path: Path) -> dict[str, Any]:
    """The voice's description, which lies beside it. Raises ModelError."""
    beside = path.with_name(f"{path.name}.json")
    try:
        config = json.loads(beside.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"a Piper voice needs its description {beside} beside it ({sanitize(error)})") from error
    if not isinstance(config, dict):
        raise ModelError(f"{beside} is no description of a Piper voice")
    return config


def _session(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    # A plan of the memory is kept for each length of text, and lengths never repeat: 490 MB after three sentences of
    # 8 s, and rising, against 310 MB and steady. (Without the arena the peak is 410 MB, and a quarter more CPU time.)
    options.enable_mem_pattern = False
    # Threads that wait by spinning take the core away from ASR and the language model.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
