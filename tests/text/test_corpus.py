"""The `text` cases of the public bug reports, at every split point. Needs the shared folder beside the checkout."""

from __future__ import annotations

import pytest

from echokit_py.text.sentences import SentenceSplitter
from echokit_py.text.speech import SpeechFilter
from tests.fakes.text_cases import ABSENT, PRESENT, Case, faults, text_cases

# Private reasoning is taken out of the content before it gets here (echokit_py.llm); the case is told to the whole
# server in tests/session/test_corpus_text_cases.py, as all the others are.
_NOT_OURS = {"text-09"}


def _cases() -> list[Case]:
    return [case for case in text_cases() if case["id"] not in _NOT_OURS]


def _spoken(deltas: list[str]) -> tuple[list[str], list[int]]:
    """The segments given to TTS, and after how many deltas each was out."""
    splitter, speech = SentenceSplitter(), SpeechFilter()
    segments, times = [], []
    for number, pieces in enumerate([*map(splitter.feed, deltas), splitter.flush()], 1):
        for segment in filter(None, map(speech.speakable, pieces)):
            segments.append(segment)
            times.append(number)
    return segments, times


@pytest.mark.skipif(not PRESENT, reason=ABSENT)
@pytest.mark.parametrize("case", _cases(), ids=lambda case: str(case["id"]))
def test_a_case_at_every_split_point(case: Case) -> None:
    deltas, expected = case["input"]["deltas"], case["expect"]
    text = "".join(deltas)
    segments, times = _spoken(deltas)
    assert faults(segments, expected, text) == []
    if (limit := expected.get("first_segment_after_delta_at_most")) is not None:
        assert times[0] <= limit
    assert _spoken(list(text))[0] == segments
    for at in range(len(text) + 1):
        assert _spoken([text[:at], text[at:]])[0] == segments, at
