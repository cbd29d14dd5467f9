"""What a list of chat messages must look like so that every server takes it: `check`. Mends nothing, does no I/O.

The facts come from OpenAI's reference of chat completions, llama.cpp's parser (`common/chat.cpp`), and the chat
templates of Mistral and Gemma, which refuse roles that don't alternate.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from echokit_py.llm.base import Message
from echokit_py.text.unicode import is_utf8

CALL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that OpenAI takes; to be used with `fullmatch`."""


def check(messages: Sequence[Message], *, strict: bool = False) -> list[str]:
    """Return the faults of a request's messages, each a sentence with the place; [] when there are none.

    `strict` asks for what the plainest templates take: no tool messages, user and assistant in turn. Without it a
    user message may follow a tool message, which is what an interrupted turn leaves behind.
    """
    faults = [f"{place}: {fault}" for place, fault in _faults(messages)]
    if strict:
        faults += [f"message {n}: a tool step" for n, message in enumerate(messages) if _is_tool_step(message)]
    return faults


def read_arguments(text: str) -> dict[str, Any] | None:
    """Read a call's arguments as strict JSON (RFC 8259); None when they aren't an object.

    What a C++ server's parser refuses is no object here either: numbers beyond a double, lone surrogates.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_finite_int)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError("a number beyond a double")
    return value


def _finite_int(digits: str) -> int:
    _finite(digits)
    return int(digits)


def _is_tool_step(message: Message) -> bool:
    return message.get("role") == "tool" or "tool_calls" in message


def _faults(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    if not messages:
        yield "messages", "there are none"
        return
    open_ids: list[object] = []  # calls that wait for their tool message, in order
    seen_ids: set[str] = set()
    before = ""
    for n, message in enumerate(messages):
        place, role = f"message {n}", message.get("role")
        if role == "tool":
            yield from ((place, fault) for fault in _tool_faults(message, open_ids))
        elif open_ids:
            yield place, f"call {open_ids[0]!r} has no tool message"
            open_ids = []
        yield from ((place, fault) for fault in _order_faults(str(role), before))
        yield from ((place, fault) for fault in _content_faults(message))
        if role == "assistant":
            yield from ((place, fault) for fault in _call_faults(message, seen_ids))
            open_ids = [call.get("id") for call in _calls(message)]
        before = str(role)
    if open_ids:
        yield "the end", f"call {open_ids[0]!r} has no tool message"
    elif before not in {"user", "tool"}:
        yield "the end", "the last message is not the user's or a tool's"


_MAY_FOLLOW = {
    "system": {""},
    "user": {"", "system", "assistant", "tool"},
    "assistant": {"user", "tool"},
    "tool": {"assistant", "tool"},
}


def _order_faults(role: str, before: str) -> Iterator[str]:
    allowed = _MAY_FOLLOW.get(role)
    if allowed is None:
        yield f"role {role!r}"
    elif before not in allowed:
        yield f"{role} after {before or 'nothing'}"


def _tool_faults(message: Message, open_ids: list[object]) -> Iterator[str]:
    if not open_ids:
        yield "a tool message without a call"
    elif (expected := open_ids.pop(0)) != message.get("tool_call_id"):
        yield f"the tool message of {message.get('tool_call_id')!r} where {expected!r} is due"


def _content_faults(message: Message) -> Iterator[str]:
    content = message.get("content")
    if not all(is_utf8(text) for text in _strings(message)):
        yield "text that is not UTF-8"
    if content is None and message.get("role") == "assistant" and _calls(message):
        return
    if not isinstance(content, str):
        yield "content is not text"
    elif not content.strip():
        yield "content is empty"


def _call_faults(message: Message, seen_ids: set[str]) -> Iterator[str]:
    if "tool_calls" in message and (not (calls := _calls(message)) or calls != message["tool_calls"]):
        yield "tool_calls is not a list of calls"
    for call in _calls(message):
        call_id, function = call.get("id"), call.get("function")
        if call.get("type") != "function":
            yield "a call whose type is not function"
        if not isinstance(call_id, str) or not call_id.strip():
            yield "a call without an id"
        elif call_id in seen_ids:
            yield f"call id {call_id!r} a second time"
        else:
            seen_ids.add(call_id)
        yield from _function_faults(function if isinstance(function, dict) else {})


def _function_faults(function: dict[str, Any]) -> Iterator[str]:
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or CALL_NAME.fullmatch(name) is None:
        yield f"call name {name!r}"
    if not isinstance(arguments, str) or read_arguments(arguments) is None:
        yield "arguments that are not a JSON object"


def _calls(message: Message) -> list[dict[str, Any]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _strings(value: object) -> Iterator[str]:
    """All strings inside `value`, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
