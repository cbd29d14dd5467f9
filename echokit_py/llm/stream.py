"""Turns the body of an LLM server's answer into deltas and one outcome. Pure: the caller reads the socket.

`ChatStream` is for OpenAI's chat completions, `ResponsesStream` for its Responses API, as real servers speak them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from echokit_py.errors import ErrorKind
from echokit_py.llm.answer import Answer, Delta, Outcome
from echokit_py.llm.base import Refusal, Tool
from echokit_py.llm.chat_events import ChatReader
from echokit_py.llm.event_json import decode_event
from echokit_py.llm.failures import answer_error, reported_error
from echokit_py.llm.responses_events import ResponsesReader
from echokit_py.llm.sse import MAX_EVENT_BYTES, SseDecoder, SseError, SseEvent

__all__ = ["ChatStream", "Delta", "Outcome", "ResponsesStream"]

_PINGS = frozenset({"ping", "keepalive", "keep-alive", "heartbeat"})


class _Reader(Protocol):
    def read_common(self, data: bytes, /) -> bool: ...

    def read(self, value: object, event: str = "", /) -> None: ...

    def read_whole(self, body: object, /) -> None: ...

    def end(self) -> None: ...


class ChatStream:
    """One answer over chat completions.

    `tools`: the names offered. Arguments left out are `{}` then, and the tool's schema check answers the model. Given
    the tools themselves, such a call is refused here where the schema requires arguments. None: nothing is known of
    the tools, and no name is checked.
    """

    def __init__(self, tools: Sequence[str | Tool] | None) -> None:
        answer = Answer(tools)
        self._body = _Body(answer, ChatReader(answer))

    def feed(self, data: bytes) -> list[Delta]:
        """Take in bytes of the body; return the deltas that are certain. Never raises: the outcome says what failed."""
        return self._body.feed(data)

    @property
    def done(self) -> bool:
        """Whether nothing more is to be read: the server said so, or went wrong for good."""
        return self._body.done

    def close(self, clean: bool) -> Outcome:
        """Say how the body ended (`clean`: normally; otherwise reset) and get the outcome. Call it once."""
        return self._body.close(clean)


class ResponsesStream:
    """One answer over the Responses API; used like `ChatStream`."""

    def __init__(self, tools: Sequence[str | Tool] | None) -> None:
        answer = Answer(tools)
        self._reader = ResponsesReader(answer)
        self._body = _Body(answer, self._reader)

    @property
    def reasoning(self) -> Mapping[str, tuple[dict[str, Any], ...]]:
        """Encrypted reasoning by the call it led to: call id → items for the input of the next request."""
        return self._reader.reasoning

    def feed(self, data: bytes) -> list[Delta]:
        """Take in bytes of the body; return the deltas that are certain. Never raises: the outcome says what failed."""
        return self._body.feed(data)

    @property
    def done(self) -> bool:
        """Whether nothing more is to be read: the server said so, or went wrong for good."""
        return self._body.done

    def close(self, clean: bool) -> Outcome:
        """Say how the body ended (`clean`: normally; otherwise reset) and get the outcome. Call it once."""
        return self._body.close(clean)


class _Body:
    """The bytes of one answer: a stream of events, or something else that a server sent instead."""

    def __init__(self, answer: Answer, reader: _Reader) -> None:
        self._answer = answer
        self._reader = reader
        self._decoder = SseDecoder()
        self._sniffed: bool | None = None  # whether it is a stream; None until the first visible byte
        self._other = bytearray()

    @property
    def done(self) -> bool:
        return self._answer.done or self._answer.broken

    def feed(self, data: bytes) -> list[Delta]:
        if self.done:
            return []
        if self._is_stream(data):
            self._stream(data)
        elif len(self._other) > MAX_EVENT_BYTES:
            self._answer.overflow("the answer is too long, and no stream")
        return self._answer.take_deltas()

    def close(self, clean: bool) -> Outcome:
        if clean and not self.done:
            if self._sniffed is False:
                self._not_a_stream()
            else:
                self._end_of_stream()
        return self._answer.close(clean=clean)

    def _stream(self, data: bytes) -> None:
        try:
            events = self._decoder.feed(data)
        except SseError as error:
            self._answer.overflow(str(error))
            return
        for event in events:
            if self.done:
                break
            self._take(event)

    def _end_of_stream(self) -> None:
        for event in self._decoder.flush():
            self._take(event, last=True)
        self._read_end()

    def _is_stream(self, data: bytes) -> bool:
        """Whether the body is a stream of events, told by its first visible byte. What is none is kept."""
        if self._sniffed is None:
            first = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
            if first:
                self._sniffed = first not in b"{[<"
        if self._sniffed is False:
            self._other += data
            return False
        return True

    def _take(self, event: SseEvent, *, last: bool = False) -> None:
        data = event.data.strip()
        if data == b"[DONE]":
            self._read_end()
            self._answer.end_of_stream()
        elif not data or event.event in _PINGS:
            return
        elif event.event == "error":
            self._answer.fail(reported_error(_value(data)), Refusal.STREAM_ERROR)
        else:
            self._read(event, data, last=last)

    def _read(self, event: SseEvent, data: bytes, *, last: bool) -> None:
        if self._reader.read_common(data):
            return
        try:
            self._reader.read(decode_event(data), event.event)
        except ValueError:
            lines = data.split(b"\n")
            if len(lines) > 1 and all(_is_event(line) for line in lines):
                # Events divided by one line end instead of two.
                for line in lines:
                    if not self.done:
                        self._take(SseEvent(event.event, line))
            elif last:
                self._answer.fail(
                    answer_error(ErrorKind.BROKEN_OFF, "the stream ended inside an event"), Refusal.STREAM_CUT
                )
            else:
                self._answer.corrupt()

    def _read_end(self) -> None:
        try:
            self._reader.end()
        except ValueError:
            self._answer.corrupt()

    def _not_a_stream(self) -> None:
        """Judge a body that is no stream. A whole answer is taken: some servers don't know streaming."""
        body = _value(bytes(self._other).removeprefix(b"\xef\xbb\xbf"))
        if isinstance(body, dict) and (body.get("error") or body.get("detail") or body.get("object") == "error"):
            self._answer.fail(reported_error(body), Refusal.STREAM_ERROR)
            return
        try:
            self._reader.read_whole(body)
        except ValueError:
            kind = "a page of HTML" if self._other.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else "something"
            message = f"the server answered with {kind} that is no stream of events; is the URL that of its API?"
            self._answer.fail(answer_error(ErrorKind.BAD_ANSWER, message), Refusal.CORRUPT_EVENT)


def _value(data: bytes) -> object:
    """The JSON value of `data`, or its text where it is no JSON."""
    try:
        return decode_event(data)
    except ValueError:
        return data.decode("utf-8", "replace")


def _is_event(line: bytes) -> bool:
    if line.strip() == b"[DONE]":
        return True
    try:
        return isinstance(decode_event(line), dict)
    except ValueError:
        return False
