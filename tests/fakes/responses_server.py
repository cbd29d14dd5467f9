"""A scripted server of OpenAI's streaming Responses API on a real loopback socket. Answers, understands nothing.

Source: OpenAI's API reference, "Create a model response" and "Streaming events"
(platform.openai.com/docs/api-reference/responses-streaming): a 200 answer of type `text/event-stream`; each event has a
line `event: TYPE`, a line `data: {"type": TYPE, "sequence_number": N, …}` and a blank line. In order:
`response.created` and `response.in_progress` with the response so far; for each item of the output
`response.output_item.added`, its deltas and `.done` events (`response.content_part.added`,
`response.output_text.delta`; `response.function_call_arguments.delta`; `response.reasoning_summary_text.delta`),
`response.output_item.done` with the item in full; at last `response.completed`, `response.incomplete` or
`response.failed` with the whole response. There is no `[DONE]`. A tool that runs at the server is an item of its own
(`web_search_call`, `mcp_call`) with events of its own. Errors are `{"error": {message, type, param, code}}` with a
status, or an event `error` within the stream.

How it is scripted is in `scripted_server.py`; what it refuses in `responses_rules.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.fakes.responses_rules import refusal
from tests.fakes.scripted_server import Answer, Api, End, Piece, Script, ScriptedServer, faults_of

Item = dict[str, Any]


class Stream:
    """The events of one answer, written item by item. `pieces` is the body so far."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._output: list[Item] = []
        self._number = 0
        for kind in ("created", "in_progress"):
            self.event(f"response.{kind}", response=self._response("in_progress"))

    def event(self, kind: str, **members: Any) -> None:
        """Write one event."""
        data = {"type": kind, **members, "sequence_number": self._number}
        self._number += 1
        self.pieces.append(f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode())

    def message(self, *texts: str | asyncio.Event) -> None:
        """A message, one delta for each text; an event among them holds the stream there."""
        place, item_id = len(self._output), f"msg_{len(self._output)}"
        item: Item = {"id": item_id, "type": "message", "status": "in_progress", "content": [], "role": "assistant"}
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
        where = {"item_id": item_id, "output_index": place, "content_index": 0}
        self.event("response.output_item.added", output_index=place, item=item)
        self.event("response.content_part.added", **where, part=part)
        for text in texts:
            if isinstance(text, asyncio.Event):
                self.pieces.append(text)
            else:
                self.event("response.output_text.delta", **where, delta=text, logprobs=[], obfuscation="x9")
        whole = "".join(text for text in texts if isinstance(text, str))
        self.event("response.output_text.done", **where, text=whole, logprobs=[])
        self.event("response.content_part.done", **where, part={**part, "text": whole})
        self._done(place, {**item, "status": "completed", "content": [{**part, "text": whole}]})

    def call(self, call_id: str, name: str, arguments: str, size: int = 4) -> None:
        """A call of a function; its arguments come in fragments of `size` characters."""
        place, item_id = len(self._output), f"fc_{len(self._output)}"
        head = {"id": item_id, "type": "function_call", "status": "in_progress", "arguments": ""}
        item: Item = {**head, "call_id": call_id, "name": name}
        where = {"item_id": item_id, "output_index": place}
        self.event("response.output_item.added", output_index=place, item=item)
        for start in range(0, len(arguments), size):
            delta = arguments[start : start + size]
            self.event("response.function_call_arguments.delta", **where, delta=delta, obfuscation="x9")
        self.event("response.function_call_arguments.done", **where, arguments=arguments)
        self._done(place, {**item, "status": "completed", "arguments": arguments})

    def reasoning(self, summary: str, encrypted: str) -> None:
        """A thought: its summary, and all of it encrypted ("" for a request that didn't include it)."""
        place, item_id = len(self._output), f"rs_{len(self._output)}"
        item: Item = {"id": item_id, "type": "reasoning", "summary": []}
        item |= {"encrypted_content": f"{encrypted}-so-far"} if encrypted else {}
        where = {"item_id": item_id, "output_index": place, "summary_index": 0}
        self.event("response.output_item.added", output_index=place, item=item)
        if summary:
            self.event("response.reasoning_summary_part.added", **where, part={"type": "summary_text", "text": ""})
            self.event("response.reasoning_summary_text.delta", **where, delta=summary)
            self.event("response.reasoning_summary_text.done", **where, text=summary)
            item = {**item, "summary": [{"type": "summary_text", "text": summary}]}
        self._done(place, item | ({"encrypted_content": encrypted} if encrypted else {}))

    def web_search(self, query: str) -> None:
        """A search that the server runs itself."""
        place, item_id = len(self._output), f"ws_{len(self._output)}"
        item: Item = {"id": item_id, "type": "web_search_call", "status": "in_progress"}
        self.event("response.output_item.added", output_index=place, item=item)
        for kind in ("in_progress", "searching", "completed"):
            self.event(f"response.web_search_call.{kind}", output_index=place, item_id=item_id)
        self._done(place, {**item, "status": "completed", "action": {"type": "search", "query": query}})

    def mcp(self, name: str, arguments: str, output: str) -> None:
        """A tool of an MCP server that the server calls itself, after it asked for the list of its tools."""
        tools: Item = {"id": f"mcpl_{len(self._output)}", "type": "mcp_list_tools", "server_label": "home", "tools": []}
        self.event("response.output_item.added", output_index=len(self._output), item=tools)
        self._done(len(self._output), tools)
        place, item_id = len(self._output), f"mcp_{len(self._output)}"
        item: Item = {"id": item_id, "type": "mcp_call", "name": name, "server_label": "home", "arguments": ""}
        where = {"item_id": item_id, "output_index": place}
        self.event("response.output_item.added", output_index=place, item=item)
        self.event("response.mcp_call.in_progress", **where)
        self.event("response.mcp_call_arguments.delta", **where, delta=arguments)
        self.event("response.mcp_call_arguments.done", **where, arguments=arguments)
        self.event("response.mcp_call.completed", **where)
        self._done(place, {**item, "arguments": arguments, "output": output})

    def completed(self) -> Answer:
        """The end of a good answer."""
        self.event("response.completed", response=self._response("completed"))
        return Answer(self.pieces)

    def incomplete(self, reason: str = "max_output_tokens") -> Answer:
        """The end of an answer that was cut."""
        details = {"incomplete_details": {"reason": reason}}
        self.event("response.incomplete", response=self._response("incomplete") | details)
        return Answer(self.pieces)

    def failed(self, code: str, message: str) -> Answer:
        """The end of an answer that the server couldn't finish."""
        error = {"error": {"code": code, "message": message}}
        self.event("response.failed", response=self._response("failed") | error)
        return Answer(self.pieces)

    def _done(self, place: int, item: Item) -> None:
        self._output.append(item)
        self.event("response.output_item.done", output_index=place, item=item)

    def _response(self, state: str) -> dict[str, Any]:
        head = {"id": "resp_1", "object": "response", "created_at": 1_700_000_000, "status": state, "model": "fake"}
        return {**head, "error": None, "incomplete_details": None, "store": False, "output": list(self._output)}


