"""The data that stand beside the checkout (../shared) and are no part of it: where they are, and how they are read."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parents[1].parent / "shared"
AUDIO = SHARED / "audio"
STREAMS = SHARED / "corpus" / "streams"
CASES = SHARED / "corpus" / "cases" / "cases.json"
PRESENT = CASES.is_file()
ABSENT = "the corpus (../shared/corpus) is not here"
Case = dict[str, Any]

needs_corpus = pytest.mark.skipif(not PRESENT, reason=ABSENT)


@cache
def cases(*areas: str) -> list[Case]:
    """The public bug reports of these areas; none when the corpus is not here."""
    listed: list[Case] = json.loads(CASES.read_text("utf-8")) if PRESENT else []
    return [case for case in listed if case["area"] in areas]


@cache
def streams() -> list[dict[str, Any]]:
    """What is known of the recorded streams in `STREAMS`; nothing when they are not here."""
    manifest = STREAMS / "manifest.json"
    return json.loads(manifest.read_text("utf-8")) if manifest.is_file() else []


@cache
def spoken_texts() -> dict[str, str]:
    """File name in `AUDIO` → the words of that recorded sentence; none when the recordings are not here."""
    texts = AUDIO / "texts.json"
    return json.loads(texts.read_text("utf-8")) if texts.is_file() else {}
