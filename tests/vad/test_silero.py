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
from echokit_py.vad.base import Releasing
from echokit_py.vad.silero import FRAMES_PER_HOP, SileroVad, build

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
    assert pieces == pytest.approx(whole, abs=1e-5)


@pytest.mark.models
@needs_recording
async def test_streams_do_not_touch_each_other(vad: SileroVad) -> None:
    audio = speech()
    alone = await vad.stream().feed(audio)
    noise = np.random.default_rng(1).normal(0, 3000, len(audio) // 2).astype("<i2").tobytes()
    both = await asyncio.gather(*(vad.stream().feed(pcm) for pcm in (audio, noise, audio)))
    assert both[0] == pytest.approx(alone, abs=1e-5)
    assert both[2] == pytest.approx(alone, abs=1e-5)
    assert both[1] != pytest.approx(alone, abs=0.1)


@pytest.mark.models
async def test_silence_is_no_speech(vad: SileroVad) -> None:
    probabilities = await vad.stream().feed(silence(3))
    assert len(probabilities) == 93
    assert max(probabilities) < 0.1
    assert await vad.stream().feed(b"") == []


@pytest.mark.models
async def test_a_stream_says_how_late_it_is(vad: SileroVad) -> None:
    stream = vad.stream()
    assert isinstance(stream, Releasing)
    assert stream.release_s == 0.032


async def test_before_it_is_loaded_it_says_so() -> None:
    vad = build(models=ModelStore())
    with pytest.raises(BackendError, match="not loaded"):
        await vad.stream().feed(silence(1))
    await vad.close()


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
