from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echokit_py.audio.framer import PCM_MAX, Frame, Framer
from echokit_py.audio.opus import FRAME_BYTES, OpusDecoder, OpusEncoder

Tone = Callable[..., bytes]


def _run(framer: Framer, pcm: bytes, size: int) -> list[Frame]:
    framer.start()
    frames = [frame for at in range(0, len(pcm), size) for frame in framer.feed(pcm[at : at + size])]
    return frames + framer.end()


def _noise(size: int) -> bytes:
    return np.random.default_rng(size).integers(-9000, 9000, size // 2 + 1).astype("<i2").tobytes()[:size]


def test_opus_packets_are_those_of_the_whole_padded_with_silence() -> None:
    pcm = _noise(3 * FRAME_BYTES + 1000)
    encoder = OpusEncoder()
    padded = pcm + bytes(FRAME_BYTES - 1000)
    expected = [encoder.encode(padded[at : at + FRAME_BYTES]) for at in range(0, len(padded), FRAME_BYTES)]
    for size in (1, 333, FRAME_BYTES, 10**6):
        frames = _run(Framer(opus=True, vowel=False), pcm, size)
        assert [frame.data for frame in frames] == expected
        assert {(frame.vowel, frame.seconds) for frame in frames} == {(0, 0.12)}


def test_the_tail_is_kept_across_chunks_not_padded_in_the_middle() -> None:
    framer = Framer(opus=True, vowel=False)
    framer.start()
    assert framer.feed(_noise(FRAME_BYTES - 1)) == []
    assert len(framer.feed(_noise(2))) == 1
    assert len(framer.end()) == 0  # one odd byte is half a sample


def test_each_sentence_starts_with_a_fresh_encoder(tone: Tone) -> None:
    framer = Framer(opus=True, vowel=False)
    pcm = tone(16_000, 0.3)
    assert _run(framer, pcm, 999) == _run(framer, pcm, 999)


def test_start_drops_what_an_unfinished_sentence_left(tone: Tone) -> None:
    framer, pcm = Framer(opus=True, vowel=False), tone(16_000, 0.3)
    clean = _run(framer, pcm, 999)
    framer.start()
    framer.feed(_noise(FRAME_BYTES + 501))
    assert _run(framer, pcm, 999) == clean


def test_a_flush_ends_the_sentence_once() -> None:
    framer = Framer(opus=True, vowel=False)
    framer.start()
    framer.feed(_noise(100))
    assert len(framer.end()) == 1
    assert framer.end() == []


def test_pcm_goes_on_as_it_comes() -> None:
    framer = Framer(opus=False, vowel=False)
    framer.start()
    pcm = _noise(2001)
    assert framer.feed(pcm[:1001]) == [Frame(pcm[:1000], 0, 1000 / 32_000)]
    assert framer.feed(pcm[1001:]) == [Frame(pcm[1000:2000], 0, 1000 / 32_000)]
    assert framer.end() == []


def test_pcm_with_vowels_comes_in_mouth_sized_pieces() -> None:
    frames = _run(Framer(opus=False, vowel=True), _noise(2 * FRAME_BYTES + 501), 333)
    assert [len(frame.data) for frame in frames] == [FRAME_BYTES, FRAME_BYTES, 500]


@settings(deadline=None)
@given(st.lists(st.integers(0, 70_001), max_size=4), st.booleans())
def test_no_pcm_is_lost_and_no_piece_is_too_long(sizes: list[int], vowel: bool) -> None:
    framer = Framer(opus=False, vowel=vowel)
    framer.start()
    pieces = [_noise(size) for size in sizes]
    frames = [frame for piece in pieces for frame in framer.feed(piece)] + framer.end()
    data = b"".join(pieces)
    assert b"".join(frame.data for frame in frames) == data[: len(data) & ~1]
    assert all(0 < len(frame.data) <= PCM_MAX and len(frame.data) % 2 == 0 for frame in frames)
    assert sum(frame.seconds for frame in frames) == pytest.approx((len(data) & ~1) / 32_000)


@pytest.mark.parametrize("opus", [True, False])
def test_the_vowel_is_that_of_the_frames_own_audio(opus: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []

    def spy(pieces: list[bytes]) -> list[int]:
        seen.extend(pieces)
        return list(range(len(seen) - len(pieces) + 1, len(seen) + 1))

    monkeypatch.setattr("echokit_py.audio.framer.vowels", spy)
    pcm = _noise(FRAME_BYTES + 1000)
    frames = _run(Framer(opus=opus, vowel=True), pcm, 777)
    assert [frame.vowel for frame in frames] == [1, 2]
    assert seen == [pcm[:FRAME_BYTES], pcm[FRAME_BYTES:] + bytes(FRAME_BYTES - 1000 if opus else 0)]


def test_the_board_hears_the_sentence_in_full(tone: Tone) -> None:
    decoder = OpusDecoder()
    frames = _run(Framer(opus=True, vowel=False), tone(16_000, 0.5), 640)
    heard = np.frombuffer(b"".join(decoder.decode(frame.data) for frame in frames), "<i2").astype(float)
    loud = np.sqrt(np.mean(heard[: len(heard) // 160 * 160].reshape(-1, 160) ** 2, axis=1)) > 1000
    assert 48 <= int(loud.sum()) <= 53  # 10 ms each: the whole half second, the tail too
