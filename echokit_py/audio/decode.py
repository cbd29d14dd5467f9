"""Decodes whatever a voice service sends to s16le mono 16 kHz, as it comes. Finds out the format; codecs are in frames.

Incremental: WAV, headerless PCM, MP3, ADTS (AAC), FLAC, Ogg with Opus or Vorbis. At the end: MP4, WebM, AIFF, CAF, AU.
"""

from __future__ import annotations

import string
from collections.abc import Iterator

from av.error import FFmpegError

from echokit_py.audio.frames import ContainerSource, FlacSource, ParsedSource, Source
from echokit_py.audio.ogg import OggSource
from echokit_py.audio.pcm import BYTES_PER_SECOND, AudioError
from echokit_py.audio.resample import Resampler
from echokit_py.audio.wav import WavStream
from echokit_py.log import sanitize

# A sentence lasts seconds. Beyond ten minutes it is a radio station, or a small file made to fill a server's memory.
SECONDS_MAX = 600
# The longest signature is 12 bytes long (RIFF…WAVE, ….ftyp).
_SIGNATURE = 16
# What takes 0.3 ms: plain samples are only resampled; but 4 KiB of MP3 take 1.6 ms, and 16 KiB of Opus 15 ms.
QUICK_PLAIN, QUICK_CODED = 8192, 1024
# How much of an error text is awaited before it is quoted.
_QUOTE = 300
_PRINTABLE = frozenset(string.printable.encode())
_CONTAINERS = {b"\x1aE\xdf\xa3": "matroska", b"FORM": "aiff", b"caff": "caf", b".snd": "au", b"riff": "w64"}


