"""The audio format between all modules, and byte arithmetic on it. Converts and decodes nothing.

Unless a docstring says otherwise audio is `bytes`: s16le, mono, 16 kHz.
"""

from __future__ import annotations

from echokit_py.errors import EchoKitError

# What the board's microphone, loudspeaker and Opus codec use, and what VAD and ASR models take.
SAMPLE_RATE = 16_000
BYTES_PER_SAMPLE = 2
BYTES_PER_SECOND = SAMPLE_RATE * BYTES_PER_SAMPLE


class AudioError(EchoKitError):
    """Audio that can't be read; the message says in one sentence what came instead."""


def seconds(pcm: bytes) -> float:
    """Return how long `pcm` (s16le, mono, 16 kHz) lasts, in seconds."""
    return len(pcm) / BYTES_PER_SECOND


def silence(duration: float) -> bytes:
    """Return `duration` seconds of silence (s16le, mono, 16 kHz), rounded to whole samples; nothing for ≤ 0."""
    return bytes(max(0, round(duration * SAMPLE_RATE)) * BYTES_PER_SAMPLE)


class BlockAligner:
    """Cuts a byte stream at multiples of `block`, so that a sample is never torn between two pieces.

    A stream is cut anywhere on its way; the bytes of a torn sample wait here for their other half.
    """

    def __init__(self, block: int = BYTES_PER_SAMPLE) -> None:
        self._block = block
        self._rest = b""

    @property
    def pending(self) -> int:
        """How many bytes are held back, 0 … block − 1."""
        return len(self._rest)

    def feed(self, data: bytes) -> bytes:
        """Take bytes of any length, return all whole blocks held so far."""
        if self._rest:
            data = self._rest + data
        whole = len(data) - len(data) % self._block
        self._rest = data[whole:]
        return data[:whole]

    def clear(self) -> None:
        """Forget the torn block: at the end of a stream there is no other half to come."""
        self._rest = b""
