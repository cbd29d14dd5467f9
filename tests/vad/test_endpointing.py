"""Endpointing on made-up probabilities: each option, each event, and what holds for every sequence."""

from __future__ import annotations

from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echokit_py.config.settings import VadSettings
from echokit_py.vad.base import FRAME_SECONDS
from echokit_py.vad.endpointing import FRAME_MS, NO_SPEECH_MS, ONSET_FRAMES, TAIL_FRAMES, Endpointer, EndpointEvent

STARTED = EndpointEvent.SPEECH_STARTED
PAUSED = EndpointEvent.SPEECH_PAUSED
RESUMED = EndpointEvent.SPEECH_RESUMED
ENDED = EndpointEvent.SPEECH_ENDED
FULL = EndpointEvent.UTTERANCE_FULL
NO_SPEECH = EndpointEvent.NO_SPEECH

SPEECH, SILENCE = 0.9, 0.01

Run = tuple[float, int]
"""A probability and for how many frames it comes."""


def feed(endpointer: Endpointer, *runs: Run) -> list[tuple[EndpointEvent, int]]:
    """The events of the runs, each with the frame of these runs (from 1) that brought it."""
    probabilities = [probability for probability, frames in runs for _ in range(frames)]
    events = [(endpointer.feed(probability), frame) for frame, probability in enumerate(probabilities, 1)]
    return [(event, frame) for event, frame in events if event is not None]


def listen(*runs: Run, **settings: float) -> list[tuple[EndpointEvent, int]]:
    return feed(Endpointer(VadSettings.model_validate(settings)), *runs)


def test_a_frame_is_32_ms() -> None:
    assert FRAME_MS == 32
    assert FRAME_MS / 1000 == FRAME_SECONDS


def test_an_utterance_ends_when_the_hangover_has_passed_since_its_last_speech() -> None:
    # 200 ms are 7 frames, 500 ms are 16.
    assert listen((SILENCE, 10), (SPEECH, 30), (SILENCE, 40)) == [(STARTED, 11), (PAUSED, 47), (ENDED, 56)]


def test_after_the_end_nothing_more_happens() -> None:
    endpointer = Endpointer(VadSettings())
    feed(endpointer, (SPEECH, 30), (SILENCE, 16))
    span = endpointer.speech_span
    assert feed(endpointer, (SPEECH, 3000), (SILENCE, 3000)) == []
    assert endpointer.speech_span == span
    assert endpointer.elapsed == pytest.approx(46 * FRAME_SECONDS)


def test_a_pause_below_the_hangover_does_not_end_it() -> None:
    assert listen((SPEECH, 30), (SILENCE, 15), (SPEECH, 30), (SILENCE, 16)) == [
        (STARTED, 1),
        (PAUSED, 37),
        (RESUMED, 46),
        (PAUSED, 82),
        (ENDED, 91),
    ]


def test_a_pause_below_the_allowed_silence_is_no_event() -> None:
    assert listen((SPEECH, 30), (SILENCE, 6), (SPEECH, 30)) == [(STARTED, 1)]


@pytest.mark.parametrize(("hangover", "frames"), [(0, 7), (200, 7), (224, 7), (225, 8), (1000, 32)])
def test_the_hangover_is_at_least_the_allowed_silence(hangover: int, frames: int) -> None:
    events = listen((SPEECH, 30), (SILENCE, 100), hangover_ms=hangover)
    assert events[-1] == (ENDED, 30 + frames)
    assert ((PAUSED, 37) in events) == (frames > 7)


def test_no_silence_allowed_ends_with_the_first_frame_without_speech() -> None:
    assert listen((SPEECH, 30), (SILENCE, 9), max_silence_duration_ms=0, hangover_ms=0) == [(STARTED, 1), (ENDED, 31)]


