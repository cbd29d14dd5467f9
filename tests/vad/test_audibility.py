"""What stands out of the noise: made-up noise and sounds, what is known when, and every way to cut a stream."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from echokit_py.vad.audibility import BANDS, LEAST_NOISE_FRAMES, Audibility, band_powers
from echokit_py.vad.base import FRAME_SAMPLES

QUIET, SPEECH = 0.01, 0.9

Samples = NDArray[np.int16]


def noise(frames: int, level: float = 300, seed: int = 1) -> Samples:
    return np.random.default_rng(seed).normal(0, level, frames * FRAME_SAMPLES).astype(np.int16)


def tone(frames: int, level: float, hertz: float = 440) -> Samples:
    places = np.arange(frames * FRAME_SAMPLES)
    found: Samples = (level * 2**0.5 * np.sin(2 * np.pi * hertz / 16_000 * places)).astype(np.int16)
    return found


def hear(samples: Samples, *runs: tuple[float, int]) -> list[bool | None]:
    """Whether each frame is audible, by runs of probabilities."""
    probabilities = [probability for probability, frames in runs for _ in range(frames)]
    return Audibility(0.05, 0.5).feed(samples.tobytes(), probabilities)


def test_the_bands_of_a_tone() -> None:
    powers = band_powers(np.concatenate((tone(1, 1000, 500), tone(1, 1000, 4000))).tobytes())
    assert powers.shape == (2, BANDS)
    low, high = powers.argmax(axis=1)
    assert low < high
    assert (powers.max(axis=1) > 0.99 * powers.sum(axis=1)).all()
    assert band_powers(b"").shape == (0, BANDS)


def test_until_there_was_noise_nothing_is_known() -> None:
    least = LEAST_NOISE_FRAMES
    assert hear(noise(9), (QUIET, least), (SPEECH, 1), (0.2, 4)) == [None] * least + [False] * 5
    assert hear(noise(8), (QUIET, least - 1), (SPEECH, 1), (0.2, 4)) == [None] * 8
    assert hear(noise(9), (0.051, least), (SPEECH, 1), (0.2, 4)) == [None] * 9
    assert hear(noise(10), (SPEECH, 1), (QUIET, 9)) == [None] * least + [False] * (10 - least)


def test_until_there_was_speech_nothing_is_asked() -> None:
    assert hear(noise(100), (QUIET, 100)) == [None] * 100
    # What was quiet long before it isn't remembered.
    samples = np.concatenate((noise(100, 30), noise(40, 3000, seed=2)))
    assert hear(samples, (QUIET, 138), (SPEECH, 1), (QUIET, 1))[-1] is False


@pytest.mark.parametrize("shift_db", [-40, 0, 20])
def test_a_voice_stands_out_though_the_noise_is_louder(shift_db: int) -> None:
    # 3 dB below the noise all over, 10 dB above it in its own band.
    level = 300 * 10 ** (shift_db / 20)
    samples = noise(60, level)
    samples[30 * FRAME_SAMPLES : 40 * FRAME_SAMPLES] += tone(10, 0.7 * level)
    heard = hear(samples, (QUIET, 30), (SPEECH, 10), (0.2, 20))
    assert heard[30:40] == [True] * 10
    assert heard[40:] == [False] * 20


def test_steady_noise_stands_out_of_itself_in_one_frame_of_a_hundred_at_most() -> None:
    heard = hear(noise(2031), (QUIET, 30), (SPEECH, 1), (0.2, 2000))
    assert heard[-2000:].count(True) <= 20
    assert None not in heard[-2000:]


def test_louder_noise_is_audible_until_it_is_learnt() -> None:
    samples = np.concatenate((noise(30, 300), noise(90, 600, seed=2)))
    heard = hear(samples, (QUIET, 29), (SPEECH, 1), (QUIET, 90))
    assert heard[30] is True
    assert heard[-40:].count(True) <= 1
    assert hear(samples, (QUIET, 29), (SPEECH, 1), (0.2, 90))[30:] == [True] * 90  # nobody said that it is noise


def test_what_is_far_below_the_speech_is_not_audible_in_a_quiet_room() -> None:
    samples = np.concatenate((noise(10, 0), tone(5, 8000), tone(5, 8000 * 10 ** (-55 / 20)), tone(5, 400)))
    assert hear(samples, (QUIET, 10), (SPEECH, 15))[10:] == [True] * 5 + [False] * 5 + [True] * 5
    assert hear(samples, (QUIET, 9), (SPEECH, 1), (0.4, 15))[10:] == [True] * 15  # none of it was speech


@settings(max_examples=30)
@given(st.lists(st.integers(0, 70 * 1024), max_size=12), st.lists(st.sampled_from([QUIET, 0.2, SPEECH]), min_size=70))
def test_it_makes_no_difference_how_the_audio_is_cut(cuts: list[int], probabilities: list[float]) -> None:
    pcm = np.concatenate((noise(30), noise(20) + tone(20, 500), noise(20))).tobytes()
    whole = Audibility(0.05, 0.5).feed(pcm, probabilities[:70])
    pieces, audibility = [], Audibility(0.05, 0.5)
    for start, end in pairwise([0, *sorted(cuts), len(pcm)]):
        pieces += audibility.feed(pcm[start:end], probabilities[start // 1024 : end // 1024])
    assert pieces == whole


def test_a_detector_that_keeps_frames_back() -> None:
    audibility = Audibility(0.05, 0.5)
    assert audibility.feed(noise(8).tobytes(), [QUIET] * 7) == [None] * 7
    assert audibility.feed(noise(8).tobytes(), [QUIET] * 9) == [None] * 9
