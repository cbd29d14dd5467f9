"""Guesses which vowel the mouth on the display should form. Not speech recognition: a cheap look at the formants.

The reference server asks a lip-sync library about the first 1024 samples of a frame; the way to the answer is ours:
the spectrum between 150 and 4,000 Hz, in bands as wide as the ear's, is compared with the spectra that the textbook
formants of the five vowels give. Formants: Peterson & Barney, "Control methods used in a study of the vowels" (1952).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from echokit_py.audio.pcm import BYTES_PER_SAMPLE, SAMPLE_RATE

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

NONE, A, E, I, O, U = range(6)  # noqa: E741 — the numbers of the protocol README

WINDOW = 1024
# Longer by the longest pitch period that is looked for, so that the correlation doesn't run into its own end; and a
# product of small primes, which is quick.
_FFT = 1280
# Less is no opened mouth: −46 dB of full scale.
_QUIET = 160.0
# A voice repeats itself: the correlation with itself one pitch period later. White noise stays below 0.2.
_VOICED = 0.35
_PITCH_LAGS = slice(SAMPLE_RATE // 400, SAMPLE_RATE // 70)

# F1 … F4 in Hz, of men; the open vowels more than once, since speakers differ most there. Women and children have
# shorter vocal tracts: the same pattern, moved up.
_FORMANTS = (
    (A, (730, 1090, 2440, 3500)),
    (A, (700, 1350, 2500, 3500)),
    (A, (640, 1190, 2390, 3500)),
    (E, (500, 1850, 2480, 3500)),
    (I, (275, 2290, 3010, 3700)),
    (O, (490, 840, 2410, 3400)),
    (U, (310, 870, 2240, 3400)),
)
_TRACTS = (0.95, 1.05, 1.17, 1.3)
_BANDWIDTHS = (80, 100, 140, 200)
_BANDS = 24
_LOW, _HIGH = 150.0, 4000.0
_BINS = _FFT * 5_000 // SAMPLE_RATE  # of the spectrum, up to 5 kHz: the highest band ends there


def vowel(pcm: bytes) -> int:
    """Return the vowel at the beginning of `pcm` (s16le, mono, 16 kHz): 0 none, 1 A, 2 E, 3 I, 4 O, 5 U.

    Looks at the first 1024 samples (64 ms). Silence, noise, voiceless sounds and less than 10 ms are 0.
    """
    count = min(WINDOW, len(pcm) // BYTES_PER_SAMPLE)
    if count < SAMPLE_RATE // 100:
        return NONE
    return _vowels(np.frombuffer(pcm, "<i2", count)[np.newaxis])[0]


def vowels(pieces: Sequence[bytes]) -> list[int]:
    """The vowel at the beginning of each piece; all at once take two thirds of the time that they take one by one."""
    if not all(len(piece) >= WINDOW * BYTES_PER_SAMPLE for piece in pieces):
        return [vowel(piece) for piece in pieces]
    return _vowels(np.stack([np.frombuffer(piece, "<i2", WINDOW) for piece in pieces])) if pieces else []


def _vowels(samples: NDArray[np.int16]) -> list[int]:
    """Of each row."""
    waves = samples - samples.mean(axis=1, keepdims=True)
    loud = np.sqrt((waves * waves).mean(axis=1)) >= _QUIET
    if not loud.any():
        return [NONE] * len(samples)
    power = np.abs(np.fft.rfft(waves * _hanning(waves.shape[1]), _FFT)) ** 2
    labels, patterns = _patterns()
    nearest = labels[np.argmax(_shapes(power) @ patterns.T, axis=1)]
    return [int(label) for label in np.where(loud & _voiced(power), nearest, NONE)]


def _voiced(power: Array) -> NDArray[np.bool_]:
    """Whether there is a pitch between 70 and 400 Hz, in each row."""
    correlation = np.fft.irfft(power)
    # The window tapers off, and with it the correlation: undo that for the lags in question.
    pitch = (correlation[:, _PITCH_LAGS] / _taper()[_PITCH_LAGS]).max(axis=1)
    return np.asarray(pitch > _VOICED * correlation[:, 0])


@lru_cache(maxsize=2)  # whole windows; pieces at the end of a sentence come in any length
def _hanning(length: int) -> Array:
    return np.hanning(length)


@lru_cache(maxsize=1)
def _taper() -> Array:
    correlation = np.fft.irfft(np.abs(np.fft.rfft(np.hanning(WINDOW), _FFT)) ** 2)
    return np.asarray(correlation / correlation[0])


def _bark(hertz: Array) -> Array:
    """Traunmüller's formula for the ear's own scale of pitch."""
    return np.asarray(26.81 * hertz / (1960.0 + hertz) - 0.53)


@lru_cache(maxsize=1)
def _filters() -> Array:
    """Overlapping triangular bands, evenly spaced in Bark: (_BANDS, _BINS)."""
    hertz = np.arange(_BINS) * SAMPLE_RATE / _FFT
    low, high = _bark(np.array([_LOW, _HIGH]))
    centres = np.linspace(low, high, _BANDS)
    # Two Bark wide at the foot at least: wider than a voice's harmonics are apart, so that they melt into an envelope.
    distance = np.abs(_bark(hertz)[None, :] - centres[:, None])
    weights = np.maximum(0.0, 1.0 - distance / 1.2)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _shapes(power: Array) -> Array:
    """The envelope of each row's spectrum without loudness and without its overall slope: unit vectors of _BANDS."""
    levels = np.log(power[:, :_BINS] @ _filters().T + 1.0)
    shapes = levels - (levels @ _slopes()) @ _slopes().T
    return np.asarray(shapes / (np.linalg.norm(shapes, axis=1, keepdims=True) + 1e-9))


@lru_cache(maxsize=1)
def _slopes() -> Array:
    """An orthonormal basis of the constant and the straight line: (_BANDS, 2)."""
    line = np.stack([np.ones(_BANDS), np.linspace(-1.0, 1.0, _BANDS)], axis=1)
    return np.asarray(np.linalg.qr(line)[0])


@lru_cache(maxsize=1)
def _patterns() -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Array]:
    """The shapes to compare with, each vowel in several sizes of vocal tract: labels, and (labels, _BANDS)."""
    hertz = np.arange(_BINS) * SAMPLE_RATE / _FFT
    labels, spectra = [], []
    for label, formants in _FORMANTS:
        for tract in _TRACTS:
            power = np.full(_BINS, 1e12)
            for centre, bandwidth in zip(formants, _BANDWIDTHS, strict=True):
                power *= _resonance(hertz, centre * tract, bandwidth * tract)
            labels.append(label)
            spectra.append(power)
    return np.array(labels), _shapes(np.array(spectra))


def _resonance(hertz: Array, centre: float, bandwidth: float) -> Array:
    """The power response of one formant: a pair of poles in the Laplace plane, 1 at 0 Hz."""
    top = (centre**2 + bandwidth**2 / 4) ** 2
    return np.asarray(top / (((hertz - centre) ** 2 + bandwidth**2 / 4) * ((hertz + centre) ** 2 + bandwidth**2 / 4)))
