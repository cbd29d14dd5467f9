from __future__ import annotations

import contextlib
import io
import struct
import wave
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echokit_py.audio.pcm import AudioError
from echokit_py.audio.wav import Wav, WavStream, read_wav, write_wav

PCM = struct.pack("<6h", 0, 256, -256, 32512, -32768, 512)
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")


def _chunk(name: bytes, body: bytes, size: int | None = None) -> bytes:
    return name + struct.pack("<I", len(body) if size is None else size) + body + bytes(len(body) % 2)


def _format(code: int, width: int, channels: int = 1, rate: int = 8000, bits: int | None = None) -> bytes:
    align = width * channels
    return struct.pack("<HHIIHH", code, channels, rate, rate * align, align, width * 8 if bits is None else bits)


def _file(form: bytes, *chunks: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 0) + b"WAVE" + _chunk(b"fmt ", form) + b"".join(chunks)


def _as(kind: str) -> bytes:
    values = np.frombuffer(PCM, "<i2").astype(np.int64)
    match kind:
        case "u8":
            return ((values >> 8) + 128).astype(np.uint8).tobytes()
        case "s24":
            return b"".join(struct.pack("<i", int(value) << 8)[:3] for value in values)
        case "s32":
            return (values << 16).astype("<i4").tobytes()
        case _:
            return (values / 32767.0).astype(f"<{kind}").tobytes()


@pytest.mark.parametrize(
    ("kind", "code", "width"), [("u8", 1, 1), ("s24", 1, 3), ("s32", 1, 4), ("f4", 3, 4), ("f8", 3, 8)]
)
def test_every_sample_format_becomes_s16(kind: str, code: int, width: int) -> None:
    pcm = read_wav(_file(_format(code, width), _chunk(b"data", _as(kind)))).pcm
    expected, step = np.frombuffer(PCM, "<i2").astype(int), 1 if kind[0] == "f" else 0
    assert np.abs(np.frombuffer(pcm, "<i2") - expected).max() <= step


def test_floats_are_clipped_and_nan_is_silence() -> None:
    data = struct.pack("<5f", 2.0, -2.0, float("nan"), float("inf"), 0.5)
    pcm = read_wav(_file(_format(3, 4), _chunk(b"data", data))).pcm
    assert struct.unpack("<5h", pcm) == (32767, -32767, 0, 32767, 16384)


def test_extensible_names_its_codec_in_the_guid() -> None:
    extensible = _format(0xFFFE, 2, channels=2) + struct.pack("<HHI", 22, 16, 3) + b"\x01\x00" + GUID_TAIL
    assert read_wav(_file(extensible, _chunk(b"data", PCM))) == Wav(8000, 2, PCM)


def test_20_bits_in_three_bytes_are_left_justified() -> None:
    assert read_wav(_file(_format(1, 3, bits=20), _chunk(b"data", _as("s24")))).pcm == PCM


def test_a_missing_block_size_follows_from_the_bits() -> None:
    form = struct.pack("<HHIIHH", 1, 1, 8000, 0, 0, 16)
    assert read_wav(_file(form, _chunk(b"data", PCM))).pcm == PCM


def test_other_chunks_are_skipped_also_odd_ones_and_those_after_the_data() -> None:
    data = _file(_format(1, 2), _chunk(b"LIST", b"abc"), _chunk(b"fact", b"1234"), _chunk(b"data", PCM))
    assert read_wav(data + _chunk(b"LIST", b"more than nothing")).pcm == PCM


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 0x7FFFFFFF, 1000])
def test_a_size_that_is_unknown_or_too_large_means_up_to_the_end(size: int) -> None:
    assert read_wav(_file(_format(1, 2), _chunk(b"data", PCM, size))).pcm == PCM


def test_a_torn_last_sample_is_dropped() -> None:
    assert read_wav(_file(_format(1, 2), _chunk(b"data", PCM))[:-1]).pcm == PCM[:-2]


def test_an_empty_file_is_a_wav_without_audio() -> None:
    assert read_wav(write_wav(b"")) == Wav(16_000, 1, b"")


def test_pythons_own_reader_and_writer_agree() -> None:
    with wave.open(io.BytesIO(write_wav(PCM + b"\x01", 22_050))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (22_050, 1, 2)
        assert file.readframes(100) == PCM
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((2, 2, 44_100, 0, "NONE", ""))
        file.writeframes(PCM)
    assert read_wav(buffer.getvalue()) == Wav(44_100, 2, PCM)


def test_audio_comes_out_as_it_comes_in() -> None:
    data, stream = write_wav(PCM), WavStream()
    assert stream.feed(data[:43]) == b""
    assert stream.format is None or stream.feed(b"") == b""
    assert stream.feed(data[43:46]) == PCM[:2]
    assert stream.feed(data[46:47]) == b""
    assert stream.feed(data[47:] + b"trailing") == PCM[2:]


@given(st.lists(st.integers(0, 200), max_size=6))
def test_where_the_stream_is_cut_does_not_matter(cuts: list[int]) -> None:
    data = _file(_format(1, 3), _chunk(b"junk", bytes(41)), _chunk(b"data", _as("s24"))) + _chunk(b"LIST", bytes(9))
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    stream = WavStream()
    assert b"".join(stream.feed(data[a:b]) for a, b in pairwise(edges)) == PCM


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "hold no audio format"),
        (b"RIFF", "hold no audio format"),
        (b"<html>", "not a WAV"),
        (b"RIFF1234AVI LIST", "not a WAV"),
        (_file(_format(1, 2)[:10]), "10 bytes instead of 16"),
        (_file(_format(2, 2), _chunk(b"data", PCM)), "codec 0x0002"),
        (_file(_format(0xFFFE, 2), _chunk(b"data", PCM)), "codec 0xfffe"),
        (_file(_format(1, 2, channels=0) + b"", _chunk(b"data", PCM)), "0 channels"),
        (_file(_format(1, 2, rate=1), _chunk(b"data", PCM)), "at 1 Hz"),
        (_file(_format(1, 5), _chunk(b"data", PCM)), "samples of 5 bytes"),
        (_file(_format(3, 2), _chunk(b"data", PCM)), "samples of 2 bytes"),
        (b"RIFF\0\0\0\0WAVE" + _chunk(b"data", PCM), "without a format"),
        (b"RIFF\0\0\0\0WAVEfmt \xff\xff\xff\x7f", "claims 2147483647 bytes"),
    ],
)
def test_what_is_no_wav_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(AudioError, match=reason):
        read_wav(data)


@given(st.binary(max_size=300), st.booleans())
def test_rubbish_never_does_worse(rubbish: bytes, after_header: bool) -> None:
    data = b"RIFF\0\0\0\0WAVE" + rubbish if after_header else rubbish
    with contextlib.suppress(AudioError):
        assert len(read_wav(data).pcm) <= len(data) * 2
