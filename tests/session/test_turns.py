"""The turn table: every StartChat is answered, once, whatever comes in between.

Two views of it. `Device` is an automaton that watches a sequence as it grows; sequences that have brought it into the
same state can't differ later, so they are followed together, and all of some length are few. `Transcript` looks at a
whole sequence afterwards and knows nothing of states; it is for all short sequences, and for long ones at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import copy
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echokit_py.session.turns import TABLE, Action, Input, Phase, TurnState, diagram, step
from firmware_protocol.events import StartChat, Submit, Text
from tests.fakes.providers import speech
from tests.session.test_session_properties import ASKS, Act, connects, live, says, turns_of_the_loop

WORK = {Action.TRANSCRIBE, Action.ANSWER, Action.APOLOGISE}
WORK_ENDS = (Input.SPEECH_ENDED, Input.FAILED, Input.FAILED)  # wherever a session is, these lead to its end
ENDS_WORK = {Input.HEARD, Input.HEARD_NOTHING, Input.FINISHED, Input.FAILED}


class Session:
    """What a session does with the table: its state, and the work that runs."""

    def __init__(self, streaming: bool) -> None:
        self.state = TurnState(streaming=streaming)
        self.work: Action | None = None

    def feed(self, event: Input) -> tuple[Action, ...] | None:
        """Apply an input; return what is done, None when it is refused."""
        transition = step(self.state, event)
        if transition.refused:
            assert transition.state == self.state
            assert transition.actions == ()
            return None
        self.state = transition.state
        if event in ENDS_WORK:
            self.work = None
        return transition.actions


class Device:
    """A session and what its device waits for."""

    def __init__(self, streaming: bool) -> None:
        self.session = Session(streaming)
        self.owed = False  # a StartChat or Text waits for its EndResponse
        self.awaits_end_of_speech = False  # a streaming StartChat waits for its EndVad
        self.answers = 0  # begun since then
        self.faults: tuple[str, ...] = ()

    def after(self, event: Input) -> Device:
        """The device after one more input, itself unchanged."""
        device = copy(self)
        device.session = copy(self.session)
        device._feed(event)
        return device

    def _feed(self, event: Input) -> None:
        actions = self.session.feed(event)
        if actions is None:
            return
        if event in {Input.START_CHAT, Input.TEXT}:
            self.answers = 0
        for action in actions:
            self._see(action)
        if event in {Input.START_CHAT, Input.TEXT}:
            self.owed = True
        if event is Input.START_CHAT:
            self.awaits_end_of_speech = self.session.state.streaming
        if event is Input.GONE:
            self.owed = self.awaits_end_of_speech = False

    def _see(self, action: Action) -> None:
        if action is Action.CANCEL:
            self.session.work = None
        elif action in WORK:
            self._fault(self.session.work is not None, f"{action} while other work runs")
            self.session.work = action
            self.answers += action is Action.ANSWER
            self._fault(self.answers > 1, "two answers")
        elif action is Action.END_VAD:
            self._fault(not self.awaits_end_of_speech, "EndVad that nobody waits for")
            self.awaits_end_of_speech = False
        elif action is Action.END_RESPONSE:
            self._fault(not self.owed, "EndResponse that nobody waits for")
            self._fault(self.awaits_end_of_speech, "EndResponse before EndVad")
            self.owed = False

    def _fault(self, wrong: bool, what: str) -> None:
        self.faults += (what,) if wrong else ()

    @property
    def key(self) -> tuple[Phase, bool, bool, Action | None, int]:
        session = self.session
        return session.state.phase, self.owed, self.awaits_end_of_speech, session.work, self.answers

    def check(self) -> None:
        assert self.faults == ()
        phase = self.session.state.phase
        assert (phase is Phase.IDLE) == (not self.owed)
        assert (self.session.work is None) == (phase in {Phase.IDLE, Phase.LISTENING})


@pytest.mark.parametrize("streaming", [True, False])
def test_every_sequence_of_up_to_eight_inputs(streaming: bool) -> None:
    """All 11⁸, those that a device can't tell apart as one; and of any length, since nothing new comes in the end."""
    devices = {(start := Device(streaming)).key: start}
    sequences = Counter({start.key: 1})
    for length in range(1, 9):
        after: Counter[tuple[Phase, bool, bool, Action | None, int]] = Counter()
        known = set(devices)
        for key, count in sequences.items():
            for event in Input:
                device = devices[key].after(event)
                device.check()
                devices.setdefault(device.key, device)
                after[device.key] += count
        sequences = after
        assert sequences.total() == len(Input) ** length
    assert set(devices) == known  # the last step has led to no new state, and so none ever will
    assert {phase for phase, *_ in devices} == set(Phase)


