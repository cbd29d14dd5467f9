"""Reads the JSON of stream events, as far as real servers bend it. Arguments of calls are read by `arguments.py`."""

from __future__ import annotations

import json
import re
from typing import NoReturn

import msgspec

# An `arguments` member that is no string and not null. Inside a string its quotation marks would be escaped.
_ARGUMENTS_NOT_TEXT = re.compile(rb'"arguments"\s*:\s*[^\s"n]')

_decode = msgspec.json.Decoder().decode


def decode_event(data: bytes) -> object:
    """Return the value of an event's data (UTF-8 JSON). Raises ValueError.

    Numbers come as `msgspec.Raw`, their text as written, in events where arguments stand as a value instead of as
    text: such arguments are written out again (`encode_arguments`), and no digit may change on the way.
    """
    # Counting is several times as fast as the search, and settles it for nearly every event.
    if data.count(b'"arguments"') != data.count(b'"arguments":"') and _ARGUMENTS_NOT_TEXT.search(data):
        return _decode_verbatim(data)
    try:
        return _decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return _decode_leniently(data)


def encode_arguments(value: object) -> str:
    """Return the JSON text of arguments that came as a value, not as text. Raises ValueError."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, RecursionError) as error:
        raise ValueError(f"arguments that can't be written: {error}") from None


def well_formed(text: str) -> str:
    """Return `text` with surrogate pairs joined and lone surrogates replaced, so that it encodes as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _decode_leniently(data: bytes) -> object:
    """Take what msgspec doesn't: halves of surrogate pairs, and the NaN that some servers write for log probabilities.

    Arguments can't be touched by it: they are text inside this JSON and are read strictly, later.
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _decode_verbatim(data: bytes) -> object:
    try:
        return json.loads(data, parse_float=_raw, parse_int=_raw, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _raw(number: str) -> msgspec.Raw:
    return msgspec.Raw(number.encode())


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
