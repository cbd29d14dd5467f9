"""Answers of the public bug reports as turns of a running server: a scripted LLM streams them, a board asks over /ws.

Looked at is what the speech service was asked to say, what the board displayed, and what the next request keeps.
"""

from __future__ import annotations

import asyncio
import time
from itertools import accumulate

import pytest

from echokit_py.text.sentences import SentenceSplitter
from firmware_protocol.events import ServerEvent, StartAudio
from tests.fakes.chat_server import Answer, ChatServer, say
from tests.fakes.talking import Talk, chat_client, sorry, spoken, talking
from tests.fakes.text_cases import ABSENT, PRESENT, Case, bare, faults, text_cases

LOOKED_AT = {"atoms", "must_not_split", "must_speak", "must_not_speak", "forbidden_segment_regex", "text_preserved"}
LOOKED_AT |= {"every_segment_has_letter_or_digit", "first_segment_after_delta_at_most", "no_stall", "history_text"}
HEALTHY = say("All well.")

pytestmark = pytest.mark.skipif(not PRESENT, reason=ABSENT)


def test_there_is_no_expectation_that_is_not_looked_at() -> None:
    assert text_cases()
    for case in text_cases():
        assert set(case["expect"]) <= LOOKED_AT, case["id"]


@pytest.mark.parametrize("case", text_cases(), ids=lambda case: str(case["id"]))
async def test_an_answer_is_spoken(case: Case) -> None:
    deltas, expected = case["input"]["deltas"], case["expect"]
    async with ChatServer(say(*deltas), HEALTHY) as server, talking(chat_client(server.url)) as talk:
        heard = await talk.ask()
        assert_spoken(talk, heard, case)
        segments = list(talk.made.tts.spoken)
        await heard_whole(talk)
        assert spoken(await talk.ask("And now?")) == ["All well."]
        *_, kept, question = server.requests[-1].messages
        assert kept == {"role": "assistant", "content": expected.get("history_text", "".join(deltas).strip())}
        assert question == {"role": "user", "content": "And now?"}
        server.answers = [say(*"".join(deltas))]  # a character at a time
        talk.made.tts.spoken.clear()
        await talk.ask("Once more?")
        assert talk.made.tts.spoken == segments
        assert server.faults == []


def assert_spoken(talk: Talk, heard: list[ServerEvent], case: Case) -> None:
    deltas, expected = case["input"]["deltas"], case["expect"]
    segments, displayed = talk.made.tts.spoken, spoken(heard)
    assert not sorry(heard)
    assert faults(segments, expected, "".join(deltas)) == [], segments
    assert len(displayed) == len(segments)
    # The display may show the marks that are not spoken, but nothing that is not of the answer.
    text, at = bare(expected.get("history_text", "".join(deltas))), 0
    for piece in map(bare, displayed):
        at = text.find(piece, at)
        assert at >= 0, displayed
        at += len(piece)


async def heard_whole(talk: Talk) -> None:
    """Wait until the board has played all of the answer."""
    turn = talk.devices.session("board")._turn
    assert turn is not None
    async with asyncio.timeout(10):
        while not (turn.delivered and turn.playout.complete_by(time.monotonic())):
            await asyncio.sleep(0.005)


# --- while the model still writes -------------------------------------------------------------------------------------


def due(case: Case) -> dict[int, int]:
    """How many sentences at least are out after which delta."""
    expected = case["expect"]
    found = {}
    if expected.get("no_stall"):  # what might be a marker is held back no longer than the sentence it stands in
        splitter = SentenceSplitter()
        counts = accumulate(len(splitter.feed(delta)) for delta in case["input"]["deltas"])
        found = {number: count for number, count in enumerate(counts, 1) if count}
    if (limit := expected.get("first_segment_after_delta_at_most")) is not None:
        found[limit] = max(1, found.get(limit, 0))
    return found


def timed() -> list[Case]:
    return [case for case in text_cases() if {"no_stall", "first_segment_after_delta_at_most"} & set(case["expect"])]


@pytest.mark.parametrize("case", timed(), ids=lambda case: str(case["id"]))
async def test_speech_begins_while_the_model_still_writes(case: Case) -> None:
    gates = {number: asyncio.Event() for number in due(case)}
    assert gates, "the case wants nothing before the end"
    async with ChatServer(held(case["input"]["deltas"], gates)) as server, talking(chat_client(server.url)) as talk:
        await talk.type("Well?")
        heard: list[ServerEvent] = []
        for number, count in due(case).items():
            async with asyncio.timeout(20):
                while len(spoken(heard)) < count:
                    heard += await talk.read(lambda event: isinstance(event, StartAudio))
            assert server.open_requests == 1
            gates[number].set()
        heard += await talk.read()
        assert_spoken(talk, heard, case)


def held(deltas: list[str], gates: dict[int, asyncio.Event]) -> Answer:
    """The answer; it waits at a gate after the delta of that number."""
    pieces: list[str | asyncio.Event] = []
    for number, delta in enumerate(deltas, 1):
        pieces += [delta, *([gates[number]] if number in gates else [])]
    return say(*pieces)
