"""A session with tools under any bytes that its LLM may send and anything that its user may do, in virtual time.

(a) Each request to the model is valid, (b) the next healthy turn is answered, (c) no tool runs whose call was not
whole, (d) no tool runs twice for one call.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echokit_py.config.settings import Timeouts
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.llm.base import LlmEvent, Message, Tool
from echokit_py.llm.message_rules import check
from echokit_py.llm.stream import ChatStream
from echokit_py.session.session import Session
from echokit_py.session.turns import Phase
from echokit_py.tools.base import ToolResult
from firmware_protocol.events import EndResponse, StartAudio, StartChat, Text
from tests.fakes.chat_server import DONE, START, chunk, event, say
from tests.fakes.providers import Scripted, scripted, silence, speech
from tests.fakes.reading import ReadingBoard
from tests.fakes.talking import Bench
from tests.fakes.virtual_time import InlineExecutor, run

LIMITS = Timeouts(first_byte_s=20, between_bytes_s=10, turn_s=90)
ANSWERED_S = 200.0
NUMBER = "\0"  # in arguments: stands for the number of the call, which is different for each that is written


@dataclass(frozen=True)
class WrittenCall:
    """A call as the model writes it; `whole`: its arguments are an object and the tool exists."""

    name: str = "work"
    arguments: str = f'{{"n": {NUMBER}}}'
    whole: bool = True
    call_id: str = "c1"
    index: bool = True

    def pieces(self, index: int, number: int, size: int) -> list[bytes]:
        place = {"index": index} if self.index else {}
        arguments = self.arguments.replace(NUMBER, str(number))
        function = {"name": self.name, "arguments": ""}
        found = [chunk({"tool_calls": [{**place, "id": self.call_id, "type": "function", "function": function}]})]
        for start in range(0, len(arguments), size):
            piece = {**place, "function": {"arguments": arguments[start : start + size]}}
            found.append(chunk({"tool_calls": [piece]}))
        return found


@dataclass(frozen=True)
class Written:
    """An answer of the model, and what becomes of it on its way. `cut`: the part of the body that arrives."""

    text: str = ""
    calls: tuple[WrittenCall, ...] = ()
    finish: str | None = "tool_calls"
    size: int = 3
    cut: float = 1.0
    end: str = "clean"  # clean, reset, hang
    broken_at: float | None = None  # where an event stands that can't be read, as part of the events
    error_at: float | None = None  # ... or an error
    refusal: BackendError | None = None
    raw: bytes | None = None
    stubborn: bool = False  # the client of this request doesn't heed its cancellation

    @property
    def untouched(self) -> bool:
        """Whether all of it arrives and it says of itself that it is whole."""
        ended = self.finish not in {"length", "content_filter", "error"}
        return ended and self.cut == 1.0 and self.broken_at is None and self.error_at is None and self.raw is None

    def body(self, number: Callable[[], int]) -> tuple[bytes, list[int]]:
        """The bytes that arrive, and the numbers of the calls that are whole."""
        if self.raw is not None:
            return self.raw, []
        events = [START, *([chunk({"content": self.text})] if self.text else [])]
        numbers: list[int] = []
        for index, written in enumerate(self.calls):
            drawn = number()
            numbers += [drawn] if written.whole else []
            events += written.pieces(index, drawn, self.size)
        events += [*([chunk({}, self.finish)] if self.finish else []), DONE]
        if self.broken_at is not None:
            events.insert(round(self.broken_at * (len(events) - 2)), b'data: {"choices": [{"del\n\n')
        if self.error_at is not None:
            events.insert(round(self.error_at * (len(events) - 2)), event({"error": {"message": "no", "code": 503}}))
        body = b"".join(events)
        return body[: round(self.cut * len(body))], numbers


HEALTHY = Written("Fine.", finish="stop")


@dataclass
class ByteLlm:
    """A model whose answers pass through the real reader of chat completions, in pieces of any size."""

    script: list[Written] = field(default_factory=list)
    asked: list[list[Message]] = field(default_factory=list)
    whole: set[int] = field(default_factory=set)
    certain: set[int] = field(default_factory=set)
    numbers: int = 0
    running: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AsyncGenerator[LlmEvent, None]:
        self.asked.append(list(messages))
        written = self.script.pop(0) if self.script else HEALTHY
        body, numbers = written.body(self._number)
        self.whole |= set(numbers)
        self.certain |= set(numbers) if written.untouched else set()
        self.running += 1
        try:
            await self._first_byte(written)
            if written.refusal is not None:
                raise written.refusal
            reader = ChatStream(tools)
            while body and not reader.done:
                size = self.chance.choice([1, 5, 50, 5000])
                for delta in reader.feed(body[:size]):
                    yield delta
                body = body[size:]
                await asyncio.sleep(0.01)
            if written.end == "hang" and not reader.done:
                await asyncio.Event().wait()
            outcome = reader.close(clean=written.end == "clean")
            for delta in outcome.rest:
                yield delta
            if outcome.error is not None:
                raise outcome.error
            yield outcome.step
        finally:
            self.running -= 1

    async def _first_byte(self, written: Written) -> None:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            if not written.stubborn:
                raise
            await asyncio.sleep(3)

    async def start(self) -> None: ...

    async def probe(self) -> str:
        return "scripted"

    async def close(self) -> None: ...


def bench(results: Sequence[str]) -> Bench:
    """The tool "work" does one thing after the other of `results`, then "ok" for ever."""
    found, script = Bench(), list(results)

    async def work(arguments: dict[str, Any]) -> str | ToolResult:
        found.called.append(("work", arguments))
        found.running += 1
        try:
            return await does(script.pop(0) if script else "ok")
        finally:
            found.running -= 1

    found.source.add(Tool("work", "", {"type": "object"}), work, 15.0)
    return found


async def does(what: str) -> str | ToolResult:
    match what:
        case "fails":
            raise ZeroDivisionError
        case "hangs":
            await asyncio.Event().wait()
        case "is slow":
            await asyncio.sleep(3)
        case "is stubborn":
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                await asyncio.sleep(1)
        case "says no":
            return ToolResult("no", is_error=True)
        case "was cancelled":
            raise asyncio.CancelledError
        case "says nothing":
            return ""
    return "ok"


class World:
    """A session, a board that reads all, and the faults that were found."""

    def __init__(self, made: Scripted, llm: ByteLlm, tools: Bench) -> None:
        services = replace(made.services, llm=llm, tools=tools.source)
        self.llm, self.tools = llm, tools
        self.session = Session("board", services)
        self.board = ReadingBoard(self.session)
        self.faults: list[str] = []

    async def type(self, text: str) -> None:
        await self.board.command(Text(text))

    async def end(self) -> list[str]:
        """Let it all come to rest, ask once more, and say what was wrong."""
        await asyncio.sleep(ANSWERED_S)
        self.llm.script.clear()
        await self.board.connect()
        self.board.seen.clear()
        await self.type("And now?")
        await asyncio.sleep(ANSWERED_S)
        faults = self.faults
        seen = [event for _, event in self.board.seen]
        spoken = [event.text for event in seen if isinstance(event, StartAudio)]
        if spoken != ["Fine."] or seen[-1] != EndResponse() or self.session.phase is not Phase.IDLE:
            faults.append(f"the last turn said {spoken} and ended with {seen[-1:]} in {self.session.phase}")
        await self.board.disconnect()
        await self.session.close()
        await asyncio.sleep(10)
        left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if left or self.llm.running or self.tools.running:
            faults.append(f"left behind: {left} llm={self.llm.running} tools={self.tools.running}")
        return faults + [fault for messages in self.llm.asked for fault in check(messages)] + self.calls()

    def calls(self) -> list[str]:
        """What is wrong with the calls that ran."""
        ran = Counter(arguments.get("n") for _, arguments in self.tools.called)
        faults = [f"call {number} ran {count} times" for number, count in ran.items() if count > 1]
        return faults + [f"call {number} ran and was not whole" for number in ran if number not in self.llm.whole]


Act = Callable[[World], Coroutine[Any, Any, None]]


async def asks(world: World) -> None:
    await world.type("Do it.")


def speaks(pause_s: float, *, goes_on: bool) -> Act:
    """Asks by voice, with a pause in which the model is asked ahead."""

    async def act(world: World) -> None:
        await world.board.command(StartChat())
        ran = len(world.tools.called)
        for part in [speech(1), silence(0.3)] * (2 if goes_on else 1):
            await world.board.audio(part)
            await asyncio.sleep(pause_s)
            if world.session.phase is Phase.LISTENING and len(world.tools.called) != ran:
                world.faults.append("a tool ran before the utterance was over")
        await world.board.audio(silence(0.3))

    act.__name__ = f"speaks pause={pause_s:g} goes_on={goes_on}"
    return act


async def presses_the_button(world: World) -> None:
    await world.board.command(StartChat())


async def reconnects(world: World) -> None:
    await world.board.connect()


async def disconnects(world: World) -> None:
    await world.board.disconnect()


def passes(seconds: float) -> Act:
    async def act(_: World) -> None:
        await asyncio.sleep(seconds)

    act.__name__ = f"{seconds:g} s pass"
    return act


def live(script: Sequence[Written], results: Sequence[str], acts: Sequence[Act]) -> tuple[list[str], World]:
    """Let it happen; return the faults."""
    worlds: list[World] = []
    errors: list[str] = []

    async def story(made: Scripted) -> list[str]:
        world = World(made, ByteLlm(list(script)), bench(results))
        worlds.append(world)
        await world.board.connect()
        for act in acts:
            await act(world)
        return await world.end()

    with scripted(LIMITS, encoder=InlineExecutor()) as made:
        faults = run(story(made), lambda context: errors.append(str(context)))
    return faults + errors, worlds[0]


PART = st.floats(0, 1, allow_nan=False)
CALLS = st.sampled_from(
    [
        WrittenCall(),
        WrittenCall(call_id="c2"),
        WrittenCall(call_id="", index=False),
        WrittenCall(arguments=f'{{"n": {NUMBER}, "text": "ä\\"}}{{"}}'),
        WrittenCall(name="play", whole=False),
        WrittenCall(name="", whole=False),
        WrittenCall(arguments=f'{{"n": {NUMBER}', whole=False),
        WrittenCall(arguments=f'{{"n": {NUMBER}, "a": [}}', whole=False),
        WrittenCall(arguments=f"[{NUMBER}]", whole=False),
    ]
)
TEXTS = st.sampled_from(["", "One moment. ", '<tool_call>{"name": "work", "arguments": {"n": 0}}</tool_call>', "Hm"])
REFUSALS = st.sampled_from(
    [
        BackendError(Stage.LLM, ErrorKind.REFUSED, "bad messages", status=400),
        BackendError(Stage.LLM, ErrorKind.CONTEXT, "too long", status=400),
        BackendError(Stage.LLM, ErrorKind.SERVER, "exploded", status=500),
        BackendError(Stage.LLM, ErrorKind.RATE_LIMIT, "slow down", status=429, retry_after=2),
        BackendError(Stage.LLM, ErrorKind.CONNECT, "no"),
    ]
)
WRITTEN = st.one_of(
    st.builds(Written, TEXTS, st.lists(CALLS, max_size=3).map(tuple), st.sampled_from(["tool_calls", "stop", None])),
    st.builds(
        Written,
        TEXTS,
        st.lists(CALLS, min_size=1, max_size=3).map(tuple),
        st.sampled_from(["tool_calls", "stop", "length", "content_filter", "error", None]),
        size=st.integers(1, 6),
        cut=PART,
        end=st.sampled_from(["clean", "reset", "hang"]),
    ),
    st.builds(Written, TEXTS, st.lists(CALLS, min_size=1, max_size=2).map(tuple), broken_at=PART),
    st.builds(Written, TEXTS, st.lists(CALLS, min_size=1, max_size=2).map(tuple), error_at=PART),
    st.builds(Written, TEXTS, st.lists(CALLS, max_size=2).map(tuple), stubborn=st.just(True)),
    st.builds(Written, refusal=REFUSALS),
    st.builds(Written, raw=st.binary(max_size=60)),
    st.builds(Written, raw=st.sampled_from([b"<html>", b'{"error": "x"}', b"data: [DONE]\n\n", b"data: {}\n\n", b""])),
)
RESULTS = st.sampled_from(
    ["ok", "fails", "hangs", "is slow", "is stubborn", "says no", "was cancelled", "says nothing"]
)
ACTS: st.SearchStrategy[Act] = st.one_of(
    st.sampled_from([asks, speaks(0.05, goes_on=False), speaks(0.15, goes_on=True), speaks(1, goes_on=True)]),
    st.builds(passes, st.sampled_from([0.0, 0.05, 0.15, 0.5, 2.0, 12.0, 40.0, 120.0])),
    st.sampled_from([presses_the_button, reconnects, disconnects]),
)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # thousands of turns fail here


@pytest.mark.usefixtures("quiet")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    script=st.lists(WRITTEN, min_size=1, max_size=8),
    results=st.lists(RESULTS, max_size=6),
    acts=st.lists(ACTS, max_size=8),
)
def test_whatever_the_model_sends(script: list[Written], results: list[str], acts: list[Act]) -> None:
    faults, _ = live(script, results, [asks, *acts])
    assert faults == []


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("end", ["clean", "reset", "hang"])
def test_a_call_cut_at_each_byte(end: str) -> None:
    """What never arrived doesn't run; what arrived whole and with its proof runs once."""
    body, _ = Written(calls=(WrittenCall(),)).body(lambda: 1)
    needed = body.index(b"}}", body.rindex(b'"arguments"'))  # the last fragment's event is not even complete before
    for length in [*range(0, len(body), 3), len(body)]:
        faults, world = live([Written(calls=(WrittenCall(),), cut=length / len(body), end=end)], [], [asks])
        assert faults == [], length
        ran = len(world.tools.called)
        assert ran <= (length > needed), length
    assert ran == 1


