"""Writes messages and tools in the form of OpenAI's Responses API. Pure; sends nothing, and mends nothing.

Source of the forms: OpenAI's API reference, "Create a model response", `input` and `tools`. Of the forms that the
reference allows for a message the plainest is used, type, role and a text: it is the one that vLLM and llama.cpp,
which follow the reference less far, take for the assistant as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from echokit_py.llm.base import Message, Tool

Item = dict[str, Any]
"""One item of `input`."""


def to_input(
    messages: Sequence[Message], reasoning: Mapping[str, Sequence[Item]] | None = None
) -> tuple[str, list[Item]]:
    """Return the instructions ("" when there are none) and the input items that say what `messages` say.

    Args:
        messages: what `message_rules.check` takes. Their `reasoning_content` has no place in this API and is left out.
        reasoning: encrypted reasoning by the id of the call it led to. It goes along with the calls of the current
            turn only: models pass over what they thought before the last question.
    """
    instructions: list[str] = []
    items: list[Item] = []
    question = max((n for n, message in enumerate(messages) if message["role"] == "user"), default=0)
    for n, message in enumerate(messages):
        if message["role"] == "system":
            instructions.append(message["content"])
        elif message["role"] == "tool":
            output = {"call_id": message["tool_call_id"], "output": message["content"]}
            items.append({"type": "function_call_output", **output})
        else:
            items += _message_and_calls(message, (reasoning or {}) if n > question else {})
    return "\n\n".join(instructions), items


def to_tools(tools: Sequence[Tool]) -> list[Item]:
    """Return the tools in the flat form. Not `strict`: that would refuse most schemas that tools bring along."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
            "strict": False,
        }
        for tool in tools
    ]


def _message_and_calls(message: Message, reasoning: Mapping[str, Sequence[Item]]) -> Iterator[Item]:
    """The items of a user's or assistant's message. Reasoning stands where it came: before the text, or the call."""
    calls = message.get("tool_calls", [])
    if calls:
        yield from reasoning.get(calls[0]["id"], ())
    if message.get("content"):
        yield {"type": "message", "role": message["role"], "content": message["content"]}
    for n, call in enumerate(calls):
        if n:
            yield from reasoning.get(call["id"], ())
        # Without the item's own id: with one, OpenAI insists on the reasoning item that came before it.
        function = call["function"]
        yield {
            "type": "function_call",
            "call_id": call["id"],
            "name": function["name"],
            "arguments": function["arguments"],
        }
