"""The values that cross the wire: events to the device, commands from it. How they look as bytes is `codec.py`.

Names and fields are those of firmware 0.3.2; what each means and when it may be sent stands in SPEC.md. A value that
the wire has no room for can't be built: the constructors raise ProtocolError.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from firmware_protocol.errors import ProtocolError

MAX_INDEX = 2**32 - 1  # `Select.index` is a usize of the ESP32, which has 32 bits


class Vowel(IntEnum):
    """The mouth on the display: the values of `AudioChunkWithVowel.vowel`."""

    NONE = 0
    A = 1
    E = 2
    I = 3  # noqa: E741 - the vowel's name
    O = 4  # noqa: E741 - the vowel's name
    U = 5


def _require_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise ProtocolError(f"{what} must be str, not {type(value).__name__}")


def _require_bytes(value: object, what: str) -> None:
    if not isinstance(value, bytes):
        raise ProtocolError(f"{what} must be bytes, not {type(value).__name__}")


def _require_integer(value: object, what: str, largest: int) -> None:
    # bool is an int to Python, and a different type on the wire.
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise ProtocolError(f"{what} must be an integer from 0 to {largest}")


@dataclass(frozen=True, slots=True)
class HelloStart:
    """The wake sound begins."""


@dataclass(frozen=True, slots=True)
class HelloChunk:
    """A piece of the wake sound. `data`: s16le, mono, 16 kHz, without a header, at most `link.HELLO_CHUNK_BYTES`."""

    data: bytes

    def __post_init__(self) -> None:
        _require_bytes(self.data, "HelloChunk.data")


@dataclass(frozen=True, slots=True)
class HelloEnd:
    """The wake sound is complete."""


@dataclass(frozen=True, slots=True)
class ASR:
    """What was understood so far; each replaces the last."""

    text: str

    def __post_init__(self) -> None:
        _require_text(self.text, "ASR.text")


@dataclass(frozen=True, slots=True)
class Action:
    """A short status for the display, at any time."""

    action: str

    def __post_init__(self) -> None:
        _require_text(self.action, "Action.action")


@dataclass(frozen=True, slots=True)
class Choices:
    """A question with answers to pick from; `Select` names one. Newer than firmware 0.3.2, which ignores it."""

    message: str
    items: tuple[str, ...]

    def __post_init__(self) -> None:
        _require_text(self.message, "Choices.message")
        if not isinstance(self.items, tuple):
            raise ProtocolError(f"Choices.items must be a tuple, not {type(self.items).__name__}")
        for item in self.items:
            _require_text(item, "each of Choices.items")


@dataclass(frozen=True, slots=True)
class StartAudio:
    """A sentence begins; its text is shown. The device resets its Opus decoder here."""

    text: str

    def __post_init__(self) -> None:
        _require_text(self.text, "StartAudio.text")


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """A piece of a sentence. `data`: one Opus packet of 120 ms, or s16le mono 16 kHz up to `link.PCM_CHUNK_BYTES`."""

    data: bytes

    def __post_init__(self) -> None:
        _require_bytes(self.data, "AudioChunk.data")


@dataclass(frozen=True, slots=True)
class AudioChunkWithVowel:
    """As `AudioChunk`, with the mouth to show while it plays. `vowel`: one of `Vowel`."""

    data: bytes
    vowel: int

    def __post_init__(self) -> None:
        _require_bytes(self.data, "AudioChunkWithVowel.data")
        _require_integer(self.vowel, "AudioChunkWithVowel.vowel", Vowel.U)


@dataclass(frozen=True, slots=True)
class EndAudio:
    """The sentence is complete. The device takes no further event until it has played it."""


@dataclass(frozen=True, slots=True)
class DisplayText:
    """A text to show that isn't spoken. Newer than firmware 0.3.2, which ignores it."""

    text: str

    def __post_init__(self) -> None:
        _require_text(self.text, "DisplayText.text")


@dataclass(frozen=True, slots=True)
class StartVideo:
    """Of older firmware; reserved."""


@dataclass(frozen=True, slots=True)
class EndVideo:
    """Of older firmware; reserved."""


@dataclass(frozen=True, slots=True)
class EndVad:
    """The server heard the end of speech: the device stops sending audio and waits."""


@dataclass(frozen=True, slots=True)
class EndResponse:
    """The turn is over: the device listens again. Nothing else brings it back."""


ServerEvent = (
    HelloStart
    | HelloChunk
    | HelloEnd
    | ASR
    | Action
    | Choices
    | StartAudio
    | AudioChunk
    | AudioChunkWithVowel
    | EndAudio
    | DisplayText
    | StartVideo
    | EndVideo
    | EndVad
    | EndResponse
)


@dataclass(frozen=True, slots=True)
class StartRecord:
    """Record mode begins. Servers of version 0.3.2 take no notice."""


@dataclass(frozen=True, slots=True)
class StartChat:
    """Someone speaks: audio follows."""


@dataclass(frozen=True, slots=True)
class Submit:
    """The utterance is complete (only without `stream_asr`)."""


@dataclass(frozen=True, slots=True)
class Text:
    """A typed question."""

    input: str

    def __post_init__(self) -> None:
        _require_text(self.input, "Text.input")


@dataclass(frozen=True, slots=True)
class Select:
    """An answer to `Choices`: the place of the item in its list, from 0."""

    index: int

    def __post_init__(self) -> None:
        _require_integer(self.index, "Select.index", MAX_INDEX)


Command = StartRecord | StartChat | Submit | Text | Select
