"""Whether a text can be written at all. Changes none."""

from __future__ import annotations


def is_utf8(text: str) -> bool:
    """Whether `text` has no lone surrogates, which no encoding has a place for. JSON's escapes can spell them, and
    bytes of the environment that aren't UTF-8 come as such (PEP 383)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
