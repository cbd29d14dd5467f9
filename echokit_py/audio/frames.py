"""Turns compressed audio into s16le mono 16 kHz with libavcodec, stream by stream. Finds out no formats (see decode).

Each class is a `Source`: bytes in as they come, pieces of audio out as soon as the codec gives them.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Protocol

import av
from av.audio.codeccontext import AudioCodecContext
from av.audio.resampler import AudioResampler
from av.error import FFmpegError

from echokit_py.audio.pcm import SAMPLE_RATE, AudioError
from echokit_py.audio.resample import frame_bytes

# What needs its end before its beginning can be read (MP4 with the index last) is held in memory. 16 MiB are a minute
# and a half of uncompressed 44.1 kHz stereo, or a quarter of an hour of anything compressed: no answer is longer.
HELD_MAX = 16 * 1024 * 1024
_SLICE = 1024


class Source(Protocol):
    """Decodes one stream. Both methods give s16le mono 16 kHz and raise AudioError for what can't be read."""

    def feed(self, data: bytes) -> Iterator[bytes]: ...

    def flush(self) -> Iterator[bytes]: ...


class FrameConverter:
    """Decoded frames of any rate, format and layout, also changing ones → s16le mono 16 kHz."""

    def __init__(self) -> None:
        self._resampler: AudioResampler | None = None
        self._shape: tuple[str, str, int] | None = None

    def feed(self, frame: av.AudioFrame) -> Iterator[bytes]:
        """Convert one frame."""
        shape = (frame.format.name, frame.layout.name, frame.sample_rate)
        if shape != self._shape:
            yield from self.flush()
            self._shape = shape
            self._resampler = AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
        assert self._resampler is not None  # set together with the shape
        # Times from the container would make the filter graph fill or cut gaps; we want the samples as they are.
        frame.pts = None
        for out in self._resampler.resample(frame):
            yield frame_bytes(out)

    def flush(self) -> Iterator[bytes]:
        """Give what the filter still holds."""
        if self._resampler is not None:
            for out in self._resampler.resample(None):
                yield frame_bytes(out)
        self._resampler = self._shape = None


class PacketDecoder:
    """Packets of one codec → audio. A packet that can't be decoded is skipped: a damaged one is 20 … 50 ms of silence,
    and MP3 streams begin with an information frame that is none.
    """

    def __init__(self, codec: str, extradata: bytes = b"") -> None:
        self.codec = new_decoder(codec, extradata)
        self._converter = FrameConverter()

    def decode(self, packet: av.Packet[Any] | None) -> Iterator[bytes]:
        """Decode one packet; None takes out what the codec still holds."""
        try:
            frames = self.codec.decode(packet)
        except FFmpegError:
            return
        for frame in frames:
            yield from self._converter.feed(frame)

    def flush(self) -> Iterator[bytes]:
        """Give the rest of the audio."""
        yield from self.decode(None)
        yield from self._converter.flush()


class ParsedSource:
    """A stream of frames without a container, which the codec's own parser finds: MP3, ADTS, FLAC after its header."""

    def __init__(self, codec: str, extradata: bytes = b"") -> None:
        self._decoder = PacketDecoder(codec, extradata)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes: in slices, because the FLAC parser is slow to give out what comes in large pieces."""
        for at in range(0, len(data), _SLICE):
            yield from self._parse(data[at : at + _SLICE])

    def flush(self) -> Iterator[bytes]:
        """Give the rest. The FLAC parser hands out one frame a call, ten frames late."""
        while pieces := list(self._parse(None)):
            yield from pieces
        yield from self._decoder.flush()

    def _parse(self, data: bytes | None) -> Iterator[bytes]:
        for packet in self._decoder.codec.parse(data):
            yield from self._decoder.decode(packet)


class FlacSource:
    """FLAC: reads the header, then leaves the frames to the parser. Format: RFC 9639, section 8."""

    _STREAM_INFO, _LAST = 0, 0x80

    def __init__(self) -> None:
        self._header = b""
        self._skip = 4  # "fLaC"
        self._stream_info = b""
        self._last = False
        self._frames: ParsedSource | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes. Raises AudioError for a header that is none."""
        if self._frames is None:
            self._header += data
            while self._frames is None and self._next_block():
                pass
            if self._frames is None:
                return
            data, self._header = self._header, b""
        yield from self._frames.feed(data)

    def flush(self) -> Iterator[bytes]:
        """Give the rest."""
        if self._frames is not None:
            yield from self._frames.flush()

    def _next_block(self) -> bool:
        dropped = min(self._skip, len(self._header))
        self._header = self._header[dropped:]
        self._skip -= dropped
        if self._skip:
            return False
        if self._last:
            self._frames = ParsedSource("flac", self._stream_info)
            return True
        if len(self._header) < 4:
            return False
        size = int.from_bytes(self._header[1:4], "big")
        kind = self._header[0] & ~self._LAST
        if kind == self._STREAM_INFO:
            if len(self._header) < 4 + 34:
                return False
            self._stream_info = self._header[4 : 4 + 34]
        self._last = bool(self._header[0] & self._LAST)
        self._skip = 4 + size
        return True


class ContainerSource:
    """A file of a known kind, held until it is whole and then demuxed: MP4, WebM, AIFF and the like."""

    def __init__(self, demuxer: str) -> None:
        """`demuxer`: libavformat's name for it. Never guessed: some of its text formats open other files and URLs."""
        self._demuxer = demuxer
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Hold the next bytes. Raises AudioError when they become too many."""
        self._held += data
        if len(self._held) > HELD_MAX:
            raise AudioError(
                f"more than {HELD_MAX >> 20} MiB of {self._demuxer} audio, which can't be played as it comes"
            )
        yield from ()

    def flush(self) -> Iterator[bytes]:
        """Decode all of it. Raises AudioError."""
        converter = FrameConverter()
        try:
            with av.open(
                io.BytesIO(bytes(self._held)), "r", format=self._demuxer, metadata_errors="ignore"
            ) as container:
                if not container.streams.audio:
                    raise AudioError(f"a {self._demuxer} file without sound in it")
                for frame in container.decode(container.streams.audio[0]):
                    yield from converter.feed(frame)
        except FFmpegError as error:
            raise AudioError(f"a {self._demuxer} file that can't be decoded: {error.strerror}") from error
        yield from converter.flush()


def new_decoder(codec: str, extradata: bytes = b"") -> AudioCodecContext:
    """Open libavcodec's decoder of that name."""
    context = av.CodecContext.create(codec, "r")
    assert isinstance(context, AudioCodecContext)
    context.thread_count = 1
    if extradata:
        context.extradata = extradata
    return context
