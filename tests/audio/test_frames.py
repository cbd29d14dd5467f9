from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import av
import numpy as np
import pytest

from echokit_py.audio.frames import ContainerSource, FlacSource, FrameConverter, PacketDecoder
from echokit_py.audio.pcm import AudioError

Encode = Callable[..., bytes]


def _frame(rate: int, layout: str, value: int, count: int) -> av.AudioFrame:
    channels = 2 if layout == "stereo" else 1
    frame = av.AudioFrame.from_ndarray(np.full((1, count * channels), value, np.int16), "s16", layout)
    frame.sample_rate = rate
    return frame


def test_a_stream_that_changes_its_rate_loses_nothing() -> None:
    converter = FrameConverter()
    frames = [
        _frame(24_000, "mono", 1000, 2400),
        _frame(48_000, "stereo", 1000, 4800),
        _frame(16_000, "mono", 1000, 1600),
    ]
    out = b"".join(piece for frame in frames for piece in converter.feed(frame)) + b"".join(converter.flush())
    assert len(out) == 3 * 3200
    middle = np.frombuffer(out, "<i2")[200:1400]
    assert np.abs(middle - 1000).max() <= 2


def test_an_unused_converter_has_nothing_to_give() -> None:
    assert list(FrameConverter().flush()) == []


def test_times_in_the_container_do_not_stretch_the_audio() -> None:
    converter = FrameConverter()
    out = b""
    for start in (0, 500_000):
        frame = _frame(24_000, "mono", 500, 2400)
        frame.pts = start
        out += b"".join(converter.feed(frame))
    assert len(out + b"".join(converter.flush())) == 2 * 3200


def test_a_packet_that_is_none_is_skipped() -> None:
    decoder = PacketDecoder("mp3")
    assert list(decoder.decode(av.Packet(b"rubbish that is long enough"))) == []
    assert list(decoder.flush()) == []


def test_a_flac_header_of_any_size_is_not_held(encode: Encode) -> None:
    data = encode("flac", "flac", duration=2.0)
    padding = b"\x01" + (1 << 20).to_bytes(3, "big") + bytes(1 << 20)
    padded = data[:4] + data[4:42] + padding + data[42:]
    plain, source = FlacSource(), FlacSource()
    expected = b"".join([*plain.feed(data), *plain.flush()])
    pieces = [piece for at in range(0, len(padded), 4096) for piece in source.feed(padded[at : at + 4096])]
    assert b"".join([*pieces, *source.flush()]) == expected


def test_a_container_without_sound_says_so() -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="matroska") as output:
        stream: Any = output.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 16, 16, "yuv420p"
        output.mux(stream.encode(av.VideoFrame(16, 16, "yuv420p")))
        output.mux(stream.encode(None))
    source = ContainerSource("matroska")
    list(source.feed(file.getvalue()))
    with pytest.raises(AudioError, match="without sound"):
        list(source.flush())


def test_the_samples_of_the_file_are_the_samples_that_come_out() -> None:
    values = struct.pack(">1600h", *range(1600))
    header = b".snd" + struct.pack(">5I", 24, len(values), 3, 16_000, 1)
    source = ContainerSource("au")
    list(source.feed(header + values))
    assert b"".join(source.flush()) == struct.pack("<1600h", *range(1600))
