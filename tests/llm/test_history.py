"""The history: what it keeps of each kind of turn, and that nothing makes it invalid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from echokit_py.llm.base import Message, ToolCall
from echokit_py.llm.history import MAX_CHARS, MAX_UNANSWERED, RECENT_IDS, Form, History, Missing, check
from echokit_py.llm.turns import MAX_MESSAGE_CHARS
from tests.beside import cases

SYSTEM: Message = {"role": "system", "content": "You are a home assistant."}
LOCK = ToolCall("c1", "lock_door", '{"door": "front"}')


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


def called(*calls: ToolCall, text: str | None = None, **more: str) -> Message:
    entries = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    return {"role": "assistant", "content": text, **more, "tool_calls": entries}


def result(call_id: str, content: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def talk(history: History, question: str, answer: str) -> None:
    history.begin_turn(question)
    history.add_step(answer)
    history.commit()


def next_request(history: History, question: str = "Next?") -> list[Message]:
    """The messages of one more turn, without those of its question."""
    history.begin_turn(question)
    messages = history.render()
    assert check(messages) == []
    assert messages.pop() == user(question)
    return messages


def test_a_plain_conversation() -> None:
    history = History([SYSTEM])
    talk(history, "Weather?", "Rain.")
    assert next_request(history) == [SYSTEM, user("Weather?"), assistant("Rain.")]
    assert history.in_turn
    assert history.turns == 1


def test_without_a_system_prompt() -> None:
    history = History()
    history.begin_turn(" Hi \n")
    assert history.render() == [user("Hi")]


def test_system_prompts_become_one() -> None:
    history = History([SYSTEM, {"role": "system", "content": "Be brief."}], [{"role": "system", "content": "In Oslo."}])
    assert next_request(history) == [
        {"role": "system", "content": "You are a home assistant.\n\nBe brief.\n\nIn Oslo."}
    ]


def test_few_shot_stays_in_front() -> None:
    few_shot = [user("Ping?"), assistant("Pong."), user("Ping again?"), assistant("Pong again.")]
    history = History([SYSTEM], few_shot, max_turns=1)
    talk(history, "One?", "1.")
    talk(history, "Two?", "2.")
    assert next_request(history) == [SYSTEM, *few_shot, user("Two?"), assistant("2.")]
    history.reset()
    assert next_request(history) == [SYSTEM, *few_shot]


def test_an_opening_word_of_the_assistant_goes_to_the_system_prompt() -> None:
    """Mistral's and Gemma's templates want the user to begin."""
    history = History([], [assistant("Ahoy!"), user("Hi"), assistant("Hi, sailor.")])
    opening = {"role": "system", "content": "You opened the conversation with: Ahoy!"}
    assert next_request(history) == [opening, user("Hi"), assistant("Hi, sailor.")]


def test_a_tool_step_within_and_after_its_turn() -> None:
    history = History([SYSTEM])
    history.begin_turn("Lock up.")
    assert history.add_step(" Sure. ", [LOCK, ToolCall("c2", "lights_off", "{}")], "I need two tools.") == (
        LOCK,
        ToolCall("c2", "lights_off", "{}"),
    )
    assert history.add_result("c2", "off")
    assert history.add_result("c1", "locked")
    calls = (LOCK, ToolCall("c2", "lights_off", "{}"))
    results = [result("c1", "locked"), result("c2", "off")]  # in the order of the calls
    step = called(*calls, text="Sure.", reasoning_content="I need two tools.")
    assert history.render() == [SYSTEM, user("Lock up."), step, *results]
    history.add_step("All done.", reasoning="Now I answer.")
    history.commit()
    expected = [SYSTEM, user("Lock up."), called(*calls, text="Sure."), *results, assistant("All done.")]
    assert next_request(history) == expected  # the reasoning is gone


def test_results_that_have_not_come_yet() -> None:
    history = History()
    history.begin_turn("Lock up.")
    history.add_step("", [LOCK])
    assert history.render() == [user("Lock up."), called(LOCK), result("c1", "No result yet.")]


@pytest.mark.parametrize("missing", Missing)
def test_a_cancelled_call_stays_with_an_honest_result(missing: Missing) -> None:
    history = History()
    history.begin_turn("Lock up.")
    history.add_step("", [LOCK])
    history.commit("", missing)
    assert next_request(history) == [user("Lock up."), called(LOCK), result("c1", missing.value)]
    assert "not known" in missing.value


def test_a_late_result_replaces_the_sentence_that_stood_for_it() -> None:
    history = History()
    history.begin_turn("Lock up.")
    history.add_step("", [LOCK])
    history.commit("")
    assert history.add_result("c1", "locked")
    assert not history.add_result("c1", "locked twice")
    assert not history.add_result("c9", "what?")
    assert next_request(history) == [user("Lock up."), called(LOCK), result("c1", "locked")]


def test_a_late_result_never_reaches_another_call() -> None:
    history = History(max_turns=0)
    history.begin_turn("Lock up.")
    history.add_step("", [LOCK])
    history.commit("")  # nothing of the turn is kept, while the tool goes on
    history.begin_turn("Again.")
    [call] = history.add_step("", [LOCK])
    assert call.id != "c1"
    assert not history.add_result("c1", "locked")
    assert history.render()[-1] == result(call.id, "No result yet.")


def test_ids_are_unique_throughout() -> None:
    history = History(max_turns=2)
    ids: list[str] = []
    for _ in range(2):
        history.begin_turn("Lock up.")
        ids += [call.id for call in history.add_step("", [LOCK, LOCK, ToolCall("", "a", "{}")])]
        history.commit()
    assert ids == ["c1", "call00001", "call00002", "call00003", "call00004", "call00005"]
    assert check([*next_request(history), user("?")]) == []


def test_ids_of_long_ago_may_come_again() -> None:
    history = History(max_turns=0)
    for n in range(RECENT_IDS + 1):
        history.begin_turn("?")
        assert history.add_step("", [ToolCall(f"id{n}", "a", "{}")])[0].id == f"id{n}"
        history.commit()
    history.begin_turn("?")
    assert history.add_step("", [ToolCall("id0", "a", "{}")])[0].id == "id0"


def test_a_refused_call_is_kept_mended_with_its_error() -> None:
    history = History()
    history.begin_turn("Weather?")
    [call] = history.add_step("", [ToolCall("c1", "get weather", '{"city": "Os')])
    assert call.arguments == '{"city": "Os'  # what the caller sees is untouched
    history.add_result("c1", "error: the arguments broke off")
    assert history.render() == [
        user("Weather?"),
        called(ToolCall("c1", "get_weather", "{}")),
        result("c1", "error: the arguments broke off"),
    ]


def test_an_interrupted_answer_is_kept_as_far_as_it_was_heard() -> None:
    history = History()
    history.begin_turn("How do I cook rice?")
    history.add_step("Rinse it twice. Use two cups of water. Cook for eighteen minutes.")
    history.commit("Rinse it twice.")
    assert next_request(history) == [user("How do I cook rice?"), assistant("Rinse it twice.")]


def test_a_failed_turn_leaves_no_trace_unless_something_was_said_or_done() -> None:
    history = History()
    talk(history, "Hi", "Hello.")
    history.begin_turn("Turn on the fan.")
    history.abort()
    assert history.turns == 1
    history.begin_turn("Turn on the fan.")
    history.add_step("", [LOCK])
    history.abort()
    history.begin_turn("Tell me a story.")
    history.abort("Once upon a")
    assert next_request(history) == [
        *[user("Hi"), assistant("Hello.")],
        *[user("Turn on the fan."), called(LOCK), result("c1", Missing.ERROR.value)],
        *[user("Tell me a story."), assistant("Once upon a")],
    ]


def test_unanswered_questions_go_out_as_one() -> None:
    history = History()
    talk(history, "Hi", "Hello.")
    for n in range(MAX_UNANSWERED + 2):
        history.begin_turn(f"Question {n}.")
        history.commit("")
    assert history.turns == 1 + MAX_UNANSWERED
    history.begin_turn("Now.")
    questions = user("Question 2.\nQuestion 3.\nQuestion 4.\nNow.")
    assert history.render() == [user("Hi"), assistant("Hello."), questions]


def test_beginning_a_turn_ends_the_one_before() -> None:
    history = History()
    history.begin_turn("Lock up.")
    history.add_step("Sure.", [LOCK])
    assert next_request(history) == [user("Lock up."), called(LOCK), result("c1", Missing.CANCELLED.value)]


def test_out_of_turn() -> None:
    history = History()
    for call in (history.render, lambda: list(history.forms()), lambda: history.add_step("x")):
        with pytest.raises(RuntimeError, match="no turn"):
            call()
    history.commit("never said")
    history.abort("never said")
    assert (history.turns, history.in_turn) == (0, False)
    with pytest.raises(ValueError, match="question"):
        history.begin_turn(" ")


def test_a_step_without_anything_is_not_kept() -> None:
    history = History()
    history.begin_turn("Hi")
    assert history.add_step(" \n", reasoning="hm") == ()
    assert history.render() == [user("Hi")]


def test_the_last_word_of_a_request_is_never_the_models() -> None:
    history = History()
    history.begin_turn("Lock up.")
    history.add_step("One moment.")
    assert history.render("your call was no JSON") == [
        user("Lock up.\n[You have already said: One moment.]\n[your call was no JSON]")
    ]
    history.add_step("Locking.", [LOCK])
    assert history.render()[1:] == [called(LOCK, text="One moment. Locking."), result("c1", "No result yet.")]
    assert history.render("go on")[-1] == user("[go on]")
    assert check(history.render("go on")) == []


@pytest.mark.parametrize("max_turns", [0, 1, 3])
def test_whole_turns_are_dropped_oldest_first(max_turns: int) -> None:
    history = History([SYSTEM], max_turns=max_turns)
    for n in range(5):
        history.begin_turn(f"Question {n}?")
        history.add_result(history.add_step("", [LOCK])[0].id, "locked")
        history.add_step(f"Answer {n}.")
        history.commit()
    messages = next_request(history)
    assert messages[0] == SYSTEM
    questions = [message["content"] for message in messages if message["role"] == "user"]
    assert questions == [f"Question {n}?" for n in range(5 - max_turns, 5)]


def test_the_characters_of_past_turns_are_bounded() -> None:
    history = History(max_turns=1000)
    for n in range(40):
        talk(history, f"{n} " + "x" * 20_000, "y" * 20_000)
    messages = next_request(history)
    total = sum(len(message["content"]) for message in messages)
    assert MAX_CHARS - 2 * MAX_MESSAGE_CHARS < total <= MAX_CHARS
    assert messages[-2]["content"].startswith("39 ")


def test_keep_last() -> None:
    history = History()
    for n in range(4):
        talk(history, f"{n}?", f"{n}.")
    history.keep_last(9)
    assert history.turns == 4
    history.keep_last(1)
    assert next_request(history) == [user("3?"), assistant("3.")]
    history.keep_last(0)
    assert history.render() == [user("Next?")]


def test_restore_mends() -> None:
    history = History([SYSTEM], max_turns=2)
    history.begin_turn("An open turn is forgotten.")
    broken = ToolCall("c1", "get_weather", '{"city": "Os')
    history.restore(
        [
            {"role": "system", "content": "Another prompt."},
            assistant("cut off"),
            result("c0", "cut off too"),
            *[user("First?"), assistant("Yes.")],
            *[user("Weather in Oslo?"), called(broken), result("c1", "error: bad arguments"), assistant("Say again?")],
            *[user("Oslo!"), called(broken, broken)],
        ]
    )
    mended = [ToolCall(call_id, "get_weather", "{}") for call_id in ("c1", "call00001", "call00002")]
    assert next_request(history) == [
        SYSTEM,
        *[user("Weather in Oslo?"), called(mended[0]), result("c1", "error: bad arguments"), assistant("Say again?")],
        *[user("Oslo!"), called(*mended[1:])],
        *[result(call.id, Missing.ERROR.value) for call in mended[1:]],
    ]


def a_long_history() -> History:
    history = History([SYSTEM], [user("Ping?"), assistant("Pong.")], max_turns=50)
    for n in range(30):
        talk(history, f"Question {n}?", f"Answer {n}.")
    history.begin_turn("Lock up.")
    history.add_result(history.add_step("", [LOCK])[0].id, "locked")
    history.commit("")
    history.begin_turn("And the lights?")
    history.add_step("Let me see.", [ToolCall("call_with_a_long_id", "lights", "{}")], "Hm.")
    history.add_result("call_with_a_long_id", "on " * 400)
    return history


def test_the_ladder() -> None:
    history = a_long_history()
    forms = list(history.forms("a note"))
    assert [(form.name, form.turns) for form in forms] == [
        ("as it is", 31),
        ("without reasoning", 31),
        ("tool steps as text", 31),
        ("fewer turns", 7),
        ("only the current question", 0),
        ("the system prompt inside the question", 0),
    ]
    by_name = {form.name: form.messages for form in forms}
    assert by_name["as it is"] == history.render("a note")
    plain = by_name["without reasoning"]
    assert not any("reasoning_content" in message for message in plain)
    ids = [call["id"] for message in plain for call in message.get("tool_calls", [])]
    assert ids == ["call00001", "call00002"]
    text = by_name["tool steps as text"]
    assert text[-2] == assistant("Answer 29.")
    # The interrupted turn has no answer: its question goes out with the next one.
    assert text[-1]["content"].startswith('Lock up.\n[Tool lock_door({"door": "front"}): locked]\nAnd the lights?\n')
    assert text[-1]["content"].endswith("[You have already said: Let me see.]\n[a note]")
    only = by_name["only the current question"]
    assert [message["role"] for message in only] == ["system", "user"]
    assert only[1]["content"].startswith("And the lights?\n[Tool lights({}): on on")
    assert len(only[1]["content"]) < 700
    assert by_name["the system prompt inside the question"] == [user(f"{SYSTEM['content']}\n\n{only[1]['content']}")]
    for form in forms:
        assert check(form.messages) == []
    for form in forms[2:]:
        assert check(form.messages, strict=True) == [], form.name


def test_forms_that_would_be_equal_are_left_out() -> None:
    history = History()
    history.begin_turn("Hi")
    assert list(history.forms()) == [Form("as it is", [user("Hi")], 0)]
    assert list(history.forms(too_long=True)) == []


def test_the_ladder_of_a_context_that_is_exceeded() -> None:
    history = a_long_history()
    forms = list(history.forms(too_long=True))
    assert [(form.name, form.turns) for form in forms] == [
        ("fewer turns", 7),
        ("fewer turns", 1),
        ("fewer turns", 0),
        ("only the current question", 0),
        ("the system prompt inside the question", 0),
    ]
    lengths = [len(history.render()), *(len(form.messages) for form in forms[:3])]
    assert lengths == sorted(lengths, reverse=True)
    for form in forms:
        assert check(form.messages) == []
        assert "And the lights?" in form.messages[-1]["content"] or form.messages[-1]["role"] == "tool"
    history.keep_last(forms[0].turns)
    assert history.render() == forms[0].messages


def test_the_longest_ladders() -> None:
    history = History([SYSTEM], max_turns=1000)
    history.restore([message for n in range(1000) for message in (user(f"{n}?"), called(LOCK), assistant(f"{n}."))])
    history.begin_turn("Now?")
    history.add_step("Well.", [LOCK], "Hm.")
    assert [form.turns for form in history.forms(too_long=True)] == [250, 62, 15, 3, 0, 0, 0]
    assert [form.turns for form in history.forms()] == [1000, 1000, 1000, 250, 0, 0]


def settled() -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in cases("history") if not case["debatable"]]


def play(history: History, events: list[dict[str, Any]]) -> None:
    """Do what a session does for the events of a case."""
    heard = ""
    for happened in events:
        match happened:
            case {"user": text}:
                history.begin_turn(text)
                heard = ""
            case {"llm_calls": calls}:
                history.add_step("", [ToolCall(c["id"], c["name"], json.dumps(c["arguments"])) for c in calls])
            case {"llm_text": text}:
                history.add_step(text)
            case {"played_sentence": text}:
                heard += text
            case {"barge_in": True}:
                history.commit(heard)
            case {"llm_http": _}:
                history.abort(heard)


def fits(messages: list[Message], shape: list[dict[str, Any]]) -> bool:
    return len(messages) == len(shape) and all(map(fits_one, messages, shape))


def fits_one(message: Message, expected: dict[str, Any]) -> bool:
    ids = [call["id"] for call in message.get("tool_calls", [])]
    return (
        message["role"] == expected["role"]
        and expected.get("contains", "") in (message["content"] or "")
        and ids == expected.get("tool_call_ids", [])
        and message.get("tool_call_id") == expected.get("tool_call_id")
    )


@pytest.mark.parametrize("case", settled())
def test_public_bug_reports(case: dict[str, Any]) -> None:
    given_, expect = case["input"], case["expect"]
    stored: list[Message] = given_["messages"]
    history = History([message for message in stored if message["role"] == "system"], max_turns=1)
    if "events" in given_:
        play(history, given_["events"])
    else:
        history.restore(stored[:-1])
        if "max_messages" in given_:
            history.keep_last(0)  # one turn more would be longer than the case allows
        history.begin_turn(stored[-1]["content"])
    messages = history.render()
    assert check(messages) == []
    if "any_of" in expect:
        assert any(fits(messages, shape) for shape in expect["any_of"]), messages
    if "last" in expect:
        assert fits_one(messages[-1], expect["last"])
    for text in expect.get("must_not_contain", []):
        assert text not in json.dumps(messages, ensure_ascii=False).replace('\\"', '"')


def test_the_next_request_can_be_seen_before_its_turn() -> None:
    history = History([SYSTEM])
    talk(history, "Hello?", "Hello.")
    history.begin_turn("Lock it.")
    history.add_step("", [LOCK])
    history.commit(heard="")
    ahead = history.ahead(" And now? ")
    seen = ahead.render()
    ahead.commit()
    ahead.keep_last(0)
    assert (history.in_turn, history.turns) == (False, 2)
    history.begin_turn(" And now? ")
    assert history.render() == seen


def test_inside_a_turn_no_other_can_be_seen_ahead() -> None:
    history = History([SYSTEM])
    with pytest.raises(ValueError, match="question"):
        history.ahead(" ")
    history.begin_turn("Hello?")
    with pytest.raises(RuntimeError):
        history.ahead("And now?")
