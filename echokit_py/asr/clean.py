"""Decides whether a transcript holds words or only noise tags. Pure; for every recogniser alike."""

from __future__ import annotations

import re

# How recognisers write what is no speech: "(bgm)", "[BLANK_AUDIO]", "*music*", "【音楽】", "<|nospeech|>".
_TAG = re.compile(r"\([^()]*\)|（[^（）]*）|\[[^\[\]]*\]|【[^【】]*】|\*[^*]*\*|<\|[^|]*\|>")


def clean_transcript(text: str) -> str:
    """Return `text` without blanks around it, or "" when nothing was said.

    Nothing was said when only noise tags and punctuation came, or when the text begins with a round bracket: the Rust
    server drops such a text whole, and its users teach Whisper to write noises that way ("(noise)", "(bgm)").
    """
    text = text.strip()
    if text.startswith(("(", "（")):
        return ""
    return text if any(character.isalnum() for character in _TAG.sub(" ", text)) else ""
