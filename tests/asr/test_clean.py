"""Which transcripts hold words."""

from __future__ import annotations

import pytest

from echokit_py.asr.clean import clean_transcript


@pytest.mark.parametrize(
    "text",
    [
        "", " \n", "...", "。", "♪♪", "(noise)", " (bgm)\n(silence)", "（掌声）", "(click) turn on the light",
        "[BLANK_AUDIO]", "[Music] [Applause]", "*coughs*", "【音楽】", "<|nospeech|>",
        "[BLANK_AUDIO] ...", "- [music] -",
    ],
)  # fmt: skip
def test_noise_is_no_text(text: str) -> None:
    assert clean_transcript(text) == ""


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (" What time is it? \n", "What time is it?"),
        ("你好", "你好"),
        ("What is 2 * 3 * 4?", "What is 2 * 3 * 4?"),
        ("Hello (laughs)", "Hello (laughs)"),
        ("[Music] Hello", "[Music] Hello"),
        ("[unclosed", "[unclosed"),
        ("42", "42"),
    ],
)
def test_words_stay_as_they_are(text: str, kept: str) -> None:
    assert clean_transcript(text) == kept
