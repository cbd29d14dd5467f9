"""Reads Ogg pages as they come and decodes the Opus or Vorbis stream in them. Formats: RFC 3533, RFC 7845, Vorbis I."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import av

from echokit_py.audio.frames import ContainerSource, PacketDecoder
from echokit_py.audio.pcm import AudioError

_HEADER = struct.Struct("<4sBBqIIIB")  # 27 bytes
_CONTINUED, _FIRST = 0x01, 0x02
# A packet of Opus has 61 kB at most, one of Vorbis about as much; its set-up header with pictures in it some more.
_PACKET_MAX = 1 << 20


class OggSource:
    """The first audio stream of an Ogg file; a stream chained after it is played after it."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._packet = bytearray()  # one that goes on in the next page
        self._serial: int | None = None
        self._stream: _OpusStream | _VorbisStream | None = None
        self._whole: ContainerSource | None = None  # for other codecs (FLAC, Speex)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes. Raises AudioError for packets out of all proportion."""
        if self._whole is not None:
            yield from self._whole.feed(data)
            return
        self._held += data
        while self._whole is None and (size := self._page_size()):
            page = bytes(self._held[:size])
            yield from self._page(page)
            del self._held[:size]

    def flush(self) -> Iterator[bytes]:
        """Give the rest."""
        if self._whole is not None:
            yield from self._whole.flush()
        elif self._stream is not None:
            yield from self._stream.flush()

    def _page_size(self) -> int:
        """The size of the whole page at the front, 0 if it is not all there. Bytes before a page are dropped."""
        start = self._held.find(b"OggS")
        del self._held[: start if start >= 0 else max(0, len(self._held) - 3)]
        if len(self._held) < _HEADER.size or len(self._held) < _HEADER.size + self._held[26]:
            return 0
        size = _HEADER.size + self._held[26] + sum(self._held[27 : 27 + self._held[26]])
        return size if len(self._held) >= size else 0

    def _page(self, page: bytes) -> Iterator[bytes]:
        _, _, flags, _, serial, _, _, segments = _HEADER.unpack_from(page)
        laces = page[_HEADER.size : _HEADER.size + segments]
        body = page[_HEADER.size + segments :]
        if flags & _FIRST:
            yield from self._open(body, serial)
        if serial != self._serial or self._whole is not None:
            return
        if not flags & _CONTINUED:
            self._packet.clear()
        at = 0
        for lace in laces:
            self._packet += body[at : at + lace]
            at += lace
            if len(self._packet) > _PACKET_MAX:
                raise AudioError("an Ogg file with a packet of more than 1 MiB")
            if lace < 255:
                packet = bytes(self._packet)
                self._packet.clear()
                if self._stream is not None:
                    yield from self._stream.feed(packet)

    def _open(self, first_packet: bytes, serial: int) -> Iterator[bytes]:
        """A stream begins: choose it if it is one we decode. Its first packet is alone in its page (RFC 3533, 4)."""
        if first_packet[:8] == b"OpusHead":
            stream: _OpusStream | _VorbisStream = _OpusStream()
        elif first_packet[:7] == b"\x01vorbis":
            stream = _VorbisStream()
        elif self._serial is None:
            self._whole = ContainerSource("ogg")
            yield from self._whole.feed(bytes(self._held))
            return
        else:
            return
        if self._stream is not None:
            yield from self._stream.flush()
        self._stream, self._serial = stream, serial


class _OpusStream:
    """The packets of one Opus stream: a head, tags, then audio. The decoder drops the pre-skip that the head names."""

    def __init__(self) -> None:
        self._decoder: PacketDecoder | None = None
        self._tags_seen = False

    def feed(self, packet: bytes) -> Iterator[bytes]:
        if self._decoder is None:
            if len(packet) < 19:
                raise AudioError("an Ogg Opus file with a damaged head")
            self._decoder = PacketDecoder("libopus", packet)
        elif not self._tags_seen:
            self._tags_seen = True
        elif packet:
            yield from self._decoder.decode(av.Packet(packet))

    def flush(self) -> Iterator[bytes]:
        if self._decoder is not None:
            yield from self._decoder.flush()


class _VorbisStream:
    """The packets of one Vorbis stream: three headers, then audio."""

    def __init__(self) -> None:
        self._headers: list[bytes] = []
        self._decoder: PacketDecoder | None = None

    def feed(self, packet: bytes) -> Iterator[bytes]:
        if self._decoder is not None:
            yield from self._decoder.decode(av.Packet(packet))
            return
        self._headers.append(packet)
        if len(self._headers) == 3:
            self._decoder = PacketDecoder("vorbis", _xiph_laced(self._headers))

    def flush(self) -> Iterator[bytes]:
        if self._decoder is not None:
            yield from self._decoder.flush()


def _xiph_laced(headers: list[bytes]) -> bytes:
    """Pack the three headers as libavcodec wants them: count − 1, the first two lengths in runs of 255, the bodies."""
    lengths = b"".join(b"\xff" * (len(header) // 255) + bytes([len(header) % 255]) for header in headers[:2])
    return b"\x02" + lengths + b"".join(headers)
