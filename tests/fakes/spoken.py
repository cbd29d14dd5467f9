"""Recorded sentences with pauses put into them and noise laid over them, and where they are ended. Seeded.

Samples are int16, mono, 16 kHz; positions and lengths are seconds unless they say samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from echokit_py.audio.wav import read_wav
from echokit_py.config.settings import VadSettings
from echokit_py.vad.audibility import Audibility, band_powers
from echokit_py.vad.base import FRAME_SAMPLES, FRAME_SECONDS
from echokit_py.vad.endpointing import ONSET_SHARE, Endpointer, EndpointEvent
from echokit_py.vad.silero import RELEASE_S
from tests.beside import AUDIO, spoken_texts

NOT_HERE = "the spoken sentences (shared/audio beside the checkout) are not here"
RECORDINGS = sorted(spoken_texts())
NOISES = ("white", "pink", "babble")
NOISE_S = 24  # longer than any recording; the same for all

RATE = 16_000
STEP = 160  # 10 ms

Samples = NDArray[np.int16]
Levels = NDArray[np.float64]


@lru_cache
def load(name: str) -> Samples:
    """The samples of a recording."""
    return np.frombuffer(read_wav((AUDIO / name).read_bytes()).pcm, "<i2")


def loudness(samples: Samples) -> Levels:
    """The root mean square of each 10 ms, 1 for the loudest."""
    steps = samples[: len(samples) // STEP * STEP].reshape(-1, STEP).astype(np.float64)
    levels: Levels = np.sqrt((steps**2).mean(axis=1))
    loudest: float = levels.max()
    return levels / loudest


def spoken(samples: Samples, floor: float = 0.03) -> tuple[float, float]:
    """Where the first sound louder than `floor` begins and the last ends, in seconds."""
    loud = np.flatnonzero(loudness(samples) > floor)
    return int(loud[0]) * 0.01, (int(loud[-1]) + 1) * 0.01


def with_pause(samples: Samples, milliseconds: int, part: tuple[float, float] = (1 / 3, 2 / 3)) -> Samples:
    """`samples` with a pause of exactly this length at the quietest place of that part of what is spoken."""
    levels = loudness(samples)
    first, last = (round(second * 100) for second in spoken(samples))
    low, high = (first + round(share * (last - first)) for share in part)
    start = end = low + int(np.argmin(levels[low:high]))
    while levels[start - 1] < 0.03:
        start -= 1
    while levels[end] < 0.03:
        end += 1
    pause = np.zeros(RATE * milliseconds // 1000, np.int16)
    return np.concatenate((samples[: start * STEP], pause, samples[end * STEP :]))


def with_noise(samples: Samples, kind: str, snr_db: float, seed: int = 7) -> Samples:
    """`samples` with noise all over, so many decibels below the speech: its level is that of its loud half."""
    levels = np.sqrt((samples[: len(samples) // STEP * STEP].reshape(-1, STEP).astype(np.float64) ** 2).mean(axis=1))
    speech = float(np.sqrt((levels[levels > 0.1 * levels.max()] ** 2).mean()))
    mixed = samples + np.resize(noise(kind, seed), len(samples)) * (speech * 10 ** (-snr_db / 20))
    return np.clip(np.round(mixed), -32_768, 32_767).astype(np.int16)


@lru_cache
def noise(kind: str, seed: int = 7) -> Levels:
    """NOISE_S of noise whose root mean square is 1: white, pink (-3 dB an octave), car (-6 dB an octave from 40 Hz on),
    fan (up to 900 Hz, swelling by a fifth), hum (of the mains, in a little white noise) or babble (12 voices at once).
    """
    chance, length = np.random.default_rng(seed), NOISE_S * RATE
    found = chance.normal(0, 1, length)
    seconds, hertz = np.arange(length) / RATE, np.fft.rfftfreq(length, 1 / RATE)
    spectrum = np.fft.rfft(found)
    match kind:
        case "pink":
            found = np.fft.irfft(spectrum / np.sqrt(np.maximum(1, np.arange(len(spectrum)))), length)
        case "car":
            found = np.fft.irfft(spectrum / np.maximum(40, hertz), length)
        case "fan":
            found = np.fft.irfft(spectrum * np.where(hertz < 900, 1, np.where(hertz < 4000, 0.1, 0.01)), length)
            found *= 1 + 0.2 * np.sin(2 * np.pi * 0.7 * seconds)
        case "hum":
            found = 0.1 * found + sum(np.sin(2 * np.pi * 50 * n * seconds + n * n) / n for n in range(1, 12))
        case "babble":
            found = _babble(chance, length)
    level: float = np.sqrt((found**2).mean())
    return found / level


def _babble(chance: np.random.Generator, length: int) -> Levels:
    voices = [load(name).astype(np.float64) for name in RECORDINGS if len(load(name)) > 3 * RATE]
    found = np.zeros(length)
    for number in range(12):
        voice = voices[number % len(voices)]
        voice = voice / np.sqrt((voice**2).mean())
        found += np.roll(np.resize(voice, length), int(chance.integers(length)))
    return found


def longest_silence(samples: Samples, floor: float = 0.03) -> float:
    """The longest time within what is spoken that is quieter than `floor`, in seconds."""
    loud = np.flatnonzero(loudness(samples) > floor)
    return float((np.diff(loud) - 1).max()) * 0.01


def longest_masked(clean: Samples, noisy: Samples, floor: float = 0.03) -> float:
    """The longest time within what is spoken in which no sound louder than `floor` reaches the noise in any band."""
    steps = np.lib.stride_tricks.sliding_window_view(clean, FRAME_SAMPLES)[::STEP]
    noise_only = (noisy.astype(np.int32) - clean).astype(np.int16)
    levels = band_powers(noise_only[: len(noise_only) // FRAME_SAMPLES * FRAME_SAMPLES].tobytes()).mean(axis=0)
    reaches = (band_powers(steps.tobytes()) > levels).any(axis=1)
    middle = (FRAME_SAMPLES // 2) // STEP  # of a window, in steps
    loud = np.flatnonzero(reaches & (loudness(clean)[middle : middle + len(reaches)] > floor))
    return float((np.diff(loud) - 1).max()) * 0.01


@dataclass(frozen=True, slots=True)
class Ending:
    """How an utterance was ended. `last_s`: where its last speech is; `ends_s`: where utterances were ended."""

    last_s: float
    ends_s: tuple[float, ...]

    @property
    def cut(self) -> bool:
        """Whether one was ended before the last speech."""
        return any(end < self.last_s for end in self.ends_s)

    @property
    def delay_s(self) -> float | None:
        """From the last speech to the end that followed; None: there was none."""
        return next((end - self.last_s for end in self.ends_s if end >= self.last_s), None)


def audible(samples: Samples, probabilities: Sequence[float], settings: VadSettings) -> list[bool | None]:
    """Whether anything is audible in each whole frame of `samples`, of which these are the probabilities of speech."""
    return Audibility(settings.threshold * ONSET_SHARE, settings.threshold).feed(samples.tobytes(), probabilities)


def endings(probabilities: Sequence[float], audible: Sequence[bool | None], settings: VadSettings) -> tuple[float, ...]:
    """Where utterances are ended, in seconds; after each end a new one begins, as with a board."""
    found, base, endpointer = [], 0.0, Endpointer(settings, RELEASE_S)
    for probability, sounds in zip(probabilities, audible, strict=True):
        event = endpointer.feed(probability, sounds)
        if event is not None and event.ends:
            base += endpointer.elapsed
            endpointer = Endpointer(settings, RELEASE_S)
            if event is EndpointEvent.SPEECH_ENDED:
                found.append(base)
    return tuple(found)


def last_speech(samples: Samples, probabilities: Sequence[float], threshold: float = 0.5) -> float:
    """Where the last speech of a clean recording is: by loudness, or by VAD when a breath comes after it."""
    by_vad = (1 + int(np.flatnonzero(np.array(probabilities) >= threshold)[-1])) * FRAME_SECONDS
    return min(spoken(samples)[1], by_vad)