def test_speech_starts_at_the_threshold_and_lasts_down_to_the_exit_threshold() -> None:
    assert listen((0.49, 50)) == []
    assert listen((0.5, 1), (0.35, 49), (0.34, 20))[-1] == (ENDED, 66)
    assert listen((0.8, 30), (0.2, 20), threshold=0.8, neg_threshold=0.2) == [(STARTED, 1)]


def test_after_a_silent_frame_speech_must_reach_the_threshold_again() -> None:
    assert listen((SPEECH, 30), (SILENCE, 1), (0.45, 30))[-1] == (ENDED, 46)


@pytest.mark.parametrize(("frames", "heard"), [(1, False), (5, False), (6, True), (12, True)])
def test_a_word_needs_min_speech_with_the_silence_that_closes_it(frames: int, heard: bool) -> None:
    # 400 ms are 13 frames, 7 of which may be the closing silence.
    events = listen((SPEECH, frames), (SILENCE, 16))
    assert events == ([(STARTED, 1), (PAUSED, frames + 7), (ENDED, frames + 16)] if heard else [(STARTED, 1)])


def test_noise_is_forgotten_and_listening_goes_on() -> None:
    endpointer = Endpointer(VadSettings())
    assert feed(endpointer, (SPEECH, 2), (SILENCE, 15)) == [(STARTED, 1)]
    assert endpointer.speech_span == (0, 2 * FRAME_SECONDS)
    assert feed(endpointer, (SILENCE, 1)) == []
    assert endpointer.speech_span is None
    assert endpointer.speech_seconds == 0
    assert feed(endpointer, (SPEECH, 2), (SILENCE, 16), (SPEECH, 20), (SILENCE, 16)) == [
        (STARTED, 1),
        (STARTED, 19),
        (PAUSED, 45),
        (ENDED, 54),
    ]
    assert endpointer.speech_seconds == pytest.approx(20 * FRAME_SECONDS)


def test_short_sounds_with_short_pauses_add_up() -> None:
    # "No. No. No.": each alone would be too little.
    assert listen((SPEECH, 4), (SILENCE, 10), (SPEECH, 4), (SILENCE, 16)) == [(STARTED, 1), (PAUSED, 25), (ENDED, 34)]


def test_what_was_too_short_to_pause_does_not_resume() -> None:
    assert listen((SPEECH, 2), (SILENCE, 10), (SPEECH, 2)) == [(STARTED, 1)]


def test_nobody_speaks() -> None:
    frames = NO_SPEECH_MS // FRAME_MS
    assert listen((SILENCE, 1000)) == [(NO_SPEECH, frames)]
    assert listen((0.45, 1000)) == [(NO_SPEECH, frames)]


def test_noise_alone_ends_the_turn() -> None:
    assert [event for event, _ in listen(*[(SPEECH, 3), (SILENCE, 20)] * 30)].count(NO_SPEECH) == 1


def test_speech_in_the_last_moment_is_heard_out() -> None:
    frames = NO_SPEECH_MS // FRAME_MS
    events = listen((SILENCE, frames - 1), (SPEECH, 30), (SILENCE, 16))
    assert events == [(STARTED, frames), (PAUSED, frames + 36), (ENDED, frames + 45)]


def test_noise_in_the_last_moment_ends_when_it_is_known_to_be_noise() -> None:
    frames = NO_SPEECH_MS // FRAME_MS
    assert listen((SILENCE, frames - 1), (SPEECH, 2), (SILENCE, 20)) == [(STARTED, frames), (NO_SPEECH, frames + 17)]


def test_an_utterance_has_a_longest_length_from_its_first_speech_on() -> None:
    # 2 s are 63 frames.
    assert listen((SILENCE, 100), (SPEECH, 500), max_utterance_s=2) == [(STARTED, 101), (FULL, 163)]
    assert listen(*[(SPEECH, 20), (SILENCE, 10)] * 9, max_utterance_s=2)[-1] == (FULL, 63)


def test_the_longest_length_in_the_last_frame_of_the_hangover_is_an_ordinary_end() -> None:
    assert listen((SPEECH, 47), (SILENCE, 40), max_utterance_s=2)[-1] == (ENDED, 63)


