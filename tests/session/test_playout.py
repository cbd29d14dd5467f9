"""What the user has heard, by the clock of the device's speaker."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from echokit_py.session.playout import Playout


def sentence(playout: Playout, text: str, seconds: float, now: float) -> None:
    playout.begin(text)
    playout.sent(seconds, now)
    playout.end()


def test_nothing_sent_is_nothing_heard() -> None:
    playout = Playout()
    playout.sent(1, now=0)  # audio without a sentence: an apology's
    assert playout.heard(now=100) == ""
    assert playout.complete_by(now=0)


def test_a_sentence_without_audio_yet_is_not_heard() -> None:
    playout = Playout()
    sentence(playout, "One.", 1.0, now=0)
    playout.begin("Two.")
    assert playout.heard(now=5) == "One."


def test_sentences_play_one_after_the_other() -> None:
    playout = Playout()
    sentence(playout, "One two three four.", 4.0, now=10)
    sentence(playout, "Five six.", 2.0, now=10.1)
    assert playout.heard(now=10) == ""
    assert playout.heard(now=12.1) == "One two"
    assert playout.heard(now=14) == "One two three four."
    assert playout.heard(now=15.1) == "One two three four. Five"
    assert not playout.complete_by(now=15.9)
    assert playout.complete_by(now=16)
    assert playout.heard(now=16) == "One two three four. Five six."


def test_a_late_sentence_begins_when_it_is_sent() -> None:
    playout = Playout()
    sentence(playout, "One.", 1.0, now=0)
    sentence(playout, "Two.", 1.0, now=5)
    assert playout.heard(now=4.9) == "One."
    assert playout.complete_by(now=6)


def test_a_speaker_that_runs_dry_goes_on_later() -> None:
    playout = Playout()
    playout.begin("One two three four.")
    playout.sent(1.0, now=0)
    playout.sent(1.0, now=3)  # 2 s of silence in between
    playout.end()
    assert not playout.complete_by(now=3.9)
    assert playout.complete_by(now=4)


def test_a_sentence_still_being_sent_is_not_counted_as_whole() -> None:
    playout = Playout()
    playout.begin("One two three four five six seven eight nine ten")
    playout.sent(1.0, now=0)
    assert playout.heard(now=50) == "One two three four five six seven eight nine"
    assert not playout.complete_by(now=50)


def test_text_without_spaces_is_cut_by_characters() -> None:
    playout = Playout()
    sentence(playout, "今天天气很好", 6.0, now=0)
    assert playout.heard(now=3.1) == "今天天"


@given(st.lists(st.tuples(st.floats(0.05, 5), st.floats(0, 3)), min_size=1, max_size=8), st.floats(0, 60))
def test_what_was_heard_only_grows(parts: list[tuple[float, float]], at: float) -> None:
    playout, now = Playout(), 0.0
    for number, (seconds, pause) in enumerate(parts):
        now += pause
        sentence(playout, f"word{number} and more", seconds, now)
    earlier, later = playout.heard(at), playout.heard(at + 1)
    assert later.startswith(earlier)
    whole = playout.heard(now + sum(seconds for seconds, _ in parts) + 1)
    assert whole == " ".join(f"word{number} and more" for number in range(len(parts)))


def test_words_of_one_long_sentence_by_share() -> None:
    playout = Playout()
    sentence(playout, "a b c d", 4.0, now=0)
    assert [playout.heard(now=t) for t in (0.5, 1.5, 2.5, 3.5)] == ["", "a", "a b", "a b c"]
    assert playout.heard(now=4) == "a b c d"


def test_an_end_without_a_beginning_changes_nothing() -> None:
    playout = Playout()
    playout.end()
    assert playout.heard(now=1) == ""


def test_a_single_word_is_heard_whole_or_not() -> None:
    playout = Playout()
    sentence(playout, "Hello.", 1.0, now=0)
    assert playout.heard(now=0.9) == ""
    assert playout.heard(now=1) == "Hello."
