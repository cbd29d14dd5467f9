"""What each turn did and when: one record a turn, the last ones kept in memory, one line each in the log.

With speculation the stages overlap: recognition, model and voice may run while the silence that ends an utterance is
still being waited for. Each figure is then that of the work whose result was used (a guess that was thrown away leaves
only its number, `discarded`), and they no longer add up to `first_audio`. `overhead` is what is left of that time when
all is taken away in which the silence or some back end was waited for; without speculation they add up.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

log = logging.getLogger(__name__)

KEPT_TURNS = 200
# Of a record's texts: a question of a minute has some 1000 characters, an answer seldom more.
TEXT_LIMIT = 4000


class Mark(StrEnum):
    """The moments of a turn, in the order in which they come without speculation."""

    SPEECH_END = "speech_end"  # the frame with the last speech arrived
    GUESSED = "guessed"  # speech paused, and the speculation whose results were used began
    DECIDED = "decided"  # endpointing (or Submit, Text) ended the utterance
    ASR_REQUEST = "asr_request"
    ASR_DONE = "asr_done"
    LLM_REQUEST = "llm_request"
    LLM_FIRST = "llm_first"  # first text of the answer
    SENTENCE = "sentence"  # the first piece to be spoken is complete (tools that had to run before are part of this)
    TTS_REQUEST = "tts_request"
    TTS_FIRST = "tts_first"  # first audio from TTS
    AUDIO_QUEUED = "audio_queued"  # first audio event handed to the connection
    AUDIO_SENT = "audio_sent"  # first audio event written to the socket
    END = "end"


# What is waited for: (name, from, to). What lies between them and belongs to no back end is ours.
_STAGES = (
    ("silence", Mark.SPEECH_END, Mark.DECIDED),
    ("asr", Mark.ASR_REQUEST, Mark.ASR_DONE),
    ("llm", Mark.LLM_REQUEST, Mark.SENTENCE),
    ("tts", Mark.TTS_REQUEST, Mark.TTS_FIRST),
)
# Our part of each stage: what it ends with, and what it may have been waiting for, of which the latest counts.
_GAPS = (
    ("asr", Mark.ASR_REQUEST, (Mark.GUESSED, Mark.DECIDED)),
    ("llm", Mark.LLM_REQUEST, (Mark.ASR_DONE, Mark.DECIDED)),
    ("tts", Mark.TTS_REQUEST, (Mark.SENTENCE, Mark.DECIDED)),
    ("audio", Mark.AUDIO_SENT, (Mark.TTS_FIRST, Mark.DECIDED)),
)


@dataclass(slots=True)
class TurnRecord:
    """One turn of a device.

    Attributes:
        device, turn: whose, and a short id for the log.
        began: when, as Unix time.
        marks: monotonic seconds, the first time each moment came.
        outcome: "running", until the turn is over.
        error: the first failure's sentence, "" without one.
        discarded: how many speculations were thrown away, since speech went on.
        question, answer: what was understood and said so far; a journal forgets them unless it keeps texts.
    """

    device: str
    turn: str
    began: float = field(default_factory=time.time)
    marks: dict[Mark, float] = field(default_factory=dict)
    outcome: str = "running"
    error: str = ""
    discarded: int = 0
    question: str = ""
    answer: str = ""

    def mark(self, mark: Mark, at: float | None = None) -> None:
        """Note that a moment came, now or `at` (monotonic seconds); only its first time counts."""
        self.marks.setdefault(mark, time.monotonic() if at is None else at)

    def adopt(self, guess: TurnRecord) -> None:
        """Take over the moments of a speculation's own record: its work is now this turn's."""
        for mark, at in guess.marks.items():
            self.mark(mark, at)

    def say(self, text: str) -> None:
        """Note words of the answer that are on their way to the user."""
        self.answer = f"{self.answer} {text}".strip()[:TEXT_LIMIT]

    def stages(self) -> dict[str, float]:
        """Milliseconds of each stage that was reached, of our own part on the way to the first audio (`overhead`), and
        of the whole (`first_audio`: from the frame with the last speech, or a typed text, to the first audio
        written)."""
        found = {name: self._between(first, last) for name, first, last in _STAGES}
        start = self.marks.get(Mark.SPEECH_END, self.marks.get(Mark.DECIDED))
        sent = self.marks.get(Mark.AUDIO_SENT)
        if start is not None and sent is not None:
            found["overhead"] = self._uncovered(start, sent) * 1000
            found["first_audio"] = (sent - start) * 1000
        return {name: round(value, 1) for name, value in found.items() if value is not None}

    def overheads(self) -> dict[str, float]:
        """Milliseconds from the moment at which all was there that a stage needs to its request (`asr`, `llm`, `tts`),
        and from the first audio of TTS to the socket (`audio`)."""
        found = {}
        for name, effect, causes in _GAPS:
            if (at := self.marks.get(effect)) is not None:
                before = [self.marks[cause] for cause in causes if self.marks.get(cause, at + 1) <= at]
                if before:
                    found[name] = round((at - max(before)) * 1000, 1)
        return found

    def as_json(self) -> dict[str, object]:
        """The record as JSON values; `marks_ms` count from the first, which came at `monotonic_s`."""
        start = min(self.marks.values(), default=0.0)
        marks = sorted(self.marks.items(), key=lambda item: item[1])
        return {
            "device": self.device,
            "turn": self.turn,
            "began": round(self.began, 3),
            "outcome": self.outcome,
            "error": self.error,
            "discarded": self.discarded,
            "stages_ms": self.stages(),
            "overheads_ms": self.overheads(),
            "monotonic_s": round(start, 4),
            "marks_ms": {mark.value: round((at - start) * 1000, 1) for mark, at in marks},
            **({"question": self.question, "answer": self.answer} if self.question or self.answer else {}),
        }

    def _between(self, first: Mark, last: Mark) -> float | None:
        if first not in self.marks or last not in self.marks:
            return None
        return (self.marks[last] - self.marks[first]) * 1000

    def _uncovered(self, start: float, end: float) -> float:
        """Seconds between two moments in which no stage was waited for; one that never ended explains all the rest."""
        stages = sorted(
            (self.marks[first], self.marks.get(last, end)) for _, first, last in _STAGES if first in self.marks
        )
        covered, until = 0.0, start
        for began, ended in stages:
            until, before = max(until, min(ended, end)), max(until, began)
            covered += max(0.0, until - before)
        return end - start - covered


class Journal:
    """The last turns of all devices. `texts`: whether questions and answers are kept in them, too."""

    def __init__(self, kept: int = KEPT_TURNS, *, texts: bool = False) -> None:
        self._turns: deque[TurnRecord] = deque(maxlen=kept)
        self._texts = texts

    def __iter__(self) -> Iterator[TurnRecord]:
        return iter(self._turns)

    def close(self, record: TurnRecord, outcome: str, error: str = "") -> None:
        """A turn is over: keep its record and log its line. Closing a record twice does nothing."""
        if record.outcome != "running":
            return
        record.mark(Mark.END)
        record.outcome, record.error = outcome, error or record.error
        if not self._texts:
            record.question = record.answer = ""
        self._turns.append(record)
        log.info("%s: %s", record.device, _line(record))


def _line(record: TurnRecord) -> str:
    """One line: `turn 7f3a silence=512 asr=214 llm=180 tts=95 overhead=4 first_audio=561ms`, and what came of it when
    that isn't an answer."""
    figures = [f"{name}={value:.0f}" for name, value in record.stages().items()]
    unit = "ms" if figures else ""
    outcome = "" if record.outcome == "answered" else f" {record.outcome}"
    return " ".join(["turn", record.turn, *figures]) + unit + outcome
