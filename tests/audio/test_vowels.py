from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from echokit_py.audio import vowels
from echokit_py.audio.vowels import vowel
from echokit_py.audio.wav import read_wav
from tests.beside import AUDIO

# F1 … F4 of vowels as Peterson & Barney measured them for men and women, and others between.
MEN = {
    vowels.A: (730, 1090, 2440, 3400),
    vowels.E: (530, 1840, 2480, 3500),
    vowels.I: (270, 2290, 3010, 3700),
    vowels.O: (570, 840, 2410, 3300),
    vowels.U: (300, 870, 2240, 3300),
}
WOMEN = {
    vowels.A: (850, 1220, 2810, 3800),
    vowels.E: (610, 2330, 2990, 3900),
    vowels.I: (310, 2790, 3310, 4100),
    vowels.O: (590, 920, 2710, 3800),
    vowels.U: (370, 950, 2670, 3800),
}


def _sing(formants: tuple[int, ...], pitch: float, count: int = 1024) -> bytes:
    """A source (pulses with the slope of a glottis, slightly uneven) through one resonator a formant."""
    length, uneven = 4000, np.random.default_rng(1)
    signal = np.zeros(length)
    at = 0.0
    while at < length:
        signal[int(at)] += 1.0
        at += 16_000 / pitch * (1 + 0.005 * uneven.standard_normal())
    signal = _recursive(signal, [0.95])
    for centre, bandwidth in zip(formants, (60, 90, 150, 200), strict=True):
        radius = np.exp(-np.pi * bandwidth / 16_000)
        signal = _recursive(signal, [2 * radius * np.cos(2 * np.pi * centre / 16_000), -(radius**2)])
    part = signal[2000 : 2000 + count]
    return bytes((part / np.abs(part).max() * 12_000).astype("<i2").tobytes())


def _recursive(signal: NDArray[np.float64], feedback: list[float]) -> NDArray[np.float64]:
    out = np.zeros(len(signal))
    for index, value in enumerate(signal):
        out[index] = value + sum(gain * out[index - 1 - k] for k, gain in enumerate(feedback) if index > k)
    return out


@pytest.mark.parametrize("expected", list(MEN))
@pytest.mark.parametrize(("voice", "pitches"), [("men", (90, 120, 160)), ("women", (180, 210, 250))])
def test_textbook_vowels_are_told_apart(expected: int, voice: str, pitches: tuple[int, ...]) -> None:
    formants = (MEN if voice == "men" else WOMEN)[expected]
    assert [vowel(_sing(formants, pitch)) for pitch in pitches] == [expected] * len(pitches)


def test_loudness_does_not_matter_until_it_is_too_quiet() -> None:
    loud = np.frombuffer(_sing(MEN[vowels.I], 120), "<i2")
    assert vowel((loud // 10).astype("<i2").tobytes()) == vowels.I
    assert vowel((loud // 200).astype("<i2").tobytes()) == vowels.NONE


def test_only_the_first_1024_samples_count() -> None:
    first = _sing(MEN[vowels.A], 120)
    assert vowel(first + _sing(MEN[vowels.I], 120) * 3 + b"x") == vowels.A


def test_noise_and_silence_open_no_mouth() -> None:
    noise = np.random.default_rng(2)
    for _ in range(50):
        assert vowel((noise.standard_normal(1024) * 3000).astype("<i2").tobytes()) == vowels.NONE
    assert vowel(bytes(2048)) == vowels.NONE
    assert vowel(np.full(1024, 9000, "<i2").tobytes()) == vowels.NONE  # an offset is no sound


@pytest.mark.parametrize("size", [0, 1, 2, 319])
def test_too_short_is_none(size: int) -> None:
    assert vowel(_sing(MEN[vowels.A], 120)[:size]) == vowels.NONE


def test_a_short_piece_is_looked_at_as_far_as_it_goes() -> None:
    assert vowel(_sing(MEN[vowels.I], 120, 512) + b"x") == vowels.I


def test_real_speech_moves_the_mouth() -> None:
    recordings = sorted(AUDIO.glob("*.wav"))
    if not recordings:
        pytest.skip("the shared recordings are not beside this checkout")
    for path in recordings:
        pcm = read_wav(path.read_bytes()).pcm
        found = [vowel(pcm[at : at + 3840]) for at in range(0, len(pcm), 3840)]
        assert len(set(found)) >= 3, path.name
        assert found[0] == vowels.NONE, path.name  # silence at the beginning


def test_all_at_once_they_are_the_same() -> None:
    pieces = [_sing(formants, pitch) for formants in MEN.values() for pitch in (90, 150)]
    pieces += [bytes(2048), np.random.default_rng(2).integers(-9000, 9000, 1920).astype("<i2").tobytes()]
    one_by_one = [vowel(piece) for piece in pieces]
    assert {vowels.A, vowels.E, vowels.I, vowels.O, vowels.U, vowels.NONE} == set(one_by_one)
    assert vowels.vowels(pieces) == one_by_one
    assert vowels.vowels([pieces[0], pieces[1][:1000], b""]) == [one_by_one[0], vowel(pieces[1][:1000]), vowels.NONE]
    assert vowels.vowels([bytes(2048)] * 2) == [vowels.NONE] * 2
    assert vowels.vowels([]) == []
