"""Test signals and files of every format, made on the spot."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

Tone = Callable[..., bytes]
Encode = Callable[..., bytes]
Feed = Callable[..., bytes]


def _tone(rate: int, duration: float = 1.0, hertz: float = 440.0, level: int = 8000) -> bytes:
    time = np.arange(round(rate * duration)) / rate
    return (level * np.sin(2 * np.pi * hertz * time)).round().astype("<i2").tobytes()


@pytest.fixture
def tone() -> Tone:
    """tone(rate, duration=1.0, hertz=440, level=8000) → s16le mono."""
    return _tone


@pytest.fixture
def encode() -> Encode:
    """encode(container, codec, rate=24000, layout="mono", duration=1.0, **options) → a file with a 440 Hz tone."""

    def run(
        container: str,
        codec: str,
        rate: int = 24_000,
        layout: str = "mono",
        duration: float = 1.0,
        metadata: dict[str, str] | None = None,
        **options: str,
    ) -> bytes:
        file = io.BytesIO()
        with av.open(file, "w", format=container) as output:
            output.metadata.update(metadata or {})
            stream: Any = output.add_stream(codec, rate=rate, options=options)
            stream.layout = layout
            sides = np.frombuffer(_tone(rate, duration), "<i2").repeat(stream.codec_context.channels)
            frame = av.AudioFrame.from_ndarray(sides[None, :], "s16", layout)
            frame.sample_rate = rate
            frame.pts = 0
            converter = av.AudioResampler(format=stream.codec_context.format or "s16", layout=layout, rate=rate)
            for piece in [*converter.resample(frame), *converter.resample(None), None]:
                output.mux(stream.encode(piece))
        return file.getvalue()

    return run


@pytest.fixture
def feed() -> Feed:
    """feed(decoder, data, size) → everything that comes out, `data` fed in pieces of `size` bytes, then flushed."""

    def run(decoder: Any, data: bytes, size: int = 1 << 30) -> bytes:
        out = b"".join(decoder.feed(data[at : at + size]) for at in range(0, len(data), size))
        return out + bytes(decoder.flush())

    return run


def samples(pcm: bytes) -> NDArray[np.float64]:
    return np.frombuffer(pcm, "<i2").astype(np.float64)


@pytest.fixture
def measure() -> Callable[[bytes], tuple[float, float]]:
    """measure(pcm) → the strongest frequency (Hz) and level of the middle of s16le mono 16 kHz."""

    def run(pcm: bytes) -> tuple[float, float]:
        middle = samples(pcm)
        middle = middle[len(middle) // 4 : -len(middle) // 4]
        spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle)), 1 << 17))
        return float(np.argmax(spectrum) * 16_000 / (1 << 17)), float(np.sqrt(2 * np.mean(middle**2)))

    return run
