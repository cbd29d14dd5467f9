"""The `text` cases of the public bug reports, at every split point. Needs the shared folder beside the checkout."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from echokit_py.text.sentences import SentenceSplitter
from echokit_py.text.speech import SpeechFilter

_CASES = Path(__file__).parents[2].parent / "shared" / "corpus" / "cases" / "cases.json"
# Private reasoning is taken out of the content before it gets here (echokit_py.llm).
_NOT_OURS = {"text-09"}


def _cases() -> list[dict[str, Any]]:
    if not _CASES.exists():
        return []
    cases: list[dict[str, Any]] = json.loads(_CASES.read_text(encoding="utf-8"))
    return [case for case in cases if case["area"] == "text" and case["id"] not in _NOT_OURS]


def _spoken(deltas: list[str]) -> tuple[list[str], list[int]]:
    """The segments given to TTS, and after how many deltas each was out."""
    splitter, speech = SentenceSplitter(), SpeechFilter()
    segments, times = [], []
    for number, pieces in enumerate([*map(splitter.feed, deltas), splitter.flush()], 1):
        for segment in filter(None, map(speech.speakable, pieces)):
            segments.append(segment)
            times.append(number)
    return segments, times


def _bare(text: str) -> str:
    return "".join(text.split())


def _is_joined(segments: list[str], atoms: list[str]) -> bool:
    left = [_bare(atom) for atom in atoms]
    for segment in map(_bare, segments):
        joined = ""
        while left and joined != segment:
            joined += left.pop(0)
        if joined != segment:
            return False
    return not left


def _faults(segments: list[str], expect: dict[str, Any], text: str) -> list[str]:
    spoken = _bare("".join(segments))
    faults = []
    if "atoms" in expect and not _is_joined(segments, expect["atoms"]):
        faults.append("atoms")
    faults += [f"split {whole}" for whole in expect.get("must_not_split", []) if not _within_one(whole, segments)]
    faults += [f"missing {words}" for words in expect.get("must_speak", []) if _bare(words) not in spoken]
    faults += [f"spoken {words}" for words in expect.get("must_not_speak", []) if _bare(words) in spoken]
    for pattern in expect.get("forbidden_segment_regex", []):
        faults += [f"{segment} matches {pattern}" for segment in segments if re.search(pattern, segment)]
    if expect.get("every_segment_has_letter_or_digit"):
        faults += [f"empty {segment}" for segment in segments if not any(map(str.isalnum, segment))]
    if expect.get("text_preserved"):
        kept, original = ("".join(filter(str.isalnum, part)) for part in (spoken, text))
        faults += [] if kept == original else ["letters lost"]
    return faults


def _within_one(whole: str, segments: list[str]) -> bool:
    return any(_bare(whole) in _bare(segment) for segment in segments)


@pytest.mark.skipif(not _CASES.exists(), reason="the shared corpus is not beside this checkout")
@pytest.mark.parametrize("case", _cases(), ids=lambda case: str(case["id"]))
def test_a_case_at_every_split_point(case: dict[str, Any]) -> None:
    deltas, expect = case["input"]["deltas"], case["expect"]
    text = "".join(deltas)
    segments, times = _spoken(deltas)
    assert _faults(segments, expect, text) == []
    if (limit := expect.get("first_segment_after_delta_at_most")) is not None:
        assert times[0] <= limit
    assert _spoken(list(text))[0] == segments
    for at in range(len(text) + 1):
        assert _spoken([text[:at], text[at:]])[0] == segments, at