def test_where_the_speech_is() -> None:
    endpointer = Endpointer(VadSettings())
    assert endpointer.speech_span is None
    assert not endpointer.in_speech
    feed(endpointer, (SILENCE, 10), (SPEECH, 20), (SILENCE, 6))
    assert endpointer.in_speech
    feed(endpointer, (SILENCE, 1))
    assert not endpointer.in_speech
    feed(endpointer, (SPEECH, 5), (SILENCE, 16))
    assert endpointer.speech_span == pytest.approx((0.32, 42 * FRAME_SECONDS))
    assert endpointer.speech_seconds == pytest.approx(25 * FRAME_SECONDS)
    assert endpointer.elapsed == pytest.approx(58 * FRAME_SECONDS)


def test_a_pause_runs_between_its_events() -> None:
    endpointer = Endpointer(VadSettings())
    states = []
    for probability, frames in ((SPEECH, 30), (SILENCE, 6), (SILENCE, 1), (SPEECH, 1), (SILENCE, 15), (SILENCE, 1)):
        feed(endpointer, (probability, frames))
        states.append(endpointer.paused)
    assert states == [False, False, True, False, True, False]
    assert not Endpointer(VadSettings()).paused


def test_noise_does_not_pause() -> None:
    endpointer = Endpointer(VadSettings())
    feed(endpointer, (SPEECH, 2), (SILENCE, 10))
    assert not endpointer.paused


@pytest.mark.parametrize(("hangover_s", "frames"), [(0.3, 10), (1.0, 32), (0.1, 7), (0.24, 8)])
def test_another_hangover_for_the_pause_that_runs(hangover_s: float, frames: int) -> None:
    endpointer = Endpointer(VadSettings())
    feed(endpointer, (SPEECH, 30), (SILENCE, 7))
    endpointer.hangover_s = hangover_s
    assert endpointer.hangover_s == max(hangover_s, 0.2)
    # 0.1 s have passed already: the next frame is the end.
    assert feed(endpointer, (SILENCE, 50)) == [(ENDED, max(frames - 7, 1))]


def test_whether_the_hangover_has_passed_can_be_asked() -> None:
    endpointer = Endpointer(VadSettings())
    feed(endpointer, (SPEECH, 30), (SILENCE, 10))
    assert not endpointer.due
    endpointer.hangover_s = 0.32
    assert endpointer.due
    feed(endpointer, (SILENCE, 1))
    assert not endpointer.due  # it has ended


def test_the_other_hangover_does_not_outlast_the_pause() -> None:
    endpointer = Endpointer(VadSettings())
    feed(endpointer, (SPEECH, 30), (SILENCE, 7))
    endpointer.hangover_s = 3
    assert feed(endpointer, (SILENCE, 60), (SPEECH, 1), (SILENCE, 16)) == [(RESUMED, 61), (PAUSED, 68), (ENDED, 77)]
    assert endpointer.hangover_s == 0.5


def test_a_word_that_is_just_beginning_is_not_cut() -> None:
    # "t": 0.1 and 0.3, then speech. 16 frames are the hangover.
    beginning = [(SPEECH, 30), (SILENCE, 15), (0.1, 1)]
    assert listen(*beginning, (0.3, 1), (SPEECH, 1))[-1] == (RESUMED, 48)
    # It falls back, stays as it is, or rises for too long: it was none.
    for then in (0.05, 0.1):
        assert listen(*beginning, (then, 1), (SPEECH, 1))[-1] == (ENDED, 47)
    rising = [(0.1 + 0.01 * frame, 1) for frame in range(9)]
    assert listen((SPEECH, 30), (SILENCE, 15), *rising)[-1] == (ENDED, 46 + ONSET_FRAMES)
    # Below a tenth of the threshold nothing begins.
    assert listen((SPEECH, 30), (SILENCE, 15), (0.049, 1)) == [(STARTED, 1), (PAUSED, 37), (ENDED, 46)]


