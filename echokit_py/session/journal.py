"""What each turn did and when: one record a turn, the last ones kept in memory, one line each in the log."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

log = logging.getLogger(__name__)

KEPT_TURNS = 200


class Mark(StrEnum):
    """The moments of a turn, in the order in which they come."""

    SPEECH_END = "speech_end"  # the frame with the last speech arrived
    DECIDED = "decided"  # endpointing (or Submit, Text) ended the utterance
    ASR_REQUEST = "asr_request"
    ASR_DONE = "asr_done"
    LLM_REQUEST = "llm_request"
    LLM_FIRST = "llm_first"  # first text of the answer
    SENTENCE = "sentence"  # the first sentence is complete
    TTS_REQUEST = "tts_request"
    TTS_FIRST = "tts_first"  # first audio from TTS
    AUDIO_QUEUED = "audio_queued"  # first audio event handed to the connection
    AUDIO_SENT = "audio_sent"  # first audio event written to the socket
    END = "end"


# The stages of the log line: (name, from, to). What lies between them and belongs to no back end is ours.
_STAGES = (
    ("silence", Mark.SPEECH_END, Mark.DECIDED),
    ("asr", Mark.ASR_REQUEST, Mark.ASR_DONE),
    ("llm", Mark.LLM_REQUEST, Mark.SENTENCE),
    ("tts", Mark.TTS_REQUEST, Mark.TTS_FIRST),
)
_OVERHEADS = (
    (Mark.DECIDED, Mark.ASR_REQUEST),
    (Mark.ASR_DONE, Mark.LLM_REQUEST),
    (Mark.SENTENCE, Mark.TTS_REQUEST),
    (Mark.TTS_FIRST, Mark.AUDIO_QUEUED),
)


@dataclass(slots=True)
class TurnRecord:
    """One turn of a device. `marks`: monotonic seconds, the first time each moment came; no texts."""

    device: str
    turn: str
    began: float = field(default_factory=time.time)
    marks: dict[Mark, float] = field(default_factory=dict)
    outcome: str = "running"
    error: str = ""

    def mark(self, mark: Mark, at: float | None = None) -> None:
        """Note that a moment came, now or `at`; only its first time counts."""
        self.marks.setdefault(mark, time.monotonic() if at is None else at)

    def between(self, first: Mark, last: Mark) -> float | None:
        """Milliseconds from one moment to another, None when either didn't come."""
        if first not in self.marks or last not in self.marks:
            return None
        return (self.marks[last] - self.marks[first]) * 1000

    def stages(self) -> dict[str, float]:
        """Milliseconds of each stage that was reached, of our own part (`overhead`), and of the whole
        (`first_audio`: from the last speech to the first audio written)."""
        found = {name: self.between(first, last) for name, first, last in _STAGES}
        pairs = _OVERHEADS if Mark.ASR_REQUEST in self.marks else ((Mark.DECIDED, Mark.LLM_REQUEST), *_OVERHEADS)
        parts = [part for part in (self.between(*pair) for pair in pairs) if part is not None]
        found["overhead"] = sum(parts) if parts else None
        start = Mark.SPEECH_END if Mark.SPEECH_END in self.marks else Mark.DECIDED
        found["first_audio"] = self.between(start, Mark.AUDIO_SENT)
        return {name: round(value, 1) for name, value in found.items() if value is not None}

    def as_json(self) -> dict[str, object]:
        """The record as JSON values, times in milliseconds from the first mark."""
        start = min(self.marks.values(), default=0.0)
        marks = {mark.value: round((at - start) * 1000, 1) for mark, at in self.marks.items()}
        return {
            "device": self.device,
            "turn": self.turn,
            "began": round(self.began, 3),
            "outcome": self.outcome,
            "error": self.error,
            "stages_ms": self.stages(),
            "marks_ms": marks,
        }


class Journal:
    """The last turns of all devices."""

    def __init__(self, kept: int = KEPT_TURNS) -> None:
        self._turns: deque[TurnRecord] = deque(maxlen=kept)

    def __iter__(self) -> Iterator[TurnRecord]:
        return iter(self._turns)

    def close(self, record: TurnRecord, outcome: str, error: str = "") -> None:
        """A turn is over: keep its record and log its line. Closing a record twice does nothing."""
        if record.outcome != "running":
            return
        record.mark(Mark.END)
        record.outcome, record.error = outcome, error or record.error
        self._turns.append(record)
        figures = " ".join(f"{name}={value:.0f}" for name, value in record.stages().items())
        log.info("%s: turn %s %s %s", record.device, record.turn, outcome, figures)
