"""What OpenAI's Responses API refuses of a request, as far as a client of ours could get it wrong. Pure.

Source: OpenAI's API reference, "Create a model response" (platform.openai.com/docs/api-reference/responses/create),
the guides "Conversation state" and "Reasoning" (stateless use), and the words of its 400 answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

PARAMETERS = frozenset(
    "background conversation include input instructions max_output_tokens max_tool_calls metadata model"
    " parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_retention reasoning"
    " safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs"
    " top_p truncation user".split()
)
_INCLUDE = frozenset({"reasoning.encrypted_content", "message.output_text.logprobs", "web_search_call.action.sources"})
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# All members of the items that we send. Others are allowed by OpenAI; that we send them would be a mistake.
_MEMBERS = {
    "message": {"type", "role", "content"},
    "function_call": {"type", "call_id", "name", "arguments"},
    "function_call_output": {"type", "call_id", "output"},
    "reasoning": {"type", "id", "summary", "encrypted_content"},
}


def refusal(body: dict[str, Any]) -> list[str]:
    """Return what is wrong with a request, each a sentence as OpenAI words it; [] for a good one."""
    return [*_request(body), *(_input(body["input"]) if isinstance(body.get("input"), list) else ())]


def _request(body: dict[str, Any]) -> Iterator[str]:
    for name in sorted(set(body) - PARAMETERS):
        yield f"Unknown parameter: '{name}'."
    if not isinstance(body.get("model"), str):
        yield "Missing required parameter: 'model'."
    if not isinstance(body.get("input"), list) or not body["input"]:
        yield "Missing required parameter: 'input'."
    if body.get("previous_response_id") is not None:
        yield "Previous response with id 'resp_0' not found."
    if not isinstance(body.get("instructions", ""), str):
        yield "Invalid type for 'instructions': expected a string."
    for value in body.get("include", []):
        if value not in _INCLUDE:
            yield f"Invalid value: '{value}'. Supported values are: {', '.join(sorted(_INCLUDE))}."
    for n, tool in enumerate(body.get("tools", [None])):
        yield from _tool(n, tool) if isinstance(tool, dict) else ()


def _tool(n: int, tool: dict[str, Any]) -> Iterator[str]:
    if tool.get("type") == "function":
        if not isinstance(tool.get("name"), str) or _NAME.fullmatch(tool["name"]) is None:
            yield f"Missing required parameter: 'tools[{n}].name'."
        if not isinstance(tool.get("parameters"), dict) or not isinstance(tool.get("strict"), bool):
            yield f"Missing required parameter: 'tools[{n}].parameters'."
        if unknown := set(tool) - {"type", "name", "description", "parameters", "strict"}:
            yield f"Unknown parameter: 'tools[{n}].{min(unknown)}'."
    elif not isinstance(tool.get("type"), str):
        yield f"Missing required parameter: 'tools[{n}].type'."


def _input(items: Sequence[dict[str, Any]]) -> Iterator[str]:
    waiting: list[str] = []  # calls without their output
    called: set[str] = set()
    for n, item in enumerate(items):
        place = f"input[{n}]"
        yield from _members(place, item)
        match item.get("type"):
            case "message":
                yield from _message(place, item)
            case "function_call":
                yield from _call(place, item, called)
                waiting.append(item["call_id"])
                called.add(item["call_id"])
            case "function_call_output":
                if not isinstance(item.get("output"), str):
                    yield f"Invalid type for '{place}.output': expected a string."
                if item.get("call_id") in waiting:
                    waiting.remove(item["call_id"])
                else:
                    yield f"No tool call found for function call output with call_id {item.get('call_id')}."
            case "reasoning":
                yield from _reasoning(place, item, items[n + 1 :])
    for call_id in waiting:
        yield f"No tool output found for function call {call_id}."


def _members(place: str, item: dict[str, Any]) -> Iterator[str]:
    kind = item.get("type")
    if kind not in _MEMBERS:
        yield f"Invalid value: '{kind}' for '{place}.type'."
        return
    for name in sorted(set(item) - _MEMBERS[kind]):
        yield f"Unknown parameter: '{place}.{name}'."
    for name in sorted(_MEMBERS[kind] - set(item)):
        yield f"Missing required parameter: '{place}.{name}'."
    try:
        json.dumps(item, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        yield "We could not parse the JSON body of your request."


def _message(place: str, item: dict[str, Any]) -> Iterator[str]:
    if item.get("role") not in ("user", "assistant"):  # a system prompt belongs into the instructions
        yield f"Invalid value: '{item.get('role')}' for '{place}.role'."
    if not isinstance(item.get("content"), str) or not item["content"].strip():
        yield f"Invalid type for '{place}.content': expected a text."


def _call(place: str, item: dict[str, Any], called: set[str]) -> Iterator[str]:
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or not 1 <= len(call_id) <= 64:
        yield f"Invalid '{place}.call_id': string of 1 to 64 characters expected."
    if call_id in called:
        yield f"Duplicate function call with call_id {call_id}."
    if not isinstance(item.get("name"), str) or _NAME.fullmatch(item["name"]) is None:
        yield f"Invalid '{place}.name': string does not match pattern."
    try:
        good = isinstance(json.loads(item.get("arguments", "")), dict)
    except (ValueError, TypeError):
        good = False
    if not good:
        yield f"Invalid '{place}.arguments': not a JSON object."


def _reasoning(place: str, item: dict[str, Any], after: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not item.get("encrypted_content"):
        yield (
            f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false."
            " Try again with `store` set to true, or remove this item from your input."
        )
    following = next((other for other in after if other.get("type") != "reasoning"), {})
    if following.get("type") != "function_call" and following.get("role") != "assistant":
        yield f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
