"""The interface of language models: messages in, a stream of events out. How calls are assembled is `tool_calls.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from echokit_py.tools.base import Tool

__all__ = [
    "Llm",
    "LlmEvent",
    "Message",
    "ReasoningDelta",
    "Refusal",
    "RefusedCall",
    "Step",
    "TextDelta",
    "Tool",
    "ToolCall",
]

Message = dict[str, Any]
"""One message in the form of OpenAI's chat completions (role, content, tool_calls, tool_call_id)."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete call: `arguments` is the text of a JSON object that strict JSON reads, as the model wrote it."""

    id: str
    name: str
    arguments: str


class Refusal(StrEnum):
    """Why a call that a model began is not run."""

    TRUNCATED = "truncated"  # the model hit its length limit or a content filter
    STREAM_CUT = "stream_cut"  # the connection broke off
    STREAM_ERROR = "stream_error"  # the server sent an error
    CORRUPT_EVENT = "corrupt_event"  # an event of the stream could not be read
    BAD_JSON = "bad_json"  # the arguments are not JSON
    NOT_AN_OBJECT = "not_an_object"  # the arguments are JSON, but no object
    UNKNOWN_TOOL = "unknown_tool"  # no tool of that name was offered
    NO_NAME = "no_name"  # no name came


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call that was begun and is not run. `raw` is what the model wrote of the arguments."""

    name: str
    raw: str
    reason: Refusal


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the visible answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning; never spoken, never stored as an answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """One answer of the model, whole. Always the last event of a stream that ended normally.

    `call_text`: what the model wrote of calls as plain text. It is not in `text`, is never spoken, and with it and no
    real call the step is a failed one.
    """

    text: str
    reasoning: str
    finish_reason: str | None
    calls: tuple[ToolCall, ...] = ()
    refused: tuple[RefusedCall, ...] = ()
    call_text: str = ""


LlmEvent = TextDelta | ReasoningDelta | Step


class Llm(Protocol):
    """A language model, shared by all devices."""

    async def start(self) -> None:
        """Start or prepare the back end. Raises BackendError or ModelError."""
        ...

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AsyncIterator[LlmEvent]:
        """Ask for one answer: an asynchronous generator of deltas that ends with a `Step`.

        Closing the generator or cancelling closes the request. Raises BackendError; what was yielded before stays said.
        """
        ...

    async def probe(self) -> str:
        """Ask for one token; return a short description of the model. Raises BackendError."""
        ...

    async def close(self) -> None: ...
