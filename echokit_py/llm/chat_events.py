"""Reads the chunks of OpenAI's chat completions, as servers send them, into an `Answer`. Does no I/O.

Source of the fields: OpenAI's API reference, "Chat Completions streaming"; the deviations are those of real servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from echokit_py.llm.answer import Answer
from echokit_py.llm.base import Refusal
from echokit_py.llm.common_events import NO_FUNCTION, chat_piece
from echokit_py.llm.failures import reported_error
from echokit_py.llm.fields import UnreadableEvent, arguments_of, id_of, index_of, list_of, object_of, text_of


def take_content(value: object, answer: Answer) -> None:
    """Take in content: a text, or a list of parts (Mistral's thinking parts among them). Raises UnreadableEvent."""
    if not isinstance(value, list):
        answer.content(text_of(value))
        return
    for item in value:
        part = {"type": "text", "text": item} if isinstance(item, str) else object_of(item)
        if part.get("type") in ("thinking", "reasoning"):
            inner = part.get("thinking", part.get("text"))
            for piece in inner if isinstance(inner, list) else [{"text": inner}]:
                answer.reasoning(text_of(object_of(piece).get("text")))
        else:
            answer.content(text_of(part.get("text")))


class ChatReader:
    """Reads the events of one answer. Only the first choice counts."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._has_deltas = False
        self._recap: Mapping[str, Any] = {}

    def read(self, chunk: object, _event: str = "") -> None:
        """Take in one chunk. Raises UnreadableEvent."""
        if chunk is None:
            return
        if not isinstance(chunk, dict):
            raise UnreadableEvent(f"{type(chunk).__name__} instead of a chunk")
        choices = chunk.get("choices")
        if choices:
            for choice in list_of(choices):
                index = object_of(choice).get("index")
                if index in (0, None) or index_of(index) in (0, None):
                    self._choice(object_of(choice))
        error = chunk.get("error")
        if error or chunk.get("object") == "error" or chunk.get("type") == "error":
            self._answer.fail(reported_error(error or chunk), Refusal.STREAM_ERROR)

    def read_common(self, data: bytes) -> bool:
        """Take in a chunk if it is one of those that most of a stream consists of; say whether it was."""
        piece = chat_piece(data)
        if piece is None:
            return False
        self._has_deltas = True
        answer = self._answer
        if piece.content:
            answer.content(piece.content)
        for fragment in piece.tool_calls or ():
            function = fragment.function or NO_FUNCTION
            answer.fragment(fragment.index, fragment.id or "", function.name or "", function.arguments or "")
        return True

    def read_whole(self, body: object) -> None:
        """Take in a completion that came in one piece. Raises UnreadableEvent when it is none."""
        choices = list_of(body.get("choices")) if isinstance(body, dict) else []
        if not choices or not object_of(choices[0]).get("message"):
            raise UnreadableEvent("no completion")
        self._take(object_of(choices[0]["message"]), complete=True)
        self._answer.finish(text_of(choices[0].get("finish_reason")) or "stop")
        self._answer.end_of_stream()

    def end(self) -> None:
        """Take the end of the stream: what only a message beside the deltas held is taken from there."""
        message, self._recap = self._recap, {}
        wanted: list[str] = [] if self._answer.has_text else ["content", "refusal"]
        if self._answer.calls.empty:
            wanted += ["tool_calls", "function_call"]
        self._take({key: value for key, value in message.items() if key in wanted}, complete=True)

    def _choice(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta")
        if delta:
            self._has_deltas = True
            self._take(object_of(delta))
        message = choice.get("message")
        if message and (self._has_deltas or delta is not None):
            self._recap = object_of(message)  # everything so far, once more
        elif message:
            self._take(object_of(message))
        if choice.get("error"):
            self._answer.fail(reported_error(choice["error"]), Refusal.STREAM_ERROR)
        reason = choice.get("finish_reason")
        if reason:
            self._answer.finish(text_of(reason))

    def _take(self, delta: Mapping[str, Any], *, complete: bool = False) -> None:
        """Take in a delta, or a message. `complete`: its calls stand beside each other, each of them whole."""
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        # A reasoning that is no text (an object, a list) is some vendor's own; its text stands in another field.
        if isinstance(reasoning, str):
            self._answer.reasoning(reasoning)
        content = delta.get("content") or delta.get("refusal")
        if content:
            take_content(content, self._answer)
        calls = delta.get("tool_calls")
        if calls:
            for place, entry in enumerate([calls] if isinstance(calls, dict) else list_of(calls)):
                self._call(entry if type(entry) is dict else object_of(entry), place if complete else None)
        legacy = delta.get("function_call")
        if legacy:
            self._function(0, "", object_of(legacy))

    def _call(self, entry: Mapping[str, Any], place: int | None) -> None:
        # Fragments of calls are most of what comes: the checks of the usual types stand here, without a call.
        index, call_id, function = entry.get("index", place), entry.get("id"), entry.get("function")
        self._function(
            index if type(index) is int else index_of(index),
            id_of(call_id) if call_id is not None else "",
            function if type(function) is dict else object_of(function),
        )

    def _function(self, index: int | None, call_id: str, function: Mapping[str, Any]) -> None:
        name, arguments = function.get("name"), function.get("arguments")
        self._answer.fragment(
            index,
            call_id,
            text_of(name) if name is not None else "",
            arguments if type(arguments) is str else arguments_of(arguments),
        )
