"""The work of a turn, stage by stage: recognise, answer, apologise. Each returns the input for the turn table.

When a turn begins and ends, and what is said after a failure, is the session's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from echokit_py.errors import Stage
from echokit_py.llm.history import History
from echokit_py.llm.ladder import Ladder
from echokit_py.session.apologies import Apology
from echokit_py.session.boundary import Waiting
from echokit_py.session.dialogue import Dialogue
from echokit_py.session.hearing import recognise
from echokit_py.session.listening import Utterance
from echokit_py.session.piece import Piece
from echokit_py.session.services import Services
from echokit_py.session.speaker import Speaker
from echokit_py.session.tasks import alongside, ending
from echokit_py.session.turn import Turn
from echokit_py.session.turns import Input
from firmware_protocol.events import ASR, Action

log = logging.getLogger(__name__)

# Pieces that wait for synthesis. The model waits when there are more: it must not run minutes ahead of the voice.
PIECES_AHEAD = 8
# The board is told that something failed within this time, even if it takes no audio.
APOLOGY_LIMIT_S = 15.0


async def transcribe(turn: Turn, utterance: Utterance, services: Services) -> str:
    """Recognise an utterance, unless that was begun ahead, and show its text; "" when nothing was understood.

    Raises BackendError (ASR)."""
    if not utterance.pcm:
        return ""
    text = await _known(turn)
    if text is None:
        text = await recognise(utterance.pcm, utterance.speech_s, services, turn.record)
    if text:
        turn.send(ASR(text))
    return text


async def _known(turn: Turn) -> str | None:
    ahead = turn.ahead
    if ahead is None:
        return None
    text = await ahead.text()
    if text is not None:
        turn.record.adopt(ahead.heard)
    return text


async def answer(
    turn: Turn, history: History, ladder: Ladder, services: Services, waiting: Waiting, on_audio: Callable[[], None]
) -> None:
    """Answer the history's current question by voice. Raises BackendError after what could be said is queued."""
    pieces: asyncio.Queue[Piece | None] = asyncio.Queue(PIECES_AHEAD)

    async def ask() -> None:
        async with ending(pieces):
            await Dialogue(turn, history, ladder, services, waiting).run(pieces)
            waiting.stage = Stage.TTS

    async with alongside(ask(), "thinking") as thinking:
        await Speaker(turn, services, on_audio).run(pieces)
        await thinking


async def apologise(turn: Turn, apology: Apology, services: Services, on_audio: Callable[[], None]) -> None:
    """Say that something failed, with audio made beforehand, in bounded time."""
    turn.send(Action(apology.status))
    try:
        async with asyncio.timeout(APOLOGY_LIMIT_S):
            await Speaker(turn, services, on_audio).say(apology.text, apology.pcm)
    except TimeoutError:
        log.warning("%s: the device takes no audio; the apology is cut short", turn.record.device)


def next_input(text: str) -> Input:
    """What a transcript means for the turn table."""
    return Input.HEARD if text else Input.HEARD_NOTHING
