"""Reads the events of OpenAI's Responses API, as servers send them, into an `Answer`. Does no I/O.

Source of the events: OpenAI's API reference, "Responses streaming events". Tools that run on the server (web_search,
mcp) have events of their own names, which are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from echokit_py.llm.answer import Answer
from echokit_py.llm.base import Refusal
from echokit_py.llm.common_events import arguments_piece
from echokit_py.llm.failures import reported_error
from echokit_py.llm.fields import UnreadableEvent, arguments_of, id_of, index_of, list_of, object_of, text_of


class ResponsesReader:
    """Reads the events of one answer.

    Calls are told apart by the item's id where a server keeps it, else by the place in the output, else by the call
    id; each of the three may be missing or change with every event.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._slots: dict[tuple[str, str | int], int] = {}  # ("item" | "output" | "call", its key) → index of the call
        self._count = 0
        self._closed: set[int] = set()  # calls whose arguments came in full
        self._named: set[int] = set()
        self._called: set[int] = set()  # calls with a call id
        self._said: dict[tuple[str, str], int] = {}  # name and arguments in full → call
        self._outputs: set[int | None] = set()  # places in the output whose text came
        self._parts: set[tuple[int | None, int | None]] = set()  # the same, with the part of the message
        self._thought: dict[str, dict[str, Any]] = {}  # encrypted reasoning since the last call, by its id
        self.reasoning: dict[str, tuple[dict[str, Any], ...]] = {}
        """Encrypted reasoning, as items of the next request's input: what came before the call with this call id."""
        self._readers: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "response.output_text.delta": self._text_delta,
            "response.output_text.done": self._text_done,
            "response.refusal.delta": self._text_delta,
            "response.reasoning_text.delta": self._reasoning_delta,
            "response.reasoning_summary_text.delta": self._reasoning_delta,
            "response.function_call_arguments.delta": self._arguments_delta,
            "response.function_call_arguments.done": self._arguments_done,
            "response.output_item.added": self._item_added,
            "response.output_item.done": self._item_done,
            "response.completed": self._completed,
            "response.done": self._completed,
            "response.incomplete": self._incomplete,
            "response.failed": self._failed,
            "response.cancelled": self._failed,
            "error": self._failed,
        }

    def read(self, value: object, event: str = "") -> None:
        """Take in one event. Raises UnreadableEvent."""
        if value is None:
            return
        if not isinstance(value, dict):
            raise UnreadableEvent(f"{type(value).__name__} instead of an event")
        kind = value.get("type")
        reader = self._readers.get(kind if isinstance(kind, str) else event)
        if reader is not None:
            reader(value)
        elif value.get("error") and not isinstance(kind, str):
            self._failed(value)

    def read_common(self, data: bytes) -> bool:
        """Take in an event if it is one of those that long arguments consist of; say whether it was."""
        piece = arguments_piece(data)
        slot = None if piece is None else self._slots.get(("item", piece.item_id))
        if piece is None or slot is None:
            return False
        self._answer.fragment(slot, "", "", piece.delta)
        return True

    def read_whole(self, body: object) -> None:
        """Take in a response that came in one piece. Raises UnreadableEvent when it is none."""
        if not isinstance(body, dict) or not isinstance(body.get("output"), list):
            raise UnreadableEvent("no response")
        self._completed({"response": body})

    def end(self) -> None:
        """Take the end of the stream: nothing is kept back here."""

    # Text

    def _text_delta(self, event: Mapping[str, Any]) -> None:
        self._text(event, text_of(event.get("delta")))

    def _text_done(self, event: Mapping[str, Any]) -> None:
        """Take in a part of a text once more in full: it is new only where no delta brought it."""
        if _part(event) not in self._parts:
            self._text(event, text_of(event.get("text")))

    def _text(self, event: Mapping[str, Any], text: str) -> None:
        if text:
            part = _part(event)
            self._parts.add(part)
            self._outputs.add(part[0])
            self._answer.content(text)

    def _reasoning_delta(self, event: Mapping[str, Any]) -> None:
        self._answer.reasoning(text_of(event.get("delta")))

    def _keep_reasoning(self, item: Mapping[str, Any]) -> None:
        """Note an item of encrypted reasoning, and which call it led to. One that isn't encrypted is no input."""
        kind, encrypted = item.get("type"), item.get("encrypted_content")
        if kind == "reasoning" and isinstance(encrypted, str) and encrypted:
            item_id = id_of(item.get("id"))
            summary = [object_of(part) for part in list_of(item.get("summary"))]
            self._thought[item_id] = {
                "type": "reasoning",
                **({"id": item_id} if item_id else {}),
                "summary": [{"type": "summary_text", "text": text_of(part.get("text"))} for part in summary],
                "encrypted_content": encrypted,
            }
        elif kind == "function_call" and self._thought:
            self.reasoning.setdefault(id_of(item.get("call_id")), tuple(self._thought.values()))
            self._thought = {}

    # Calls

    def _arguments_delta(self, event: Mapping[str, Any]) -> None:
        self._answer.fragment(self._slot_of_event(event), "", "", arguments_of(event.get("delta")))

    def _arguments_done(self, event: Mapping[str, Any]) -> None:
        slot = self._slot_of_event(event)
        self._closed.add(slot)
        self._answer.whole(slot, "", text_of(event.get("name")), arguments_of(event.get("arguments")))

    def _item_added(self, event: Mapping[str, Any]) -> None:
        item = object_of(event.get("item"))
        if item.get("type") == "function_call":
            keys = _keys(item, event)
            output, call = keys.get("output"), keys.get("call")
            taken = self._slots.get(("output", output)) if output is not None else None
            if call is not None and ("call", call) not in self._slots and taken in self._called:
                slot = self._open(keys)  # the place was used before: another call
            else:
                slot = self._slot(keys)
            self._name(slot, item)
            self._answer.fragment(slot, str(call or ""), text_of(item.get("name")), arguments_of(item.get("arguments")))

    def _item_done(self, event: Mapping[str, Any]) -> None:
        item = object_of(event.get("item"))
        self._keep_reasoning(item)
        if item.get("type") == "message":
            if index_of(event.get("output_index")) not in self._outputs:
                self._text(event, _text_of_message(item))
        elif item.get("type") == "function_call":
            self._whole_call(self._slot(_keys(item, event)), item)

    def _whole_call(self, slot: int, item: Mapping[str, Any]) -> None:
        self._closed.add(slot)
        self._name(slot, item)
        name, arguments = text_of(item.get("name")), arguments_of(item.get("arguments"))
        self._said[name, arguments] = slot
        cut = item.get("status") == "incomplete"
        self._answer.whole(slot, id_of(item.get("call_id")), name, arguments, cut=cut)

    def _name(self, slot: int, item: Mapping[str, Any]) -> None:
        if item.get("call_id"):
            self._called.add(slot)
        if item.get("name"):
            self._named.add(slot)

    def _slot_of_event(self, event: Mapping[str, Any]) -> int:
        return self._slot(_keys({"id": event.get("item_id"), "call_id": event.get("call_id")}, event))

    def _slot(self, keys: dict[str, str | int]) -> int:
        """Return the call that an event means by what it says of the item, opening one where it is new."""
        for key in ("item", "call", "output"):
            if key in keys and (key, keys[key]) in self._slots:
                return self._slots[key, keys[key]]
        # Without a place in the output, an id never seen is a rotating one, or that of an item yet to be announced.
        last = self._count - 1
        if "output" not in keys and last >= 0:
            if "call" in keys and last not in self._named:
                self._slots.update({(key, value): last for key, value in keys.items()})
                return last
            if "call" not in keys and last not in self._closed:
                return last
        return self._open(keys)

    def _open(self, keys: dict[str, str | int]) -> int:
        slot = self._count
        self._count += 1
        self._slots.update({(key, value): slot for key, value in keys.items()})
        return slot

    # Ends

    def _completed(self, event: Mapping[str, Any]) -> None:
        response = object_of(event.get("response"))
        if response.get("status") in ("failed", "cancelled"):
            self._failed(event)
            return
        self._output(list_of(response.get("output")))
        if response.get("status") == "incomplete":
            self._incomplete(event)
            return
        self._answer.finish("tool_calls" if self._count else "stop")
        self._answer.end_of_stream()

    def _output(self, output: list[Any]) -> None:
        """Take in the whole output as the last event repeats it: what is new in it, and the calls as they count."""
        answer = self._answer
        items = [object_of(item) for item in output]
        for item in items:
            self._keep_reasoning(item)
        if not answer.has_text:
            for item in items:
                if item.get("type") == "message":
                    answer.content(_text_of_message(item))
        calls = [item for item in items if item.get("type") == "function_call"]
        in_order = len(calls) == self._count  # then their order tells which is which, should the ids not
        for place, item in enumerate(calls):
            self._whole_call(self._slot_of_output(item, place if in_order else None), item)

    def _slot_of_output(self, item: Mapping[str, Any], place: int | None) -> int:
        keys = _keys(item, {})
        known = [self._slots[key, value] for key, value in keys.items() if (key, value) in self._slots]
        if known:
            return known[0]
        if place is not None:
            return place
        # With every id changed, a call that came before word for word is no second one.
        said = self._said.get((text_of(item.get("name")), arguments_of(item.get("arguments"))))
        return self._open(keys) if said is None else said

    def _incomplete(self, event: Mapping[str, Any]) -> None:
        response = object_of(event.get("response"))
        reason = text_of(object_of(response.get("incomplete_details")).get("reason"))
        self._answer.finish("content_filter" if reason == "content_filter" else "length")
        self._answer.end_of_stream()

    def _failed(self, event: Mapping[str, Any]) -> None:
        response = object_of(event.get("response"))
        self._answer.fail(reported_error(response.get("error") or event.get("error") or event), Refusal.STREAM_ERROR)


def _keys(item: Mapping[str, Any], event: Mapping[str, Any]) -> dict[str, str | int]:
    """Return what an event says of the item it belongs to."""
    keys: dict[str, str | int] = {}
    item_id, call_id, output = id_of(item.get("id")), id_of(item.get("call_id")), index_of(event.get("output_index"))
    if item_id:
        keys["item"] = item_id
    if call_id:
        keys["call"] = call_id
    if output is not None:
        keys["output"] = output
    return keys


def _part(event: Mapping[str, Any]) -> tuple[int | None, int | None]:
    return index_of(event.get("output_index")), index_of(event.get("content_index"))


def _text_of_message(item: Mapping[str, Any]) -> str:
    parts = [object_of(part) for part in list_of(item.get("content"))]
    return "".join(text_of(part.get("text") or part.get("refusal")) for part in parts)
