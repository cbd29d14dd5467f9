"""The frames of a recording: their sizes, when they are due, and where speech ends."""

from __future__ import annotations

import itertools
import struct

import pytest

from echokit_py.device.microphone import MicrophoneFrame, last_speech_byte, microphone

SECOND = 32_000


def tone(seconds: float, level: int = 8000) -> bytes:
    """A square wave."""
    return struct.pack("<2h", level, -level) * int(seconds * 8000)


def frames(
    pcm: bytes, count: int | None = None, *, endless: bool = True, realtime: bool = True
) -> list[MicrophoneFrame]:
    return list(itertools.islice(microphone(pcm, endless=endless, realtime=realtime), count))


def test_sixteen_short_frames_at_once_then_512_ms_each_in_its_time() -> None:
    got = frames(tone(2), 20)
    assert [len(frame.data) for frame in got] == [1024] * 16 + [16_384] * 4
    assert [frame.due_s for frame in got] == pytest.approx([0.0] * 16 + [0.512, 1.024, 1.536, 2.048])
    assert all(frame.paced for frame in got)


def test_silence_follows_for_ever() -> None:
    pcm = tone(0.7)
    got = frames(pcm, 60)
    sent = b"".join(frame.data for frame in got)
    assert sent[: len(pcm)] == pcm
    assert not any(sent[len(pcm) :])
    assert got[-1].due_s == pytest.approx(44 * 0.512)


def test_with_submit_it_ends_where_the_recording_does() -> None:
    pcm = tone(1.0) + b"\1"
    got = frames(pcm, endless=False)
    assert b"".join(frame.data for frame in got) == pcm
    assert got[-1].due_s == pytest.approx((len(pcm) - 16_384) / SECOND)


def test_an_empty_recording() -> None:
    assert frames(b"", endless=False) == []
    assert not any(frame.ends_speech for frame in frames(b"", 30))


def test_without_pacing_only_the_silence_after_two_seconds_takes_its_time() -> None:
    got = frames(tone(12), 60, realtime=False)
    free = 14 * SECOND
    ends = list(itertools.accumulate(len(frame.data) for frame in got))
    assert [frame.paced for frame in got] == [end > free for end in ends]
    assert [frame.due_s for frame in got] == pytest.approx([max(0, end - free) / SECOND for end in ends])
    assert got[-1].paced
    assert {frame.due_s for frame in frames(tone(12), endless=False, realtime=False)} == {0.0}


@pytest.mark.parametrize(
    ("pcm", "last"),
    [
        (b"", -1),
        (b"\0", -1),
        (bytes(100), 98),
        (tone(0.1) + bytes(3200), 3198),
        (tone(0.1) + tone(0.1, level=300), 3198),
        (tone(0.1) + tone(0.1, level=500), 6398),
        (struct.pack("<4h", -32768, 0, -2000, 0), 4),
    ],
    ids=["empty", "half a sample", "silence", "then silence", "then noise", "then soft speech", "the lowest sample"],
)
def test_where_speech_ends(pcm: bytes, last: int) -> None:
    assert last_speech_byte(pcm) == last


def test_the_frame_with_the_end_of_speech_is_marked() -> None:
    got = frames(tone(1.0) + bytes(SECOND), 30)
    (marked,) = [place for place, frame in enumerate(got) if frame.ends_speech]
    assert (
        sum(len(frame.data) for frame in got[:marked]) < SECOND <= sum(len(frame.data) for frame in got[: marked + 1])
    )
