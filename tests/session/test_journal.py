"""The figures of turns, however they began, and what is kept of them."""

from __future__ import annotations

import logging
import re

import pytest

from echokit_py.session.journal import KEPT_TURNS, TEXT_LIMIT, Journal, Mark, TurnRecord


def record(**marks: float) -> TurnRecord:
    return TurnRecord("board", "7f3a", marks={Mark[name.upper()]: at for name, at in marks.items()})


LATER = {"llm_request": 2.0, "sentence": 2.5, "tts_request": 2.501, "tts_first": 2.6, "audio_queued": 2.603}
SPOKEN = {"speech_end": 1.0, "decided": 1.5, "asr_request": 1.502, "asr_done": 1.999, "audio_sent": 2.604, **LATER}


def test_the_figures_of_a_spoken_turn_add_up() -> None:
    stages = record(**SPOKEN).stages()
    assert stages == pytest.approx(
        {"silence": 500, "asr": 497, "llm": 500, "tts": 99, "overhead": 2 + 1 + 1 + 4, "first_audio": 1604}
    )
    assert sum(stages.values()) == pytest.approx(2 * stages["first_audio"])
    assert record(**SPOKEN).overheads() == pytest.approx({"asr": 2, "llm": 1, "tts": 1, "audio": 4})


def test_the_figures_of_a_typed_turn() -> None:
    typed = record(decided=1.996, audio_sent=2.604, **LATER)
    assert typed.stages() == pytest.approx({"llm": 500, "tts": 99, "overhead": 4 + 1 + 4, "first_audio": 608})
    assert typed.overheads() == pytest.approx({"llm": 4, "tts": 1, "audio": 4})


def guessed(**more: float) -> TurnRecord:
    """Recognition and the model at work in the silence: both ended before it did."""
    found = record(speech_end=1.0, decided=1.7, audio_sent=1.81, **more)
    guess = record(guessed=1.2, asr_request=1.203, asr_done=1.35, llm_request=1.351, sentence=1.6, decided=9.9)
    found.adopt(guess)
    return found


def test_the_figures_of_a_guess_overlap_and_its_overhead_is_what_nothing_explains() -> None:
    stages = guessed(tts_request=1.704, tts_first=1.804).stages()
    assert stages == pytest.approx(
        {"silence": 700, "asr": 147, "llm": 249, "tts": 100, "overhead": 4 + 6, "first_audio": 810}
    )


def test_each_stage_counts_from_the_last_thing_that_it_waited_for() -> None:
    assert guessed(tts_request=1.704, tts_first=1.804).overheads() == pytest.approx(
        {"asr": 3, "llm": 1, "tts": 4, "audio": 6}
    )
    ahead = guessed(tts_request=1.602, tts_first=1.69)  # the voice, too, was done when it was decided
    assert ahead.overheads() == pytest.approx({"asr": 3, "llm": 1, "tts": 2, "audio": 110})


def test_the_moments_of_a_guess_take_no_moment_of_the_turn_away() -> None:
    assert guessed().marks[Mark.DECIDED] == 1.7


def test_a_back_end_that_never_answered_explains_the_time_until_the_apology() -> None:
    failed = record(speech_end=1.0, decided=1.5, asr_request=1.501, audio_queued=21.6, audio_sent=21.6)
    assert failed.stages() == pytest.approx({"silence": 500, "overhead": 1, "first_audio": 20_600})


def test_a_turn_that_came_nowhere_has_no_figures() -> None:
    assert record().stages() == record().overheads() == record(asr_request=1.0).overheads() == {}
    assert record().as_json()["marks_ms"] == {}


def test_a_record_as_json() -> None:
    found = record(decided=10.0, audio_sent=10.5)
    found.discarded = 2
    shown = found.as_json()
    assert shown["monotonic_s"] == 10.0
    assert shown["marks_ms"] == {"decided": 0, "audio_sent": 500}
    assert shown["discarded"] == 2
    assert "question" not in shown


def test_a_record_is_closed_once_and_keeps_its_error() -> None:
    journal, failed = Journal(kept=1), record()
    failed.error = "llm server: no"
    journal.close(failed, "interrupted")
    journal.close(failed, "answered")
    assert [(each.outcome, each.error) for each in journal] == [("interrupted", "llm server: no")]
    journal.close(record(), "failed", "late")
    assert [each.error for each in journal] == ["late"]


def test_the_last_200_are_kept() -> None:
    journal = Journal()
    for _ in range(KEPT_TURNS + 5):
        journal.close(record(), "answered")
    assert len(list(journal)) == KEPT_TURNS == 200


@pytest.mark.parametrize("texts", [False, True])
def test_texts_are_kept_only_when_they_are_wanted(texts: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    journal, found = Journal(texts=texts), record()
    found.question = "Who was it?"
    found.say("It was me.")
    found.say("Nobody else.")
    journal.close(found, "answered")
    shown = found.as_json()
    assert (shown.get("question"), shown.get("answer")) == (
        ("Who was it?", "It was me. Nobody else.") if texts else (None, None)
    )
    assert "me" not in caplog.text


def test_texts_are_bounded() -> None:
    found = record()
    for _ in range(100):
        found.say("x" * 1000)
    assert len(found.answer) == TEXT_LIMIT


def test_the_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    journal = Journal()
    journal.close(record(**SPOKEN), "answered")
    journal.close(record(**SPOKEN), "interrupted")
    journal.close(record(), "nothing said")
    answered, interrupted, nothing = caplog.messages
    assert answered == "board: turn 7f3a silence=500 asr=497 llm=500 tts=99 overhead=8 first_audio=1604ms"
    assert re.fullmatch(r".* first_audio=1604ms interrupted", interrupted)
    assert nothing == "board: turn 7f3a nothing said"
