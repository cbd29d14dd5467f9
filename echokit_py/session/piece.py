"""What goes from the dialogue to the voice: a piece of an answer to be spoken."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words to be spoken, a sentence as a rule.

    Attributes:
        text: with the model's markup; what may be spoken of it is decided by the voice.
        kept: whether they are part of the answer: shown to the model later, as far as they were heard.
    """

    text: str
    kept: bool = True
