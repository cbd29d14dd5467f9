"""Says of each frame whether anything stands out of the noise. Doesn't know speech from other sounds.

A detector of speech goes on for up to ten frames when speech in noise is over; the noise alone tells where it was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from echokit_py.audio.pcm import BYTES_PER_SAMPLE, SAMPLE_RATE, BlockAligner
from echokit_py.vad.base import FRAME_SAMPLES

Floats = NDArray[np.float32]

# Bands of equal width to the ear (mel): wide enough to be steady in noise, narrow enough to show a voice's hum or an
# "s". From 80 Hz on, below which microphones hear the mains and the table.
BANDS = 12
_FRAME_BYTES = FRAME_SAMPLES * BYTES_PER_SAMPLE
_LOWEST_HZ, _HIGHEST_HZ = 80, SAMPLE_RATE // 2

# What noise is: a mean over half a second, once there are four frames of it (130 ms).
NOISE_FRAMES = 16
LEAST_NOISE_FRAMES = 4
# The mean is not exact and noise is not quite steady: 10 % more in a band says nothing.
SLACK = 1.1
# By how much a frame is likelier as sound and noise than as noise, as a logarithm (1 : 8,000). It is reached by fewer
# than one in a hundred frames of steady noise.
EVIDENCE = 9.0
# A band that is fainter than the loudest speech by this much (46 dB; 35 dB for a sound in all bands) holds an echo or
# a breath, however quiet the room.
FAINTEST = 10**-4.6


def _bands() -> Floats:
    """(frequencies of a frame's spectrum, BANDS): which belong to which band."""
    mel = np.linspace(math.log(1 + _LOWEST_HZ / 700), math.log(1 + _HIGHEST_HZ / 700), BANDS + 1)
    edges = np.round((np.exp(mel) - 1) * 700 / SAMPLE_RATE * FRAME_SAMPLES)
    places = np.arange(FRAME_SAMPLES // 2 + 1)[:, np.newaxis]
    bands: Floats = ((places >= edges[:-1]) & (places < edges[1:])).astype(np.float32)
    return bands


_WINDOW = np.hanning(FRAME_SAMPLES).astype(np.float32)
_BANDS = _bands()
# Neighbours in the spectrum say the same under the window: three count as two.
_WEIGHTS = _BANDS.sum(axis=0) / np.float32(1.5)
# The power of a noise of one step of a sample: in digital silence nothing is known more exactly.
_STEP = _BANDS.sum(axis=0) * (_WINDOW**2).sum()


# Before the first word nobody asks where speech ended: frames wait, so many of them, to be looked at together. A packet
# of 512 ms takes 0.25 ms, and a frame by itself nearly as much.
_WAITING_FRAMES = 2 * NOISE_FRAMES

# So many frames of noise are learnt at once; row by row how much each of them has in the mean that fades.
_BLOCK = 32
_AGES = np.arange(_BLOCK)[:, np.newaxis] - np.arange(_BLOCK)
_FADING = np.where(_AGES >= 0, (1 - 1 / NOISE_FRAMES) ** np.maximum(_AGES, 0) / NOISE_FRAMES, 0).astype(np.float32)


def band_powers(pcm: bytes) -> Floats:
    """The power of each frame in each band, (frames, BANDS). `pcm`: s16le, mono, 16 kHz, whole frames."""
    frames = np.frombuffer(pcm, "<i2").reshape(-1, FRAME_SAMPLES) * _WINDOW
    spectrum = np.fft.rfft(frames)
    powers: Floats = (spectrum.real**2 + spectrum.imag**2).astype(np.float32) @ _BANDS + _STEP
    return powers


class Audibility:
    """The noise and the loudest speech of one utterance.

    Noise is what is heard while the detector hears no speech. The bands' powers are compared with their means in noise
    as a likelihood ratio (J. Sohn et al., "A statistical model-based voice activity detection", 1999).

    Args:
        quiet: up to this probability of speech a frame is noise.
        speech: from this on it is speech.
    """

    def __init__(self, quiet: float, speech: float) -> None:
        self._quiet = quiet
        self._speech = speech
        self._aligner = BlockAligner(_FRAME_BYTES)
        self._waiting = b""
        self._waiting_heard: list[float] = []
        self._noise = np.zeros(BANDS, np.float32)
        self._noise_frames = 0
        self._loudest = 0.0

    def feed(self, pcm: bytes, probabilities: Sequence[float]) -> list[bool | None]:
        """Take audio (s16le, mono, 16 kHz, any length) and the probabilities of speech of the frames that it completes;
        return for each of these whether anything stands out of the noise.

        None: unknown, because there was no speech yet, or hardly any noise.
        """
        frames = self._aligner.feed(pcm)
        if len(frames) != len(probabilities) * _FRAME_BYTES:  # a detector that keeps frames back: whose are they?
            return [None] * len(probabilities)
        self._waiting += frames
        self._waiting_heard += probabilities
        if not self._loudest and not self._spoken():
            return [None] * len(probabilities)
        found = self._judge(band_powers(self._waiting), np.array(self._waiting_heard))
        self._waiting, self._waiting_heard = b"", []
        unknown: list[bool | None] = [None] * len(probabilities)
        return (unknown + found)[-len(probabilities) :] if probabilities else []

    def _spoken(self) -> bool:
        """Whether speech is among what waits; what waits before it is no more than _WAITING_FRAMES."""
        heard = self._waiting_heard
        first = next((place for place, each in enumerate(heard) if each >= self._speech), len(heard))
        spoken = first < len(heard)
        surplus = max(0, first - _WAITING_FRAMES)
        self._waiting, self._waiting_heard = self._waiting[surplus * _FRAME_BYTES :], heard[surplus:]
        return spoken

    def _judge(self, powers: Floats, heard: NDArray[np.float64]) -> list[bool | None]:
        loudness = powers.sum(axis=1)
        loudest = np.maximum.accumulate(np.where(heard >= self._speech, loudness, 0))
        loudest = np.maximum(loudest, self._loudest)
        self._loudest = max(self._loudest, float(loudest.max(initial=0)))
        noise, known = self._learn(powers, heard <= self._quiet)
        floor = np.maximum(noise * np.float32(SLACK), loudest[:, np.newaxis] * np.float32(FAINTEST))
        audible = _evidence(powers, floor) > EVIDENCE
        known &= loudest > 0
        return [yes if sure else None for yes, sure in zip(audible.tolist(), known.tolist(), strict=True)]

    def _learn(self, powers: Floats, quiet: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the mean noise as it is known at each frame, and from which frame on it is known well enough."""
        learnt = powers[quiet]
        counts = self._noise_frames + np.arange(len(learnt) + 1)
        first = min(len(learnt), max(0, NOISE_FRAMES - self._noise_frames))
        means = np.empty((len(learnt) + 1, BANDS), np.float32)
        means[0] = self._noise
        for place in range(first):  # the mean of all, as long as they are few
            means[place + 1] = means[place] + (learnt[place] - means[place]) / counts[place + 1]
        for start in range(first, len(learnt), _BLOCK):
            block = learnt[start : start + _BLOCK] - means[start]
            means[start + 1 : start + 1 + len(block)] = means[start] + _FADING[: len(block), : len(block)] @ block
        places = np.cumsum(quiet)
        self._noise = means[-1]
        self._noise_frames = min(int(counts[-1]), NOISE_FRAMES)
        return means[places], counts[places] >= LEAST_NOISE_FRAMES


def _evidence(powers: Floats, floor: Floats) -> Floats:
    """How much likelier each frame is as sound and noise than as noise alone; a logarithm."""
    excess = np.maximum(powers / np.maximum(floor, _STEP), np.float32(1))
    found: Floats = (excess - 1 - np.log(excess)) @ _WEIGHTS
    return found
