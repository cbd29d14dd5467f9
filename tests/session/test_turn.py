"""What a turn shows, and when."""

from __future__ import annotations

from echokit_py.session.journal import TurnRecord
from echokit_py.session.outbox import Outbox
from echokit_py.session.turn import Turn
from firmware_protocol.events import Action, EndAudio, ServerEvent, StartAudio
from firmware_protocol.link import LinkParameters


async def test_a_sentence_that_breaks_off_takes_what_was_to_be_shown_with_it() -> None:
    """The tools that ran then have nothing to do with the apology that follows."""
    turn = Turn(Outbox(), LinkParameters(), TurnRecord("board", "0001"))
    turn.start_audio("One.", "One.")
    turn.show("light")
    turn.break_off_audio()
    turn.start_audio("Sorry.", "")
    turn.end_audio()
    turn.show_waiting()
    sent: list[ServerEvent] = [(await turn.outbox.get()).event for _ in range(turn.outbox.pending)]
    assert sent == [StartAudio("One."), EndAudio(), StartAudio("Sorry."), EndAudio()]


async def test_what_is_to_be_shown_waits_for_the_end_of_the_sentence() -> None:
    turn = Turn(Outbox(), LinkParameters(), TurnRecord("board", "0001"))
    turn.show("clock")
    turn.start_audio("One.", "One.")
    turn.show("light")
    turn.end_audio()
    turn.show_waiting()
    sent: list[ServerEvent] = [(await turn.outbox.get()).event for _ in range(turn.outbox.pending)]
    assert sent == [Action("clock"), StartAudio("One."), EndAudio(), Action("light")]
