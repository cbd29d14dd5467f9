"""The tool loop through a running server: a scripted LLM on a socket, tools in this process, a board that types."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from echokit_py.config.settings import Timeouts
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.llm.history import Missing
from echokit_py.llm.message_rules import check
from echokit_py.llm.rounds import LAST_NOTE
from echokit_py.session import calls
from echokit_py.tools.base import ToolResult
from firmware_protocol.events import Action, StartAudio
from tests.fakes.chat_server import DONE, START, Answer, ChatServer, Request, broken_off, call, chunk, say, status
from tests.fakes.faults import Fault
from tests.fakes.talking import Bench, chat_client, shown, sorry, spoken, talking

HALL = ("c1", "set_light", '{"room": "hall"}')
ROOM: dict[str, Any] = {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]}


def bench() -> Bench:
    return Bench().offer("set_light", "clock")


def tool_messages(request: Request) -> list[str]:
    return [message["content"] for message in request.messages if message["role"] == "tool"]


def offered(request: Request) -> list[str]:
    return [tool["function"]["name"] for tool in request.json.get("tools", [])]


async def test_a_call_runs_and_its_result_is_answered() -> None:
    script = [call(HALL, text="One moment.", reasoning="The hall."), say("The light ", "is on.")]
    async with ChatServer(*script) as server, talking(chat_client(server.url), bench()) as talk:
        events = await talk.ask("Light in the hall, please.")
        assert spoken(events) == ["One moment.", "The light is on."]
        assert shown(events) == ["set_light"]
        assert talk.tools.called == [("set_light", {"room": "hall"})]
        assert [offered(request) for request in server.requests] == [["set_light", "clock"]] * 2
        step = server.requests[1].messages[2]
        assert (step["content"], step["reasoning_content"]) == ("One moment.", "The hall.")
        assert tool_messages(server.requests[1]) == ["ok"]
        assert [message["role"] for message in talk.next_request()[1:]] == [
            *("user", "assistant", "tool", "assistant", "user")
        ]


async def test_the_status_is_shown_between_sentences() -> None:
    """`Action` never stands between StartAudio and EndAudio."""
    script = [call(HALL, text="One moment, I look for it. "), say("Done.")]
    async with ChatServer(*script) as server, talking(chat_client(server.url), bench()) as talk:
        talk.made.tts.seconds_per_character = 0.05
        names = [type(event).__name__ for event in await talk.ask()]
    depth = 0
    for name in names:
        depth += {"StartAudio": 1, "EndAudio": -1}.get(name, 0)
        assert name != "Action" or depth == 0
    assert "Action" in names


async def test_calls_of_one_step_run_at_once_and_answer_in_order() -> None:
    calls = [("a", "set_light", "{}"), ("b", "clock", "{}"), ("c", "set_light", "{}")]
    script = [call(*calls), say("Done.")]
    async with ChatServer(*script) as server, talking(chat_client(server.url), bench()) as talk:
        talk.tools.gates["set_light"] = asyncio.Event()
        talk.tools.results = {"clock": ["noon"], "set_light": ["first", "second"]}
        await talk.type("Both.")
        async with asyncio.timeout(10):
            while len(talk.tools.called) < 3:
                await asyncio.sleep(0)
        talk.tools.gates["set_light"].set()
        assert spoken(await talk.read()) == ["Done."]
        assert tool_messages(server.requests[1]) == ["first", "noon", "second"]
        ids = [message["tool_call_id"] for message in server.requests[1].messages if message["role"] == "tool"]
        assert ids == ["a", "b", "c"]


async def test_so_many_run_at_once_and_no_more() -> None:
    many = [(f"c{number}", "clock", f'{{"n": {number}}}') for number in range(12)]
    async with ChatServer(call(*many), say("Done.")) as server, talking(chat_client(server.url), bench()) as talk:
        talk.tools.gates["clock"] = asyncio.Event()
        await talk.type("All.")
        async with asyncio.timeout(10):
            while talk.tools.running < calls.PARALLEL:
                await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert talk.tools.running == calls.PARALLEL
        talk.tools.gates["clock"].set()
        await talk.read()
        assert talk.tools.most == calls.PARALLEL
        assert len(tool_messages(server.requests[1])) == 12


async def test_a_call_and_a_mangled_one_in_the_same_step() -> None:
    step = call(HALL, ("c2", "set_light", '{"room": "ha'))
    async with ChatServer(step, say("Done.")) as server, talking(chat_client(server.url), bench()) as talk:
        assert spoken(await talk.ask()) == ["Done."]
        assert talk.tools.called == [("set_light", {"room": "hall"})]
        assert tool_messages(server.requests[1])[0] == "ok"
        assert "not a whole JSON object" in tool_messages(server.requests[1])[1]


async def test_a_tool_that_is_not_offered_is_answered_with_those_that_are() -> None:
    async with (
        ChatServer(call(("c1", "lights", "{}")), say("I can't.")) as server,
        talking(chat_client(server.url), bench()) as talk,
    ):
        assert spoken(await talk.ask()) == ["I can't."]
        assert talk.tools.called == []
        assert "set_light, clock" in tool_messages(server.requests[1])[0]
        assert shown([]) == []


async def test_arguments_that_do_not_fit_the_schema() -> None:
    script = [call(("c1", "set_light", '{"room": 5}')), call(HALL), say("Done.")]
    tools = Bench().offer("set_light", parameters=ROOM)
    async with ChatServer(*script) as server, talking(chat_client(server.url), tools) as talk:
        assert spoken(await talk.ask()) == ["Done."]
        assert tools.called == [("set_light", {"room": "hall"})]
        [fault] = tool_messages(server.requests[1])
        assert fault.startswith("Error: the arguments don't fit")
        assert "room: 5 is not of type 'string'" in fault


async def test_long_arguments_are_checked_too() -> None:
    long = json.dumps({"room": ["x" * (calls.LONG_ARGUMENTS + 1)]})
    tools = Bench().offer("set_light", parameters=ROOM)
    script = [call(("c1", "set_light", long), size=1000), say("Done.")]
    async with ChatServer(*script) as server, talking(chat_client(server.url), tools) as talk:
        assert spoken(await talk.ask()) == ["Done."]
        assert tools.called == []
        assert "room: " in tool_messages(server.requests[1])[0]


async def test_left_out_arguments_that_are_required_are_told_to_the_model() -> None:
    tools = Bench().offer("set_light", parameters=ROOM)
    script = [call(("c1", "set_light", "")), say("Which room?")]
    async with ChatServer(*script) as server, talking(chat_client(server.url), tools) as talk:
        assert spoken(await talk.ask()) == ["Which room?"]
        assert tools.called == []
        assert tool_messages(server.requests[1]) == ["Error: the arguments are missing; the call was not run"]


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (ToolResult("no lamp", is_error=True), "Error: no lamp"),
        (ToolResult("Error 5", is_error=True), "Error 5"),
        (ToolResult(""), "The tool answered with no text."),
        (TimeoutError(), Missing.TIMEOUT),
        (BackendError(Stage.TOOL, ErrorKind.CONNECT, "secret"), "can't be reached. The call was not run."),
        (BackendError(Stage.TOOL, ErrorKind.BROKEN_OFF, "secret"), "can't be reached. Whether the call took effect is"),
        (ZeroDivisionError("secret"), "the tool failed"),
        (asyncio.CancelledError(), Missing.ERROR),
    ],
)
async def test_whatever_a_tool_does_is_told_and_the_turn_goes_on(
    result: str | ToolResult | BaseException, told: str
) -> None:
    script = [call(HALL), say("Sadly not.")]
    async with ChatServer(*script) as server, talking(chat_client(server.url), bench()) as talk:
        talk.tools.results["set_light"] = [result]
        assert spoken(await talk.ask()) == ["Sadly not."]
        [message] = tool_messages(server.requests[1])
        assert told in message
        assert "secret" not in message


async def test_a_tool_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CALL_LIMIT_S", 0.05)
    script = [call(HALL), say("It takes long.")]
    async with ChatServer(*script) as server, talking(chat_client(server.url), bench()) as talk:
        talk.tools.gates["set_light"] = asyncio.Event()
        assert spoken(await talk.ask()) == ["It takes long."]
        assert tool_messages(server.requests[1]) == [Missing.TIMEOUT]
        assert talk.tools.running == 0


async def test_after_the_last_round_it_is_asked_without_tools() -> None:
    def endless(body: dict[str, Any]) -> Answer:
        if "tools" not in body:
            return say("I have tried everything.")
        number = len(body["messages"])
        return call((f"c{number}", "clock", f'{{"n": {number}}}'))

    extra: dict[str, Any] = {"tool_choice": "auto", "parallel_tool_calls": True}
    async with ChatServer(endless) as server, talking(chat_client(server.url, **extra), bench(), rounds=3) as talk:
        assert spoken(await talk.ask()) == ["I have tried everything."]
        assert len(talk.tools.called) == 3
        assert len(server.requests) == 4
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & server.requests[-1].json.keys()
        assert LAST_NOTE in server.requests[-1].messages[-1]["content"]
        assert LAST_NOTE not in str(talk.next_request())


async def test_the_same_call_without_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with ChatServer(call(HALL)) as server, talking(chat_client(server.url), bench()) as talk:
        talk.tools.results["set_light"] = [ToolResult("lamp does not answer", is_error=True)]
        assert sorry(await talk.ask())
        assert len(talk.tools.called) == 3
        assert len(server.requests) == 4
        assert "3 tool calls in a row without effect" in caplog.text
        talk.next_request()


MANGLED = call(("c1", "set_light", '{"room": "ha'))
AS_TEXT = say('<tool_call>{"name": "set_light", "arguments": {"room": "hall"}}</tool_call>')
NOTHING = Answer([START, chunk({}, "tool_calls"), DONE])


@pytest.mark.parametrize("step", [MANGLED, AS_TEXT, NOTHING, say(""), say("", reasoning="Hm.")])
async def test_a_failed_step_is_asked_for_again(step: Answer) -> None:
    script = [step, step, say("Now I have it.")]
    async with ChatServer(*script) as server, talking(chat_client(server.url), bench()) as talk:
        assert spoken(await talk.ask("Light!")) == ["Now I have it."]
        assert talk.tools.called == []
        first, second, third = (request.messages for request in server.requests)
        assert first[-1]["content"] == "Light!"
        assert second == third
        assert second[-1]["content"].startswith("Light!\n[")
        assert [message["content"] for message in talk.next_request()[1:]] == [
            *("Light!", "Now I have it.", "And now?")
        ]


@pytest.mark.parametrize("step", [MANGLED, AS_TEXT, NOTHING])
async def test_then_the_user_hears_one_apology(step: Answer) -> None:
    async with ChatServer(step) as server, talking(chat_client(server.url), bench()) as talk:
        events = await talk.ask()
        assert len(spoken(events)) == 1
        assert sorry(events)
        assert "Language model failed" in shown(events)
        assert len(server.requests) == 3
        server.answers = [say("Noon.")]
        assert spoken(await talk.ask()) == ["Noon."]
        assert server.faults == []


async def test_what_was_said_before_a_failed_step_stays() -> None:
    cut = Answer([START, chunk({"content": "Sure. "}), *MANGLED.pieces[1:]])
    async with ChatServer(cut, say("Done.")) as server, talking(chat_client(server.url), bench()) as talk:
        assert spoken(await talk.ask()) == ["Sure.", "Done."]
        assert "You have already said: Sure." in server.requests[1].messages[-1]["content"]
        assert talk.next_request()[2]["content"] == "Sure. Done."


async def test_a_request_after_a_tool_is_tried_again_and_the_tool_is_not() -> None:
    async with (
        ChatServer(call(HALL), Fault.REFUSE, say("Done.")) as server,
        talking(chat_client(server.url), bench()) as talk,
    ):
        assert spoken(await talk.ask()) == ["Done."]
        assert len(talk.tools.called) == 1
        assert len(server.requests) == 3


async def test_a_request_after_a_tool_that_fails_for_good() -> None:
    script = [call(HALL, text="One moment."), status(400, "The model `m` does not exist")]
    async with ChatServer(*script) as server, talking(chat_client(server.url), bench()) as talk:
        events = await talk.ask()
        assert spoken(events)[0] == "One moment."
        assert sorry(events)
        assert len(server.requests) == 2
        roles = [message["role"] for message in talk.next_request()]
        assert roles == ["system", "user", "assistant", "tool", "user"]


async def test_an_answer_that_breaks_off_inside_a_call() -> None:
    pieces = [START, chunk({"content": "One moment. "}), *call(HALL).pieces[1:4]]
    async with ChatServer(Answer(pieces, end="reset")) as server, talking(chat_client(server.url), bench()) as talk:
        events = await talk.ask()
        assert spoken(events)[0] == "One moment."
        assert spoken(events)[-1] == "Sorry, my answer broke off. Please ask me again."
        assert len(server.requests) == 1
        assert talk.tools.called == []
        assert "tool" not in [message["role"] for message in talk.next_request()]


async def test_an_interrupted_tool_is_cancelled_and_told_as_unknown() -> None:
    both = call(HALL, ("c2", "clock", "{}"))
    async with ChatServer(both, say("Noon.")) as server, talking(chat_client(server.url), bench()) as talk:
        talk.tools.gates["set_light"] = asyncio.Event()
        talk.tools.results["clock"] = ["it is noon"]
        await talk.type("Light!")
        async with asyncio.timeout(10):
            while talk.tools.running != 1 or len(talk.tools.called) < 2:
                await asyncio.sleep(0)
        assert spoken(await talk.ask("What time is it?")) == ["Noon."]
        assert talk.tools.running == 0
        assert tool_messages(server.requests[1]) == [Missing.CANCELLED, "it is noon"]
        assert server.faults == []


async def test_a_tool_that_does_not_heed_its_cancellation_still_tells_its_outcome() -> None:
    release = asyncio.Event()

    async def stubborn(arguments: dict[str, Any]) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await release.wait()
        return "the door is locked"

    tools = bench()
    tools.source.add(tools.source.tools()[0].__class__("lock", "", {}), stubborn)
    async with (
        ChatServer(call(("c1", "lock", "{}")), say("Noon.")) as server,
        talking(chat_client(server.url), tools) as talk,
    ):
        await talk.type("Lock the door.")
        await talk.read(lambda event: event == Action("lock"))
        await talk.interrupt()
        release.set()
        assert spoken(await talk.ask("What time is it?")) == ["Noon."]
        assert tool_messages(server.requests[1]) == ["the door is locked"]


async def test_a_disconnect_during_a_tool() -> None:
    async with ChatServer(call(HALL), say("Noon.")) as server, talking(chat_client(server.url), bench()) as talk:
        talk.tools.gates["set_light"] = asyncio.Event()
        await talk.type("Light!")
        async with asyncio.timeout(10):
            await talk.tools.started.wait()
        await talk.disconnect()
        assert spoken(await talk.ask()) == ["Noon."]
        assert talk.tools.running == 0
        assert tool_messages(server.requests[1]) == [Missing.CANCELLED]


async def test_a_turn_that_takes_too_long_during_a_tool() -> None:
    async with (
        ChatServer(call(HALL), say("Noon.")) as server,
        talking(chat_client(server.url), bench(), timeouts=Timeouts(turn_s=0.3)) as talk,
    ):
        talk.tools.gates["set_light"] = asyncio.Event()
        assert sorry(await talk.ask())
        del talk.tools.gates["set_light"]
        assert talk.tools.running == 0
        assert spoken(await talk.ask()) == ["Noon."]
        assert tool_messages(server.requests[1]) == [Missing.ERROR]


async def test_tools_without_a_model_that_calls_change_nothing() -> None:
    async with ChatServer(say("Noon.")) as server, talking(chat_client(server.url)) as talk:
        assert spoken(await talk.ask()) == ["Noon."]
        assert "tools" not in server.requests[0].json


async def test_a_server_that_knows_no_tools_is_answered_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    def old(body: dict[str, Any]) -> Answer:
        if any(message["role"] == "tool" for message in body["messages"]):
            return status(400, "Unexpected role 'tool'")
        return say("Noon.") if "ok" in str(body["messages"]) else call(HALL)

    async with ChatServer(old) as server, talking(chat_client(server.url), bench()) as talk:
        assert spoken(await talk.ask()) == ["Noon."]
        assert "in the form 'tool steps as text'" in caplog.text
        before = len(server.requests)
        assert spoken(await talk.ask()) == ["Noon."]
        assert len(server.requests) == before + 1  # what works is remembered


async def test_a_conversation_that_is_too_long() -> None:
    def small(body: dict[str, Any]) -> Answer:
        return say("Yes.") if len(body["messages"]) <= 6 else status(400, "maximum context length is 4096 tokens")

    async with ChatServer(small) as server, talking(chat_client(server.url)) as talk:
        for _ in range(12):
            assert spoken(await talk.ask()) == ["Yes."]
        assert len(server.requests) < 20


async def test_a_mangled_history_does_not_wedge_the_session() -> None:
    mangled: list[dict[str, Any]] = [
        {"role": "user", "content": "Light!"},
        {"role": "assistant", "tool_calls": [{"id": "", "type": "function", "function": {"arguments": "{"}}]},
        {"role": "assistant", "content": ""},
        {"role": "tool", "tool_call_id": "c9", "content": ""},
        {"role": "user", "content": "Hello?"},
    ]
    assert check(mangled) != []
    async with ChatServer(call(HALL), say("Here I am.")) as server, talking(chat_client(server.url), bench()) as talk:
        talk.remember(mangled)
        assert spoken(await talk.ask()) == ["Here I am."]
        assert server.faults == []
        assert "Hello?" in str(server.requests[0].messages)


async def test_speech_that_fails_for_good_ends_the_tools_too() -> None:
    script = [call(HALL, text="One moment."), say("Done.")]
    async with ChatServer(*script) as server, talking(chat_client(server.url), bench()) as talk:
        talk.tools.gates["set_light"] = asyncio.Event()
        talk.made.tts.gate = asyncio.Event()
        talk.made.tts.error = BackendError(Stage.TTS, ErrorKind.AUTH, "no")
        await talk.type("Light!")
        async with asyncio.timeout(10):
            await talk.tools.started.wait()
        talk.made.tts.gate.set()
        assert sorry(await talk.read())
        assert talk.tools.running == 0
        assert len(server.requests) == 1
        talk.next_request()


async def test_a_step_with_text_is_spoken_while_its_tools_run() -> None:
    script = [call(HALL, text="One moment. "), say("Done.")]
    async with ChatServer(*script) as server, talking(chat_client(server.url), bench()) as talk:
        talk.tools.gates["set_light"] = asyncio.Event()
        await talk.type("Light!")
        await talk.read(lambda event: event == StartAudio("One moment."))
        talk.tools.gates["set_light"].set()
        assert spoken(await talk.read()) == ["Done."]


async def test_broken_off_before_anything_was_said_is_tried_again() -> None:
    async with ChatServer(broken_off(), say("Noon.")) as server, talking(chat_client(server.url), bench()) as talk:
        assert spoken(await talk.ask()) == ["Noon."]
        assert len(server.requests) == 2
