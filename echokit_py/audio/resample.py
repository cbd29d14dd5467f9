"""Brings audio of any rate and channel count to 16 kHz mono, piece by piece. Knows no file formats."""

from __future__ import annotations

import av
import numpy as np
from av.audio.resampler import AudioResampler

from echokit_py.audio.pcm import BYTES_PER_SAMPLE, SAMPLE_RATE, AudioError, BlockAligner
from echokit_py.audio.wav import Wav

# Rates a voice or a file may have; outside of it a header is damaged.
_RATES = range(1_000, 768_001)


class Resampler:
    """A stream of s16le samples at one rate becomes s16le mono at 16 kHz (libswresample).

    The filter's state is kept from piece to piece, so that cuts are not heard. Not for use by two threads at once.
    """

    def __init__(self, rate_in: int, channels_in: int = 1) -> None:
        """`rate_in`: Hz. `channels_in`: samples interleaved per instant; they are averaged. Raises AudioError."""
        if rate_in not in _RATES or channels_in < 1:
            raise AudioError(f"audio with {channels_in} channels at {rate_in} Hz can't be right")
        self._rate = rate_in
        self._channels = channels_in
        self._blocks = BlockAligner(BYTES_PER_SAMPLE * channels_in)
        self._resampler = _new_resampler()

    def feed(self, pcm: bytes) -> bytes:
        """Take bytes of any length, return what is ready (s16le, mono, 16 kHz)."""
        mono = _mix(self._blocks.feed(pcm), self._channels)
        if self._rate == SAMPLE_RATE or not mono:
            return mono
        frame = av.AudioFrame(format="s16", layout="mono", samples=len(mono) // BYTES_PER_SAMPLE)
        frame.sample_rate = self._rate
        frame.planes[0].update(mono)
        return self._run(frame)

    def flush(self) -> bytes:
        """Return what the filter still holds (under 2 ms); after it a new stream can begin."""
        self._blocks.clear()
        rest = self._run(None)
        self._resampler = _new_resampler()
        return rest

    def _run(self, frame: av.AudioFrame | None) -> bytes:
        return b"".join(frame_bytes(out) for out in self._resampler.resample(frame))


def to_mono_16k(wav: Wav) -> bytes:
    """Return the audio of `wav` as s16le mono 16 kHz."""
    resampler = Resampler(wav.rate, wav.channels)
    return resampler.feed(wav.pcm) + resampler.flush()


def frame_bytes(frame: av.AudioFrame) -> bytes:
    """Return the samples of an s16 mono frame; its buffer may be longer than they are."""
    return bytes(frame.planes[0])[: frame.samples * BYTES_PER_SAMPLE]


def _new_resampler() -> AudioResampler:
    return AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)


def _mix(pcm: bytes, channels: int) -> bytes:
    """Average interleaved channels. A mean can't clip, whatever the channels hold."""
    if channels == 1:
        return pcm
    mono = np.frombuffer(pcm, "<i2").reshape(-1, channels).mean(axis=1)
    return bytes(mono.round().astype("<i2").tobytes())
