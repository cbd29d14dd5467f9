"""The interface of speech synthesis: a sentence in, audio out as it is made."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol


class Tts(Protocol):
    """A voice, shared by all devices."""

    async def start(self) -> None:
        """Load the voice or prepare the connection. Raises BackendError or ModelError."""
        ...

    def synthesize(self, text: str) -> AsyncIterator[bytes]:
        """Speak `text`: an asynchronous generator of s16le mono 16 kHz audio, pieces of any length as they come.

        Closing the generator (aclose) or cancelling stops the work. Raises BackendError, also when no audio came.
        """
        ...

    async def probe(self) -> str:
        """Speak a short word; return a short description of the voice. Raises BackendError."""
        ...

    async def close(self) -> None: ...
