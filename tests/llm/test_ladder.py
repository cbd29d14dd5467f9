"""The forms in which a refused conversation is sent again, and what is remembered of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.llm.base import LlmEvent, Message, ReasoningDelta, Step, TextDelta, ToolCall
from echokit_py.llm.history import History
from echokit_py.llm.ladder import MAX_FORMS, PATIENCE, Descent, Ladder, descend, first_request
from echokit_py.llm.message_rules import check

ANSWER = Step("Noon.", "", "stop")
Taste = Callable[[list[Message]], BackendError | None]
"""What a server says against a conversation."""


def error(kind: ErrorKind, status: int | None = None, message: str = "no") -> BackendError:
    return BackendError(Stage.LLM, kind, message, status=status)


REFUSED = error(ErrorKind.REFUSED, 400, "bad messages")
CONTEXT = error(ErrorKind.CONTEXT, 400)


def conversation(turns: int = 8, system: bool = True) -> History:
    """Past turns with a tool step each, and an open question."""
    prompts: list[Message] = [{"role": "system", "content": "Be brief."}] if system else []
    history = History(prompts)
    for number in range(turns):
        history.begin_turn(f"Question {number}")
        history.add_step("", [ToolCall(f"id-{number}", "clock", "{}")], "thoughts")
        history.add_result(f"id-{number}", "noon")
        history.add_step("Noon.")
        history.commit()
    history.begin_turn("And now?")
    return history


class Server:
    """Says what `taste` says, and keeps what it was sent."""

    def __init__(self, taste: Taste) -> None:
        self.taste = taste
        self.asked: list[list[Message]] = []
        self.closed = 0

    async def stream(self, messages: list[Message]) -> AsyncIterator[LlmEvent]:
        self.asked.append(messages)
        assert check(messages) == []
        try:
            fault = self.taste(messages)
            if fault is not None:
                raise fault
            yield ReasoningDelta("hm")
            yield TextDelta("Noon.")
            yield ANSWER
        finally:
            self.closed += 1


async def ask(server: Server, history: History, ladder: Ladder, *, in_time: bool = True) -> Descent:
    """Make one request; return its descent. Raises BackendError."""
    descent = Descent(ladder, history)
    events = [event async for event in descend(descent, server.stream, lambda: in_time)]
    assert events[-1] == ANSWER
    return descent


def no_tools(messages: list[Message]) -> BackendError | None:
    return REFUSED if any(message["role"] == "tool" for message in messages) else None


def no_system(messages: list[Message]) -> BackendError | None:
    return REFUSED if messages[0]["role"] == "system" else None


def at_most(count: int) -> Taste:
    return lambda messages: CONTEXT if len(messages) > count else None


async def test_what_is_taken_is_sent_as_it_is() -> None:
    server, history, ladder = Server(lambda _: None), conversation(), Ladder()
    assert (await ask(server, history, ladder)).form.name == "as it is"
    assert server.asked == [history.render()]
    assert ladder == Ladder()


async def test_the_form_that_works_is_remembered(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    server, history, ladder = Server(no_tools), conversation(), Ladder()
    assert (await ask(server, history, ladder)).form.name == "tool steps as text"
    assert "'tool steps as text', 2 were refused" in caplog.text
    assert history.turns == 8
    first = len(server.asked)
    assert first == 3
    for number in range(PATIENCE):
        await ask(server, history, ladder)
        assert len(server.asked) == first + number + 1


async def test_the_full_form_is_tried_again_after_a_while() -> None:
    server, history, ladder = Server(no_tools), conversation(), Ladder()
    for _ in range(1 + PATIENCE):
        await ask(server, history, ladder)
    before = len(server.asked)
    await ask(server, history, ladder)
    assert [no_tools(messages) is None for messages in server.asked[before:]] == [False, True]
    await ask(server, history, ladder)
    assert len(server.asked) == before + 3
    server.taste = lambda _: None
    for _ in range(PATIENCE):
        descent = await ask(server, history, ladder)
    assert descent.form.name == "as it is"
    assert ladder == Ladder()


async def test_a_new_conversation_begins_at_the_top() -> None:
    server, history, ladder = Server(no_tools), conversation(), Ladder()
    await ask(server, history, ladder)
    ladder.reset()
    before = len(server.asked)
    await ask(server, history, ladder)
    assert len(server.asked) == before + 3


async def test_a_conversation_without_tool_steps_forgets_nothing() -> None:
    """Where the full form is the same as the simpler one, that it is taken tells nothing."""
    server, history, ladder = Server(no_tools), conversation(), Ladder()
    await ask(server, history, ladder)
    plain = History()
    plain.begin_turn("Hello?")
    await ask(server, plain, ladder)
    assert ladder.name == "tool steps as text"


async def test_what_is_too_long_loses_turns_for_good() -> None:
    server, history, ladder = Server(at_most(12)), conversation(), Ladder()
    assert (await ask(server, history, ladder)).form.name == "fewer turns"
    assert len(server.asked) == 2
    assert history.turns == 2
    assert ladder == Ladder()
    await ask(server, history, ladder)
    assert len(server.asked) == 3


async def test_a_prompt_that_is_too_long_is_remembered() -> None:
    few_shot: list[Message] = [{"role": role, "content": "example"} for role in ("user", "assistant")] * 5
    history, ladder, server = History((), few_shot), Ladder(), Server(at_most(1))
    history.begin_turn("And now?")
    assert (await ask(server, history, ladder)).form.name == "only the current question"
    await ask(server, history, ladder)
    assert len(server.asked) == 3


async def test_a_server_without_system_prompts() -> None:
    server, history, ladder = Server(no_system), conversation(), Ladder()
    assert (await ask(server, history, ladder)).form.name == "the system prompt inside the question"
    assert history.turns == 0
    before = len(server.asked)
    assert before <= MAX_FORMS
    await ask(server, history, ladder)
    assert len(server.asked) == before + 1


async def test_what_was_known_to_work_may_stop_working() -> None:
    server, history, ladder = Server(no_tools), conversation(), Ladder()
    await ask(server, history, ladder)
    server.taste = no_system
    assert (await ask(server, history, ladder)).form.name == "the system prompt inside the question"


async def test_a_shape_and_then_a_length() -> None:
    def taste(messages: list[Message]) -> BackendError | None:
        return no_tools(messages) or at_most(4)(messages)

    server, history = Server(taste), conversation()
    descent = await ask(server, history, Ladder())
    assert len(descent.messages) <= 4
    assert len(server.asked) <= MAX_FORMS


async def test_who_refuses_everything_is_not_asked_for_ever() -> None:
    for fault in (REFUSED, CONTEXT):
        server, history = Server(lambda _, fault=fault: fault), conversation()  # type: ignore[misc]
        with pytest.raises(BackendError):
            await ask(server, history, Ladder())
        assert 1 < len(server.asked) <= MAX_FORMS
        assert len({str(messages) for messages in server.asked}) == len(server.asked)
        assert server.closed == len(server.asked)
        assert history.turns == 8


async def test_the_forms_of_one_request_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echokit_py.llm.ladder.MAX_FORMS", 2)
    server = Server(lambda _: REFUSED)
    with pytest.raises(BackendError):
        await ask(server, conversation(), Ladder())
    assert len(server.asked) == 2


async def test_no_other_form_is_tried_when_the_time_is_up() -> None:
    server = Server(no_tools)
    with pytest.raises(BackendError):
        await ask(server, conversation(), Ladder(), in_time=False)
    assert len(server.asked) == 1


async def test_what_was_said_is_not_asked_for_again() -> None:
    async def breaks(messages: list[Message]) -> AsyncIterator[LlmEvent]:
        yield TextDelta("It is ")
        raise REFUSED

    descent = Descent(Ladder(), conversation())
    events = []
    with pytest.raises(BackendError):
        async for event in descend(descent, breaks, lambda: True):
            events.append(event)
    assert events == [TextDelta("It is ")]
    assert descent.form.name == "as it is"


@pytest.mark.parametrize(
    ("fault", "helps"),
    [
        (error(ErrorKind.REFUSED, 400), True),
        (error(ErrorKind.REFUSED, 422), True),
        (error(ErrorKind.REFUSED, None, "the server reports: bad"), True),
        (error(ErrorKind.REFUSED, 404), False),
        (error(ErrorKind.REFUSED, 402), False),
        (error(ErrorKind.REFUSED, 400, "The model `gpt-9` does not exist"), False),
        (error(ErrorKind.CONTEXT, 413), True),
        (error(ErrorKind.SERVER, 500, "Failed to parse tool call arguments as JSON"), True),
        (error(ErrorKind.SERVER, None, "the server reports: roles must alternate"), True),
        (error(ErrorKind.SERVER, 500, "upstream exploded"), False),
        (error(ErrorKind.SERVER, 503, "no tool server is up"), False),
        (error(ErrorKind.RATE_LIMIT, 429, "too many messages"), False),
        (error(ErrorKind.AUTH, 401), False),
        (error(ErrorKind.CONNECT), False),
    ],
)
def test_which_refusals_another_form_may_help_against(fault: BackendError, helps: bool) -> None:
    descent = Descent(Ladder(), conversation())
    assert descent.next(fault) is helps
    assert (descent.form.name != "as it is") is helps


def test_a_500_without_words_is_asked_again_and_then_without_tool_messages() -> None:
    descent = Descent(Ladder(), conversation())
    names = []
    for _ in range(4):
        names.append(descent.form.name)
        assert not descent.next(error(ErrorKind.SERVER, 500))
    assert names == ["as it is", "as it is", "tool steps as text", "tool steps as text"]


def test_a_form_taken_after_a_500_without_words_is_not_remembered() -> None:
    ladder = Ladder()
    descent = Descent(ladder, conversation())
    descent.next(error(ErrorKind.SERVER, 500))
    descent.next(error(ErrorKind.SERVER, 500))
    descent.accepted()
    assert ladder == Ladder()


def test_where_there_are_no_tool_messages_it_is_only_asked_again() -> None:
    history = History()
    history.begin_turn("Hello?")
    descent = Descent(Ladder(), history)
    descent.next(error(ErrorKind.SERVER, 500))
    descent.next(error(ErrorKind.SERVER, 500))
    assert descent.messages == history.render()


def test_the_note_goes_along_in_every_form() -> None:
    descent = Descent(Ladder(), conversation(), "Answer in words.")
    seen = 1
    while descent.next(REFUSED):
        seen += 1
        assert "Answer in words." in descent.messages[-1]["content"]
    assert seen > 4


@pytest.mark.parametrize("taste", [lambda _: None, no_tools])
async def test_the_first_request_can_be_seen_before_its_turn(taste: Taste) -> None:
    """Also when a simpler form is known to be taken, and when it is time to try the full one again."""
    server, history, ladder = Server(taste), conversation(), Ladder()
    for _ in range(PATIENCE + 2):
        await ask(server, history, ladder)
        history.add_step("Noon.")
        history.commit()
        before = replace(ladder)
        seen = first_request(ladder, history, "And then?")
        assert ladder == before
        assert not history.in_turn
        history.begin_turn("And then?")
        assert Descent(replace(ladder), history).messages == seen
