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
from echokit_py.session.speculation import Speculation
from echokit_py.session.tasks import stop
from echokit_py.session.turn import Turn
from echokit_py.session.watchdog import watched
from echokit_py.text.sentences import SentenceSplitter


async def think(
    descent: Descent,
    tools: Sequence[Tool],
    pieces: asyncio.Queue[Piece | None],
    services: Services,
    turn: Turn,
) -> Step:
    """Ask for one answer and put its pieces into `pieces` as they complete.

    When the same was asked ahead of the turn, that is its first request, and nothing is asked twice.
    Returns the whole step. Raises BackendError (LLM); the pieces that were complete by then are queued, an unfinished
    one is not.
    """
    limits, record = services.timeouts, turn.record
    ahead = await _begun(turn, descent.messages, tools)
    begun = [] if ahead is None else [ahead.answer()]
    out = _Pieces(pieces, record, ahead)
    step: Step | None = None
    record.mark(Mark.LLM_REQUEST)
    # Tries share the time that one is allowed until its first word: the user waits no longer for three than for one.
    deadline = time.monotonic() + limits.first_byte_s

    def ask(messages: list[Message]) -> AsyncGenerator[LlmEvent, None]:
        if begun:
            return begun.pop()
        return watched(services.llm.stream(messages, tools), Stage.LLM, limits.first_byte_s, limits.between_bytes_s)

    def ask_in_some_form() -> AsyncIterator[LlmEvent]:
        return descend(descent, ask, lambda: time.monotonic() < deadline)

    events = stream_with_retry(ask_in_some_form, deadline)
    async with aclosing(cast("AsyncGenerator[LlmEvent, None]", events)):
        async for event in events:
            if isinstance(event, TextDelta):
                record.mark(Mark.LLM_FIRST)
                await out.feed(event.text)
            elif isinstance(event, Step):
                step = event
    await out.flush()
    if step is None:
        raise BackendError(Stage.LLM, ErrorKind.BAD_ANSWER, "the model gave no answer")
    return step


async def _begun(turn: Turn, messages: list[Message], tools: Sequence[Tool]) -> Speculation | None:
    """What was begun ahead, if it is what would be asked for now; else it is stopped. It counts for one request."""
    ahead = turn.ahead
    if ahead is None or ahead.taken:
        return None
    ahead.taken = True
    if not ahead.fits(messages, tools):
        await stop(ahead.tasks)
        return None
    turn.record.adopt(ahead.thought)
    return ahead


class _Pieces:
    """Cuts an answer and queues its pieces. The first one's speech may have been begun ahead."""

    def __init__(self, pieces: asyncio.Queue[Piece | None], record: TurnRecord, ahead: Speculation | None) -> None:
        self._pieces = pieces
        self._record = record
        self._ahead = ahead
        self._splitter = SentenceSplitter()

    async def feed(self, text: str) -> None:
        await self._queue(self._splitter.feed(text))

    async def flush(self) -> None:
        await self._queue(self._splitter.flush())

    async def _queue(self, found: list[str]) -> None:
        for text in found:
            self._record.mark(Mark.SENTENCE)
            ahead, self._ahead = self._ahead, None
            await self._pieces.put(Piece(text, audio=None if ahead is None else ahead.voice(text)))
