"""Decodes the events that nearly all of a stream consists of, fast. Takes in nothing, and judges no other event.

Pieces of text and of calls are decoded into typed objects, which spares building a dictionary of an event whose other
members nobody reads. What is not exactly of these forms is None here and goes the general way (`event_json.py` and the
readers), which understands these events as well, to the same effect: this is about speed alone.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

_Nothing = Literal["", None]


class Function(msgspec.Struct, frozen=True, gc=False):
    """The function of a fragment."""

    name: str | None = None
    arguments: str | None = None


class Fragment(msgspec.Struct, frozen=True, gc=False):
    """A piece of a call in a chunk of chat completions."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Piece(msgspec.Struct, frozen=True, gc=False):
    """A delta that brings visible text, pieces of calls, or both."""

    content: str | None = None
    tool_calls: list[Fragment] | None = None
    reasoning_content: _Nothing = None
    reasoning: _Nothing = None
    refusal: _Nothing = None
    function_call: None = None


class _Choice(msgspec.Struct, frozen=True, gc=False):
    delta: Piece
    index: Literal[0, None] = None
    finish_reason: _Nothing = None
    message: None = None
    error: None = None


class _Chunk(msgspec.Struct, frozen=True, gc=False):
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1, max_length=1)]
    error: None = None
    object: Literal["chat.completion.chunk", None] = None
    type: None = None


class ArgumentsPiece(msgspec.Struct, frozen=True, gc=False):
    """A piece of a call's arguments in the Responses API, with the item it belongs to."""

    type: Literal["response.function_call_arguments.delta"]
    item_id: str
    delta: str


NO_FUNCTION = Function()

_chunk = msgspec.json.Decoder(_Chunk)
_arguments_piece = msgspec.json.Decoder(ArgumentsPiece)


def chat_piece(data: bytes) -> Piece | None:
    """Return what a chunk of chat completions brings, when that is text or calls and nothing else counts in it."""
    try:
        piece = _chunk.decode(data).choices[0].delta
    except (msgspec.MsgspecError, RecursionError):
        return None
    return piece if (piece.content or piece.tool_calls) and _is_text(data) else None


def arguments_piece(data: bytes) -> ArgumentsPiece | None:
    """Return the piece of arguments that an event of the Responses API brings."""
    try:
        piece = _arguments_piece.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return piece if _is_text(data) else None


def _is_text(data: bytes) -> bool:
    """Whether all of it is UTF-8: members that are passed over are not decoded, and a broken event is not taken."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
