"""Guesses which vowel the mouth on the display should form. Not speech recognition: a cheap look at the formants.

The reference server asks a lip-sync library about the first 1024 samples of a frame; the way to the answer is ours:
the spectrum between 150 and 4,000 Hz, in bands as wide as the ear's, is compared with the spectra that the textbook
formants of the five vowels give. Formants: Peterson & Barney, "Control methods used in a study of the vowels" (1952).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from echokit_py.audio.pcm import BYTES_PER_SAMPLE, SAMPLE_RATE

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

NONE, A, E, I, O, U = range(6)  # noqa: E741 — the numbers of the protocol README

WINDOW = 1024
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
_BINS = 640  # of the spectrum, up to 5 kHz: the highest band ends there


def vowel(pcm: bytes) -> int:
    """Return the vowel at the beginning of `pcm` (s16le, mono, 16 kHz): 0 none, 1 A, 2 E, 3 I, 4 O, 5 U.

    Looks at the first 1024 samples (64 ms). Silence, noise, voiceless sounds and less than 10 ms are 0.
    """
    samples = np.frombuffer(pcm[: WINDOW * BYTES_PER_SAMPLE & ~1], "<i2", count=min(WINDOW, len(pcm) // 2))
    if len(samples) < SAMPLE_RATE // 100:
        return NONE
    wave = samples - samples.mean()
    if np.sqrt(np.mean(wave * wave)) < _QUIET:
        return NONE
    power = np.abs(np.fft.rfft(wave * _hanning(len(wave)), 2 * WINDOW)) ** 2
    if not _voiced(power):
        return NONE
    labels, patterns = _patterns()
    return int(labels[np.argmax(patterns @ _shape(power))])


def _voiced(power: Array) -> bool:
    """Whether there is a pitch between 70 and 400 Hz."""
    correlation = np.fft.irfft(power)
    # The window tapers off, and with it the correlation: undo that for the lags in question.
    return bool(np.max(correlation[_PITCH_LAGS] / _taper()[_PITCH_LAGS]) > _VOICED * correlation[0])


@lru_cache(maxsize=2)  # whole windows; pieces at the end of a sentence come in any length
def _hanning(length: int) -> Array:
    return np.hanning(length)


@lru_cache(maxsize=1)
def _taper() -> Array:
    correlation = np.fft.irfft(np.abs(np.fft.rfft(np.hanning(WINDOW), 2 * WINDOW)) ** 2)
    return np.asarray(correlation / correlation[0])


def _bark(hertz: Array) -> Array:
    """Traunmüller's formula for the ear's own scale of pitch."""
    return np.asarray(26.81 * hertz / (1960.0 + hertz) - 0.53)


@lru_cache(maxsize=1)
def _filters() -> Array:
    """Overlapping triangular bands, evenly spaced in Bark: (_BANDS, _BINS)."""
    hertz = np.arange(_BINS) * SAMPLE_RATE / (2 * WINDOW)
    low, high = _bark(np.array([_LOW, _HIGH]))
    centres = np.linspace(low, high, _BANDS)
    # Two Bark wide at the foot at least: wider than a voice's harmonics are apart, so that they melt into an envelope.
    distance = np.abs(_bark(hertz)[None, :] - centres[:, None])
    weights = np.maximum(0.0, 1.0 - distance / 1.2)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _shape(power: Array) -> Array:
    """The envelope of a spectrum without loudness and without its overall slope, as a unit vector of _BANDS."""
    levels = np.log(_filters() @ power[:_BINS] + 1.0)
    shape = levels - _slopes() @ (levels @ _slopes())
    return np.asarray(shape / (np.linalg.norm(shape) + 1e-9))


@lru_cache(maxsize=1)
def _slopes() -> Array:
    """An orthonormal basis of the constant and the straight line: (_BANDS, 2)."""
    line = np.stack([np.ones(_BANDS), np.linspace(-1.0, 1.0, _BANDS)], axis=1)
    return np.asarray(np.linalg.qr(line)[0])


@lru_cache(maxsize=1)
def _patterns() -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Array]:
    """The shapes to compare with, each vowel in several sizes of vocal tract: labels, and (labels, _BANDS)."""
    hertz = np.arange(_BINS) * SAMPLE_RATE / (2 * WINDOW)
    labels, shapes = [], []
    for label, formants in _FORMANTS:
        for tract in _TRACTS:
            power = np.full(_BINS, 1e12)
            for centre, bandwidth in zip(formants, _BANDWIDTHS, strict=True):
                power *= _resonance(hertz, centre * tract, bandwidth * tract)
            labels.append(label)
            shapes.append(_shape(power))
    return np.array(labels), np.array(shapes)


def _resonance(hertz: Array, centre: float, bandwidth: float) -> Array:
    """The power response of one formant: a pair of poles in the Laplace plane, 1 at 0 Hz."""
    top = (centre**2 + bandwidth**2 / 4) ** 2
    return np.asarray(top / (((hertz - centre) ** 2 + bandwidth**2 / 4) * ((hertz + centre) ** 2 + bandwidth**2 / 4)))
