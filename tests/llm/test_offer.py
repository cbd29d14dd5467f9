"""The tools of requests are written once for each offer, whatever else changes, and one bad tool costs no other."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from echokit_py.http.body import encode
from echokit_py.llm import chat, offer, responses
from echokit_py.llm.base import Tool
from echokit_py.llm.offer import Offers

OBJECT: dict[str, Any] = {"type": "object", "properties": {"room": {"type": "string", "description": "Küche, 厨房"}}}
Write = Callable[[Tool], dict[str, Any]]


def tool(name: str, parameters: dict[str, Any] | None = None) -> Tool:
    return Tool(name, f"Does {name}.", parameters or OBJECT)


class Counted:
    """Notes which tools are written."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.padding = ""

    def __call__(self, tool: Tool) -> dict[str, Any]:
        self.written.append(tool.name)
        return {"name": tool.name} | ({"padding": self.padding} if self.padding else {})


async def read(offers: Offers, tools: Sequence[Tool]) -> dict[str, Any]:
    members: dict[str, Any] = json.loads(encode(await offers.members(tools)))
    return members


@pytest.mark.parametrize("write", [chat.to_tool, responses.to_tool])
async def test_tools_arrive_as_they_are(write: Write) -> None:
    tools = tuple(tool(f"t{number}") for number in range(3))
    members = await read(Offers(write, {"top_p": 1}), tools)
    assert members == {"top_p": 1, "tools": [write(one) for one in tools]}
    assert members["tools"][0].get("function", members["tools"][0])["parameters"] == OBJECT


async def test_an_offer_is_written_once() -> None:
    counted, tools = Counted(), (tool("a"), tool("b"))
    offers = Offers(counted, {"tools": [{"type": "web_search"}]})
    first = await offers.members(tools)
    assert await offers.members(tools) is first
    assert counted.written == ["a", "b"]
    assert [one.get("name") for one in (await read(offers, tools))["tools"]] == ["a", "b", None]


async def test_a_changed_offer_is_written_anew() -> None:
    offers, before = Offers(Counted(), {}), (tool("a"),)
    await offers.members(before)
    assert (await read(offers, (tool("a"), tool("b"))))["tools"] == [{"name": "a"}, {"name": "b"}]
    assert "tools" not in await read(offers, ())
    assert (await read(offers, before))["tools"] == [{"name": "a"}]


async def test_offers_of_the_same_place_in_memory_are_not_mixed_up() -> None:
    """A tuple that is gone leaves its id to the next one."""
    offers = Offers(Counted(), {})
    for number in range(50):
        assert (await read(offers, (tool(f"t{number}"),)))["tools"] == [{"name": f"t{number}"}]


async def test_few_offers_are_kept_and_the_current_one_is_among_them() -> None:
    counted, current = Counted(), (tool("current"),)
    offers = Offers(counted, {})
    others = [(tool(f"t{number}"),) for number in range(3 * offer.MAX_KEPT)]
    for other in others:
        await offers.members(other)
        await offers.members(current)
    assert counted.written.count("current") == 1
    await offers.members(others[0])
    assert counted.written.count("t0") == 2


async def test_a_list_may_change_and_is_not_remembered() -> None:
    offers, tools = Offers(Counted(), {}), [tool("a")]
    await offers.members(tools)
    tools.append(tool("b"))
    assert (await read(offers, tools))["tools"] == [{"name": "a"}, {"name": "b"}]


async def test_a_tool_that_cannot_be_written_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    deep: dict[str, Any] = {}
    for _ in range(3000):
        deep = {"not": deep}
    tools = (tool("a"), tool("deep", deep), tool("set", {"enum": {1, 2}.__iter__()}), tool("z"))
    members = await read(Offers(chat.to_tool, {}), tools)
    assert [one["function"]["name"] for one in members["tools"]] == ["a", "z"]
    assert "deep is not offered" in caplog.text
    assert "set is not offered" in caplog.text
    assert "tools" not in await read(Offers(chat.to_tool, {"tool_choice": "auto"}), (tool("deep", deep),))


async def test_half_a_character_in_a_description() -> None:
    members = await read(Offers(chat.to_tool, {}), (Tool("a", "half: \ud83d", OBJECT), tool("b")))
    assert members["tools"][0]["function"]["description"] == "half: \ud83d"
    assert len(members["tools"]) == 2


async def test_a_long_offer_is_written_in_parts() -> None:
    """Others on the event loop get their turn."""
    tools = tuple(tool(f"t{number}", {"description": "x" * (offer.PART_BYTES // 2)}) for number in range(10))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    offers = Offers(chat.to_tool, {})
    running = asyncio.create_task(other())
    assert len((await read(offers, tools))["tools"]) == 10
    assert turns >= 3
    before = turns
    await offers.members(tools)
    assert turns == before
    running.cancel()


async def test_devices_that_ask_at_once_get_it_written_once() -> None:
    counted, tools = Counted(), (tool("a"), tool("b"))
    counted.padding = "x" * offer.PART_BYTES
    offers = Offers(counted, {})
    found = await asyncio.gather(*(offers.members(tools) for _ in range(20)))
    assert counted.written == ["a", "b"]
    assert all(members is found[0] for members in found)
