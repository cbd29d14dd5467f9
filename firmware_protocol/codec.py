"""Turns events and commands into bytes and back, exactly as the device does. Keeps no state and does no I/O.

The bytes are those of Rust's `rmp_serde::to_vec` (rmp-serde 1.1.1) for an externally tagged enum, pinned in
`vectors/vectors.json`: an event without fields is a string, one with fields a map of its name to the array of its
fields, and bytes are an array of integers. The device refuses everything else; see SPEC.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Annotated, Any, get_args, get_type_hints

import msgspec

from firmware_protocol.errors import ProtocolError
from firmware_protocol.events import Command, Select, ServerEvent, StartChat, StartRecord, Submit, Text
from firmware_protocol.link import MAX_COMMAND_BYTES

_FIXMAP_OF_ONE = b"\x81"  # the first byte of every event with fields

_U8 = Annotated[int, msgspec.Meta(ge=0, le=255)]
# A field's type here → its type on the wire.
_WIRE_TYPES: dict[Any, Any] = {bytes: list[_U8], int: _U8, str: str, tuple[str, ...]: tuple[str, ...]}

_EVENT_TYPES: dict[str, Any] = {event.__name__: event for event in get_args(ServerEvent)}
_EVENT_FIELDS = {event: tuple(field.name for field in fields(event)) for event in _EVENT_TYPES.values()}


def _fields_decoder(event: Any) -> msgspec.msgpack.Decoder[Any]:
    """A decoder of an event's fields: an array in their order, or a map by their names (`to_vec_named`)."""
    hints = get_type_hints(event)
    wire = [(name, _WIRE_TYPES[hints[name]]) for name in _EVENT_FIELDS[event]]
    compact: Any = tuple.__class_getitem__(tuple(wire_type for _, wire_type in wire))
    named = msgspec.defstruct(event.__name__, wire)
    return msgspec.msgpack.Decoder(compact | named)


_ENCODER = msgspec.msgpack.Encoder()
_NAME_DECODER = msgspec.msgpack.Decoder(str)
_TAGGED_DECODER = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
_FIELDS_DECODERS = {name: _fields_decoder(event) for name, event in _EVENT_TYPES.items() if _EVENT_FIELDS[event]}


def encode_event(event: ServerEvent) -> bytes:
    """Encode `event` as one MessagePack value, the content of one binary frame.

    Text that UTF-8 can't express (lone surrogates, which models do write) is replaced by U+FFFD, never refused.
    """
    name = type(event).__name__
    names = _EVENT_FIELDS[type(event)]
    if not names:
        return _ENCODER.encode(name)
    try:
        return _ENCODER.encode({name: [_to_wire(getattr(event, field)) for field in names]})
    except UnicodeEncodeError:
        return _ENCODER.encode({name: [_to_wire(_replace_surrogates(getattr(event, field))) for field in names]})


def _to_wire(value: object) -> object:
    return list(value) if isinstance(value, bytes) else value


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_replace_surrogates(item) for item in value)
    return scalar_text(value) if isinstance(value, str) else value


def scalar_text(text: str) -> str:
    """Return `text` as UTF-8 can carry it: surrogate pairs joined to their character, lone surrogates as U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def decode_event(data: bytes) -> ServerEvent:
    """Decode the content of one binary frame, as the device does: fields as an array or as a map by name.

    Raises ProtocolError for anything else: an unknown event, bytes as bin or str, a missing or surplus field, data that
    breaks off or goes on.
    """
    try:
        if data[:1] != _FIXMAP_OF_ONE:
            return _decode_unit(_NAME_DECODER.decode(data))
        ((name, raw),) = _TAGGED_DECODER.decode(data).items()
        return _decode_fields(name, raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolError(f"not an event: {error}") from error


def _decode_unit(name: str) -> ServerEvent:
    if name not in _EVENT_TYPES or name in _FIELDS_DECODERS:
        raise ProtocolError("not an event: no event without fields has this name")
    event: ServerEvent = _EVENT_TYPES[name]()
    return event


def _decode_fields(name: str, raw: msgspec.Raw) -> ServerEvent:
    if name not in _FIELDS_DECODERS:
        raise ProtocolError("not an event: no event with fields has this name")
    decoded = _FIELDS_DECODERS[name].decode(raw)
    values: Iterable[Any] = decoded if isinstance(decoded, tuple) else msgspec.structs.astuple(decoded)
    event: ServerEvent = _EVENT_TYPES[name](*(bytes(v) if isinstance(v, list) else v for v in values))
    return event


class _CommandFields(msgspec.Struct):
    """A command as JSON. Which fields it needs depends on `event`; others are tolerated, as the Rust server does."""

    event: str
    input: Any = None
    index: Any = None


_COMMAND_DECODER = msgspec.json.Decoder(_CommandFields)


def encode_command(command: Command) -> str:
    """Encode `command` as JSON, the content of one text frame. Lone surrogates in a text are replaced by U+FFFD."""
    content: dict[str, object] = {"event": type(command).__name__}
    if isinstance(command, Text):
        content["input"] = scalar_text(command.input)
    elif isinstance(command, Select):
        content["index"] = command.index
    return msgspec.json.encode(content).decode()


def decode_command(text: str) -> Command:
    """Decode the content of one text frame.

    Raises ProtocolError for anything that isn't a command, or is longer than `link.MAX_COMMAND_BYTES`; a server logs
    that and goes on, it never closes the connection for it.
    """
    if len(text) > MAX_COMMAND_BYTES:
        raise ProtocolError(f"a command is longer than {MAX_COMMAND_BYTES} bytes")
    try:
        data = text.encode()
        if len(data) > MAX_COMMAND_BYTES:
            raise ProtocolError(f"a command is longer than {MAX_COMMAND_BYTES} bytes")
        return _build_command(_COMMAND_DECODER.decode(data))
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise ProtocolError(f"not a command: {error}") from error


def _build_command(content: _CommandFields) -> Command:
    match content.event:
        case "StartRecord":
            return StartRecord()
        case "StartChat":
            return StartChat()
        case "Submit":
            return Submit()
        case "Text":
            return Text(content.input)
        case "Select":
            return Select(content.index)
        case _:
            raise ProtocolError("not a command: no command has this name")