def test_what_the_detector_hears_too_long_is_part_of_the_hangover() -> None:
    endpointer = Endpointer(VadSettings(), release_s=FRAME_SECONDS)
    assert feed(endpointer, (SPEECH, 30), (SILENCE, 20)) == [(STARTED, 1), (PAUSED, 37), (ENDED, 45)]


def hear(*runs: tuple[float, int, bool | None], release_s: float = 0.0) -> list[tuple[EndpointEvent, int]]:
    """As `listen`, where each run also says whether it is audible."""
    endpointer, found = Endpointer(VadSettings(), release_s), []
    frames = [(probability, audible) for probability, frames, audible in runs for _ in range(frames)]
    for number, frame in enumerate(frames, 1):
        event = endpointer.feed(*frame)
        if event is not None:
            found.append((event, number))
    return found


def test_speech_ends_a_frame_after_the_last_that_was_audible() -> None:
    assert hear((SPEECH, 30, True), (SPEECH, 5, False), (SILENCE, 40, False)) == [
        (STARTED, 1),
        (PAUSED, 38),
        (ENDED, 47),
    ]
    # The detector lets go at once: nothing is known better.
    assert hear((SPEECH, 30, True), (SILENCE, 40, False))[-1] == (ENDED, 46)


def test_a_long_tail_closes_the_segment_with_its_first_frame_of_silence() -> None:
    assert hear((SPEECH, 30, True), (SPEECH, 9, False), (SILENCE, 40, False)) == [
        (STARTED, 1),
        (PAUSED, 40),
        (ENDED, 47),
    ]


def test_what_is_audible_in_the_first_frame_without_speech_is_no_end_of_speech() -> None:
    # A chance of the noise, or a breath: the speech before it ended in frame 30 all the same.
    pause = (SILENCE, 40, False)
    assert hear((SPEECH, 30, True), (SPEECH, 5, False), (0.3, 1, True), pause)[-1] == (ENDED, 30 + 1 + 16)
    # Up to the end of what the detector hears, nothing else moves it.
    assert hear((SPEECH, 30, True), (0.3, 1, True), pause)[-1] == (ENDED, 46)
    assert hear((SPEECH, 30, True), (SPEECH, TAIL_FRAMES, False), (0.3, 1, True), pause)[-1] == (ENDED, 56)


def test_speech_that_noise_hides_for_longer_than_a_tail_is_speech() -> None:
    assert hear((SPEECH, 30, True), (SPEECH, TAIL_FRAMES, False), (SILENCE, 40, False))[-1] == (ENDED, 56)
    assert hear((SPEECH, 30, False), (SILENCE, 40, False))[-1] == (ENDED, 46)


def test_speech_that_comes_back_is_speech_though_nothing_is_audible() -> None:
    events = hear((SPEECH, 30, True), (SILENCE, 5, False), (SPEECH, 4, False), (SILENCE, 40, False))
    assert events[-1] == (ENDED, 30 + 5 + 1 + 1 + 16)


def test_where_the_noise_is_known_the_release_is_not_guessed() -> None:
    for audible, end in ((None, 45), (False, 46), (True, 46)):
        runs = (SPEECH, 30, audible), (SILENCE, 1, audible), (SILENCE, 40, None)
        assert hear(*runs, release_s=FRAME_SECONDS)[-1] == (ENDED, end)


def test_an_audible_sound_that_becomes_more_like_speech_puts_off_the_end() -> None:
    pause = (SPEECH, 30, True), (SILENCE, 9, False)
    # "t": two frames, 40 and 41.
    assert hear(*pause, (0.2, 1, True), (0.1, 1, True), (SILENCE, 40, False))[-1] == (ENDED, 41 + 16)
    # A click is one frame, what grows less like speech is none of it, and what can't be heard is none either.
    for sound in ([(0.2, True), (0.1, False)], [(0.01, True), (0.01, True)], [(0.2, False), (0.3, False)]):
        runs = [(probability, 1, audible) for probability, audible in sound]
        assert hear(*pause, *runs, (SILENCE, 40, False))[-1] == (ENDED, 46)
    # The hiss at the end of the speech itself is not the beginning of another sound.
    assert hear((SPEECH, 30, True), (0.2, 1, True), (0.1, 2, True), (SILENCE, 40, False))[-1] == (ENDED, 46)


