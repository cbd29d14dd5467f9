"""A scripted server of OpenAI's streaming chat completions on a real loopback socket. Answers, understands nothing.

Source: OpenAI's API reference, "Create chat completion" and "Streaming"
(platform.openai.com/docs/api-reference/chat-streaming): a 200 answer of type `text/event-stream`; each event is a line
`data: {…}` and a blank line; the objects are `chat.completion.chunk`s whose `choices[0].delta` brings `role`, `content`
or `tool_calls` (the first fragment of a call has index, id, type and name, the later ones index and a piece of
`function.arguments`); the last chunk has an empty delta and the `finish_reason`; then `data: [DONE]`. Errors are
`{"error": {message, type, param, code}}` with a status.

    async with ChatServer(Fault.STATUS_500, say("Hello", " there.")) as server:
        ...                                      # a client posts to server.url
        assert server.requests[0].json["stream"] is True

How it is scripted is in `scripted_server.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from echokit_py.llm.message_rules import check
from tests.fakes.scripted_server import (
    Answer,
    Api,
    End,
    Piece,
    Request,
    Script,
    ScriptedServer,
    faults_of,
    slow,
    status,
)

__all__ = ["ANSWER", "DONE", "FAULTS", "START", "Answer", "ChatServer", "End", "Request", "Script"]
__all__ += ["broken_off", "call", "chunk", "event", "say", "slow", "status"]


def event(data: object) -> bytes:
    """One server-sent event; `data` as JSON, or as it is when it is a string."""
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def chunk(delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
    """One `chat.completion.chunk` as an event."""
    choice = {"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish_reason}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "fake"}
    return event({**head, "choices": [choice]})


START = chunk({"role": "assistant", "content": ""})
DONE = event("[DONE]")


def say(*texts: str | asyncio.Event, reasoning: str = "", finish: str = "stop") -> Answer:
    """The text, one delta for each argument; an event among them holds the stream there."""
    body: list[Piece] = [START, *([chunk({"reasoning_content": reasoning})] if reasoning else [])]
    body += [text if isinstance(text, asyncio.Event) else chunk({"content": text}) for text in texts]
    return Answer([*body, chunk({}, finish), DONE])


def call(*calls: tuple[str, str, str], text: str = "", reasoning: str = "", size: int = 4) -> Answer:
    """Tool calls, each (id, name, arguments); the arguments come in fragments of `size` characters."""
    body: list[Piece] = [START, *([chunk({"reasoning_content": reasoning})] if reasoning else [])]
    body += [chunk({"content": text})] if text else []
    for index, (call_id, name, arguments) in enumerate(calls):
        first = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        body.append(chunk({"tool_calls": [first]}))
        for start in range(0, len(arguments), size):
            piece = {"index": index, "function": {"arguments": arguments[start : start + size]}}
            body.append(chunk({"tool_calls": [piece]}))
    return Answer([*body, chunk({}, "tool_calls"), DONE])


def broken_off(*texts: str, end: End = "reset") -> Answer:
    """An answer that ends in the middle, after these deltas."""
    return Answer([START, *(chunk({"content": text}) for text in texts)], end=end)


ANSWER = say("Hello. ", "I am here.")
_EVENTS = [piece for piece in ANSWER.pieces if isinstance(piece, bytes)]
_START, _HELLO, _HERE = _EVENTS[:3]

FAULTS = faults_of(
    ANSWER,
    stall=broken_off("Hello. ", "I am", end="hang"),
    cut_middle=[_START, _HELLO, _HERE[: len(_HERE) // 2]],
)
"""What the faults that all fakes know mean here."""


API = Api(
    "/v1/chat/completions",
    lambda body: [f"Invalid 'messages': {fault}" for fault in check(body["messages"])],
    FAULTS,
)


class ChatServer(ScriptedServer):
    """The server. With `strict` it refuses messages that some server would refuse."""

    def __init__(self, *answers: Script, strict: bool = True) -> None:
        super().__init__(API, answers or [say("Hello there.")], strict=strict)
