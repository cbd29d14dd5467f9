from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echokit_py.audio.pcm import AudioError
from echokit_py.audio.resample import Resampler, to_mono_16k
from echokit_py.audio.wav import Wav

RATES = [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000]
Tone = Callable[..., bytes]
Feed = Callable[..., bytes]


def _reference(duration: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.asarray(8000 * np.sin(2 * np.pi * 440 * np.arange(round(16_000 * duration)) / 16_000))


@pytest.mark.parametrize("rate", RATES)
def test_a_tone_keeps_frequency_phase_level_and_length(rate: int, tone: Tone, feed: Feed) -> None:
    out = np.frombuffer(feed(Resampler(rate), tone(rate)), "<i2")
    assert abs(len(out) - 16_000) <= 16
    # 6 ms at either end, where the filter sees the tone begin and stop, are left out.
    assert np.abs(out[100:15_900] - _reference(1.0)[100:15_900]).max() < 3


@pytest.mark.parametrize("rate", RATES)
def test_pieces_sound_like_the_whole(rate: int, tone: Tone, feed: Feed) -> None:
    data = tone(rate, 0.1)
    whole = feed(Resampler(rate), data)
    for size in (1, 7, 640, 1001):
        assert feed(Resampler(rate), data, size) == whole


@given(st.lists(st.integers(0, 999), max_size=8))
def test_cuts_anywhere_are_not_heard(cuts: list[int]) -> None:
    data = np.random.default_rng(5).integers(-9000, 9000, 500).astype("<i2").tobytes()
    edges = [0, *sorted(cuts), 1000]
    resampler = Resampler(22_050)
    out = b"".join(resampler.feed(data[a:b]) for a, b in pairwise(edges)) + resampler.flush()
    whole = Resampler(22_050)
    assert out == whole.feed(data) + whole.flush()


def test_channels_are_averaged_without_clipping() -> None:
    assert to_mono_16k(Wav(16_000, 2, struct.pack("<6h", 100, 300, 32767, 32767, -32768, -32768))) == struct.pack(
        "<3h", 200, 32767, -32768
    )


def test_16_khz_mono_goes_through_unchanged_but_for_half_a_sample() -> None:
    resampler = Resampler(16_000)
    assert resampler.feed(b"abc") == b"ab"
    assert resampler.feed(b"d") == b"cd"
    assert resampler.feed(b"e") + resampler.flush() == b""


def test_after_a_flush_a_new_stream_begins(tone: Tone, feed: Feed) -> None:
    resampler = Resampler(24_000)
    first = feed(resampler, tone(24_000, 0.05) + b"x")
    assert first == feed(resampler, tone(24_000, 0.05))


def test_nothing_gives_nothing(feed: Feed) -> None:
    assert feed(Resampler(24_000), b"") == b""
    assert Resampler(24_000).flush() == b""


@pytest.mark.parametrize(("rate", "channels"), [(0, 1), (-8000, 1), (10**7, 1), (16_000, 0)])
def test_impossible_formats_are_refused(rate: int, channels: int) -> None:
    with pytest.raises(AudioError, match="can't be right"):
        Resampler(rate, channels)
