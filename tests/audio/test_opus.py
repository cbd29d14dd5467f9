from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from echokit_py.audio.opus import FRAME_BYTES, FRAME_SAMPLES, PACKET_MAX, STOCK, Encoders, OpusDecoder, OpusEncoder
from echokit_py.audio.pcm import AudioError
from echokit_py.audio.wav import read_wav

Tone = Callable[..., bytes]
SPEECH = Path(__file__).parents[2].parent / "shared" / "audio" / "joe_paris.wav"


def _frames(pcm: bytes) -> list[bytes]:
    return [pcm[at : at + FRAME_BYTES] for at in range(0, len(pcm) - FRAME_BYTES + 1, FRAME_BYTES)]


def _samples_of(packet: bytes) -> int:
    """How much audio a packet holds, in samples at 16 kHz. Source: RFC 6716, section 3.1 and 3.2."""
    config, code = packet[0] >> 3, packet[0] & 3
    if config < 12:
        size = (160, 320, 640, 960)[config & 3]
    elif config < 16:
        size = (160, 320)[config & 1]
    else:
        size = (40, 80, 160, 320)[config & 3]
    return size * (1, 2, 2, packet[1] & 63 if code == 3 else 0)[code]


def _noise(count: int) -> bytes:
    return np.random.default_rng(3).integers(-32768, 32767, FRAME_SAMPLES * count).astype("<i2").tobytes()


def test_one_frame_in_is_one_packet_of_120_ms_out(tone: Tone) -> None:
    encoder = OpusEncoder()
    packets = [encoder.encode(frame) for frame in _frames(tone(16_000, 1.2) + _noise(5) + bytes(5 * FRAME_BYTES))]
    assert len(packets) == 20
    assert {_samples_of(packet) for packet in packets} == {FRAME_SAMPLES}


def test_packets_are_mono_wideband() -> None:
    packet = OpusEncoder().encode(_noise(1))
    assert not packet[0] & 0b100  # the stereo bit
    assert packet[0] >> 3 in (*range(8, 12), *range(20, 24))  # SILK or CELT, wideband: RFC 6716, table 2


def test_the_loudest_noise_stays_far_below_the_devices_limit() -> None:
    encoder = OpusEncoder()
    assert max(len(encoder.encode(frame)) for frame in _frames(_noise(30))) <= 600 < PACKET_MAX


def test_the_tone_comes_back_6_ms_later(tone: Tone, measure: Callable[[bytes], tuple[float, float]]) -> None:
    encoder, decoder = OpusEncoder(), OpusDecoder()
    pcm = tone(16_000, 1.2)
    out = [decoder.decode(encoder.encode(frame)) for frame in _frames(pcm)]
    assert {len(piece) for piece in out} == {FRAME_BYTES}
    hertz, level = measure(b"".join(out))
    assert hertz == pytest.approx(440, abs=1)
    assert level == pytest.approx(8000, rel=0.1)


def test_speech_is_understood_after_the_round_trip() -> None:
    if not SPEECH.exists():
        pytest.skip("the shared recordings are not beside this checkout")
    encoder, decoder = OpusEncoder(), OpusDecoder()
    frames = _frames(read_wav(SPEECH.read_bytes()).pcm)
    before = np.frombuffer(b"".join(frames), "<i2").astype(float)
    after = np.frombuffer(b"".join(decoder.decode(encoder.encode(frame)) for frame in frames), "<i2").astype(float)
    delay = int(np.argmax(np.correlate(after[: len(before)], before[:-400], "valid")))
    assert 90 < delay < 140  # 6.5 ms of the encoder and 1 ms of the decoder's filter
    assert np.corrcoef(before[:-delay], after[delay:])[0, 1] > 0.9


def test_a_fresh_encoder_gives_the_same_bytes_from_stock_or_not(tone: Tone) -> None:
    encoders, frames = Encoders(), _frames(tone(16_000, 0.36))
    encoder = encoders.take()
    fresh = [encoder.encode(frame) for frame in frames]
    goes_on = [encoder.encode(frame) for frame in frames]
    for _ in range(STOCK + 1):
        encoders.restock()
    stocked = [encoders.take() for _ in range(STOCK + 1)]
    assert len(set(stocked)) == STOCK + 1
    assert all([each.encode(frame) for frame in frames] == fresh != goes_on for each in stocked[-2:])


def test_a_reset_decoder_gives_the_same_audio(tone: Tone) -> None:
    packet, decoder = OpusEncoder().encode(tone(16_000, 0.12)), OpusDecoder()
    fresh = decoder.decode(packet)
    assert decoder.decode(packet) != fresh
    decoder.reset()
    assert decoder.decode(packet) == fresh


def test_the_decimation_lets_speech_through_and_nothing_that_would_alias() -> None:
    from echokit_py.audio.opus import _LOW_PASS

    response = np.abs(np.fft.rfft(_LOW_PASS, 48_000))  # one bin a Hz
    assert np.abs(response[:6_800] - 1).max() < 0.05
    assert response[8_600:].max() < 0.01


def test_many_frames_at_once_give_the_same_packets(tone: Tone) -> None:
    pcm = tone(16_000, 1.2) + _noise(5)
    one_by_one, at_once = OpusEncoder(), OpusEncoder()
    expected = [one_by_one.encode(frame) for frame in _frames(pcm)]
    found = at_once.packets(pcm[: 3 * FRAME_BYTES]) + at_once.packets(b"") + at_once.packets(pcm[3 * FRAME_BYTES :])
    assert found == expected
    with pytest.raises(ValueError, match="no whole ones"):
        at_once.packets(bytes(FRAME_BYTES + 2))


@pytest.mark.parametrize("size", [0, 1, FRAME_BYTES - 2, FRAME_BYTES + 2])
def test_other_frame_sizes_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="3840 bytes"):
        OpusEncoder().encode(bytes(size))


@pytest.mark.parametrize("packet", [b"", b"\xff", b"\x03", bytes([0x5B, 0xFF]) + bytes(3)])
def test_what_is_no_packet_is_refused(packet: bytes) -> None:
    with pytest.raises(AudioError):
        OpusDecoder().decode(packet)
