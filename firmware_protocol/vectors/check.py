"""Compares the golden vectors with the codec, both ways. Prints nothing; `scripts/vectors` does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import msgspec

from firmware_protocol import events
from firmware_protocol.codec import decode_command, decode_event, encode_command, encode_event
from firmware_protocol.errors import ProtocolError
from firmware_protocol.vectors import EventVector, RefusedVector, Vectors


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison. `fault` says what differs, "" when nothing does."""

    subject: str
    fault: str = ""


def build(name: str, fields: dict[str, Any]) -> Any:
    """The event or command that a vector means. Raises AttributeError for an unknown name."""
    values = {key: tuple(value) if key == "items" else value for key, value in fields.items()}
    if "data" in values:
        values["data"] = bytes(values["data"])
    return getattr(events, name)(**values)


def compare(vectors: Vectors) -> list[Finding]:
    """Check every vector, and that every event and command there is has one. One finding each, good ones too."""
    return [
        *(
            _finding(f"{v.event} ({len(v.msgpack) // 2} bytes)", partial(_event_fault, v))
            for v in vectors.server_events
        ),
        *(_finding(f"{c['event']} (command)", partial(_command_fault, c)) for c in vectors.client_commands),
        *(_finding(f"refused: {v.why}", partial(_refused_fault, v)) for v in vectors.refused_by_device),
        _missing("events", events.ServerEvent, {vector.event for vector in vectors.server_events}),
        _missing("commands", events.Command, {command["event"] for command in vectors.client_commands}),
    ]


def _finding(subject: str, fault: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, fault())
    except (ProtocolError, AttributeError, TypeError) as error:
        return Finding(subject, f"{type(error).__name__}: {error}")


def _event_fault(vector: EventVector) -> str:
    event = build(vector.event, vector.fields)
    if encode_event(event).hex() != vector.msgpack:
        return f"encoded as {encode_event(event).hex()}"
    for form in (vector.msgpack, vector.msgpack_named):
        decoded = decode_event(bytes.fromhex(form))
        if decoded != event:
            return f"{form} decoded as {decoded}"
    return ""


def _command_fault(content: dict[str, Any]) -> str:
    command = build(content["event"], {key: value for key, value in content.items() if key != "event"})
    if msgspec.json.decode(encode_command(command)) != content:
        return f"encoded as {encode_command(command)}"
    decoded = decode_command(msgspec.json.encode(content).decode())
    return "" if decoded == command else f"decoded as {decoded}"


def _refused_fault(vector: RefusedVector) -> str:
    try:
        return f"accepted as {decode_event(bytes.fromhex(vector.msgpack))}"
    except ProtocolError:
        return ""


def _missing(what: str, union: Any, present: set[str]) -> Finding:
    absent = sorted({kind.__name__ for kind in get_args(union)} - present)
    return Finding(f"all {what} have a vector", f"none for {', '.join(absent)}" if absent else "")
