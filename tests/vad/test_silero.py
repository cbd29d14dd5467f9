"""The Silero model itself: its numbers, its streams, what happens when it can't be used."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from echokit_py.audio.pcm import silence
from echokit_py.audio.wav import read_wav
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.models.store import ModelStore
from echokit_py.vad.silero import CONTEXT_SAMPLES, FRAMES_PER_HOP, STATE_SIZE, Floats, SileroVad, build

STOP = Path(__file__).parents[2].parent / "shared" / "audio" / "joe_stop.wav"
needs_recording = pytest.mark.skipif(not STOP.exists(), reason="the spoken sentences beside the checkout are not here")

# What silero-vad's own OnnxWrapper says of frames 30 to 55 of joe_stop.wav (silero-vad 6.2.1, opset 15).
REFERENCE = [
    0.004,
    0.152,
    0.129,
    0.955,
    0.749,
    0.995,
    0.999,
    1.0,
    1.0,
    1.0,
    1.0,
    1.0,
    0.999,
    0.992,
    0.969,
    0.97,
    0.872,
    0.703,
    0.173,
    0.031,
    0.012,
    0.008,
    0.007,
    0.006,
    0.006,
    0.006,
]


@pytest.fixture
async def vad() -> AsyncIterator[SileroVad]:
    loaded = build(models=ModelStore())
    await loaded.start()
    yield loaded
    await loaded.close()


def speech() -> bytes:
    return read_wav(STOP.read_bytes()).pcm


@pytest.mark.models
@needs_recording
async def test_the_numbers_are_those_of_the_model_s_authors(vad: SileroVad) -> None:
    probabilities = await vad.stream().feed(speech())
    assert probabilities[30:56] == pytest.approx(REFERENCE, abs=0.002)


@pytest.mark.models
@needs_recording
async def test_how_the_audio_is_cut_makes_no_difference(vad: SileroVad) -> None:
    audio = speech()
    whole = await vad.stream().feed(audio)
    assert len(whole) == len(audio) // 1024 > FRAMES_PER_HOP
    cuts = random.Random(1)
    stream, pieces, start = vad.stream(), [], 0
    while start < len(audio):
        end = start + cuts.choice([1, 2, 3, 511, 1023, 1024, 1025, 16_384])
        pieces += await stream.feed(audio[start:end])
        start = end
    assert pieces == whole


@pytest.mark.models
@needs_recording
async def test_streams_do_not_touch_each_other(vad: SileroVad) -> None:
    audio = speech()
    alone = await vad.stream().feed(audio)
    noise = np.random.default_rng(1).normal(0, 3000, len(audio) // 2).astype("<i2").tobytes()
    both = await asyncio.gather(*(vad.stream().feed(pcm) for pcm in (audio, noise, audio)))
    assert both[0] == both[2] == alone
    assert both[1] != alone


@pytest.mark.models
@needs_recording
async def test_frames_of_several_streams_can_go_in_one_run(vad: SileroVad) -> None:
    frames: Floats = np.frombuffer(speech(), "<i2").astype(np.float32)[np.newaxis, 16_000 : 16_000 + 576]
    frames /= 32_768
    state = np.zeros((2, 1, STATE_SIZE), np.float32)
    one, one_state = vad._infer(frames, state)
    three, three_states = vad._infer(np.repeat(frames, 3, axis=0), np.repeat(state, 3, axis=1))
    assert three == pytest.approx(np.repeat(one, 3), abs=1e-5)
    assert three_states[:, 1:2] == pytest.approx(one_state, abs=1e-5)
    assert frames.shape[1] == CONTEXT_SAMPLES + 512


@pytest.mark.models
async def test_silence_is_no_speech(vad: SileroVad) -> None:
    probabilities = await vad.stream().feed(silence(3))
    assert len(probabilities) == 93
    assert max(probabilities) < 0.1
    assert await vad.stream().feed(b"") == []


@pytest.mark.models
async def test_after_close_it_says_that_it_fails() -> None:
    vad = build(models=ModelStore())
    await vad.start()
    await vad.close()
    with pytest.raises(BackendError) as caught:
        await vad.stream().feed(silence(1))
    assert caught.value.stage is Stage.VAD
    assert caught.value.kind is ErrorKind.INTERNAL


class Broken(ModelStore):
    """Has a file that is no model."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        (root / "model.onnx").write_bytes(b"not a model")

    async def path(self, name: str) -> Path:
        return self.root / "model.onnx"


async def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    vad = build(models=Broken(tmp_path))
    with pytest.raises(BackendError, match="the voice activity detector failed") as caught:
        await vad.start()
    assert caught.value.kind is ErrorKind.INTERNAL
    await vad.close()
