"""Reads and writes WAV, whole or as it comes in. Knows RIFF and plain samples; does not resample or decode codecs.

Facts: Microsoft "Multiple channel audio data and WAVE files" (WAVE_FORMAT_EXTENSIBLE), RFC 2361 (format codes).
Streaming writers can't seek back, so their sizes are 0 or 0xFFFFFFFF, or name more than ever arrives: then the data
goes on to the end of the stream.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from echokit_py.audio.pcm import SAMPLE_RATE, AudioError, BlockAligner

_INTEGER, _FLOAT, _EXTENSIBLE = 0x0001, 0x0003, 0xFFFE
_WIDTHS = {_INTEGER: (1, 2, 3, 4), _FLOAT: (4, 8)}
_UNKNOWN_SIZES = (0, 0xFFFFFFFF)
# A format chunk has 16, 18 or 40 bytes; what claims to be larger than this is no WAV, and would be held in memory.
_FORMAT_MAX = 4096
_CHANNELS_MAX = 64
_RATES = range(1_000, 768_001)


@dataclass(frozen=True, slots=True)
class Wav:
    """A WAV file's audio. `rate`: Hz; `pcm`: s16le, `channels` samples interleaved."""

    rate: int
    channels: int
    pcm: bytes


@dataclass(frozen=True, slots=True)
class WavFormat:
    """How the samples of a WAV are stored. `width`: bytes per sample and channel; `float_samples`: else integers."""

    rate: int
    channels: int
    width: int
    float_samples: bool


def read_wav(data: bytes) -> Wav:
    """Return the audio of a whole WAV file; a cut file gives what is there.

    Raises:
        AudioError: `data` is no WAV, or one of a kind we can't read.
    """
    stream = WavStream()
    pcm = stream.feed(data)
    if stream.format is None:
        raise AudioError(f"not a WAV file: {len(data)} bytes that hold no audio format")
    return Wav(stream.format.rate, stream.format.channels, pcm)


def write_wav(pcm: bytes, rate: int = SAMPLE_RATE) -> bytes:
    """Return a WAV file of `pcm` (s16le, mono, `rate` Hz)."""
    pcm = pcm[: len(pcm) & ~1]
    header = struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        36 + len(pcm),
        b"WAVE",
        b"fmt ",
        16,
        _INTEGER,
        1,
        rate,
        rate * 2,
        2,
        16,
        b"data",
        len(pcm),
    )
    return header + pcm


class WavStream:
    """Reads one WAV as its bytes arrive; audio comes out as it comes in. `format` is None until it is known."""

    def __init__(self) -> None:
        self.format: WavFormat | None = None
        self._header = b""  # bytes not understood yet; never more than _FORMAT_MAX plus one feed
        self._riff_seen = False
        self._skip = 0  # bytes of uninteresting chunks still to come
        self._left: int | None = None  # bytes of the data chunk still to come; None: up to the end
        self._blocks: BlockAligner | None = None  # set once the data chunk has begun

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes, return s16le samples (interleaved, at `format.rate`).

        Raises:
            AudioError: no WAV, or one of a kind we can't read.
        """
        if self._blocks is None:
            self._header += data
            data = b""
            while self._blocks is None and self._next_chunk():
                pass
            if self._blocks is not None:
                data, self._header = self._header, b""
        if self._blocks is None or self.format is None:
            return b""
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        return to_s16(self._blocks.feed(data), self.format)

    def _next_chunk(self) -> bool:
        """Understand one more piece of the header; False when it takes more bytes."""
        if self._skip:
            dropped = min(self._skip, len(self._header))
            self._header = self._header[dropped:]
            self._skip -= dropped
        if not self._riff_seen:
            return self._read_riff()
        if self._skip or len(self._header) < 8:
            return False
        name, size = struct.unpack_from("<4sI", self._header)
        if name == b"data":
            self._begin_data(size)
            return True
        if name == b"fmt ":
            return self._read_format(size)
        self._header = self._header[8:]
        self._skip = size + size % 2
        return True

    def _read_riff(self) -> bool:
        if not b"RIFF".startswith(self._header[:4]) or (len(self._header) >= 12 and self._header[8:12] != b"WAVE"):
            raise AudioError(f"not a WAV file: it begins with {self._header[:12]!r}")
        if len(self._header) < 12:
            return False
        self._header = self._header[12:]
        self._riff_seen = True
        return True

    def _read_format(self, size: int) -> bool:
        if size > _FORMAT_MAX:
            raise AudioError(f"not a WAV file: its format chunk claims {size} bytes")
        end = 8 + size + size % 2
        if len(self._header) < end:
            return False
        self.format = parse_format(self._header[8 : 8 + size])
        self._header = self._header[end:]
        return True

    def _begin_data(self, size: int) -> None:
        if self.format is None:
            raise AudioError("not a WAV file: audio data without a format before it")
        self._left = None if size in _UNKNOWN_SIZES else size
        self._blocks = BlockAligner(self.format.width * self.format.channels)
        self._header = self._header[8:]


def parse_format(chunk: bytes) -> WavFormat:
    """Read the body of a `fmt ` chunk.

    Raises:
        AudioError: too short, a codec, or numbers that make no sense.
    """
    if len(chunk) < 16:
        raise AudioError(f"not a WAV file: its format chunk has {len(chunk)} bytes instead of 16")
    code, channels, rate, _, align, bits = struct.unpack_from("<HHIIHH", chunk)
    if code == _EXTENSIBLE and len(chunk) >= 26:
        code = struct.unpack_from("<H", chunk, 24)[0]  # the first two bytes of the sub-format's GUID
    if code not in _WIDTHS:
        raise AudioError(f"a WAV file with codec 0x{code:04x}; only plain integer or float samples can be read")
    if not 1 <= channels <= _CHANNELS_MAX or rate not in _RATES:
        raise AudioError(f"a WAV file with {channels} channels at {rate} Hz can't be right")
    # Samples of odd sizes (12, 20 bits) sit left-justified in their container, whose size is in the block size.
    width = align // channels if align and align % channels == 0 else (bits + 7) // 8
    if width not in _WIDTHS[code]:
        raise AudioError(f"a WAV file with samples of {width} bytes (format 0x{code:04x}) can't be read")
    return WavFormat(rate, channels, width, code == _FLOAT)


def to_s16(samples: bytes, form: WavFormat) -> bytes:
    """Convert whole samples as `form` stores them to s16le; floats are clipped at ±1, NaN becomes silence."""
    if form.float_samples:
        values = np.nan_to_num(np.frombuffer(samples, f"<f{form.width}"), nan=0.0)
        return bytes((np.clip(values, -1.0, 1.0) * 32767.0).round().astype("<i2").tobytes())
    match form.width:
        case 1:  # the only unsigned one
            return ((np.frombuffer(samples, np.uint8).astype("<i2") - 128) << 8).tobytes()
        case 2:
            return samples
        case _:  # 24 and 32 bits: the two upper bytes
            upper = np.frombuffer(samples, np.uint8).reshape(-1, form.width)[:, -2:]
            return bytes(upper.tobytes())
