from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echokit_py.audio import decode, frames
from echokit_py.audio.decode import QUICK_CODED, QUICK_PLAIN, StreamDecoder
from echokit_py.audio.pcm import BYTES_PER_SECOND, AudioError, seconds
from echokit_py.audio.wav import write_wav

Tone = Callable[..., bytes]
Encode = Callable[..., bytes]
Feed = Callable[..., bytes]
Measure = Callable[[bytes], tuple[float, float]]


@dataclass(frozen=True)
class Format:
    """A format, and what can be expected of it."""

    container: str
    codec: str
    early: bool = True  # audio comes before the end
    extra: float = 0.0  # seconds a codec may add
    level: float = 1.0  # what the encoder makes of 1
    duration: float = 1.0
    options: dict[str, object] = field(default_factory=dict)


STEREO_44K = {"rate": 44_100, "layout": "stereo"}
STEREO_48K = {"rate": 48_000, "layout": "stereo"}
FORMATS = [
    Format("mp3", "libmp3lame", extra=0.1, level=0.95),
    Format("mp3", "libmp3lame", extra=0.1, level=0.95, options=STEREO_44K),
    Format("mp2", "mp2", extra=0.1),
    Format("adts", "aac", extra=0.1),
    Format("adts", "aac", extra=0.1, options=STEREO_48K),
    Format("flac", "flac", duration=2.0),
    Format("flac", "flac", duration=2.0, options=STEREO_48K),
    Format("ogg", "libopus", extra=0.03, duration=3.0),  # in pages of a second
    Format("ogg", "libopus", extra=0.03, duration=3.0, options=STEREO_48K),
    Format("ogg", "vorbis", extra=0.05, duration=3.0, options={**STEREO_44K, "strict": "experimental"}),
    Format("ogg", "flac", early=False),
    Format("webm", "libopus", extra=0.03, early=False),
    Format("mp4", "aac", extra=0.05, early=False),
    Format("aiff", "pcm_s16be", early=False),
    Format("caf", "pcm_s16be", early=False),
    Format("au", "pcm_s16be", early=False),
    Format("w64", "pcm_s16le", early=False),
    Format("wav", "pcm_s16le", options=STEREO_44K),
    Format("wav", "pcm_f32le"),
    Format("wav", "pcm_s24le", options={"rate": 16_000}),
]


def _name(value: Format) -> str:
    return f"{value.container}-{value.codec}-{'-'.join(map(str, value.options.values()))}"


