"""Asks the model and cuts its answer into pieces to be spoken, while it streams. Speaks nothing, stores nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import cast

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.llm.base import LlmEvent, Message, Step, TextDelta, Tool
from echokit_py.llm.ladder import Descent, descend
from echokit_py.llm.retry import stream_with_retry
from echokit_py.session.journal import Mark, TurnRecord
from echokit_py.session.piece import Piece
from echokit_py.session.services import Services
from echokit_py.session.watchdog import watched
from echokit_py.text.sentences import SentenceSplitter


async def think(
    descent: Descent,
    tools: Sequence[Tool],
    pieces: asyncio.Queue[Piece | None],
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
    # Tries share the time that one is allowed until its first word: the user waits no longer for three than for one.
    deadline = time.monotonic() + limits.first_byte_s

    def ask(messages: list[Message]) -> AsyncGenerator[LlmEvent, None]:
        return watched(services.llm.stream(messages, tools), Stage.LLM, limits.first_byte_s, limits.between_bytes_s)

    def ask_in_some_form() -> AsyncIterator[LlmEvent]:
        return descend(descent, ask, lambda: time.monotonic() < deadline)

    events = stream_with_retry(ask_in_some_form, deadline)
    async with aclosing(cast("AsyncGenerator[LlmEvent, None]", events)):
        async for event in events:
            if isinstance(event, TextDelta):
                record.mark(Mark.LLM_FIRST)
                await _queue(splitter.feed(event.text), pieces, record)
            elif isinstance(event, Step):
                step = event
    await _queue(splitter.flush(), pieces, record)
    if step is None:
        raise BackendError(Stage.LLM, ErrorKind.BAD_ANSWER, "the model gave no answer")
    return step


async def _queue(found: list[str], pieces: asyncio.Queue[Piece | None], record: TurnRecord) -> None:
    for piece in found:
        record.mark(Mark.SENTENCE)
        await pieces.put(Piece(piece))
