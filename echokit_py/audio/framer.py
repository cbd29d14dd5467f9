"""Cuts a sentence's audio into the pieces that go to the board, Opus or PCM, with the mouth's shape. Sends nothing.

Sizes follow the protocol README: Opus packets of exactly 120 ms, PCM of at most 1 s (32,000 bytes).
"""

from __future__ import annotations

from dataclasses import dataclass

from echokit_py.audio.opus import FRAME_BYTES, Encoders, OpusEncoder
from echokit_py.audio.pcm import BYTES_PER_SECOND, BlockAligner, seconds
from echokit_py.audio.vowels import vowels

PCM_MAX = BYTES_PER_SECOND


@dataclass(frozen=True, slots=True)
class Frame:
    """One piece for the board.

    Attributes:
        data: an Opus packet or s16le samples.
        vowel: 0 none, 1 A, 2 E, 3 I, 4 O, 5 U.
        seconds: how long it plays, padding included.
    """

    data: bytes
    vowel: int
    seconds: float


class Framer:
    """Frames one sentence after another for one device. Not for use by two threads at once.

    Opus comes in frames of 120 ms; PCM as it arrives (a piece held back is time lost), except that with `vowel`
    it is cut every 120 ms too: one mouth shape per event, as often as with Opus.
    """

    def __init__(self, opus: bool, vowel: bool, encoders: Encoders | None = None) -> None:
        """`encoders`: where sentences get theirs from, and leave one for others."""
        self._opus = opus
        self._encoders = encoders or Encoders()
        self._encoder: OpusEncoder | None = None
        self._vowel = vowel
        self._blocks = BlockAligner()
        self._held = bytearray()

    def start(self) -> None:
        """Begin a sentence (StartAudio): the encoder is fresh, what an unfinished sentence left is gone."""
        self._encoder = None
        self._blocks.clear()
        self._held.clear()

    def feed(self, pcm: bytes) -> list[Frame]:
        """Take audio of any length, odd ones too (s16le, mono, 16 kHz); return the frames that are full."""
        self._held += self._blocks.feed(pcm)
        if self._opus:
            return self._cut(FRAME_BYTES)
        if self._vowel:
            return self._cut(FRAME_BYTES)
        return [*self._cut(PCM_MAX), *self._rest()]

    def end(self, pcm: bytes = b"") -> list[Frame]:
        """End the sentence (EndAudio) with its last audio: what is full, and the tail, padded with silence to 120 ms
        for Opus, as it is for PCM. An odd last byte is half a sample and is dropped.

        It leaves a fresh encoder for the next: that takes time which is spent here, not at a sentence's start.
        """
        frames = [*self.feed(pcm), *self._tail()]
        if self._encoder is not None:
            self._encoders.restock()
        self.start()
        return frames

    def _tail(self) -> list[Frame]:
        self._blocks.clear()
        if not self._opus:
            return self._rest()
        if not self._held:
            return []
        self._held += bytes(FRAME_BYTES - len(self._held))
        return self._cut(FRAME_BYTES)

    def _cut(self, size: int) -> list[Frame]:
        whole = bytes(self._held[: len(self._held) - len(self._held) % size])
        del self._held[: len(whole)]
        return self._framed(whole, [whole[at : at + size] for at in range(0, len(whole), size)])

    def _rest(self) -> list[Frame]:
        rest = bytes(self._held)
        self._held.clear()
        return self._framed(rest, [rest] if rest else [])

    def _framed(self, whole: bytes, pieces: list[bytes]) -> list[Frame]:
        shapes = vowels(pieces) if self._vowel else [0] * len(pieces)
        data = pieces
        if self._opus and pieces:
            self._encoder = self._encoder or self._encoders.take()
            data = self._encoder.packets(whole)
        return [Frame(*parts) for parts in zip(data, shapes, map(seconds, pieces), strict=True)]
