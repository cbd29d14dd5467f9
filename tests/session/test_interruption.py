"""The user cuts in: what was under way is gone at once, nothing of it is sent, and what was done and heard is kept."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from echokit_py.config.settings import Timeouts
from echokit_py.llm.base import Message, Step, ToolCall
from echokit_py.session.turns import Phase
from firmware_protocol.events import EndResponse, StartChat, Text
from tests.fakes.timed import SPOKEN_S, Device, in_time

GONE_S = 0.2
LIGHT = Step("", "", "tool_calls", (ToolCall("c1", "light", "{}"),))
OLD = Step("The old one is on now. And there is more to say of it.", "", "stop")
NEW = Step("New.", "", "stop")
STAGES = ["recognition", "model", "tool", "voice", "speaking"]
WAYS = ["StartChat", "Text", "connect", "disconnect"]


async def get_to(device: Device, stage: str) -> None:
    """Ask, and let the answer get as far as `stage`, which would go on for a minute."""
    device.tools.offer("light")
    device.llm.steps = [LIGHT, OLD]
    device.asr.texts = ["Old question."]
    slow: dict[str, Any] = {"recognition": device.asr, "model": device.llm, "voice": device.tts}
    if stage in slow:
        slow[stage].takes_s = 15
    if stage == "tool":
        device.tools.gates["light"] = asyncio.Event()
    await device.ask()
    if stage == "speaking":
        assert device.spoken
    else:
        assert device.at_work >= 1
    assert device.session.phase is not Phase.IDLE or stage == "speaking"


def quicken(device: Device) -> None:
    device.asr.takes_s = device.llm.takes_s = device.tts.takes_s = 0.5
    device.tools.gates.clear()
    device.llm.steps = [NEW]
    device.asr.texts = ["New question."]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("stage", STAGES)
def test_all_work_is_gone_at_once_and_nothing_of_it_is_sent(stage: str, how: str) -> None:
    async def story(device: Device) -> None:
        await get_to(device, stage)
        quicken(device)
        before = len(device.seen)
        await device.cut_in(how)
        await asyncio.sleep(GONE_S)
        assert device.at_work == (1 if how == "Text" else 0)  # its own request
        await asyncio.sleep(30)
        words = [str(event) for _, event in device.seen[before:] if "AudioChunk" not in str(event)]
        assert not [word for word in words if "old" in word.lower()], words

    in_time(story)


@pytest.mark.parametrize("how", ["StartChat", "Text", "connect"])
@pytest.mark.parametrize("stage", STAGES)
def test_the_next_question_is_answered_once(stage: str, how: str) -> None:
    async def story(device: Device) -> None:
        await get_to(device, stage)
        quicken(device)
        before = len(device.seen)
        await device.cut_in(how)
        if how != "Text":
            if how == "connect":
                await device.command(StartChat())
            await device.say(SPOKEN_S)
            await device.pause(3)
        await asyncio.sleep(5)
        events = [event for _, event in device.seen[before:]]
        assert events.count(EndResponse()) == 1
        assert device.spoken[-1] == "New."
        assert device.session.phase is Phase.IDLE
        assert device.llm.questions[-1].endswith("And now?" if how == "Text" else "New question.")

    in_time(story)


def of_the_old_turn(messages: list[Message]) -> list[tuple[str, str]]:
    return [(message["role"], str(message["content"] or "")) for message in messages[1:-1]]


def test_what_was_heard_and_done_stays_in_the_history() -> None:
    async def story(device: Device) -> None:
        await get_to(device, "voice")  # the tool has run
        device.tts.takes_s = 0.1
        device.llm.steps = [LIGHT, OLD]
        await device.ask(0.7)
        await asyncio.sleep(1)
        assert [text for role, text in of_the_old_turn(device.llm.messages[-1]) if role == "tool"] == ["ok"]
        quicken(device)
        await device.command(Text("And now?"))
        await asyncio.sleep(5)
        told = of_the_old_turn(device.llm.messages[-1])
        assert [text for role, text in told if role == "tool"] == ["ok", "ok"]
        heard = told[-1]
        assert heard[0] == "assistant"
        assert OLD.text.startswith(heard[1])
        assert 0 < len(heard[1]) < len(OLD.text)

    in_time(story)


def test_a_tool_that_was_cut_off_is_said_to_be_unknown() -> None:
    async def story(device: Device) -> None:
        await get_to(device, "tool")
        quicken(device)
        await device.command(Text("And now?"))
        await asyncio.sleep(5)
        results = [text for role, text in of_the_old_turn(device.llm.messages[-1]) if role == "tool"]
        assert len(results) == 1
        assert "outcome unknown" in results[0]

    in_time(story)


@pytest.mark.parametrize("stage", STAGES[:4])
def test_the_microphone_is_not_heard_during_the_answer(stage: str) -> None:
    async def story(device: Device) -> None:
        await get_to(device, stage)
        asked = len(device.asr.asked)
        await device.say(3)
        await device.pause(1)
        assert len(device.asr.asked) == asked
        assert device.session.phase is not Phase.LISTENING
        quicken(device)
        await device.command(StartChat())
        await device.say(SPOKEN_S)
        await device.pause(3)
        assert len(device.asr.pcm[-1]) < 32_000 * (SPOKEN_S + 0.6)

    in_time(story, timeouts=Timeouts(turn_s=90))


def test_a_second_start_chat_begins_the_utterance_afresh() -> None:
    async def story(device: Device) -> None:
        await device.command(StartChat())
        await device.say(2 * SPOKEN_S)
        await device.ask()
        assert [event for _, event in device.seen].count(EndResponse()) == 1
        assert len(device.asr.pcm[-1]) < 32_000 * (SPOKEN_S + 0.6)
        assert len(device.llm.asked) == 1

    in_time(story)


@pytest.mark.parametrize(
    ("stage", "limit_s"),
    [("recognition", 20), ("model", 20), ("voice", 20), ("tool", 60)],
)
def test_no_stage_is_waited_for_longer_than_its_limit(stage: str, limit_s: float) -> None:
    """First bytes; the time between bytes and the whole turn are in test_session_in_time.py and test_watchdog.py, the
    connection's in tests/http."""

    async def story(device: Device) -> None:
        await get_to(device, stage)
        for back in (device.asr, device.llm, device.tts):
            back.takes_s = 1e6 if back.running else 0.1
        await asyncio.sleep(limit_s + 15)
        assert [event for _, event in device.seen][-1] == EndResponse()

    in_time(story)