def say(*texts: str | asyncio.Event, reasoning: str = "") -> Answer:
    """The text, one delta for each argument; an event among them holds the stream there."""
    stream = Stream()
    if reasoning:
        stream.reasoning(reasoning, "")
    stream.message(*texts)
    return stream.completed()


def call(*calls: tuple[str, str, str], text: str = "", encrypted: str = "", size: int = 4) -> Answer:
    """Calls of functions, each (call id, name, arguments), after a thought and a text where these are given."""
    stream = Stream()
    if encrypted:
        stream.reasoning("", encrypted)
    if text:
        stream.message(text)
    for call_id, name, arguments in calls:
        stream.call(call_id, name, arguments, size)
    return stream.completed()


def broken_off(*texts: str, end: End = "reset") -> Answer:
    """An answer that ends in the middle, after these deltas."""
    return Answer(list(_until_text_is_done(say(*texts))), end=end)


def error_event(message: str, code: str | None = "server_error") -> Piece:
    """An `error` event as it stands within a stream."""
    data = {"type": "error", "code": code, "message": message, "param": None, "sequence_number": 9}
    return f"event: error\ndata: {json.dumps(data)}\n\n".encode()


def _until_text_is_done(answer: Answer) -> Iterator[Piece]:
    for piece in answer.pieces:
        if isinstance(piece, bytes) and b"response.output_text.done" in piece:
            return
        yield piece


ANSWER = say("Hello. ", "I am here.")
_TWO_DELTAS: Sequence[Piece] = list(_until_text_is_done(ANSWER))

FAULTS = faults_of(
    ANSWER,
    stall=broken_off("Hello. ", "I am", end="hang"),
    cut_middle=[*_TWO_DELTAS[:-1], ANSWER.body[:30]],
)
"""What the faults that all fakes know mean here."""

API = Api("/v1/responses", refusal, FAULTS)


class ResponsesServer(ScriptedServer):
    """The server. With `strict` it refuses what OpenAI refuses."""

    def __init__(self, *answers: Script, strict: bool = True) -> None:
        super().__init__(API, answers or [say("Hello there.")], strict=strict)