def transcript(events: Iterable[Input], streaming: bool) -> list[Input | Action]:
    """What came and what was done, in the order of the device's socket, until all work has ended; what is
    refused is left out."""
    session, seen = Session(streaming), list[Input | Action]()
    for event in (*events, *WORK_ENDS):
        if (actions := session.feed(event)) is None:
            continue
        for action in actions:
            session.work = action if action in WORK else None if action is Action.CANCEL else session.work
        before = actions[:-1] if event is Input.TEXT else ()  # EndVad, for what was being said
        seen += [*before, event, *actions[len(before) :]]
    return seen


def check_transcript(seen: list[Input | Action], streaming: bool) -> None:
    """Each turn, from its StartChat or Text to whatever begins the next: at most one of each, in order, and
    the EndResponse for sure unless something else begins first."""
    begins = [at for at, each in enumerate(seen) if each in {Input.START_CHAT, Input.TEXT, Input.GONE}]
    assert Action.END_RESPONSE not in seen[: begins[0] if begins else None]
    for start, end in zip(begins, [*begins[1:], len(seen)], strict=bool(begins)):
        turn = [each for each in seen[start:end] if isinstance(each, Action) and each is not Action.CANCEL]
        chat = seen[start] is Input.START_CHAT
        assert turn.count(Action.END_RESPONSE) <= (seen[start] is not Input.GONE)
        assert turn.count(Action.ANSWER) <= 1
        assert turn.count(Action.TRANSCRIBE) <= chat
        assert turn.count(Action.END_VAD) <= (chat and streaming)
        if Action.END_RESPONSE in turn:
            assert turn.count(Action.END_VAD) == (chat and streaming)
            assert turn[-1] is Action.END_RESPONSE
        else:  # something else has begun meanwhile, or the device is gone
            assert end < len(seen) or seen[start] is Input.GONE


@pytest.mark.parametrize("streaming", [True, False])
def test_every_sequence_of_four_looked_at_as_a_whole(streaming: bool) -> None:
    for events in product(Input, repeat=4):
        check_transcript(transcript(events, streaming), streaming)


LONG = st.lists(st.sampled_from(list(Input)), min_size=200, max_size=200)


@given(LONG, st.booleans())
def test_sequences_of_200(events: list[Input], streaming: bool) -> None:
    device = Device(streaming)
    for event in events:
        device = device.after(event)
        device.check()
    check_transcript(transcript(events, streaming), streaming)


@given(st.lists(st.sampled_from(list(Input)), max_size=50), st.booleans())
def test_from_every_reachable_state_the_ends_of_work_lead_back_to_idle(events: list[Input], streaming: bool) -> None:
    device = Device(streaming)
    for event in (*events, *WORK_ENDS):
        device = device.after(event)
    device.check()
    assert device.session.state.phase is Phase.IDLE
    assert not device.owed


def test_only_devices_that_stream_are_sent_end_vad() -> None:
    listening = step(TurnState(streaming=False), Input.START_CHAT).state
    assert step(listening, Input.SUBMIT).actions == (Action.TRANSCRIBE,)
    listening = step(TurnState(streaming=True), Input.START_CHAT).state
    assert step(listening, Input.SPEECH_ENDED).actions == (Action.END_VAD, Action.TRANSCRIBE)


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        TABLE[(Phase.IDLE, Input.SUBMIT)] = (Phase.IDLE, ())  # type: ignore[index]


def test_the_diagram_has_every_row() -> None:
    lines = diagram().splitlines()
    assert lines[0] == "stateDiagram-v2"
    assert len(lines) == len(TABLE) + 2
    assert "    LISTENING --> RECOGNISING: SPEECH_ENDED / END_VAD, TRANSCRIBE" in lines


# What a device may do.
DOES: list[Act] = [
    ASKS[0],
    says(StartChat(), speech(0.6)),
    says(Submit()),
    says(Text("How are you?")),
    connects(True, True, False),
]


def test_every_three_things_that_a_device_does() -> None:
    """The same of the events that the session sends: each question gets one EndVad and one EndResponse, and audio
    stands between StartAudio and EndAudio."""
    for first, second, third in product(DOES, repeat=3):
        lost: list[str] = []
        # Recognition, model and voice take some turns of the loop each: the second comes amid the answer.
        faults = live([first, turns_of_the_loop(25), second, turns_of_the_loop(4), third], lost)
        assert (faults, lost) == ([], []), [act.__name__ for act in (first, second, third)]
