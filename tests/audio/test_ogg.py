from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from echokit_py.audio.ogg import OggSource
from echokit_py.audio.opus import FRAME_BYTES, OpusEncoder
from echokit_py.audio.pcm import AudioError, seconds

Encode = Callable[..., bytes]
Feed = Callable[..., bytes]

HEAD = b"OpusHead\x01\x01" + struct.pack("<HIHB", 312, 16_000, 0, 0)
TAGS = b"OpusTags" + bytes(8)


def _page(packets: list[bytes], serial: int, flags: int = 0) -> bytes:
    """One page (RFC 3533, section 6); the checksum is left out, which we do not look at."""
    laces = b"".join(b"\xff" * (len(packet) // 255) + bytes([len(packet) % 255]) for packet in packets)
    return b"OggS" + struct.pack("<BBqIIIB", 0, flags, 0, serial, 0, 0, len(laces)) + laces + b"".join(packets)


def _opus(packets: list[bytes], serial: int = 1) -> list[bytes]:
    return [_page([HEAD], serial, 2), _page([TAGS], serial), *(_page([packet], serial) for packet in packets)]


@pytest.fixture
def packets() -> list[bytes]:
    encoder = OpusEncoder()
    pcm = np.random.default_rng(7).integers(-9000, 9000, 4 * 1920).astype("<i2").tobytes()
    return [encoder.encode(pcm[at : at + FRAME_BYTES]) for at in range(0, len(pcm), FRAME_BYTES)]


def _run(data: bytes, size: int = 1 << 30) -> bytes:
    source = OggSource()
    out = [piece for at in range(0, len(data), size) for piece in source.feed(data[at : at + size])]
    return b"".join([*out, *source.flush()])


def test_the_pre_skip_is_not_heard(packets: list[bytes]) -> None:
    out = _run(b"".join(_opus(packets)))
    assert seconds(out) == pytest.approx(0.48 - 312 / 48_000, abs=0.0001)


def test_a_packet_may_go_on_in_the_next_page(packets: list[bytes]) -> None:
    pages = _opus(packets)
    expected = _run(b"".join(pages))
    long = packets[1]
    assert len(long) > 255
    laces = b"\xff" * (len(long) // 255 - 1) + bytes([len(long) % 255])
    first = b"OggS" + struct.pack("<BBqIIIB", 0, 0, 0, 1, 0, 0, 1) + b"\xff" + long[:255]
    second = b"OggS" + struct.pack("<BBqIIIB", 0, 1, 0, 1, 0, 0, len(laces)) + laces + long[255:]
    pages[3:4] = [first, second]
    for size in (1, 100, 10**6):
        assert _run(b"".join(pages), size) == expected


def test_a_chained_stream_plays_after_the_first(packets: list[bytes]) -> None:
    once = _run(b"".join(_opus(packets)))
    assert _run(b"".join(_opus(packets, 1) + _opus(packets, 2)), 77) == once + once


def test_other_streams_in_the_file_are_passed_over(packets: list[bytes]) -> None:
    pages = _opus(packets)
    pages[1:1] = [_page([b"\x80theora and so on"], 9, 2)]
    pages[3:3] = [_page([b"video"], 9)]
    assert _run(b"".join(pages)) == _run(b"".join(_opus(packets)))


def test_rubbish_between_pages_and_empty_packets_are_passed_over(packets: list[bytes]) -> None:
    pages = _opus(packets)
    pages[2:2] = [b"rubbish", _page([b""], 1), b"Og"]
    assert _run(b"".join(pages), 5) == _run(b"".join(_opus(packets)))


def test_a_file_without_an_end_of_a_page_gives_what_came(packets: list[bytes]) -> None:
    assert seconds(_run(b"".join(_opus(packets))[:-20])) == pytest.approx(0.36 - 312 / 48_000, abs=0.0001)


def test_another_codec_is_left_to_the_demuxer(encode: Encode) -> None:
    assert seconds(_run(encode("ogg", "flac"), 1000)) == pytest.approx(1.0)


def test_a_head_alone_is_no_audio() -> None:
    assert _run(_page([HEAD], 1, 2)) == b""
    assert _run(_page([b"\x01vorbis" + bytes(23)], 1, 2)) == b""


def test_a_damaged_head_is_refused() -> None:
    with pytest.raises(AudioError, match="damaged head"):
        _run(_page([b"OpusHead"], 1, 2))


def test_a_packet_without_end_is_refused() -> None:
    body = bytes(255 * 255)
    page = b"OggS" + struct.pack("<BBqIIIB", 0, 1, 0, 1, 0, 0, 255) + b"\xff" * 255 + body
    with pytest.raises(AudioError, match="more than 1 MiB"):
        _run(_page([HEAD], 1, 2) + page * 20)
