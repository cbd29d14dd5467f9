"""Events and commands as bytes: golden vectors, what the device refuses, and rubbish of every kind."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from firmware_protocol import events as e
from firmware_protocol.codec import decode_command, decode_event, encode_command, encode_event, scalar_text
from firmware_protocol.errors import ProtocolError
from firmware_protocol.link import MAX_COMMAND_BYTES
from firmware_protocol.vectors import EventVector, RefusedVector, load_vectors
from firmware_protocol.vectors.check import build
from tests.firmware_protocol.walker import Walk

VECTORS = load_vectors()
EVENTS = [pytest.param(vector, id=f"{n}-{vector.event}") for n, vector in enumerate(VECTORS.server_events)]
REFUSED = [pytest.param(vector, id=vector.why) for vector in VECTORS.refused_by_device]

any_text = st.text(st.characters(exclude_categories=[]), max_size=80)  # lone surrogates too
utf8_text = st.text(max_size=80)
audio = st.binary(max_size=300)
relaxed = settings(deadline=None)  # on a loaded machine an example may take any time


def any_event(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Every class of event, with arbitrary content."""
    units = [st.just(kind()) for kind in get_args(e.ServerEvent) if not kind.__dataclass_fields__]
    return st.one_of(
        *units,
        st.builds(e.HelloChunk, audio),
        st.builds(e.AudioChunk, audio),
        st.builds(e.AudioChunkWithVowel, audio, st.integers(0, 5)),
        st.builds(e.ASR, text),
        st.builds(e.Action, text),
        st.builds(e.StartAudio, text),
        st.builds(e.DisplayText, text),
        st.builds(e.Choices, text, st.lists(text, max_size=20).map(tuple)),
    )


def walk(data: bytes) -> tuple[object, list[str]]:
    """Decode with the independent reader; nothing may be left over."""
    walker = Walk(data)
    value = walker.value()
    assert walker.at == len(data)
    return value, walker.markers


def test_every_class_of_event_and_command_has_a_vector() -> None:
    assert {vector.event for vector in VECTORS.server_events} == {kind.__name__ for kind in get_args(e.ServerEvent)}
    assert {command["event"] for command in VECTORS.client_commands} == {kind.__name__ for kind in get_args(e.Command)}


@pytest.mark.parametrize("vector", EVENTS)
def test_events_are_encoded_byte_for_byte_as_by_rust(vector: EventVector) -> None:
    assert encode_event(build(vector.event, vector.fields)).hex() == vector.msgpack


@pytest.mark.parametrize("vector", EVENTS)
@pytest.mark.parametrize("form", ["msgpack", "msgpack_named"])
def test_both_forms_of_an_event_are_decoded(vector: EventVector, form: str) -> None:
    assert decode_event(bytes.fromhex(getattr(vector, form))) == build(vector.event, vector.fields)


@pytest.mark.parametrize("vector", REFUSED)
def test_what_the_device_refuses_is_refused_here(vector: RefusedVector) -> None:
    with pytest.raises(ProtocolError):
        decode_event(bytes.fromhex(vector.msgpack))


@pytest.mark.parametrize("vector", EVENTS)
@pytest.mark.parametrize("form", ["msgpack", "msgpack_named"])
def test_an_event_cut_off_or_followed_by_anything_is_refused(vector: EventVector, form: str) -> None:
    data = bytes.fromhex(getattr(vector, form))
    for size in range(len(data)):
        with pytest.raises(ProtocolError):
            decode_event(data[:size])
    for trailer in (b"\x00", b"\xc0", b"\x90", data):
        with pytest.raises(ProtocolError):
            decode_event(data + trailer)


@relaxed
@given(any_event(any_text))
def test_nothing_that_the_device_refuses_is_ever_produced(event: e.ServerEvent) -> None:
    value, markers = walk(encode_event(event))
    assert "bin" not in markers
    names = list(type(event).__dataclass_fields__)
    if not names:
        assert value == type(event).__name__
        return
    assert isinstance(value, list)
    ((_, name, fields),) = value
    assert name == type(event).__name__
    assert isinstance(fields, list)
    assert len(fields) == len(names)
    for field, content in zip(names, fields, strict=True):
        original = getattr(event, field)
        assert content == (list(original) if isinstance(original, bytes | tuple) and field == "data" else content)
        assert isinstance(content, {"data": list, "vowel": int, "items": list}.get(field, str))


@pytest.mark.parametrize("size", [15, 16, 65_535, 65_536])
def test_data_of_every_length_of_header(size: int) -> None:
    data = bytes(i % 256 for i in range(size))
    value, markers = walk(encode_event(e.AudioChunk(data)))
    assert value == [("pair", "AudioChunk", [list(data)])]
    assert "bin" not in markers
    assert decode_event(encode_event(e.AudioChunk(data))) == e.AudioChunk(data)


@relaxed
@given(any_event(utf8_text))
def test_events_survive_the_way_there_and_back(event: e.ServerEvent) -> None:
    assert decode_event(encode_event(event)) == event