@pytest.mark.parametrize("form", FORMATS, ids=_name)
def test_every_format_is_decoded(form: Format, encode: Encode, feed: Feed, measure: Measure) -> None:
    data = encode(form.container, form.codec, duration=form.duration, **form.options)
    decoder = StreamDecoder()
    begin = b"".join(decoder.feed(data[at : at + 500]) for at in range(0, len(data) * 3 // 4, 500))
    assert bool(begin) is form.early
    whole = feed(StreamDecoder(), data)
    assert form.duration - 0.001 <= seconds(whole) <= form.duration + form.extra + 0.001
    hertz, level = measure(whole)
    assert hertz == pytest.approx(440, abs=1)
    assert level == pytest.approx(8000 * form.level, rel=0.05)


@pytest.mark.parametrize("form", FORMATS, ids=_name)
def test_every_format_sounds_the_same_in_pieces_and_byte_by_byte(form: Format, encode: Encode, feed: Feed) -> None:
    data = encode(form.container, form.codec, duration=0.1, **form.options)
    whole = feed(StreamDecoder(), data)
    assert seconds(whole) > 0.09
    assert feed(StreamDecoder(), data, 500) == whole
    assert feed(StreamDecoder(), data, 1) == whole


def test_wav_comes_out_as_it_comes_in(tone: Tone) -> None:
    data, decoder = write_wav(tone(16_000)), StreamDecoder()
    assert decoder.feed(data[:44]) == b""
    assert decoder.feed(data[44:1044]) == data[44:1044]


def test_only_what_takes_no_time_is_decoded_without_a_thread(tone: Tone, encode: Encode) -> None:
    wav, mp3 = write_wav(tone(16_000)), encode("mp3", "libmp3lame")
    for decoder, data in ((StreamDecoder(), wav), (StreamDecoder(24_000), tone(24_000))):
        for _ in ("before its kind is known", "after"):
            assert decoder.quick(data[:QUICK_PLAIN])
            assert not decoder.quick(data[: QUICK_PLAIN + 1])
            decoder.feed(data[:100])
        assert decoder.quick(b"")  # a resampler's rest
    coded = StreamDecoder()
    for _ in ("before its kind is known", "after"):
        assert coded.quick(mp3[:QUICK_CODED])
        assert not coded.quick(mp3[: QUICK_CODED + 1])
        coded.feed(mp3[:100])
    assert not coded.quick(b"")  # a decoder may hold the whole of a file back


def test_bare_pcm_at_a_given_rate(tone: Tone, feed: Feed, measure: Measure) -> None:
    pcm = tone(24_000)
    whole = feed(StreamDecoder(raw_rate=24_000), pcm)
    assert feed(StreamDecoder(raw_rate=24_000), pcm, 7) == whole
    assert len(whole) == BYTES_PER_SECOND
    assert measure(whole)[0] == pytest.approx(440, abs=1)


def test_a_few_bytes_of_bare_pcm_are_audio_too(feed: Feed) -> None:
    assert feed(StreamDecoder(raw_rate=16_000), bytes(6)) == bytes(6)


def test_a_wav_header_is_recognised_where_bare_pcm_was_promised(tone: Tone, feed: Feed) -> None:
    assert feed(StreamDecoder(raw_rate=8_000), write_wav(tone(16_000)), 9) == tone(16_000)


def test_an_id3_tag_may_stand_before_any_format(tone: Tone, encode: Encode, feed: Feed, measure: Measure) -> None:
    tag = b"ID3\x04\x00\x10" + bytes([0, 0, 2, 10]) + b"\xff\xfb" * 133 + b"3DI" + bytes(7)
    for data in (write_wav(tone(16_000)), encode("adts", "aac"), encode("mp3", "libmp3lame", id3v2_version="0")):
        out = feed(StreamDecoder(), tag + data, 11)
        assert out == feed(StreamDecoder(), data)
        assert measure(out)[0] == pytest.approx(440, abs=1)


def test_mp3_after_a_tag_is_found_behind_padding(encode: Encode, feed: Feed, measure: Measure) -> None:
    data = b"ID3\x03\x00\x00" + bytes(4) + bytes(300) + encode("mp3", "libmp3lame", id3v2_version="0")
    assert measure(feed(StreamDecoder(), data, 64))[0] == pytest.approx(440, abs=1)


def test_a_damaged_mp3_plays_what_is_left(encode: Encode, feed: Feed) -> None:
    data = bytearray(encode("mp3", "libmp3lame", duration=2.0))
    data[4000:4400] = bytes(400)
    assert 1.5 < seconds(feed(StreamDecoder(), bytes(data))) < 2.2


@pytest.mark.parametrize("container", ["mp3", "adts", "flac", "ogg", "wav"])
def test_a_stream_cut_short_plays_what_came(container: str, encode: Encode, feed: Feed) -> None:
    codec = {"mp3": "libmp3lame", "adts": "aac", "flac": "flac", "ogg": "libopus", "wav": "pcm_s16le"}[container]
    data = encode(container, codec, duration=3.0)
    assert 1.0 < seconds(feed(StreamDecoder(), data[: len(data) * 2 // 3], 100)) < 2.5


TEXTS = [
    (b"<!DOCTYPE html><title>502</title>", "a web page"),
    (b"\xef\xbb\xbf  <error/>", "a web page"),
    (b'{"error": {"message": "no such voice"}}', "JSON .*no such voice"),
    (b'[{"detail": "x"}]', "JSON"),
    (b"no such voice", "text .*no such voice"),
    (b"x" * 5000, "text .*…"),
]


@pytest.mark.parametrize("raw_rate", [None, 16_000])
@pytest.mark.parametrize("size", [1, 7, 10**6])
@pytest.mark.parametrize(("data", "what"), TEXTS)
def test_a_text_is_refused_and_quoted(data: bytes, what: str, size: int, raw_rate: int | None, feed: Feed) -> None:
    with pytest.raises(AudioError, match=f"sent {what}") as caught:
        feed(StreamDecoder(raw_rate), data, size)
    assert len(str(caught.value)) < 250


def test_a_quoted_text_is_cut_and_clean(feed: Feed) -> None:
    with pytest.raises(AudioError) as caught:
        feed(StreamDecoder(), b'{"error":\r\n"' + b"x\t" * 400)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "sent nothing"),
        (b"ID3\x04\x00\x00\x00\x00\x01\x00" + bytes(20), "sent nothing"),
        (bytes(5000), "no audio format we know: it begins with 00 00"),
        (b"\xff\xff\xff\xff" + bytes(5000), "no audio format we know"),
        (b"RIFF\x10\x00\x00\x00AVI LIST", "not a WAV file"),
        (write_wav(b""), "without a single sample"),
        (b"fLaC", "without a single sample"),
        (b"fLaC\x00\x00\x00\x22" + bytes(10), "without a single sample"),
        (b"OggS", "without a single sample"),
        (b"\x00\x00\x00\x1cftypisom" + bytes(100), "can't be decoded"),
        (b"\x1aE\xdf\xa3" + bytes(100), "can't be decoded"),
        (b"\xff\xf1\x58\x40" + bytes(300), "without a single sample"),
    ],
)
def test_what_holds_no_audio_is_refused_with_a_reason(data: bytes, reason: str, feed: Feed) -> None:
    for size in (1, 10**6):
        with pytest.raises(AudioError, match=reason):
            feed(StreamDecoder(), data, size)


def test_text_formats_that_open_other_files_are_not_looked_into(feed: Feed) -> None:
    with pytest.raises(AudioError, match="sent text"):
        feed(StreamDecoder(), b"#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n")


def test_endless_audio_is_refused(monkeypatch: pytest.MonkeyPatch, tone: Tone) -> None:
    monkeypatch.setattr(decode, "SECONDS_MAX", 2)
    decoder = StreamDecoder(raw_rate=16_000)
    assert len(decoder.feed(tone(16_000, 2.0))) == 2 * BYTES_PER_SECOND
    with pytest.raises(AudioError, match="more than 2 seconds"):
        decoder.feed(bytes(100))


def test_what_must_be_held_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "HELD_MAX", 1 << 20)
    decoder = StreamDecoder()
    decoder.feed(b"\x00\x00\x00\x1cftypisom" + bytes(1 << 19))
    decoder.feed(bytes(1 << 18))
    with pytest.raises(AudioError, match="more than 1 MiB of mp4"):
        decoder.feed(bytes(1 << 19))


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(
        [("mp3", "libmp3lame"), ("adts", "aac"), ("flac", "flac"), ("ogg", "libopus"), ("mp4", "aac")]
    ),
    damage=st.lists(st.tuples(st.integers(0, 5000), st.binary(min_size=1, max_size=40)), min_size=1, max_size=6),
    size=st.integers(50, 5000),
)
def test_damage_anywhere_is_an_audio_error_at_worst(
    kind: tuple[str, str], damage: list[tuple[int, bytes]], size: int, encode: Encode, feed: Feed
) -> None:
    data = bytearray(encode(*kind, duration=0.3))
    for at, rubbish in damage:
        data[at : at + len(rubbish)] = rubbish
    with contextlib.suppress(AudioError):
        assert seconds(feed(StreamDecoder(), bytes(data), size)) < 60


@settings(deadline=None)
@given(
    st.binary(max_size=400), st.sampled_from([b"", b"\xff\xfb\x90\x64", b"OggS\x00\x02", b"fLaC\x80", b"FORM", b"RIFF"])
)
def test_rubbish_is_an_audio_error_at_worst(rubbish: bytes, start: bytes) -> None:
    decoder = StreamDecoder()
    with contextlib.suppress(AudioError):
        decoder.feed(start + rubbish)
        decoder.flush()


def test_stereo_sides_are_averaged(feed: Feed) -> None:
    sides = np.array([[1000, 3000]] * 1600, "<i2").tobytes()
    header = bytearray(write_wav(sides, 16_000))
    header[22:24] = struct.pack("<H", 2)
    header[32:34] = struct.pack("<H", 4)
    assert feed(StreamDecoder(), bytes(header)) == struct.pack("<h", 2000) * 1600
