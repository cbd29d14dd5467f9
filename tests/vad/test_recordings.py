"""Silero and endpointing together on recorded sentences: one end each, soon after the last word, not before."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from echokit_py.audio.wav import read_wav
from echokit_py.config.settings import VadSettings
from echokit_py.models.store import ModelStore
from echokit_py.vad.endpointing import Endpointer, EndpointEvent
from echokit_py.vad.silero import SileroVad, build

AUDIO = Path(__file__).parents[2].parent / "shared" / "audio"
RECORDINGS = sorted(json.loads((AUDIO / "texts.json").read_text())) if AUDIO.exists() else []
# Read with pauses longer than the default hangover, by people who were not asking a machine.
SLOW = ("human_beckett.wav", "human_two_cities_12s.wav")
# espeak's consonants without voice are no speech to Silero, and lengthen a pause beside them.
LIFELIKE = [name for name in RECORDINGS if name.startswith("joe")]

pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(not RECORDINGS, reason="the spoken sentences (shared/audio beside the checkout) are not here"),
]

Samples = NDArray[np.int16]
STEP = 160  # 10 ms


@pytest.fixture
async def vad() -> AsyncIterator[SileroVad]:
    loaded = build(models=ModelStore())
    await loaded.start()
    yield loaded
    await loaded.close()


def load(name: str) -> Samples:
    return np.frombuffer(read_wav((AUDIO / name).read_bytes()).pcm, "<i2")


def loudness(samples: Samples) -> NDArray[np.float64]:
    """The root mean square of each 10 ms, 1 for the loudest."""
    steps = samples[: len(samples) // STEP * STEP].reshape(-1, STEP).astype(np.float64)
    levels: NDArray[np.float64] = np.sqrt((steps**2).mean(axis=1))
    loudest: float = levels.max()
    return levels / loudest


def spoken(samples: Samples, noise: float = 0.03) -> tuple[float, float]:
    """Where the first sound louder than `noise` begins and the last ends, in seconds."""
    loud = np.flatnonzero(loudness(samples) > noise)
    return loud[0] * 0.01, (loud[-1] + 1) * 0.01


def with_pause(samples: Samples, milliseconds: int) -> Samples:
    """`samples` with a pause of exactly this length at the quietest place near the middle."""
    levels = loudness(samples)
    first, last = (round(second * 100) for second in spoken(samples))
    third = (last - first) // 3
    start = end = first + third + int(np.argmin(levels[first + third : last - third]))
    while levels[start - 1] < 0.03:
        start -= 1
    while levels[end] < 0.03:
        end += 1
    pause = np.zeros(16 * milliseconds, np.int16)
    return np.concatenate((samples[: start * STEP], pause, samples[end * STEP :]))


async def ends(vad: SileroVad, samples: Samples, settings: VadSettings) -> list[tuple[EndpointEvent, float]]:
    """The ends of all utterances in the samples (with 2 s of silence after them), with the second of each."""
    stream, endpointer, found, base = vad.stream(), Endpointer(settings), [], 0.0
    for probability in await stream.feed(samples.tobytes() + bytes(64_000)):
        event = endpointer.feed(probability)
        if event is not None and event.ends:
            found.append((event, base + endpointer.elapsed))
            base, endpointer = base + endpointer.elapsed, Endpointer(settings)
    return found


@pytest.mark.parametrize("name", RECORDINGS)
async def test_one_end_after_the_last_word(vad: SileroVad, name: str) -> None:
    hangover, noise = (1.2, 0.2) if name in SLOW else (0.5, 0.03)
    samples = load(name)
    found = await ends(vad, samples, VadSettings(hangover_ms=round(hangover * 1000)))
    assert [event for event, _ in found] == [EndpointEvent.SPEECH_ENDED]
    delay = found[0][1] - spoken(samples, noise)[1]
    # Beside the hangover: a frame of rounding, and the up to four that Silero takes to see that speech is over.
    assert hangover - 0.05 <= delay <= hangover + 0.16


@pytest.mark.parametrize("pause", [150, 300, 450])
@pytest.mark.parametrize("name", LIFELIKE)
async def test_a_pause_below_the_hangover_does_not_cut_a_sentence(vad: SileroVad, name: str, pause: int) -> None:
    samples = with_pause(load(name), pause)
    found = await ends(vad, samples, VadSettings())
    assert [event for event, _ in found] == [EndpointEvent.SPEECH_ENDED]
    assert found[0][1] > spoken(samples)[1]


@pytest.mark.parametrize("name", ["joe_timer.wav", "espeak_light.wav"])
async def test_a_pause_above_the_hangover_does(vad: SileroVad, name: str) -> None:
    assert len(await ends(vad, with_pause(load(name), 700), VadSettings())) == 2


async def test_noise_alone_is_nobody_speaking(vad: SileroVad) -> None:
    noise = np.random.default_rng(1).normal(0, 1500, 9 * 16_000).astype(np.int16)
    clicks = np.zeros(9 * 16_000, np.int16)
    clicks[8_000::16_000] = 30_000
    for samples in (noise, clicks):
        assert [event for event, _ in await ends(vad, samples, VadSettings())] == [EndpointEvent.NO_SPEECH]
