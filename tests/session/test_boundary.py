"""The boundary of a turn's work: values come out, whatever goes wrong inside."""

from __future__ import annotations

import asyncio
import time

import pytest

from echokit_py.audio.framer import Frame
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.session.boundary import Waiting, limited, outcome
from echokit_py.session.journal import Mark, TurnRecord
from echokit_py.session.outbox import Outbox, OutboxClosed
from echokit_py.session.turn import Turn
from echokit_py.session.turns import Input
from firmware_protocol.events import EndResponse
from firmware_protocol.link import LinkParameters


def turn() -> Turn:
    return Turn(Outbox(), LinkParameters(), TurnRecord("board", "0001"))


async def gives(value: Input | None) -> Input | None:
    return value


async def gives_input(late: Turn) -> Input:
    assert late.deadline is not None
    assert late.deadline.when() == pytest.approx(asyncio.get_running_loop().time() + 900, abs=10)
    return Input.HEARD


async def fails(error: BaseException) -> Input:
    raise error


async def test_values_come_out() -> None:
    assert await outcome(gives(Input.HEARD), "board") is Input.HEARD
    assert await outcome(gives(None), "board") is None
    assert await outcome(fails(OutboxClosed()), "board") is None
    error = BackendError(Stage.ASR, ErrorKind.SERVER, "no")
    assert await outcome(fails(error), "board") is error


@pytest.mark.parametrize("error", [ZeroDivisionError(), TimeoutError(), asyncio.CancelledError()])
async def test_faults_come_out_as_failures(error: BaseException) -> None:
    found = await outcome(fails(error), "board")
    assert isinstance(found, BackendError)
    assert found.kind is ErrorKind.INTERNAL


async def test_a_cancellation_goes_through() -> None:
    task = asyncio.create_task(outcome(asyncio.Event().wait(), "board"))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_deadline_names_what_was_waited_for() -> None:
    async def hang() -> Input:
        waiting.stage = Stage.TOOL
        await asyncio.Event().wait()
        return Input.FINISHED

    late, waiting = turn(), Waiting(Stage.LLM)
    with pytest.raises(BackendError, match=r"longer than 0\.01 s") as caught:
        await limited(hang, late, 0.01, waiting)
    assert caught.value.stage is Stage.TOOL
    assert late.deadline is None


async def test_the_deadline_counts_from_the_decision() -> None:
    late = turn()
    late.record.mark(Mark.DECIDED, time.monotonic() - 100)
    assert await limited(lambda: gives_input(late), late, 1000, Waiting(Stage.ASR)) is Input.HEARD
    with pytest.raises(BackendError, match="longer than 99 s"):
        await limited(asyncio.Event().wait, late, 99, Waiting(Stage.ASR))  # type: ignore[arg-type]


async def test_a_time_out_inside_is_not_the_deadline() -> None:
    with pytest.raises(TimeoutError):
        await limited(lambda: fails(TimeoutError()), turn(), 10, Waiting(Stage.ASR))


async def test_a_turn_that_is_over_sends_nothing() -> None:
    over = turn()
    await over.send_audio(Frame(b"\0\0", 0, 0.1))  # without a deadline, too
    over.over = True
    with pytest.raises(asyncio.CancelledError):
        over.send(EndResponse())
    with pytest.raises(asyncio.CancelledError):
        await over.send_audio(Frame(b"\0\0", 0, 0.1))
    assert over.outbox.pending == 1
