"""The turn table: every StartChat is answered, whatever comes in between."""

from __future__ import annotations

from copy import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echokit_py.session.turns import TABLE, Action, Input, Phase, TurnState, diagram, step

WORK = {Action.TRANSCRIBE, Action.ANSWER, Action.APOLOGISE}


class Device:
    """Counts what a device sees of a sequence of inputs."""

    def __init__(self, streaming: bool) -> None:
        self.state = TurnState(streaming=streaming)
        self.owed = False  # a StartChat or Text waits for its EndResponse
        self.awaits_end_of_speech = False  # a streaming StartChat waits for its EndVad
        self.working = False
        self.faults: list[str] = []

    def feed(self, event: Input) -> None:
        transition = step(self.state, event)
        if transition.refused:
            assert transition.state == self.state
            assert transition.actions == ()
            return
        self.state = transition.state
        if event in {Input.HEARD, Input.HEARD_NOTHING, Input.FINISHED, Input.FAILED}:
            self.working = False
        for action in transition.actions:
            self.see(action)
        if event in {Input.START_CHAT, Input.TEXT}:
            self.owed = True
        if event is Input.START_CHAT:
            self.awaits_end_of_speech = self.state.streaming
        if event is Input.GONE:
            self.owed = self.awaits_end_of_speech = False

    def see(self, action: Action) -> None:
        if action is Action.CANCEL:
            self.working = False
        elif action in WORK:
            if self.working:
                self.faults.append(f"{action} while other work runs")
            self.working = True
        elif action is Action.END_VAD:
            if not self.awaits_end_of_speech:
                self.faults.append("EndVad that nobody waits for")
            self.awaits_end_of_speech = False
        elif action is Action.END_RESPONSE:
            if not self.owed:
                self.faults.append("EndResponse that nobody waits for")
            if self.awaits_end_of_speech:
                self.faults.append("EndResponse before EndVad")
            self.owed = False

    @property
    def key(self) -> tuple[Phase, bool, bool, bool]:
        return self.state.phase, self.owed, self.awaits_end_of_speech, self.working

    def check(self) -> None:
        assert self.faults == []
        idle = self.state.phase is Phase.IDLE
        assert idle == (not self.owed)
        assert self.working == (self.state.phase in {Phase.THINKING, Phase.SPEAKING, Phase.APOLOGISING})


@pytest.mark.parametrize("streaming", [True, False])
def test_every_sequence_of_inputs(streaming: bool) -> None:
    """All of any length: what a device has seen is one of few states, and each is met with every input."""
    device = Device(streaming)
    seen, new = {device.key}, [device]
    while new:
        before = new.pop()
        for event in Input:
            device = copy(before)
            device.feed(event)
            device.check()
            if device.key not in seen:
                seen.add(device.key)
                new.append(device)
    assert {phase for phase, *_ in seen} == set(Phase)


@given(st.lists(st.sampled_from(list(Input)), max_size=200), st.booleans())
def test_long_sequences(events: list[Input], streaming: bool) -> None:
    device = Device(streaming)
    for event in events:
        device.feed(event)
        device.check()


@given(st.lists(st.sampled_from(list(Input)), max_size=50), st.booleans())
def test_from_every_reachable_state_the_ends_of_work_lead_back_to_idle(events: list[Input], streaming: bool) -> None:
    device = Device(streaming)
    for event in events:
        device.feed(event)
    for event in (Input.SPEECH_ENDED, Input.FAILED, Input.FAILED):
        device.feed(event)
    device.check()
    assert device.state.phase is Phase.IDLE
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
    assert "    LISTENING --> THINKING: SPEECH_ENDED / END_VAD, TRANSCRIBE" in lines
