"""The golden vectors of the wire: reads vectors.json beside it. Comparing them with the codec is `check.py`.

They were made with rmp-serde 1.1.1, the serialisation crate of the firmware and of the Rust server: `msgpack` is what
its `to_vec` writes, `msgpack_named` what its `to_vec_named` writes; the device decodes both, and refuses
`refused_by_device`.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import msgspec


class EventVector(msgspec.Struct, frozen=True):
    """An event to the device. `fields` are JSON: bytes are lists of integers. The encodings are hexadecimal."""

    event: str
    fields: dict[str, Any]
    msgpack: str
    msgpack_named: str


class RefusedVector(msgspec.Struct, frozen=True):
    """Bytes (hexadecimal) that the device refuses, why, and its own message."""

    msgpack: str
    why: str
    error: str


class Vectors(msgspec.Struct, frozen=True):
    """The whole file. `client_commands` are the JSON objects that a device sends."""

    source: str
    server_events: tuple[EventVector, ...]
    client_commands: tuple[dict[str, Any], ...]
    refused_by_device: tuple[RefusedVector, ...]


def load_vectors() -> Vectors:
    """Read the vectors that belong to this version of the package."""
    content = files(__package__).joinpath("vectors.json").read_bytes()
    return msgspec.json.decode(content, type=Vectors)
