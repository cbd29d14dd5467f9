"""JSON of events: strict where it matters, patient with what real servers write, and no digit is lost."""

from __future__ import annotations

import msgspec
import pytest

from echokit_py.llm.event_json import decode_event, encode_arguments, well_formed
from echokit_py.llm.fields import UnreadableEvent, arguments_of, id_of, index_of, list_of, object_of, text_of


def test_plain_events() -> None:
    assert decode_event('{"a":[1,2.5,null,"ø"]}'.encode()) == {"a": [1, 2.5, None, "ø"]}


def test_halves_of_characters_and_nan_are_let_through() -> None:
    assert decode_event(b'{"content":"\\ud83c","p":NaN}') != {}
    value = decode_event(b'{"content":"\\ud83c"}')
    assert value == {"content": "\ud83c"}


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"\xff",
        b'{"a":"\xff"}',
        b"[" * 100_000,
        b'{"arguments":' + b"[" * 100_000,
        b'{"arguments":{"a":NaN}}',
        b'{"arguments":{"a":1',
    ],
)
def test_what_is_no_json(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_event(data)


def test_arguments_that_are_no_text_keep_their_digits() -> None:
    event = decode_event(b'{"index":0,"arguments" : {"a":0.12345678901234567890,"b":123456789012345678901234567890}}')
    assert isinstance(event, dict)
    assert encode_arguments(event["arguments"]) == '{"a":0.12345678901234567890,"b":123456789012345678901234567890}'
    assert index_of(event["index"]) == 0
    assert id_of(event["index"]) == "0"


def test_arguments_inside_a_text_are_no_reason_to_look_closer() -> None:
    event = decode_event(b'{"n":1,"content":"{\\"arguments\\":{}}","arguments":"{}"}')
    assert event == {"n": 1, "content": '{"arguments":{}}', "arguments": "{}"}


def test_arguments_that_cannot_be_written() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="can't be written"):
        encode_arguments(endless)


def test_well_formed_text() -> None:
    assert well_formed("ø 🎈") == "ø 🎈"
    assert well_formed("\ud83c\udf88") == "🎈"
    assert well_formed("a\ud83c") == "a\ufffd"


def test_fields() -> None:
    assert (text_of(None), text_of("a")) == ("", "a")
    assert (object_of(None), object_of({"a": 1})) == ({}, {"a": 1})
    assert (list_of(None), list_of([1])) == ([], [1])
    assert [id_of(value) for value in ("a", 7, None)] == ["a", "7", ""]
    assert [index_of(value) for value in (2, -1, "3", "x", None, True, 1.5, msgspec.Raw(b"4"))] == [
        *(2, -1, 3),
        *(None, None, None, None),
        4,
    ]
    assert [arguments_of(value) for value in (None, "{", {"a": 1}, [2])] == ["", "{", '{"a":1}', "[2]"]


@pytest.mark.parametrize("read", [text_of, object_of, list_of, id_of])
def test_fields_of_another_type_cannot_be_read(read: object) -> None:
    assert callable(read)
    with pytest.raises(UnreadableEvent, match="float instead"):
        read(1.5)
