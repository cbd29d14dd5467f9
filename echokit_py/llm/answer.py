"""Gathers one answer of a model from what the readers of stream events find in it, and judges how it ended.

Vendor-blind: knows neither SSE nor the fields of any API.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from echokit_py.errors import BackendError, ErrorKind
from echokit_py.llm import names
from echokit_py.llm.base import ReasoningDelta, Refusal, Step, TextDelta, Tool
from echokit_py.llm.content_filter import ContentFilter, Kind
from echokit_py.llm.event_json import well_formed
from echokit_py.llm.failures import answer_error
from echokit_py.llm.tool_calls import Assembler, AssemblyError, Ending

MAX_CHARACTERS = 4 * 1024 * 1024
"""Text and reasoning of one answer: days of speech."""

Delta = TextDelta | ReasoningDelta

# Finish reasons after which nothing may be run. From OpenAI and Azure, Mistral (model_length), Anthropic (max_tokens),
# Gemini (safety, recitation, malformed_function_call), vLLM (abort), DeepSeek (insufficient_system_resource).
_CUT = frozenset(
    {
        *("length", "max_tokens", "max_output_tokens", "model_length"),
        *("content_filter", "safety", "recitation", "malformed_function_call"),
        *("abort", "aborted", "cancelled", "canceled", "timeout"),
    }
)
_FAILED = frozenset({"error", "failed", "insufficient_system_resource"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stream came to.

    Attributes:
        step: the answer. With `error` set it has no calls: those begun are in `refused`.
        error: why the answer is not whole or not usable, or None.
        call_text: that of the step.
        rest: deltas that only the end of the body made certain, to be passed on before the step. They are in it.
    """

    step: Step
    error: BackendError | None
    call_text: str = ""
    rest: tuple[Delta, ...] = ()


class Answer:
    """One answer in the making."""

    def __init__(self, tools: Sequence[str | Tool] | None) -> None:
        offered = names.offer(tools)
        self.calls = Assembler(offered)
        self._filter = ContentFilter(offered)
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._call_text: list[str] = []
        self._characters = 0
        self._fresh: list[Delta] = []
        self._half = ""  # the first half of a surrogate pair, waiting for the second
        self._finish_reason: str | None = None
        self._void: Refusal | None = None
        self.error: BackendError | None = None
        self.done = False  # the server said that nothing follows
        self.broken = False  # the server said that it failed, or an event broke a bound
        self.ended = False  # the server said that the answer is complete

    @property
    def has_text(self) -> bool:
        """Whether anything visible or withheld has come as content."""
        return bool(self._text or self._call_text)

    def take_deltas(self) -> list[Delta]:
        """Return the deltas that became certain since the last time."""
        deltas, self._fresh = self._fresh, []
        return deltas

    def content(self, text: str) -> None:
        """Take in content."""
        text = self._half + text
        self._half = ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        self._sort(self._filter.feed(well_formed(text)))

    def reasoning(self, text: str) -> None:
        """Take in reasoning from a field of its own."""
        self._sort([(Kind.REASONING, well_formed(text))])

    def fragment(self, index: int | None, call_id: str, name: str, arguments: str) -> None:
        """Take in a fragment of a call."""
        try:
            self.calls.add(index, call_id, name, arguments)
        except AssemblyError as error:
            self.overflow(str(error))

    def whole(self, index: int, call_id: str, name: str, arguments: str, *, cut: bool = False) -> None:
        """Take in a call as an event gives it once more in full."""
        try:
            self.calls.put_whole(index, call_id, name, arguments, cut=cut)
        except AssemblyError as error:
            self.overflow(str(error))

    def finish(self, reason: str) -> None:
        """Take in a finish reason. The last one is reported; one that voids the calls can't be taken back."""
        self._finish_reason = reason
        reason = reason.lower()
        if reason in _FAILED:
            self.fail(answer_error(ErrorKind.SERVER, "the server broke off the answer"), Refusal.STREAM_ERROR)
        elif reason in _CUT:
            self._void = self._void or Refusal.TRUNCATED
        self.ended = True

    def end_of_stream(self) -> None:
        """Note that the server said that nothing follows, the answer being complete."""
        self.done = True
        self.ended = True
        self._flush()

    def fail(self, error: BackendError, refusal: Refusal) -> None:
        """Note that the answer is not whole: its calls are void. The first error is the one reported."""
        if self.error is None:
            self.error = error
            self._void = refusal
        self.broken = self.broken or refusal is Refusal.STREAM_ERROR

    def corrupt(self) -> None:
        """Note that an event could not be read: a piece of a call may have been in it."""
        self.fail(answer_error(ErrorKind.BAD_ANSWER, "an event of the stream can't be read"), Refusal.CORRUPT_EVENT)

    def overflow(self, message: str) -> None:
        """Note that a bound was broken: nothing more is taken in."""
        self.fail(answer_error(ErrorKind.BAD_ANSWER, message), Refusal.CORRUPT_EVENT)
        self.done = True

    def close(self, *, clean: bool) -> Outcome:
        """Judge the answer. `clean`: the body ended normally, as far as the transport can tell."""
        self._flush()
        if not clean and not self.done and (not self.ended or not self.calls.empty):
            self.fail(answer_error(ErrorKind.BROKEN_OFF, "the connection broke off"), Refusal.STREAM_CUT)
        calls, refused = self.calls.finish(self._void or (Ending.NORMAL if self.ended else Ending.UNPROVEN))
        if not self.ended and not calls and self.error is None:
            message = "the answer stopped before its end" if self.has_text or refused else "the answer is empty"
            self.error = answer_error(ErrorKind.BROKEN_OFF, message)
        call_text = "".join(self._call_text)
        step = Step("".join(self._text), "".join(self._reasoning), self._finish_reason, calls, refused, call_text)
        return Outcome(step, self.error, call_text, tuple(self.take_deltas()))

    def _flush(self) -> None:
        """Take the end of the content: what was withheld is sorted after all."""
        half, self._half = self._half, ""
        self._sort(self._filter.feed(well_formed(half)))
        self._sort(self._filter.flush())

    def _sort(self, found: list[tuple[Kind, str]]) -> None:
        for kind, text in found:
            self._characters += len(text)
            if kind is Kind.WAS_REASONING:
                # A closing tag without an opening one (the template of the model wrote that): all before was reasoning.
                self._reasoning[:0] = self._text
                self._text.clear()
            elif kind is Kind.CALL:
                self._call_text.append(text)
            elif text and kind is Kind.TEXT:
                self._text.append(text)
                self._fresh.append(TextDelta(text))
            elif text:
                self._reasoning.append(text)
                self._fresh.append(ReasoningDelta(text))
        if self._characters > MAX_CHARACTERS:
            self.overflow("the answer is too long")
