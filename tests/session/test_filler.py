"""While tools run: what is said when they take long, and how long they may take. In virtual time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from echokit_py.config.settings import Timeouts
from echokit_py.llm.base import LlmEvent, Message, Step, TextDelta, Tool, ToolCall
from echokit_py.llm.history import Missing
from echokit_py.session.answer import PIECES_AHEAD
from echokit_py.session.calls import CALL_LIMIT_S, GRACE_S
from echokit_py.session.dialogue import _say
from echokit_py.session.outbox import Outbox
from echokit_py.session.piece import Piece
from echokit_py.session.session import Session
from echokit_py.tools.registry import LocalTools
from firmware_protocol.events import Action, AudioChunk, EndAudio, EndResponse, ServerEvent, StartAudio, StartChat, Text
from firmware_protocol.link import LinkParameters
from tests.fakes.providers import scripted
from tests.fakes.reading import take
from tests.fakes.virtual_time import InlineExecutor, run

WAIT = "Let me look."
END = EndResponse()
Asked = tuple[str, tuple[str, ...]]


@dataclass
class CallingLlm:
    """Answers each request with the next step: a text, and the tools that it calls. Then only with "Done."."""

    steps: list[Asked]
    asked: list[list[Message]] = field(default_factory=list)

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AsyncGenerator[LlmEvent, None]:
        self.asked.append(list(messages))
        text, names = self.steps.pop(0) if self.steps else ("Done.", ())
        if text:
            yield TextDelta(text)
        number = len(self.asked)
        calls = tuple(ToolCall(f"c{number}_{place}", name, f'{{"n":{number}}}') for place, name in enumerate(names))
        yield Step(text, "", "tool_calls" if calls else "stop", calls)

    async def start(self) -> None: ...

    async def probe(self) -> str:
        return "calls"

    async def close(self) -> None: ...


@dataclass
class Talk:
    """A session with a device that reads at once."""

    session: Session
    outbox: Outbox
    llm: CallingLlm

    async def ask(self) -> list[tuple[float, ServerEvent]]:
        """A whole turn: its events and how many seconds after the question they came. Audio counts in the events of
        its sentence."""
        await self.say()
        return await self.read()

    async def say(self) -> None:
        await self.session.command(self.outbox, Text("Look it up."))

    async def read(self, last: ServerEvent = END) -> list[tuple[float, ServerEvent]]:
        began = time.monotonic()
        found: list[tuple[float, ServerEvent]] = []
        while not found or found[-1][1] != last:
            event = await take(self.outbox)
            if not isinstance(event, AudioChunk):
                found.append((time.monotonic() - began, event))
        return found

    def results(self) -> list[str]:
        return [message["content"] for message in self.llm.asked[-1] if message["role"] == "tool"]


def tool(name: str, filler: str = WAIT, after_s: float = 0.7, timeout_s: float = 0.0) -> Tool:
    return Tool(name, "", {"type": "object"}, filler, after_s, timeout_s)


def talk(
    steps: Sequence[Asked],
    tools: Sequence[tuple[Tool, float]],
    story: Callable[[Talk], Coroutine[Any, Any, None]],
    timeouts: Timeouts | None = None,
) -> None:
    """Let `story` happen; each tool takes so many seconds. Nothing may be left behind."""
    errors: list[dict[str, Any]] = []
    source = LocalTools()
    for one, seconds in tools:
        source.add(one, _takes(seconds), timeout_s=1000)

    async def whole() -> None:
        llm = CallingLlm(list(steps))
        with scripted(timeouts, encoder=InlineExecutor()) as made:
            made.tts.seconds_per_character = 0.01
            session, outbox = Session("board", replace(made.services, llm=llm, tools=source)), Outbox()
            await session.attach(outbox, LinkParameters(reconnect=True))
            await story(Talk(session, outbox, llm))
            await session.close()
        await asyncio.sleep(10)
        assert [task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}] == []

    run(whole(), errors.append)
    assert errors == []


def _takes(seconds: float) -> Callable[[dict[str, Any]], Coroutine[Any, Any, str]]:
    async def function(arguments: dict[str, Any]) -> str:
        await asyncio.sleep(seconds)
        return f"after {seconds} s"

    return function


def spoken(events: list[tuple[float, ServerEvent]]) -> list[str]:
    return [event.text for _, event in events if isinstance(event, StartAudio)]


def said(steps: Sequence[Asked], *tools: tuple[Tool, float]) -> list[str]:
    """What the user hears in a turn."""
    heard: list[str] = []

    async def story(talk: Talk) -> None:
        heard.extend(spoken(await talk.ask()))

    talk(steps, tools, story)
    return heard


def test_a_slow_tool_is_bridged_at_its_time_and_shown_at_once() -> None:
    async def story(talk: Talk) -> None:
        events = await talk.ask()
        [(shown, _)] = [entry for entry in events if entry[1] == Action("search")]
        times = {event.text: at for at, event in events if isinstance(event, StartAudio)}
        assert list(times) == [WAIT, "Done."]
        assert shown < 0.01
        assert 0.7 <= times[WAIT] < 0.71
        assert 5 <= times["Done."] < 5.1

    talk([("", ("search",))], [(tool("search"), 5)], story)


def test_the_filler_is_no_part_of_the_conversation() -> None:
    async def story(talk: Talk) -> None:
        await talk.ask()
        await asyncio.sleep(20)  # all of it is played
        await talk.ask()
        assert WAIT not in str(talk.llm.asked)
        answers = [message["content"] for message in talk.llm.asked[-1] if message["role"] == "assistant"]
        assert answers[-1] == "Done."

    talk([("", ("search",))], [(tool("search"), 5)], story)


def test_a_quick_tool_is_not_bridged() -> None:
    assert said([("", ("search",))], (tool("search"), 0.6)) == ["Done."]


def test_a_tool_without_a_filler() -> None:
    assert said([("", ("search",))], (tool("search", filler=""), 50)) == ["Done."]


def test_what_the_model_says_itself_is_enough() -> None:
    assert said([("I look it up. ", ("search",))], (tool("search"), 5)) == ["I look it up.", "Done."]


def test_a_step_that_only_smiles_says_nothing() -> None:
    assert said([("🙂", ("search",))], (tool("search"), 5)) == [WAIT, "Done."]


def test_a_step_is_bridged_once_by_the_first_that_is_due_and_runs() -> None:
    tools = [
        (tool("quick", "Quick.", 0.1), 0.05),
        (tool("mute", ""), 9),
        (tool("later", "Later.", 2), 9),
        (tool("sooner", "Sooner.", 1), 9),
    ]
    assert said([("", ("quick", "mute", "later", "sooner"))], *tools) == ["Sooner.", "Done."]
    tools[3] = (tool("sooner", "Sooner.", 1), 0.9)

    async def story(talk: Talk) -> None:
        [(at, _)] = [entry for entry in await talk.ask() if entry[1] == StartAudio("Later.")]
        assert 2 <= at < 2.01

    talk([("", ("quick", "mute", "later", "sooner"))], tools, story)


def test_a_call_that_waits_for_a_place_is_waited_for_too() -> None:
    names = ("mute",) * 4 + ("search",)
    assert said([("", names)], (tool("mute", ""), 3), (tool("search"), 0.1)) == [WAIT, "Done."]


def test_each_step_is_bridged() -> None:
    assert said([("", ("search",))] * 2, (tool("search"), 5)) == [WAIT, WAIT, "Done."]


def test_cut_off_while_it_is_bridged() -> None:
    async def story(talk: Talk) -> None:
        await talk.say()
        await talk.read(EndAudio())
        await asyncio.sleep(2)  # the user has heard it
        await talk.session.command(talk.outbox, StartChat())
        assert spoken(await talk.ask()) == ["Done."]
        assert talk.results() == [Missing.CANCELLED]
        assert WAIT not in str(talk.llm.asked)

    talk([("", ("search",))], [(tool("search"), 60)], story)


def test_the_voice_is_behind() -> None:
    pieces: asyncio.Queue[Piece | None] = asyncio.Queue(PIECES_AHEAD)
    for _ in range(PIECES_AHEAD + 3):
        _say(pieces, WAIT)
    assert pieces.qsize() == PIECES_AHEAD


def test_a_source_may_take_as_long_as_it_says() -> None:
    """And one that forgets its time is cut: what it did is not known then."""

    async def story(talk: Talk) -> None:
        assert spoken(await talk.ask()) == ["Done."]
        assert talk.results() == ["after 95 s", Missing.TIMEOUT, Missing.TIMEOUT]
        assert CALL_LIMIT_S < 95 < 100 + GRACE_S < 300

    patient, forgets, silent = (tool(name, "", timeout_s=s) for name, s in (("a", 100), ("b", 100), ("c", 0)))
    talk([("", ("a", "b", "c"))], [(patient, 95), (forgets, 300), (silent, 95)], story, Timeouts(turn_s=300))


def test_the_turns_deadline_rules() -> None:
    async def story(talk: Talk) -> None:
        events = await talk.ask()
        assert spoken(events)[0].startswith("Sorry, ")
        assert events[-1][0] < 95
        await talk.ask()
        assert talk.results() == [Missing.ERROR]

    talk([("", ("search",))], [(tool("search", "", timeout_s=200), 150)], story)
