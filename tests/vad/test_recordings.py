"""Silero and endpointing together on recorded sentences: one end each, soon after the last word, not before.

`scripts/bench/endpointing` measures the same with every pause and every noise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import numpy as np
import pytest

from echokit_py.config.settings import VadSettings
from echokit_py.models.store import ModelStore
from echokit_py.vad.endpointing import Endpointer, EndpointEvent
from echokit_py.vad.silero import RELEASE_S, SileroVad, build
from tests.fakes.spoken import (
    NOT_HERE,
    RATE,
    RECORDINGS,
    Ending,
    Samples,
    audible,
    load,
    spoken,
    with_noise,
    with_pause,
)
from tests.fakes.spoken import endings as ends_of

# Read with pauses longer than the default hangover, by people who were not asking a machine.
SLOW = ("human_beckett.wav", "human_two_cities_12s.wav")
QUICK = [name for name in RECORDINGS if name not in SLOW]

pytestmark = [pytest.mark.models, pytest.mark.skipif(not RECORDINGS, reason=NOT_HERE)]


@pytest.fixture
async def vad() -> AsyncIterator[SileroVad]:
    loaded = build(models=ModelStore())
    await loaded.start()
    yield loaded
    await loaded.close()


async def ends(vad: SileroVad, samples: Samples, settings: VadSettings) -> list[tuple[EndpointEvent, float]]:
    """The ends of all utterances in the samples (with 2 s of silence after them), with the second of each."""
    endpointer, found, base = Endpointer(settings, RELEASE_S), [], 0.0
    padded = np.concatenate((samples, np.zeros(2 * RATE, np.int16)))
    heard = await vad.stream().feed(padded.tobytes())
    for probability, sounds in zip(heard, audible(padded, heard, settings), strict=True):
        event = endpointer.feed(probability, sounds)
        if event is not None and event.ends:
            found.append((event, base + endpointer.elapsed))
            base, endpointer = base + endpointer.elapsed, Endpointer(settings, RELEASE_S)
    return found


@pytest.mark.parametrize("name", RECORDINGS)
async def test_one_end_after_the_last_word(vad: SileroVad, name: str) -> None:
    # A breath after the last word is audible, and may count to it.
    hangover, noise, allowed = (1.2, 0.2, 0.14) if name in SLOW else (0.5, 0.03, 0.1)
    samples = load(name)
    found = await ends(vad, samples, VadSettings(hangover_ms=round(hangover * 1000)))
    assert [event for event, _ in found] == [EndpointEvent.SPEECH_ENDED]
    delay = found[0][1] - spoken(samples, noise)[1]
    assert hangover - 0.05 <= delay <= hangover + allowed


@pytest.mark.parametrize("pause", [150, 300, 450])
@pytest.mark.parametrize("name", QUICK)
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


@pytest.mark.parametrize("noise", ["white", "pink", "car"])
@pytest.mark.parametrize("name", ["joe_timer.wav", "joe_weather.wav", "espeak_weather.wav"])
async def test_noise_neither_cuts_a_sentence_nor_keeps_it_open(vad: SileroVad, name: str, noise: str) -> None:
    samples = with_pause(load(name), 450, (0.15, 0.4))
    padded = np.concatenate((samples, np.zeros(2 * RATE, np.int16)))
    for snr_db in (20, 10):
        noisy = with_noise(padded, noise, snr_db)
        heard = await vad.stream().feed(noisy.tobytes())
        ending = Ending(spoken(samples)[1], ends_of(heard, audible(noisy, heard, VadSettings()), VadSettings()))
        assert not ending.cut
        assert ending.delay_s is not None
        assert 0.4 <= ending.delay_s <= 0.6


async def test_a_sound_that_is_hardly_speech_puts_off_the_end(vad: SileroVad) -> None:
    # 450 ms inside "light": the "t" is 60 ms of hiss, and the next word comes 140 ms later.
    samples = with_pause(load("espeak_light.wav"), 450, (0.15, 0.4))
    assert len(await ends(vad, samples, VadSettings())) == 1


@pytest.mark.parametrize("name", ["joe_timer.wav", "joe_weather.wav"])
async def test_a_word_that_begins_without_voice_is_not_cut_off(vad: SileroVad, name: str) -> None:
    # 450 ms before "timer" and "rain": the model hears the "t" as silence, which makes them more than 500.
    samples = with_pause(load(name), 450, (0.15, 0.4))
    assert len(await ends(vad, samples, VadSettings())) == 1
