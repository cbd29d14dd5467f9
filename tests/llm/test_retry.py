"""When a failed request is made again, on a clock that the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.llm.base import LlmEvent, ReasoningDelta, Step, TextDelta
from echokit_py.llm.retry import MAX_TRIES, pause, stream_with_retry

STEP = Step("Hello.", "", "stop")


def failure(kind: ErrorKind = ErrorKind.SERVER, retry_after: float | None = None) -> BackendError:
    return BackendError(Stage.LLM, kind, "told to fail", retry_after=retry_after)


@pytest.mark.parametrize(
    ("error", "tries", "left", "wait"),
    [
        (failure(), 1, 90, 0.25),
        (failure(), 2, 90, 1.0),
        (failure(), 3, 90, None),
        (failure(), 1, 1.2, None),  # the answer would come too late
        (failure(ErrorKind.RATE_LIMIT, 2.0), 1, 20, 2.0),
        (failure(ErrorKind.RATE_LIMIT, 0.0), 1, 20, 0.0),
        (failure(ErrorKind.RATE_LIMIT, 60.0), 1, 20, None),
        (failure(ErrorKind.CONNECT), 1, 20, 0.25),
        (failure(ErrorKind.BROKEN_OFF), 1, 20, 0.25),
        (failure(ErrorKind.AUTH), 1, 20, None),
        (failure(ErrorKind.REFUSED), 1, 20, None),
        (failure(ErrorKind.CONTEXT), 1, 20, None),
        (failure(ErrorKind.BAD_ANSWER), 1, 20, None),
    ],
)
def test_pause(error: BackendError, tries: int, left: float, wait: float | None) -> None:
    assert pause(error, tries, left) == wait


class Clock:
    """Time that passes only in `sleep`."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Scripted:
    """Each request takes the next entry: events, the last of which may be an error to raise."""

    def __init__(self, *answers: Sequence[LlmEvent | BackendError]) -> None:
        self.answers = list(answers)
        self.closed = 0

    async def ask(self) -> AsyncIterator[LlmEvent]:
        try:
            for event in self.answers.pop(0):
                if isinstance(event, BackendError):
                    raise event
                yield event
        finally:
            self.closed += 1


async def gather(script: Scripted, clock: Clock, seconds: float = 90) -> tuple[list[LlmEvent], BackendError | None]:
    events: list[LlmEvent] = []
    try:
        async for event in stream_with_retry(script.ask, clock() + seconds, clock=clock, sleep=clock.sleep):
            events.append(event)
    except BackendError as error:
        return events, error
    return events, None


async def test_a_healthy_answer_is_passed_on() -> None:
    clock = Clock()
    assert await gather(Scripted([TextDelta("Hello."), STEP]), clock) == ([TextDelta("Hello."), STEP], None)
    assert clock.slept == []


async def test_retry_after_is_kept() -> None:
    clock, script = Clock(), Scripted([failure(ErrorKind.RATE_LIMIT, 2.0)], [TextDelta("Hello."), STEP])
    assert await gather(script, clock, 20) == ([TextDelta("Hello."), STEP], None)
    assert (clock.slept, script.closed) == ([2.0], 2)


async def test_a_stream_that_dies_before_any_text_is_asked_again() -> None:
    script = Scripted([ReasoningDelta("Hm."), failure(ErrorKind.BROKEN_OFF)], [TextDelta("Hello."), STEP])
    events, error = await gather(script, Clock())
    assert (events[1:], error) == ([TextDelta("Hello."), STEP], None)


async def test_what_was_said_is_never_said_again() -> None:
    broken = failure(ErrorKind.BROKEN_OFF)
    script = Scripted([TextDelta("Hello."), broken], [TextDelta("Hello."), STEP])
    assert await gather(script, Clock()) == ([TextDelta("Hello.")], broken)
    assert len(script.answers) == 1


async def test_it_gives_up() -> None:
    clock, errors = Clock(), [failure() for _ in range(MAX_TRIES + 1)]
    script = Scripted(*([error] for error in errors))
    assert await gather(script, clock) == ([], errors[MAX_TRIES - 1])
    assert clock.slept == [0.25, 1.0]


async def test_the_deadline_counts_what_was_waited() -> None:
    clock, script = Clock(), Scripted(*([failure(ErrorKind.RATE_LIMIT, 5.0)] for _ in range(3)))
    assert (await gather(script, clock, 8))[1] is not None
    assert (clock.slept, len(script.answers)) == ([5.0], 1)
