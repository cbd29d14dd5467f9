"""The interface of speech recognition: an utterance in, its text out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was said. The figures, where a back end has them, can speak against it (`sanity.py`).

    Attributes:
        language: as the back end names it: a code, or a name such as "english".
        no_speech_prob: 0 to 1.
        avg_logprob: the mean log probability of the tokens; 0 is certain.
        compression_ratio: how many times smaller gzip makes the text.
    """

    text: str
    language: str | None = None
    no_speech_prob: float | None = None
    avg_logprob: float | None = None
    compression_ratio: float | None = None


class Asr(Protocol):
    """A recogniser, shared by all devices."""

    async def start(self) -> None:
        """Load the model or prepare the connection. Raises BackendError or ModelError."""
        ...

    async def transcribe(self, pcm: bytes) -> Transcript:
        """Recognise an utterance (`pcm`: s16le, mono, 16 kHz). Empty text means that nothing was understood.

        Cancelling is safe at any time. Raises BackendError.
        """
        ...

    async def probe(self) -> str:
        """Try the back end with a moment of silence; return a short description. Raises BackendError."""
        ...

    async def close(self) -> None: ...
