"""What goes from the dialogue to the voice: a piece of an answer to be spoken. Speaks nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words to be spoken, a sentence as a rule.

    Attributes:
        text: with the model's markup; what may be spoken of it is decided by the voice.
        kept: whether they are part of the answer: shown to the model later, as far as they were heard.
        audio: their speech, when its synthesis was begun earlier: an asynchronous generator as `Tts.synthesize`
            returns it, of what a fresh `SpeechFilter` leaves of `text`. The voice that takes the piece watches over it
            and closes it; until then it is its maker's to close. When it fails before any of it was queued, the voice
            asks once more by itself.
    """

    text: str
    kept: bool = True
    audio: AsyncIterator[bytes] | None = field(default=None, compare=False)
