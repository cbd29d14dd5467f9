"""Speech probabilities from the Silero model on onnxruntime. Decides nothing about utterances (`endpointing.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from echokit_py.audio.pcm import BYTES_PER_SAMPLE, BlockAligner
from echokit_py.config.settings import VadSettings
from echokit_py.http import HttpClient
from echokit_py.log import sanitize
from echokit_py.models.store import ModelStore
from echokit_py.vad.base import FRAME_SAMPLES, FRAME_SECONDS
from echokit_py.vad.batching import Batcher, failed
from echokit_py.vad.silero_model import CONTEXT_SAMPLES, STATE_SIZE, Floats, Heard, Piece, Samples, SileroModel

MODEL = "silero-vad"

# Frames that one piece has at most (1 s of audio, about 2 ms of work): a client that sends half a minute at once
# doesn't hold up the others for longer.
FRAMES_PER_HOP = 32

# Speech that is over stays speech to the model for one to three frames (38 to 110 ms after the last sound in the clean
# recordings of scripts/bench/endpointing). One is certain; longer in noise.
RELEASE_S = FRAME_SECONDS


def build(settings: VadSettings | None = None, *, http: HttpClient | None = None, models: ModelStore) -> SileroVad:
    """Return the detector, not yet loaded. `settings` (they concern endpointing) and `http` are not used."""
    return SileroVad(models)


class SileroVad:
    """The model, shared by all devices: one session of one thread, one worker that runs it, no state of any stream."""

    def __init__(self, models: ModelStore) -> None:
        self._models = models
        self._model: SileroModel | None = None
        # One worker: all devices' frames go in one run, and more would only take turns on ASR's cores.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vad")
        self._batcher = Batcher(self._run, self._thread)

    async def start(self) -> None:
        """Load the model and run it once. Raises ModelError, and BackendError when the file is not such a model."""
        path = await self._models.path(MODEL)
        try:
            self._model = await asyncio.get_running_loop().run_in_executor(self._thread, SileroModel, path)
        except Exception as error:  # onnxruntime's errors have no other base in common
            raise failed(sanitize(error)) from error
        await self.stream().feed(bytes(FRAME_SAMPLES * BYTES_PER_SAMPLE))

    def stream(self) -> SileroStream:
        """Begin an utterance with fresh state."""
        return SileroStream(self._batcher)

    async def close(self) -> None:
        """Let go of the model and its worker; who still waits for frames gets BackendError."""
        self._batcher.close()
        await asyncio.to_thread(self._thread.shutdown)
        self._model = None

    def _run(self, pieces: Sequence[Piece]) -> list[Heard]:
        if self._model is None:
            raise RuntimeError("it is not loaded")
        return self._model.run(pieces)


class SileroStream:
    """The state of one utterance. One `feed` at a time; after a cancelled one the stream is of no more use."""

    def __init__(self, batcher: Batcher) -> None:
        self._batcher = batcher
        self._aligner = BlockAligner(FRAME_SAMPLES * BYTES_PER_SAMPLE)
        self._context: Samples = np.zeros(CONTEXT_SAMPLES, np.int16)
        self._state: Floats = np.zeros((2, STATE_SIZE), np.float32)

    @property
    def release_s(self) -> float:
        """See `Releasing`."""
        return RELEASE_S

    async def feed(self, pcm: bytes) -> list[float]:
        """Take audio (s16le, mono, 16 kHz, any length); return the probability of each frame it completed.

        Raises BackendError.
        """
        frames = np.frombuffer(self._aligner.feed(pcm), "<i2")
        probabilities: list[float] = []
        for start in range(0, len(frames), FRAMES_PER_HOP * FRAME_SAMPLES):
            samples: Samples = np.concatenate((self._context, frames[start : start + FRAMES_PER_HOP * FRAME_SAMPLES]))
            heard = await self._batcher.hear(self, Piece(samples, self._state))
            self._context, self._state = samples[-CONTEXT_SAMPLES:].copy(), heard.state
            probabilities += heard.probabilities
        return probabilities
