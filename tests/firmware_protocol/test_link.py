"""Device ids and query flags."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_protocol.errors import ProtocolError
from firmware_protocol.link import LinkParameters, check_device_id, format_query, parse_query

FLAGS = [field.name for field in dataclasses.fields(LinkParameters)]


def test_the_flags_are_those_of_the_spec() -> None:
    assert FLAGS == ["reconnect", "opus", "vowel", "stream_asr", "record"]


def test_without_a_query_every_flag_is_false() -> None:
    assert parse_query({}) == LinkParameters(False, False, False, False, False)


@pytest.mark.parametrize("values", list(itertools.product([True, False], repeat=len(FLAGS))))
def test_every_combination_of_flags_reads_back(values: tuple[bool, ...]) -> None:
    expected = LinkParameters(*values)
    assert parse_query(dict(zip(FLAGS, map(str.lower, map(str, values)), strict=True))) == expected
    query = format_query(expected)
    assert parse_query(dict(part.split("=") for part in query.split("&") if part)) == expected


def test_a_board_s_query() -> None:
    assert (
        format_query(LinkParameters(opus=True, vowel=True, stream_asr=True)) == "opus=true&vowel=true&stream_asr=true"
    )


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("value", ["", "1", "0", "True", "TRUE", "yes", " true", "true "])
def test_other_values_are_refused_and_the_flag_is_named(flag: str, value: str) -> None:
    with pytest.raises(ProtocolError, match=flag):
        parse_query({flag: value})


def test_other_parameters_are_ignored() -> None:
    assert parse_query({"lang": "1", "opus": "true"}) == LinkParameters(opus=True)


@pytest.mark.parametrize(
    "device_id", ["a", "a1b2c3d4e5f6", "550e8400-e29b-41d4-a716-446655440000", "A_.:-9", "...", "x" * 64]
)
def test_device_ids(device_id: str) -> None:
    assert check_device_id(device_id) == device_id


@pytest.mark.parametrize("text", ["", ".", "..", "x" * 65, "a/b", "a b", "a\n", "é", "٣", "a%2Fb", "\x00"])
def test_what_is_no_device_id(text: str) -> None:
    with pytest.raises(ProtocolError):
        check_device_id(text)


@settings(deadline=None)
@given(st.text(max_size=70))
def test_an_accepted_id_is_safe_in_paths_and_logs(text: str) -> None:
    try:
        check_device_id(text)
    except ProtocolError:
        return
    assert text.isascii()
    assert text.isprintable()
    assert not set(text) & set("/\\ %")
    assert text not in {".", "..", ""}
