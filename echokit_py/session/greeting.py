"""The greeting that a board plays when it connects afresh, as events. Sends nothing."""

from __future__ import annotations

from collections.abc import Iterator

from firmware_protocol.events import HelloChunk, HelloEnd, HelloStart, ServerEvent
from firmware_protocol.link import HELLO_CHUNK_BYTES


def greeting(hello: bytes) -> Iterator[ServerEvent]:
    """The events of a greeting (s16le, mono, 16 kHz); none for b""."""
    if not hello:
        return
    yield HelloStart()
    for start in range(0, len(hello), HELLO_CHUNK_BYTES):
        yield HelloChunk(hello[start : start + HELLO_CHUNK_BYTES])
    yield HelloEnd()
