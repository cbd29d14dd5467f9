"""Opus packets as the board speaks them: 16 kHz mono, 120 ms each, no container. Does no framing (see framer)."""

from __future__ import annotations

from collections import deque

import av
import numpy as np
from av.audio.codeccontext import AudioCodecContext
from av.error import FFmpegError

from echokit_py.audio.pcm import BYTES_PER_SAMPLE, SAMPLE_RATE, AudioError

# The board takes exactly one packet of 120 ms per event (protocol README, "opus").
FRAME_SAMPLES = 1920
FRAME_BYTES = FRAME_SAMPLES * BYTES_PER_SAMPLE
# What the reference server's buffer holds, and so the most a board has ever been sent.
PACKET_MAX = 1280

# Measured on the recordings of speech this project is tested with: processor time a packet, segmental SNR against the
# original and distance of the spectra (both in dB):
#   complexity  0, 32 kbit/s: ×1    7.7  2.8      40 kbit/s: ×1.1   8.0  2.4      48 kbit/s: ×1.1   8.1  2.1
#   complexity  2, 32 kbit/s: ×2    7.9  2.8      40 kbit/s: ×1.8   8.1  2.4      48 kbit/s: ×1.6   8.2  2.1
# Bits are cheaper than time: of 5 kB/s Wi-Fi takes no notice (the microphone sends 32), the server's cores do of twice
# the time. Full-scale noise gives packets of 600 bytes at most.
_BIT_RATE = 40_000
_COMPLEXITY = 0

# Fresh encoders that are kept: a sentence takes one and makes one, so that these are for sentences that begin at once.
STOCK = 16

# libavcodec hands Opus out at 48 kHz, whatever went in.
_DECODED_RATE = 48_000
_DECIMATION = _DECODED_RATE // SAMPLE_RATE
# Half-length of the decimation filter, in samples at 48 kHz: 1 ms, a whole number of samples at 16 kHz as well.
_HALF_TAPS = 48


class OpusEncoder:
    """Encodes one stream of speech. Not for use by two threads at once."""

    def __init__(self) -> None:
        self._codec = _new_encoder()
        # PyAV sets up a filter graph when it sees the first frame, which takes as long as encoding one. A single sample
        # of silence brings that forward, and the stream is late by it.
        self._codec.encode(_frame(bytes(BYTES_PER_SAMPLE)))

    def encode(self, pcm: bytes) -> bytes:
        """Encode one frame.

        pcm: exactly 1920 samples (3840 bytes), s16le, mono, 16 kHz. Returns one packet of at most 1280 bytes.
        The decoder's output lags by 6.5 ms, the encoder's look-ahead.

        Raises:
            ValueError: another length.
        """
        if len(pcm) != FRAME_BYTES:
            raise ValueError(f"an Opus frame takes {FRAME_BYTES} bytes of PCM, not {len(pcm)}")
        return self.packets(pcm)[0]

    def packets(self, pcm: bytes) -> list[bytes]:
        """Encode any number of frames, at once: the same packets, for less than as many calls of `encode` take.

        Raises:
            ValueError: there is less or more than whole frames.
        """
        if len(pcm) % FRAME_BYTES:
            raise ValueError(f"Opus frames take {FRAME_BYTES} bytes of PCM each; {len(pcm)} are no whole ones")
        # libopus keeps no frame back: what goes in comes out (`test_opus` counts the packets).
        return [bytes(packet) for packet in self._codec.encode(_frame(pcm))] if pcm else []


class Encoders:
    """Fresh encoders in stock, since one takes 1 ms to make: that is spent where there is time for it. Any thread may
    use it."""

    def __init__(self) -> None:
        self._stock: deque[OpusEncoder] = deque(maxlen=STOCK)

    def take(self) -> OpusEncoder:
        """A fresh encoder, for one sentence."""
        try:
            return self._stock.pop()
        except IndexError:
            return OpusEncoder()

    def restock(self) -> None:
        """Make one, if there is room."""
        if len(self._stock) < STOCK:
            self._stock.append(OpusEncoder())


class OpusDecoder:
    """Decodes one stream of packets. Not for use by two threads at once."""

    def __init__(self) -> None:
        self._codec = _new_decoder()
        self._past = np.zeros(2 * _HALF_TAPS, np.float32)

    def decode(self, packet: bytes) -> bytes:
        """Decode one packet of any length; returns s16le, mono, 16 kHz: 1920 samples for a packet of 120 ms.

        Raises:
            AudioError: no Opus packet.
        """
        try:
            frames = self._codec.decode(av.Packet(packet)) if packet else []
        except FFmpegError as error:
            raise AudioError(f"{len(packet)} bytes that are no Opus packet") from error
        if not frames:
            raise AudioError("an empty Opus packet")
        wide = np.concatenate([frame.to_ndarray()[0] for frame in frames]).astype(np.float32)
        return self._decimate(wide)

    def reset(self) -> None:
        """Start afresh, as the board does at StartAudio."""
        self._codec = _new_decoder()
        self._past = np.zeros(2 * _HALF_TAPS, np.float32)

    def _decimate(self, wide: np.ndarray[tuple[int], np.dtype[np.float32]]) -> bytes:
        """48 → 16 kHz: every third sample of the filtered signal, so that the length stays exact in each packet."""
        samples = np.concatenate([self._past, wide])
        self._past = samples[-2 * _HALF_TAPS :]
        windows = np.lib.stride_tricks.sliding_window_view(samples, 2 * _HALF_TAPS + 1)[::_DECIMATION]
        return np.clip(windows @ _LOW_PASS, -32768, 32767).round().astype("<i2").tobytes()


def _low_pass() -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """A windowed sinc that passes 7 kHz and stops what would alias (above 8 kHz)."""
    time = np.arange(-_HALF_TAPS, _HALF_TAPS + 1)
    taps = np.sinc(2 * 7_500 / _DECODED_RATE * time) * np.kaiser(2 * _HALF_TAPS + 1, 5.0)
    return np.asarray(taps / taps.sum(), np.float32)


_LOW_PASS = _low_pass()


def _frame(pcm: bytes) -> av.AudioFrame:
    frame = av.AudioFrame(format="s16", layout="mono", samples=len(pcm) // BYTES_PER_SAMPLE)
    frame.sample_rate = SAMPLE_RATE
    frame.planes[0].update(pcm)
    return frame


def _new_encoder() -> AudioCodecContext:
    codec = av.CodecContext.create("libopus", "w")
    codec.sample_rate = SAMPLE_RATE
    codec.format = "s16"
    codec.layout = "mono"
    codec.bit_rate = _BIT_RATE
    codec.options = {
        "application": "voip",
        "frame_duration": "120",
        "compression_level": str(_COMPLEXITY),
        "vbr": "constrained",
    }
    codec.open()
    return codec


def _new_decoder() -> AudioCodecContext:
    codec = av.CodecContext.create("libopus", "r")
    codec.sample_rate = _DECODED_RATE
    codec.layout = "mono"
    codec.open()
    return codec
