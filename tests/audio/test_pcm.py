from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from echokit_py.audio.pcm import SAMPLE_RATE, BlockAligner, seconds, silence


def test_a_second_has_16000_samples_of_2_bytes() -> None:
    assert seconds(bytes(2 * SAMPLE_RATE)) == 1.0
    assert seconds(b"") == 0.0


def test_silence_is_whole_samples_of_zero() -> None:
    assert silence(0.5) == bytes(16_000)
    assert silence(0.00001) == b""
    assert silence(-1) == b""


@given(st.lists(st.binary(max_size=20)), st.integers(1, 8))
def test_blocks_come_out_whole_and_in_order(pieces: list[bytes], block: int) -> None:
    aligner = BlockAligner(block)
    out = [aligner.feed(piece) for piece in pieces]
    data = b"".join(pieces)
    assert all(len(piece) % block == 0 for piece in out)
    assert b"".join(out) == data[: len(data) - len(data) % block]
    assert aligner.pending == len(data) % block


def test_clear_forgets_the_torn_block() -> None:
    aligner = BlockAligner()
    aligner.feed(b"abc")
    aligner.clear()
    assert aligner.pending == 0
    assert aligner.feed(b"xy") == b"xy"