class StreamDecoder:
    """Decodes one stream of any format. Not for use by two threads at once."""

    def __init__(self, raw_rate: int | None = None) -> None:
        """`raw_rate`: the stream is s16le mono PCM at that rate, without a header (content type audio/pcm).

        A WAV header is recognised all the same: services that promise bare PCM and send one exist.
        """
        self._raw_rate = raw_rate
        self._source: Source | None = None
        self._start = b""
        self._skip = 0  # bytes of an ID3 tag still to come
        self._tagged = False
        self._bytes_out = 0

    def quick(self, data: bytes) -> bool:
        """Whether `feed(data)`, or with b"" `flush`, takes so little that a thread isn't worth its way."""
        plain = self._raw_rate is not None or (self._start or data)[:4] == b"RIFF"
        if self._source is not None:
            plain = isinstance(self._source, _WavSource | _RawSource)
        return len(data) <= (QUICK_PLAIN if plain else QUICK_CODED) and (plain or bool(data))

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes, return the audio that is ready (s16le, mono, 16 kHz), often none at first.

        Raises:
            AudioError: no audio, or none we can read, or more than ten minutes; says what came.
        """
        if self._source is None:
            data = self._find(data, at_end=False)
        return self._collect(self._source.feed(data)) if self._source and data else b""

    def flush(self) -> bytes:
        """The stream has ended: return the rest of the audio.

        Raises:
            AudioError: as `feed`, and when there was no audio at all.
        """
        pcm = b""
        if self._source is None:
            data = self._find(b"", at_end=True)
            pcm = self._collect(self._source.feed(data)) if self._source else b""
        pcm += self._collect(self._source.flush()) if self._source else b""
        if not self._bytes_out:
            raise AudioError(
                "the voice service sent audio without a single sample"
                if self._source
                else "the voice service sent nothing"
            )
        return pcm

    def _find(self, data: bytes, *, at_end: bool) -> bytes:
        """Set the source as soon as it is known; return the bytes for it."""
        self._start += data
        while self._source is None:
            dropped = min(self._skip, len(self._start))
            self._start, self._skip = self._start[dropped:], self._skip - dropped
            if not self._start or (len(self._start) < _SIGNATURE and not at_end):
                return b""
            if tag := _id3_size(self._start):
                self._skip, self._tagged = tag, True
                continue
            self._source = self._choose(self._start)
        data, self._start = self._start, b""
        return data

    def _choose(self, start: bytes) -> Source:
        if start[:4] == b"RIFF":
            return _WavSource()
        if self._raw_rate is not None:
            return _TextSource() if _is_text(start) else _RawSource(self._raw_rate)
        if (source := _compressed(start)) is not None:
            return source
        if self._tagged:  # padding after the tag, or a frame cut at its beginning: the parser looks for the next one
            return ParsedSource("mp3")
        if _is_text(start):
            return _TextSource()
        raise AudioError(f"the voice service sent no audio format we know: it begins with {start[:12].hex(' ')}")

    def _collect(self, pieces: Iterator[bytes]) -> bytes:
        collected = bytearray()
        try:
            for piece in pieces:
                collected += piece
                self._bytes_out += len(piece)
                if self._bytes_out > SECONDS_MAX * BYTES_PER_SECOND:
                    raise AudioError(f"the voice service sent more than {SECONDS_MAX} seconds of audio")
        except FFmpegError as error:
            raise AudioError(f"the voice service sent audio that can't be decoded: {error.strerror}") from error
        return bytes(collected)


class _WavSource:
    """WAV, as it comes in."""

    def __init__(self) -> None:
        self._wav = WavStream()
        self._resampler: Resampler | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        pcm = self._wav.feed(data)
        if self._resampler is None and self._wav.format is not None:
            self._resampler = Resampler(self._wav.format.rate, self._wav.format.channels)
        if self._resampler is not None:
            yield self._resampler.feed(pcm)

    def flush(self) -> Iterator[bytes]:
        if self._resampler is not None:
            yield self._resampler.flush()


class _RawSource:
    """Headerless s16le mono PCM."""

    def __init__(self, rate: int) -> None:
        self._resampler = Resampler(rate)

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield self._resampler.feed(data)

    def flush(self) -> Iterator[bytes]:
        yield self._resampler.flush()


class _TextSource:
    """No audio but a text, likely an error: waits for enough of it to quote, then raises."""

    def __init__(self) -> None:
        self._text = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._text += data[: _QUOTE - len(self._text)]
        if len(self._text) >= _QUOTE:
            raise self._error()
        yield from ()

    def flush(self) -> Iterator[bytes]:
        yield from ()
        raise self._error()

    def _error(self) -> AudioError:
        text = self._text.removeprefix(b"\xef\xbb\xbf").strip()
        kind = {b"<": "a web page (HTML or XML)", b"{": "JSON", b"[": "JSON"}.get(text[:1], "text")
        return AudioError(
            f"the voice service sent {kind} instead of audio: {sanitize(text.decode(errors='replace'), 120)}"
        )


def _id3_size(start: bytes) -> int:
    """The length of the ID3v2 tag that begins here, 0 when none does. Format: ID3 v2.4.0 structure, section 3.1."""
    if start[:3] != b"ID3" or len(start) < 10:
        return 0
    size = 0
    for byte in start[6:10]:
        size = size << 7 | byte & 0x7F
    return 10 + size + (10 if start[5] & 0x10 else 0)


def _compressed(start: bytes) -> Source | None:
    if start[:4] == b"OggS":
        return OggSource()
    if start[:4] == b"fLaC":
        return FlacSource()
    if start[4:8] == b"ftyp":
        return ContainerSource("mp4")
    if start[:4] in _CONTAINERS:
        return ContainerSource(_CONTAINERS[start[:4]])
    codec = _mpeg_codec(start)
    return ParsedSource(codec) if codec else None


def _mpeg_codec(start: bytes) -> str | None:
    """The codec of an MPEG frame header. Format: ISO/IEC 11172-3, 2.4.1.3, and 13818-7, 6.2 (ADTS)."""
    if len(start) < 4 or start[0] != 0xFF:
        return None
    if start[1] & 0xF6 == 0xF0:
        return "aac"
    version, layer, bit_rate, rate = start[1] >> 3 & 3, start[1] >> 1 & 3, start[2] >> 4, start[2] >> 2 & 3
    if start[1] & 0xE0 != 0xE0 or version == 1 or layer == 0 or bit_rate == 15 or rate == 3:
        return None
    return {1: "mp3", 2: "mp2", 3: "mp1"}[layer]


def _is_text(start: bytes) -> bool:
    """Whether this can only be a text: 16 bytes of sound that are all printable would be a rare coincidence."""
    return _PRINTABLE.issuperset(start.removeprefix(b"\xef\xbb\xbf")[:_SIGNATURE])
