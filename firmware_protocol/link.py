"""What a device asks for when it connects (its id, the query's flags), and the sizes both sides keep to. No codec."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from firmware_protocol.errors import ProtocolError

SAMPLE_RATE = 16_000
"""Hz, both ways: the microphone's and the loudspeaker's rate, which the firmware fixes. Mono, s16le."""

OPUS_FRAME_SAMPLES = 1920
"""120 ms, the longest Opus packet: fewer events and less overhead. The device's decoder is set up for exactly this."""

PCM_CHUNK_BYTES = 32_000
"""One second. What the Rust server sends at most, and so the most that the device's buffers were ever tried with."""

HELLO_CHUNK_BYTES = 2048
"""64 ms, what the Rust server sends; the device appends each to its wake sound."""

MAX_FRAME_BYTES = 1024 * 1024
"""The largest WebSocket message taken from a peer: 32 s of audio. The device sends 16,384 bytes at a time."""

MAX_COMMAND_BYTES = 64 * 1024
"""The largest command, as UTF-8: some hours of typing, and little enough to parse on the event loop."""

_DEVICE_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}", re.ASCII)
_FLAG_VALUES = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class LinkParameters:
    """The flags of the connection's query; all are false when they are absent.

    Attributes:
        reconnect: the conversation goes on: keep the history, send no wake sound.
        opus: audio to the device is Opus, else PCM.
        vowel: audio comes as `AudioChunkWithVowel`.
        stream_asr: the server decides where speech ends; else the client sends `Submit`.
        record: store what the client says, no conversation.
    """

    reconnect: bool = False
    opus: bool = False
    vowel: bool = False
    stream_asr: bool = False
    record: bool = False


_FLAG_NAMES = tuple(field.name for field in fields(LinkParameters))


def parse_query(query: Mapping[str, str]) -> LinkParameters:
    """Read the flags from a connection's query parameters; parameters that aren't flags are ignored.

    Only `true` and `false` are values, as for the Rust server. Raises ProtocolError, which names the flag, for others.
    """
    return LinkParameters(**{name: _parse_flag(name, query[name]) for name in _FLAG_NAMES if name in query})


def _parse_flag(name: str, value: str) -> bool:
    if value not in _FLAG_VALUES:
        raise ProtocolError(f"the query parameter {name} must be true or false")
    return _FLAG_VALUES[value]


def format_query(parameters: LinkParameters) -> str:
    """The query string that asks for `parameters` ("" when all are false): the flags that are true, without "?"."""
    return "&".join(f"{name}=true" for name in _FLAG_NAMES if getattr(parameters, name))


def check_device_id(device_id: str) -> str:
    """Return `device_id` when it is one: 1 to 64 of `A-Z a-z 0-9 _ . : -`, and neither "." nor "..".

    Ids become parts of paths (recordings) and of log lines, so nothing else is taken. Raises ProtocolError.
    """
    if _DEVICE_ID.fullmatch(device_id) is None or device_id in {".", ".."}:
        raise ProtocolError("a device id is 1 to 64 letters, digits, or any of _ . : -")
    return device_id
