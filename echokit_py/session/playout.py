"""Estimates what the user has heard, from when audio was written and how long it lasts. The clock is the caller's.

A board plays what it receives in real time and queues the rest, so a sentence begins when its first audio was
written or when the one before it ended, whichever is later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(slots=True)
class _Sentence:
    text: str
    start: float = 0.0
    seconds: float = 0.0
    complete: bool = False

    @property
    def end(self) -> float:
        return self.start + self.seconds


class Playout:
    """The sentences of one turn on their way through the device's speaker. Times in seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._sentences: list[_Sentence] = []

    def begin(self, text: str) -> None:
        """A sentence's audio begins; `text` as it goes to the history."""
        self._sentences.append(_Sentence(text))

    def sent(self, seconds: float, now: float) -> None:
        """Audio of the latest sentence was written."""
        if not self._sentences:
            return
        sentence = self._sentences[-1]
        if sentence.seconds == 0:
            sentence.start = max(now, self._sentences[-2].end) if len(self._sentences) > 1 else now
        elif now > sentence.end:  # the speaker ran dry and goes on only now
            sentence.start += now - sentence.end
        sentence.seconds += seconds

    def end(self) -> None:
        """The latest sentence is written whole."""
        if self._sentences:
            self._sentences[-1].complete = True

    def complete_by(self, now: float) -> bool:
        """Whether all audio that was begun is written and has had time to be played."""
        return all(sentence.complete and sentence.end <= now for sentence in self._sentences)

    def heard(self, now: float) -> str:
        """The text that had time to be heard by `now`: whole sentences, and of the running one the words so far."""
        return "".join(self._part(sentence, now) for sentence in self._sentences).strip()

    @staticmethod
    def _part(sentence: _Sentence, now: float) -> str:
        if sentence.seconds <= 0 or now <= sentence.start:
            return ""
        share = (now - sentence.start) / sentence.seconds
        if share >= 1 and sentence.complete:
            return sentence.text + " "
        # Not yet complete means that more audio was to come: then the written part is less than all of the text,
        # and counting it as all would claim too much. Cut at spaces, or per character in scripts that have none.
        words = re.findall(r"\S+\s*|\s+", sentence.text)
        units = words if len(words) > 1 or sentence.text.isascii() else list(sentence.text)
        return "".join(units[: int(len(units) * min(share, 1.0) * (1.0 if sentence.complete else 0.9))])
