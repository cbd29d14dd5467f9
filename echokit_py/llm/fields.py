"""Reads single fields of a stream event, with the forms that real servers give them. Knows no event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from echokit_py.llm.event_json import encode_arguments


class UnreadableEvent(ValueError):
    """An event is JSON, but not of a form that can be understood."""


def text_of(value: object) -> str:
    """Return a text field, "" where it is missing or null. Raises UnreadableEvent."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise UnreadableEvent(f"{type(value).__name__} instead of a text")


def object_of(value: object) -> Mapping[str, Any]:
    """Return an object, an empty one where it is missing or null. Raises UnreadableEvent."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise UnreadableEvent(f"{type(value).__name__} instead of an object")


def list_of(value: object) -> list[Any]:
    """Return a list, an empty one where it is missing or null. Raises UnreadableEvent."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise UnreadableEvent(f"{type(value).__name__} instead of a list")


def id_of(value: object) -> str:
    """Return an id as text; some servers count with numbers. Raises UnreadableEvent."""
    if isinstance(value, msgspec.Raw):
        return bytes(value).decode()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text_of(value)


def index_of(value: object) -> int | None:
    """Return an index, or None where there is none that can be used."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, msgspec.Raw):
        value = bytes(value).decode()
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,9}", value) else None


def arguments_of(value: object) -> str:
    """Return a piece of arguments as text; a value (an object, say) becomes its JSON text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else encode_arguments(value)
