"""The figures of turns, however they began."""

from __future__ import annotations

import pytest

from echokit_py.session.journal import Journal, Mark, TurnRecord


def record(**marks: float) -> TurnRecord:
    return TurnRecord("board", "0001", marks={Mark[name.upper()]: at for name, at in marks.items()})


LATER = {"llm_request": 2.0, "sentence": 2.5, "tts_request": 2.501, "tts_first": 2.6, "audio_queued": 2.603}


def test_the_figures_of_a_spoken_turn() -> None:
    spoken = record(speech_end=1.0, decided=1.5, asr_request=1.502, asr_done=1.999, audio_sent=2.604, **LATER)
    assert spoken.stages() == pytest.approx(
        {"silence": 500, "asr": 497, "llm": 500, "tts": 99, "overhead": 2 + 1 + 1 + 3, "first_audio": 1604}
    )


def test_the_figures_of_a_typed_turn() -> None:
    typed = record(decided=1.996, audio_sent=2.604, **LATER)
    assert typed.stages() == pytest.approx({"llm": 500, "tts": 99, "overhead": 4 + 1 + 3, "first_audio": 608})


def test_a_turn_that_came_nowhere_has_no_figures() -> None:
    assert record().stages() == {}
    assert record().as_json()["marks_ms"] == {}


def test_a_record_is_closed_once_and_keeps_its_error() -> None:
    journal, failed = Journal(kept=1), record()
    failed.error = "llm server: no"
    journal.close(failed, "interrupted")
    journal.close(failed, "answered")
    assert [(each.outcome, each.error) for each in journal] == [("interrupted", "llm server: no")]
    journal.close(record(), "failed", "late")
    assert [each.error for each in journal] == ["late"]
