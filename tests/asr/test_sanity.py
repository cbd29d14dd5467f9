"""Which transcripts count as said, with the evidence that recognisers and VAD give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echokit_py.asr.base import Transcript
from echokit_py.asr.sanity import heard

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus" / "cases" / "cases.json"

SPEECH = {"no_speech_prob": 0.05, "avg_logprob": -0.2}
NOISE = {"no_speech_prob": 0.7, "avg_logprob": -1.3}
SURE_NOISE = {"no_speech_prob": 0.93, "avg_logprob": -0.9}


def said(text: str, figures: dict[str, float]) -> Transcript:
    """A transcript with some of a recogniser's figures."""
    return Transcript(
        text,
        no_speech_prob=figures.get("no_speech_prob"),
        avg_logprob=figures.get("avg_logprob"),
        compression_ratio=figures.get("compression_ratio"),
    )


PHANTOMS = [
    "Thank you.",
    "Thanks for watching!",
    "请不吝点赞 订阅 转发",
    "ご視聴ありがとうございました",
    "Vielen Dank.",
    "you",
]


@pytest.mark.parametrize(
    "figures", [{}, SPEECH, {"no_speech_prob": 0.7}, {"avg_logprob": -1.2}, {"no_speech_prob": 0.6}]
)
@pytest.mark.parametrize("text", PHANTOMS)
def test_who_says_it_is_heard(text: str, figures: dict[str, float]) -> None:
    assert heard(said(text, figures), 3.0) == text
    assert heard(said(text, figures)) == text


@pytest.mark.parametrize("text", ["Thank you.", "Thanks for watching!", "谢谢观看", "Vielen Dank.", "you"])
@pytest.mark.parametrize(
    ("figures", "speech_s"), [({}, 0.03), (SPEECH, 0.0), (NOISE, 3.0), (NOISE, None), (SURE_NOISE, 3.0)]
)
def test_a_phantom_needs_little_evidence(text: str, figures: dict[str, float], speech_s: float | None) -> None:
    assert heard(said(text, figures), speech_s) == ""


@pytest.mark.parametrize(
    ("figures", "speech_s"),
    [(SPEECH, 0.1), ({}, 0.1), (NOISE, 1.2), (SURE_NOISE, 1.2), (SURE_NOISE, None), ({"avg_logprob": -3.0}, 1.2)],
)
def test_other_words_stay_where_one_sign_is_missing(figures: dict[str, float], speech_s: float | None) -> None:
    assert heard(said("Turn on the light.", figures), speech_s) == "Turn on the light."


@pytest.mark.parametrize(
    ("figures", "speech_s"), [(NOISE, 0.1), (SURE_NOISE, 0.1), ({"avg_logprob": -1.2}, 0.1), (NOISE, None)]
)
def test_other_words_go_when_vad_and_the_model_agree(figures: dict[str, float], speech_s: float | None) -> None:
    assert heard(said("Turn on the light.", figures), speech_s) == ""


LOOPS = [
    "I'm going to the store. " * 12,
    "Let me see. " + "so " * 120,
    "嗯嗯" * 40,
    "谢谢大家的支持，" * 20,
    "1.1." * 60,
    "The light. The light. The light. The light. The light. The light. The light. The light. The li",
]


@pytest.mark.parametrize("text", [text.strip() for text in LOOPS])
def test_a_loop_is_known_by_its_length_alone(text: str) -> None:
    assert heard(said(text, SPEECH), 60.0) == ""


@pytest.mark.parametrize("text", ["No, no, no, no.", "Ha ha ha ha ha ha!", "对对对对对", "Bye bye bye bye!", "aaaa"])
def test_a_word_repeated_is_heard_where_there_was_time_to_say_it(text: str) -> None:
    assert heard(said(text, SPEECH), 2.0) == text
    assert heard(Transcript(text)) == text
    assert heard(said(text, SPEECH), 0.05) == ""
    assert heard(said(text, SURE_NOISE), 2.0) == ""
    assert heard(Transcript(text, compression_ratio=3.0), 2.0) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Call five five five, one two one two.",
        "Row, row, row your boat, gently down the stream.",
        "Turn the light on, off, on, off, and then play some music in the living room, will you?",
        "la la la la la la la la la la la la la la la la la la la la but then tell me how the weather will be tomorrow",
    ],
)
def test_a_high_compression_alone_is_no_loop(text: str) -> None:
    assert heard(Transcript(text, compression_ratio=5.0), 9.0) == text


@pytest.mark.parametrize("text", ["", " ... ", "(music)", "[BLANK_AUDIO]", "♪♪", "*sighs*", "[ Silence ]"])
def test_no_words_need_no_evidence(text: str) -> None:
    assert heard(said(text, SPEECH), 5.0) == ""


def _items() -> list[Any]:
    listed = json.loads(CORPUS.read_text("utf-8")) if CORPUS.is_file() else []
    cases = [case for case in listed if case["area"] == "asr" and case["input"]["kind"] == "transcripts"]
    return [
        pytest.param(item, expected, id=f"{case['id']} {item['text']}")
        for case in cases
        for item, expected in zip(case["input"]["items"], case["expect"]["items"], strict=True)
    ]


@pytest.mark.skipif(not CORPUS.is_file(), reason="the corpus (../shared/corpus) is not here")
@pytest.mark.parametrize(("item", "expected"), _items())
def test_the_public_reports(item: dict[str, Any], expected: dict[str, Any]) -> None:
    speech_ms = item.get("vad_speech_ms")
    figures: dict[str, float] = {
        str(name): item[name] for name in ("no_speech_prob", "avg_logprob", "compression_ratio") if name in item
    }
    text = heard(said(item["text"], figures), None if speech_ms is None else speech_ms / 1000)
    assert bool(text) is (expected["action"] != "drop")


_FIGURE = st.none() | st.floats(-5, 5)


@settings(max_examples=150)
@given(st.text(max_size=60) | st.text("ab \n.(", max_size=300), _FIGURE, _FIGURE, _FIGURE, st.none() | st.floats(0, 60))
def test_a_text_is_kept_as_it_is_or_dropped_and_kept_without_evidence(
    text: str, silence: float | None, certainty: float | None, ratio: float | None, speech_s: float | None
) -> None:
    result = heard(Transcript(text, None, silence, certainty, ratio), speech_s)
    assert result in ("", text.strip())
    if speech_s == 60:
        assert heard(Transcript(text), 60) == heard(Transcript(text))


def test_an_ending_that_comes_often_is_no_loop() -> None:
    lines = ". ".join(f"{number:b} is a number" for number in range(90))
    assert heard(Transcript(lines, compression_ratio=5.0), 300.0) == lines


def test_a_text_without_end_takes_no_time() -> None:
    long = "so " * 300_000
    assert heard(Transcript(long), 60.0) == ""
