"""The turn table: which inputs are legal in which phase, and what follows. Pure; does nothing itself.

It alone decides `EndVad` and `EndResponse`, so that "every StartChat is answered" is a property of a table. An input
that the table doesn't hold leaves the state as it is and is marked as refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from types import MappingProxyType


class Phase(Enum):
    """What a session is doing."""

    IDLE = auto()
    LISTENING = auto()  # between StartChat and the end of the utterance
    RECOGNISING = auto()
    THINKING = auto()  # asking the model and running tools, up to the first audio
    SPEAKING = auto()  # the first audio of the answer is on its way
    APOLOGISING = auto()  # something failed, and the user is told


class Input(Enum):
    """What can happen to a session."""

    START_CHAT = auto()
    SUBMIT = auto()
    TEXT = auto()
    SPEECH_ENDED = auto()  # endpointing, or the bound of an utterance
    NOTHING_SAID = auto()  # noise only, or the microphone fell silent
    HEARD = auto()  # the recogniser understood something
    HEARD_NOTHING = auto()
    AUDIO_READY = auto()  # the first audio of the answer
    FINISHED = auto()  # the answer or the apology is out
    FAILED = auto()
    GONE = auto()  # the device disconnected, or another connection took over


class Action(Enum):
    """What the session has to do, in this order."""

    CANCEL = auto()  # stop the work of the turn, drop what is queued of it
    LISTEN = auto()  # begin an utterance afresh
    END_VAD = auto()  # only sent to devices that stream (`stream_asr`)
    TRANSCRIBE = auto()
    ANSWER = auto()
    APOLOGISE = auto()
    END_RESPONSE = auto()


Row = tuple[Phase, tuple[Action, ...]]
_P, _I, _A = Phase, Input, Action


def _interruptible(phase: Phase) -> dict[tuple[Phase, Input], Row]:
    """The rows of a phase in which work is under way: the user may always begin again."""
    return {
        (phase, _I.START_CHAT): (_P.LISTENING, (_A.CANCEL, _A.LISTEN)),
        (phase, _I.TEXT): (_P.THINKING, (_A.CANCEL, _A.ANSWER)),
        (phase, _I.GONE): (_P.IDLE, (_A.CANCEL,)),
    }


TABLE: Mapping[tuple[Phase, Input], Row] = MappingProxyType(
    {
        (_P.IDLE, _I.START_CHAT): (_P.LISTENING, (_A.CANCEL, _A.LISTEN)),
        (_P.IDLE, _I.TEXT): (_P.THINKING, (_A.CANCEL, _A.ANSWER)),
        (_P.IDLE, _I.GONE): (_P.IDLE, (_A.CANCEL,)),
        (_P.LISTENING, _I.START_CHAT): (_P.LISTENING, (_A.CANCEL, _A.LISTEN)),
        (_P.LISTENING, _I.SUBMIT): (_P.RECOGNISING, (_A.END_VAD, _A.TRANSCRIBE)),
        (_P.LISTENING, _I.SPEECH_ENDED): (_P.RECOGNISING, (_A.END_VAD, _A.TRANSCRIBE)),
        (_P.LISTENING, _I.NOTHING_SAID): (_P.IDLE, (_A.END_VAD, _A.END_RESPONSE)),
        (_P.LISTENING, _I.TEXT): (_P.THINKING, (_A.CANCEL, _A.END_VAD, _A.ANSWER)),
        (_P.LISTENING, _I.FAILED): (_P.APOLOGISING, (_A.END_VAD, _A.APOLOGISE)),
        (_P.LISTENING, _I.GONE): (_P.IDLE, (_A.CANCEL,)),
        **_interruptible(_P.RECOGNISING),
        (_P.RECOGNISING, _I.HEARD): (_P.THINKING, (_A.ANSWER,)),
        (_P.RECOGNISING, _I.HEARD_NOTHING): (_P.IDLE, (_A.END_RESPONSE,)),
        (_P.RECOGNISING, _I.FAILED): (_P.APOLOGISING, (_A.APOLOGISE,)),
        **_interruptible(_P.THINKING),
        (_P.THINKING, _I.AUDIO_READY): (_P.SPEAKING, ()),
        (_P.THINKING, _I.FINISHED): (_P.IDLE, (_A.END_RESPONSE,)),
        (_P.THINKING, _I.FAILED): (_P.APOLOGISING, (_A.APOLOGISE,)),
        **_interruptible(_P.SPEAKING),
        (_P.SPEAKING, _I.FINISHED): (_P.IDLE, (_A.END_RESPONSE,)),
        (_P.SPEAKING, _I.FAILED): (_P.APOLOGISING, (_A.APOLOGISE,)),
        **_interruptible(_P.APOLOGISING),
        (_P.APOLOGISING, _I.FINISHED): (_P.IDLE, (_A.END_RESPONSE,)),
        (_P.APOLOGISING, _I.FAILED): (_P.IDLE, (_A.END_RESPONSE,)),
    }
)


@dataclass(frozen=True, slots=True)
class TurnState:
    """`streaming`: the device asked for `stream_asr`, so it waits for `EndVad`."""

    phase: Phase = Phase.IDLE
    streaming: bool = False


@dataclass(frozen=True, slots=True)
class Transition:
    """The new state and what to do; `refused` when the table doesn't hold the input in that phase."""

    state: TurnState
    actions: tuple[Action, ...] = ()
    refused: bool = False


def step(state: TurnState, event: Input) -> Transition:
    """Apply one input to a state."""
    row = TABLE.get((state.phase, event))
    if row is None:
        return Transition(state, refused=True)
    phase, actions = row
    if not state.streaming:
        actions = tuple(action for action in actions if action is not Action.END_VAD)
    return Transition(replace(state, phase=phase), actions)


def diagram() -> str:
    """The table as a Mermaid state diagram, for the documentation."""
    lines = ["stateDiagram-v2", "    [*] --> IDLE"]
    for (phase, event), (target, actions) in TABLE.items():
        does = ", ".join(action.name for action in actions)
        lines.append(f"    {phase.name} --> {target.name}: {event.name}" + (f" / {does}" if does else ""))
    return "\n".join(lines) + "\n"
