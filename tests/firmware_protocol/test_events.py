"""Values that the wire has no room for can't be built."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from firmware_protocol import events as e
from firmware_protocol.errors import ProtocolError

REFUSED: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("bytes as text", e.HelloChunk, ("abc",)),
    ("a buffer that can change", e.AudioChunk, (bytearray(b"abc"),)),
    ("a list of integers", e.AudioChunk, ([1, 2],)),
    ("bytes as text, with a vowel", e.AudioChunkWithVowel, ("abc", 1)),
    ("no mouth has this number", e.AudioChunkWithVowel, (b"", 6)),
    ("negative vowel", e.AudioChunkWithVowel, (b"", -1)),
    ("a vowel that is a bool", e.AudioChunkWithVowel, (b"", True)),
    ("a vowel that is a float", e.AudioChunkWithVowel, (b"", 1.0)),
    ("text as bytes", e.ASR, (b"hi",)),
    ("no text", e.StartAudio, (None,)),
    ("action as a number", e.Action, (1,)),
    ("display text as a number", e.DisplayText, (1,)),
    ("message as a number", e.Choices, (1, ())),
    ("items as a list", e.Choices, ("Pick", ["a"])),
    ("items as one text", e.Choices, ("Pick", "ab")),
    ("an item as a number", e.Choices, ("Pick", ("a", 1))),
    ("input as a number", e.Text, (1,)),
    ("negative index", e.Select, (-1,)),
    ("index beyond the device's usize", e.Select, (2**32,)),
    ("an index that is a bool", e.Select, (False,)),
]


@pytest.mark.parametrize(("build", "values"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_value_without_room_on_the_wire_is_refused(build: Callable[..., Any], values: tuple[Any, ...]) -> None:
    with pytest.raises(ProtocolError, match=build.__name__):
        build(*values)


@pytest.mark.parametrize("vowel", range(6))
def test_every_mouth_can_be_sent(vowel: int) -> None:
    assert e.AudioChunkWithVowel(b"", vowel).vowel == e.Vowel(vowel)


def test_the_largest_index_can_be_sent() -> None:
    assert e.Select(2**32 - 1).index == 2**32 - 1


def test_events_are_values() -> None:
    event: Any = e.ASR("hi")
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.text = "ho"
    assert event == e.ASR("hi")
    assert {event, e.ASR("hi")} == {event}
