"""The time of a whole turn: one for recognition, model, tools and voice; its end names what was waited for."""

from __future__ import annotations

import asyncio

import pytest

from echokit_py.config.settings import Timeouts
from echokit_py.llm.base import Step, ToolCall
from echokit_py.session.apologies import SENTENCES, STATUS
from firmware_protocol.events import Action, Text
from tests.fakes.timed import FIXED, SPOKEN_S, Back, Device, in_time

TURN_S = 30.0
LIMITS = Timeouts(first_byte_s=200, turn_s=TURN_S)
HANGOVER_S = 0.512  # of FIXED, in whole frames


def back(device: Device, name: str) -> Back:
    found: Back = getattr(device, name)
    return found


@pytest.mark.parametrize(("first", "second"), [("asr", "llm"), ("asr", "tts"), ("llm", "tts")])
def test_two_stages_share_it(first: str, second: str) -> None:
    async def story(device: Device) -> None:
        back(device, first).takes_s = back(device, second).takes_s = 0.6 * TURN_S
        await device.ask()
        await asyncio.sleep(2 * TURN_S)
        (failed,) = [(at, event.action) for at, event in device.seen if isinstance(event, Action)]
        assert failed[0] - device.quiet_since == pytest.approx(HANGOVER_S + TURN_S, abs=0.1)
        assert failed[1] == STATUS[second]
        assert device.record.error == f"{second} timeout: the turn took longer than 30 s"
        assert device.events()[-4:] == ["Action", "StartAudio", "EndAudio", "EndResponse"]

    in_time(story, FIXED.model_copy(update={"speculate": False}), LIMITS)


def test_what_is_begun_ahead_counts_from_the_decision_too() -> None:
    async def story(device: Device) -> None:
        device.asr.takes_s = device.llm.takes_s = 0.45 * TURN_S
        await device.ask()
        await asyncio.sleep(2 * TURN_S)
        assert device.spoken == ["It is noon.", "Enjoy."]
        assert device.record.error == ""

    in_time(story, FIXED, LIMITS)


@pytest.mark.parametrize("said", ["", "One moment."])
def test_a_tool_is_named(said: str) -> None:
    async def story(device: Device) -> None:
        device.tools.offer("oven", timeout_s=200)
        device.tools.gates["oven"] = asyncio.Event()
        device.llm.steps = [Step(said, "", "tool_calls", (ToolCall("c1", "oven", "{}"),)), Step("Done.", "", "stop")]
        await device.command(Text("Start the oven."))
        await asyncio.sleep(TURN_S + 10)
        assert device.record.error == "tool timeout: the turn took longer than 30 s"
        shown = [event.action for _, event in device.seen if isinstance(event, Action)]
        assert shown == ["oven", STATUS["tool"]]
        assert device.spoken == ([said, SENTENCES["broke_off"]] if said else [SENTENCES["tool"]])
        assert device.events()[-1] == "EndResponse"

    in_time(story, FIXED, LIMITS)


def test_a_model_that_hangs_after_a_tool_is_named() -> None:
    async def story(device: Device) -> None:
        device.tools.offer("oven")
        device.llm.steps = [Step("", "", "tool_calls", (ToolCall("c1", "oven", "{}"),)), Step("Done.", "", "stop")]
        device.llm.takes_s = 0.6 * TURN_S
        await device.command(Text("Start the oven."))
        await asyncio.sleep(2 * TURN_S)
        assert device.record.error == "llm timeout: the turn took longer than 30 s"

    in_time(story, FIXED, LIMITS)


def test_the_next_turn_has_its_own() -> None:
    async def story(device: Device) -> None:
        device.asr.takes_s = 0.8 * TURN_S
        for _ in range(2):
            await device.ask(SPOKEN_S)
            await asyncio.sleep(2 * TURN_S)
            assert device.record.outcome == "answered"

    in_time(story, FIXED, LIMITS)
