"""Asks the model and cuts its answer into pieces to be spoken, while it streams. Speaks nothing, stores nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.llm.base import LlmEvent, Message, Step, TextDelta
from echokit_py.llm.retry import stream_with_retry
from echokit_py.session.journal import Mark, TurnRecord
from echokit_py.session.services import Services
from echokit_py.session.watchdog import watched
from echokit_py.text.sentences import SentenceSplitter


async def think(
    messages: Sequence[Message],
    pieces: asyncio.Queue[str | None],
    services: Services,
    record: TurnRecord,
) -> Step:
    """Ask for one answer and put its pieces into `pieces` as they complete.

    Returns the whole step. Raises BackendError (LLM); the pieces that were complete by then are queued, an unfinished
    one is not.
    """
    splitter, limits = SentenceSplitter(), services.timeouts
    step: Step | None = None
    record.mark(Mark.LLM_REQUEST)

    def ask() -> AsyncGenerator[LlmEvent, None]:
        return watched(services.llm.stream(messages), Stage.LLM, limits.first_byte_s, limits.between_bytes_s)

    # Tries share the time that one is allowed until its first word: the user waits no longer for three than for one.
    events = stream_with_retry(ask, time.monotonic() + limits.first_byte_s)
    async with aclosing(cast("AsyncGenerator[LlmEvent, None]", events)):
        async for event in events:
            if isinstance(event, TextDelta):
                record.mark(Mark.LLM_FIRST)
                await _queue(splitter.feed(event.text), pieces, record)
            elif isinstance(event, Step):
                step = event
    await _queue(splitter.flush(), pieces, record)
    if step is None or not step.text.strip():
        raise BackendError(Stage.LLM, ErrorKind.BAD_ANSWER, "the model gave an empty answer")
    return step


async def _queue(found: list[str], pieces: asyncio.Queue[str | None], record: TurnRecord) -> None:
    for piece in found:
        record.mark(Mark.SENTENCE)
        await pieces.put(piece)
