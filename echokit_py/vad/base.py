"""The interface of voice-activity detection. Endpointing (when an utterance ends) is `endpointing.py`, not here."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

FRAME_SAMPLES = 512  # what Silero takes at 16 kHz: 32 ms
FRAME_SECONDS = FRAME_SAMPLES / 16_000


class VadStream(Protocol):
    """The detector's state for one utterance of one device."""

    async def feed(self, pcm: bytes) -> list[float]:
        """Take s16le mono 16 kHz audio of any length, odd ones too; return the speech probability (0..1) of each
        512-sample frame that is now complete, in order. Raises BackendError."""
        ...


@runtime_checkable
class Releasing(Protocol):
    """What a stream is besides that knows how late it notices the end of speech."""

    @property
    def release_s(self) -> float:
        """For how long it goes on saying speech when speech is over, in seconds."""
        ...


class Vad(Protocol):
    """A loaded detector, shared by all devices."""

    def stream(self) -> VadStream:
        """Begin an utterance with fresh state."""
        ...

    async def start(self) -> None:
        """Load the model. Raises BackendError or ModelError."""
        ...

    async def close(self) -> None: ...
