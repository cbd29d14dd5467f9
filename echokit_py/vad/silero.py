"""Speech probabilities from the Silero model on onnxruntime. Decides nothing about utterances (`endpointing.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from echokit_py.audio.pcm import BYTES_PER_SAMPLE, BlockAligner
from echokit_py.config.settings import VadSettings
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.http import HttpClient
from echokit_py.log import sanitize
from echokit_py.models.store import ModelStore
from echokit_py.vad.base import FRAME_SAMPLES

Result = TypeVar("Result")
Floats = NDArray[np.float32]

MODEL = "silero-vad"

# What the model takes beside a frame: the samples before it, and the state that it gave back last
# (`OnnxWrapper` in silero-vad's utils_vad.py).
CONTEXT_SAMPLES = 64
STATE_SIZE = 128
_RATE = np.array(16_000, dtype=np.int64)

# Frames that one hop to the worker takes at most (1 s of audio, about 10 ms of work): a client that sends half a
# minute at once doesn't hold up the others for longer.
FRAMES_PER_HOP = 32


def build(settings: VadSettings | None = None, *, http: HttpClient | None = None, models: ModelStore) -> SileroVad:
    """Return the detector, not yet loaded. `settings` (they concern endpointing) and `http` are not used."""
    return SileroVad(models)


class SileroVad:
    """The model, shared by all devices: one session of one thread, one worker that runs it, no state of any stream."""

    def __init__(self, models: ModelStore) -> None:
        self._models = models
        self._session: Any = None
        # One worker: a frame takes about 1 % of its own length, and more would only take turns on ASR's cores.
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="vad")

    async def start(self) -> None:
        """Load the model and run it once. Raises ModelError, and BackendError when the file is not such a model."""
        path = await self._models.path(MODEL)
        await self._run(self._load, str(path))
        await self.stream().feed(bytes(FRAME_SAMPLES * BYTES_PER_SAMPLE))

    def stream(self) -> SileroStream:
        """Begin an utterance with fresh state."""
        return SileroStream(self)

    async def evaluate(self, samples: Floats, state: Floats) -> tuple[list[float], Floats]:
        """Run the frames of one stream, in order, in the worker.

        `samples`: -1..1, CONTEXT_SAMPLES that came before, then whole frames. `state`: (2, 1, STATE_SIZE).
        Returns the probability of each frame, and the state after the last. Raises BackendError.
        """
        return await self._run(self._evaluate, samples, state)

    async def close(self) -> None:
        """Let go of the model and its worker; frames that still wait are cancelled."""
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)
        self._session = None

    async def _run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)
        except Exception as error:  # onnxruntime's errors have no other base in common
            message = f"the voice activity detector failed: {sanitize(error)}"
            raise BackendError(Stage.VAD, ErrorKind.INTERNAL, message) from error

    def _load(self, path: str) -> None:
        import onnxruntime  # takes 100 ms, which commands without VAD need not pay

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def _evaluate(self, samples: Floats, state: Floats) -> tuple[list[float], Floats]:
        probabilities = []
        for start in range(0, len(samples) - CONTEXT_SAMPLES, FRAME_SAMPLES):
            frame = samples[start : start + CONTEXT_SAMPLES + FRAME_SAMPLES]
            results, state = self._infer(frame[np.newaxis], state)
            probabilities.append(float(results[0]))
        return probabilities, state

    def _infer(self, frames: Floats, states: Floats) -> tuple[Floats, Floats]:
        """One run of the model, in the worker, over one frame each of any number of streams.

        `frames`: (streams, CONTEXT_SAMPLES + FRAME_SAMPLES); `states`: (2, streams, STATE_SIZE).
        Returns the probabilities, (streams,), and the new states.
        """
        output, new_states = self._session.run(None, {"input": frames, "state": states, "sr": _RATE})
        return output[:, 0], new_states


class SileroStream:
    """The state of one utterance. One `feed` at a time; after a cancelled one the stream is of no more use."""

    def __init__(self, vad: SileroVad) -> None:
        self._vad = vad
        self._aligner = BlockAligner(FRAME_SAMPLES * BYTES_PER_SAMPLE)
        self._context: Floats = np.zeros(CONTEXT_SAMPLES, np.float32)
        self._state: Floats = np.zeros((2, 1, STATE_SIZE), np.float32)

    async def feed(self, pcm: bytes) -> list[float]:
        """Take audio (s16le, mono, 16 kHz, any length); return the probability of each frame it completed.

        Raises BackendError.
        """
        frames = np.frombuffer(self._aligner.feed(pcm), "<i2").astype(np.float32) / 32_768
        probabilities: list[float] = []
        for start in range(0, len(frames), FRAMES_PER_HOP * FRAME_SAMPLES):
            samples: Floats = np.concatenate((self._context, frames[start : start + FRAMES_PER_HOP * FRAME_SAMPLES]))
            found, self._state = await self._vad.evaluate(samples, self._state)
            self._context = samples[-CONTEXT_SAMPLES:]
            probabilities += found
        return probabilities
