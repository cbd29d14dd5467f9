"""The outbox: bounded, in order, and never audio outside StartAudio … EndAudio."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echokit_py.session.outbox import EVENT_LIMIT, Outbox, OutboxClosed
from firmware_protocol.events import AudioChunk, EndAudio, EndResponse, EndVad, HelloStart, ServerEvent, StartAudio


async def take_all(outbox: Outbox) -> list[ServerEvent]:
    outbox.put(EndVad(), kept=True)  # a mark to stop at
    events: list[ServerEvent] = []
    while not isinstance(event := (await outbox.get()).event, EndVad):
        events.append(event)
    return events


async def test_events_come_out_in_order() -> None:
    outbox = Outbox()
    outbox.put(StartAudio("a"))
    outbox.put(AudioChunk(b"1"), seconds=1)
    outbox.put(EndAudio())
    assert await take_all(outbox) == [StartAudio("a"), AudioChunk(b"1"), EndAudio()]
    assert outbox.audio_s == 0


async def test_room_waits_for_the_writer() -> None:
    outbox = Outbox(audio_limit_s=1)
    outbox.put(AudioChunk(b"1"), seconds=0.6)
    waiting = asyncio.create_task(outbox.room(0.6))
    await asyncio.sleep(0)
    assert not waiting.done()
    await outbox.get()
    await asyncio.wait_for(waiting, 20)


async def test_a_frame_longer_than_the_limit_passes_alone() -> None:
    outbox = Outbox(audio_limit_s=1)
    await asyncio.wait_for(outbox.room(5), 20)


async def test_get_waits_for_an_event() -> None:
    outbox = Outbox()
    waiting = asyncio.create_task(outbox.get())
    await asyncio.sleep(0)
    outbox.put(EndResponse())
    assert (await asyncio.wait_for(waiting, 20)).event == EndResponse()


async def test_drop_forgets_the_turn_and_keeps_what_is_not_of_it() -> None:
    outbox = Outbox()
    outbox.put(HelloStart(), kept=True)
    outbox.put(StartAudio("a"))
    outbox.put(AudioChunk(b"1"), seconds=1)
    outbox.drop()
    assert outbox.audio_s == 0
    assert await take_all(outbox) == [HelloStart()]


async def test_drop_ends_an_audio_that_the_device_has_begun_to_receive() -> None:
    outbox = Outbox()
    outbox.put(StartAudio("a"))
    outbox.put(AudioChunk(b"1"), seconds=1)
    await outbox.get()
    outbox.drop()
    outbox.drop()
    assert await take_all(outbox) == [EndAudio()]


async def test_a_closed_outbox_wakes_everybody_and_takes_nothing() -> None:
    outbox = Outbox(audio_limit_s=1)
    outbox.put(AudioChunk(b"1"), seconds=1)
    room = asyncio.create_task(outbox.room(1))
    await asyncio.sleep(0)
    outbox.close()
    await asyncio.wait_for(room, 20)
    with pytest.raises(OutboxClosed):
        outbox.put(EndResponse())
    with pytest.raises(OutboxClosed):
        await outbox.get()


async def test_a_peer_that_never_reads_is_given_up() -> None:
    outbox = Outbox()
    for _ in range(EVENT_LIMIT):
        outbox.put(EndResponse())
    with pytest.raises(OutboxClosed):
        outbox.put(EndResponse())
    assert outbox.closed


OPERATIONS = st.lists(st.sampled_from(["sentence", "get", "drop"]), max_size=60)


@given(OPERATIONS)
def test_audio_is_always_between_start_and_end(operations: list[str]) -> None:
    async def run() -> list[ServerEvent]:
        outbox = Outbox()
        taken: list[ServerEvent] = []
        for operation in operations:
            if operation == "sentence":
                outbox.put(StartAudio("s"))
                outbox.put(AudioChunk(b"x"), seconds=0.1)
                outbox.put(EndAudio())
            elif operation == "drop":
                outbox.drop()
            elif outbox.pending:
                taken.append((await outbox.get()).event)
        return taken + await take_all(outbox)

    inside = False
    for event in asyncio.run(run()):
        if isinstance(event, StartAudio):
            assert not inside
            inside = True
        elif isinstance(event, EndAudio):
            assert inside
            inside = False
        else:
            assert inside
    assert not inside