@pytest.mark.usefixtures("quiet")
def test_a_whole_call_runs_once_whatever_the_user_does() -> None:
    """The tests above would also pass if nothing ever ran."""
    by_voice = [speaks(0.0, goes_on=False), speaks(0.15, goes_on=False), speaks(2, goes_on=False)]
    for act in (passes(30), presses_the_button, reconnects, asks, *by_voice):
        faults, world = live([Written(calls=(WrittenCall(),))], ["is slow"], [asks, passes(1.5), act])
        assert faults == []
        assert len(world.tools.called) == 1, act.__name__
        assert world.llm.certain == {1}


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("pause_s", [0.0, 0.05, 0.12, 2])
def test_a_call_of_an_answer_begun_ahead_runs_once(pause_s: float) -> None:
    faults, world = live([Written(calls=(WrittenCall(),))], [], [speaks(pause_s, goes_on=False), passes(5)])
    assert faults == []
    assert world.tools.called == [("work", {"n": 1})]


@pytest.mark.usefixtures("quiet")
def test_a_call_of_an_answer_that_speech_has_overtaken_never_runs() -> None:
    faults, world = live([Written(calls=(WrittenCall(),))], [], [speaks(0.3, goes_on=True), passes(5)])
    assert faults == []
    assert world.tools.called == []
    assert world.llm.whole == {1}


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("act", [presses_the_button, asks, disconnects, reconnects])
def test_a_step_that_comes_after_its_turn_runs_nothing(act: Act) -> None:
    late = Written("Too late.", (WrittenCall(),), stubborn=True)
    faults, world = live([late], [], [asks, passes(0.05), act, passes(0.5), asks])
    assert faults == []
    assert world.tools.called == []
    assert "Too late." not in str(world.llm.asked)


def test_what_the_healthy_answer_is() -> None:
    assert HEALTHY.body(lambda: 1)[0] == say("Fine.").body
    assert json.loads(WrittenCall().arguments.replace(NUMBER, "3")) == {"n": 3}