def test_a_word_that_is_just_beginning_may_waver_when_it_is_audible() -> None:
    pause = (SPEECH, 30, True), (SILENCE, 14, False)
    assert hear(*pause, (0.44, 1, True), (0.34, 1, True), (SPEECH, 1, True))[-1] == (RESUMED, 47)
    # It is waited for ONSET_FRAMES; what can't be heard is no beginning, nor is what was there all along.
    assert hear(*pause, (0.44, 1, True), (0.34, 20, True))[-1] == (ENDED, 45 + ONSET_FRAMES)
    assert hear(*pause, (0.44, 1, True), (0.34, 1, False))[-1] == (ENDED, 46)
    assert hear((SPEECH, 30, True), (0.3, 20, True))[-1] == (ENDED, 46)


def test_such_sounds_put_it_off_within_one_hangover_from_the_speech_on() -> None:
    sounds = [(probability, 1, True) for _ in range(50) for probability in (0.1, 0.2)]
    assert hear((SPEECH, 30, True), (SILENCE, 1, False), *sounds)[-1][0] is ENDED
    assert hear((SPEECH, 30, True), (SILENCE, 1, False), *sounds)[-1][1] <= 30 + 15 + 16 + ONSET_FRAMES


def test_a_segment_closes_before_the_utterance_ends() -> None:
    endpointer = Endpointer(VadSettings(hangover_ms=200), release_s=3 * FRAME_SECONDS)
    assert feed(endpointer, (SPEECH, 30), (SILENCE, 20)) == [(STARTED, 1), (ENDED, 37)]


SOUNDS: list[bool | None] = [True, False, None]

probabilities = st.lists(
    st.tuples(st.sampled_from([0.0, 0.34, 0.35, 0.49, 0.5, 1.0]), st.integers(1, 40)), min_size=1, max_size=60
)


@given(
    probabilities,
    st.integers(0, 800),
    st.integers(0, 800),
    st.integers(0, 800),
    st.lists(st.sampled_from(SOUNDS), min_size=1),
)
def test_for_every_sequence(
    runs: list[Run], min_speech: int, max_silence: int, hangover: int, audible: list[bool | None]
) -> None:
    settings = VadSettings(
        min_speech_duration_ms=min_speech, max_silence_duration_ms=max_silence, hangover_ms=hangover, max_utterance_s=20
    )
    endpointer = Endpointer(settings)
    frames = [probability for probability, frames in runs for _ in range(frames)]
    found = [endpointer.feed(frame, sounds) for frame, sounds in zip(frames, cycle(audible), strict=False)]
    events = [event for event in found if event is not None]
    ends = [event for event in events if event.ends]
    assert len(ends) <= 1
    assert ends == events[len(events) - len(ends) :]
    # Pauses and resumptions alternate, and begin with a pause.
    changes = [event for event in events if event in (PAUSED, RESUMED)]
    assert all(event is (PAUSED, RESUMED)[place % 2] for place, event in enumerate(changes))
    match ends:
        case [EndpointEvent.NO_SPEECH]:
            assert endpointer.speech_span is None
        case [end]:
            assert endpointer.speech_span is not None
            silence = endpointer.elapsed - endpointer.speech_span[1]
            if end is ENDED:
                assert silence * 1000 >= max(hangover, max_silence) - 0.001
            assert endpointer.elapsed - endpointer.speech_span[0] <= 20.001
        case _:
            assert endpointer.elapsed == pytest.approx(len(frames) * FRAME_SECONDS)