@relaxed
@given(any_event(any_text))
def test_hostile_text_settles_after_one_way(event: e.ServerEvent) -> None:
    once = decode_event(encode_event(event))
    assert decode_event(encode_event(once)) == once


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("ok", "ok"),
    ],
)
def test_surrogates_are_joined_or_replaced(written: str, sent: str) -> None:
    assert scalar_text(written) == sent
    assert decode_event(encode_event(e.StartAudio(written))) == e.StartAudio(sent)
    assert decode_event(encode_event(e.Choices(written, (written, "x")))) == e.Choices(sent, (sent, "x"))
    assert decode_command(encode_command(e.Text(written))) == e.Text(sent)


@relaxed
@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda tail: b"\x81\xaaAudioChunk" + tail))
@example(b"")
@example(b"\x80")
@example(b"\x81\xaaAudioChunk" + b"\x91" * 100_000)
@example(b"\x91" * 100_000)
@example(b"\x81\xaaAudioChunk\xdd\xff\xff\xff\xff")
@example(b"\x81\xa3ASR\x91\xa1\xff")
def test_rubbish_raises_nothing_but_protocol_error(data: bytes) -> None:
    try:
        event = decode_event(data)
    except ProtocolError:
        return
    assert isinstance(event, get_args(e.ServerEvent))


NOT_EVENTS: dict[str, Any] = {
    "a list": ["ASR", "hi"],
    "nil": None,
    "an event with fields without them": "ASR",
    "an event without fields with none": {"EndAudio": []},
    "an event without fields with nil": {"EndAudio": None},
    "an unknown event with fields": {"Bogus": ["x"]},
    "two events in one map": {"ASR": ["hi"], "Action": ["x"]},
    "no event in the map": {},
    "too few fields": {"AudioChunkWithVowel": [[1]]},
    "too many fields": {"ASR": ["hi", "ho"]},
    "no fields": {"ASR": []},
    "a field of another name": {"ASR": {"words": "hi"}},
    "a field of another type": {"ASR": [1]},
    "a byte above 255": {"AudioChunk": [[256]]},
    "a negative byte": {"AudioChunk": [[-1]]},
    "a byte that is a float": {"AudioChunk": [[1.0]]},
    "a vowel beyond the last": {"AudioChunkWithVowel": [[1], 6]},
    "a number as the name": {1: ["hi"]},
    "bin, by name": {"AudioChunk": {"data": b"\x00"}},
}


@pytest.mark.parametrize("content", NOT_EVENTS.values(), ids=NOT_EVENTS.keys())
def test_what_is_no_event(content: Any) -> None:
    with pytest.raises(ProtocolError):
        decode_event(msgspec.msgpack.encode(content))


@pytest.mark.parametrize("content", VECTORS.client_commands, ids=lambda content: content["event"])
def test_commands_both_ways(content: dict[str, Any]) -> None:
    command = build(content["event"], {key: value for key, value in content.items() if key != "event"})
    assert encode_command(command) == json.dumps(content, separators=(",", ":"))
    assert decode_command(json.dumps(content)) == command
    assert decode_command(json.dumps(dict(reversed(content.items())) | {"time": [1, {"a": None}]})) == command


NOT_COMMANDS = [
    "",
    "hello",
    "null",
    "[]",
    "{}",
    '"StartChat"',
    '{"event":"Bogus"}',
    '{"event":1}',
    '{"event":"startchat"}',
    '{"event":"StartChat"',
    '{"event":"StartChat"}{"event":"StartChat"}',
    '{"event":"Text"}',
    '{"event":"Text","input":null}',
    '{"event":"Text","input":5}',
    '{"event":"Text","input":"\\ud800"}',
    '{"event":"Text","input":"\ud800"}',
    '{"event":"Select"}',
    '{"event":"Select","index":-1}',
    '{"event":"Select","index":1.0}',
    '{"event":"Select","index":"1"}',
    '{"event":"Select","index":true}',
    '{"event":"Select","index":4294967296}',
    '{"event":"Select","index":1e999}',
    "[" * 60_000,
    '{"event":"StartChat","x":' + "[" * 60_000,
]


@pytest.mark.parametrize("text", NOT_COMMANDS, ids=lambda text: ascii(text[:40]))
def test_what_is_no_command(text: str) -> None:
    with pytest.raises(ProtocolError):
        decode_command(text)


def text_command(size: int, character: str) -> str:
    """A well-formed Text command of `size` bytes, filled up with a character."""
    head, tail = '{"event":"Text","input":"', '"}'
    room = size - len(head) - len(tail)
    return head + character * (room // len(character.encode())) + "x" * (room % len(character.encode())) + tail


@pytest.mark.parametrize("character", ["a", "你"])
def test_the_bound_of_a_command_counts_bytes(character: str) -> None:
    assert isinstance(decode_command(text_command(MAX_COMMAND_BYTES, character)), e.Text)
    with pytest.raises(ProtocolError, match="65536"):
        decode_command(text_command(MAX_COMMAND_BYTES + 1, character))


@relaxed
@given(st.text(st.characters(exclude_categories=[]), max_size=100))
def test_text_that_is_no_json_raises_nothing_but_protocol_error(text: str) -> None:
    with pytest.raises(ProtocolError):
        decode_command(text)


@relaxed
@given(utf8_text, st.integers(0, 2**32 - 1))
def test_commands_survive_the_way_there_and_back(text: str, index: int) -> None:
    for command in (e.Text(text), e.Select(index), e.StartChat(), e.StartRecord(), e.Submit()):
        assert decode_command(encode_command(command)) == command
