"""The `text` cases of the public bug reports, and what is wrong with segments that were spoken for one. Speaks nothing.

The data stand beside the checkout (../shared/corpus) and are not part of it.
"""

from __future__ import annotations

import re

from tests.beside import ABSENT, PRESENT, Case, cases

__all__ = ["ABSENT", "PRESENT", "Case", "bare", "faults", "text_cases"]


def text_cases() -> list[Case]:
    """All of them; none when the corpus is not here."""
    return cases("text")


def bare(text: str) -> str:
    """The text without white space, which is not compared in this area."""
    return "".join(text.split())


def faults(segments: list[str], expected: Case, text: str) -> list[str]:
    """What of the segments given to TTS is not as the case wants it; `text` is the answer they were made of."""
    spoken = bare("".join(segments))
    found = []
    if "atoms" in expected and not _is_joined(segments, expected["atoms"]):
        found.append("atoms")
    found += [f"split {whole}" for whole in expected.get("must_not_split", []) if not _within_one(whole, segments)]
    found += [f"missing {words}" for words in expected.get("must_speak", []) if bare(words) not in spoken]
    found += [f"spoken {words}" for words in expected.get("must_not_speak", []) if bare(words) in spoken]
    for pattern in expected.get("forbidden_segment_regex", []):
        found += [f"{segment} matches {pattern}" for segment in segments if re.search(pattern, segment)]
    if expected.get("every_segment_has_letter_or_digit"):
        found += [f"empty {segment}" for segment in segments if not any(map(str.isalnum, segment))]
    if expected.get("text_preserved"):
        kept, original = ("".join(filter(str.isalnum, part)) for part in (spoken, text))
        found += [] if kept == original else ["letters lost"]
    return found


def _is_joined(segments: list[str], atoms: list[str]) -> bool:
    """Whether each segment is one atom or several neighbours, and none is left over."""
    left = [bare(atom) for atom in atoms]
    for segment in map(bare, segments):
        joined = ""
        while left and joined != segment:
            joined += left.pop(0)
        if joined != segment:
            return False
    return not left


def _within_one(whole: str, segments: list[str]) -> bool:
    return any(bare(whole) in bare(segment) for segment in segments)
