"""Turns the result of an MCP tool into words for the model. Pure; decides nothing about what is done with them.

The kinds of content are those of the MCP specification up to 2025-11-25 (server/tools, "Tool Result") and 2026-07-28.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from echokit_py.log import sanitize
from echokit_py.tools.base import ToolResult

if TYPE_CHECKING:
    from mcp import types

NO_OUTPUT = "The tool has finished, with no output."
NO_REASON = "The tool failed and gave no reason."

MAX_NAME = 200  # of a resource: a model needs to tell it from others, not to read it
MAX_CLUSTER = 32  # characters that belong to one that is seen; more are a prank

# Escape sequences of terminals, then control characters but line feed and tab, lone surrogates, which no JSON of a
# request can hold, and the marks that turn the direction of writing.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_HOSTILE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_JOINER = "\u200d"
_MODIFIERS = re.compile("[\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")


def tool_result(result: types.CallToolResult, limit_chars: int) -> ToolResult:
    """What the model reads: never empty, at most `limit_chars` characters with the note that something is missing.

    Text is kept, structured content is added as JSON unless a text says the same, and what a model can't read is named
    with its type and size. An error keeps its text and is marked `is_error`.
    """
    texts: list[str] = []
    length = 0
    for part in _parts(result.content):
        if length > limit_chars:
            break
        texts.append(_clean(part, limit_chars))
        length += len(texts[-1])
    structured = result.structured_content
    if structured is not None and length <= limit_chars and not _says(result.content, structured):
        texts.append(_clean(_json(structured, limit_chars - length), limit_chars))
    text = "\n".join(part for part in texts if part)
    if not text:
        text = NO_REASON if result.is_error else NO_OUTPUT
    return ToolResult(shortened(text, limit_chars), is_error=result.is_error)


def shortened(text: str, limit: int) -> str:
    """`text`, or as much of it as leaves room for a note that it was cut; never between a character and its accents."""
    if len(text) <= limit:
        return text
    note = f"\n[truncated: the result is longer than {limit} characters]"
    return text[: _cut(text, max(0, limit - len(note)))] + note


def _cut(text: str, at: int) -> int:
    """The nearest place from `at` back where no character is torn from what combines with it."""
    for place in range(at, max(0, at - MAX_CLUSTER), -1):
        if not _combines(text[place]) and text[place - 1] != _JOINER:
            return place
    return at


def _combines(character: str) -> bool:
    return unicodedata.category(character).startswith("M") or _MODIFIERS.match(character) is not None


def _clean(text: str, limit: int) -> str:
    """Without what could harm a terminal, a log or a request; blank becomes "". Looks at what may be kept only."""
    if not text:
        return ""
    text = _LINE_ENDS.sub("\n", text[: 2 * limit + 1])
    text = _HOSTILE.sub("", _ESCAPES.sub("", text))
    return _SURROGATES.sub("\ufffd", text).strip()


def _parts(content: Sequence[types.ContentBlock]) -> Iterator[str]:
    for block in content:
        match block.type:
            case "text":
                yield block.text
            case "image" | "audio":
                yield f"[{block.type}: {_kind(block.mime_type)}, {_size(block.data)}; you can't see or hear it]"
            case "resource_link":
                yield _link(block)
            case _:
                yield _resource(block.resource)


def _link(link: types.ResourceLink) -> str:
    about = [sanitize(link.uri, MAX_NAME), _kind(link.mime_type)]
    if link.size is not None:
        about.append(f"{link.size} bytes")
    text = f"[link to a resource: {sanitize(link.title or link.name, MAX_NAME)} ({', '.join(filter(None, about))})]"
    return f"{text}\n{link.description}" if link.description else text


def _resource(resource: types.TextResourceContents | types.BlobResourceContents) -> str:
    about = ", ".join(filter(None, (sanitize(resource.uri, MAX_NAME), _kind(resource.mime_type))))
    text = getattr(resource, "text", None)
    if text is not None:
        return f"[resource: {about}]\n{text}"
    return f"[resource: {about}, {_size(getattr(resource, 'blob', ''))}; you can't see or hear it]"


def _kind(mime_type: str | None) -> str:
    return sanitize(mime_type or "", 80)


def _size(base64: str) -> str:
    number = len(base64) * 3 // 4 - base64[-2:].count("=")
    return f"{max(0, number)} bytes"


def _says(content: Sequence[types.ContentBlock], structured: Any) -> bool:
    """Whether the texts say what the structured content says.

    Servers repeat it as one text of JSON (the specification asks for that). Those of the SDK wrap what isn't an object
    as {"result": …}, and write a list as one text for each item.
    """
    texts = [block.text for block in content if block.type == "text" and block.text]
    if not texts:
        return False
    values = [_value(text) for text in texts]
    said: list[Any] = [*values, *texts, values, texts, "\n".join(texts)]
    wrapped = isinstance(structured, dict) and structured.keys() == {"result"}
    return structured in said or (wrapped and structured["result"] in said)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _some(value: Any, left: list[int]) -> Any:
    """`value`, or so much of it that its JSON is longer than `left` characters: encoding 10 MB takes 150 ms."""
    left[0] -= 1
    match value:
        case str():
            some = value[: max(0, left[0]) + 2]
            left[0] -= len(some)
            return some
        case dict():
            items = takewhile(lambda _: left[0] >= 0, value.items())
            return {_some(name, left): _some(item, left) for name, item in items}
        case list():
            return [_some(item, left) for item in takewhile(lambda _: left[0] >= 0, value)]
    return value


def _json(value: Any, limit: int) -> str:
    """`value` as JSON, written no further than what may be kept."""
    pieces: list[str] = []
    length = 0
    try:
        for piece in json.JSONEncoder(ensure_ascii=False).iterencode(_some(value, [limit])):
            pieces.append(piece)
            length += len(piece)
            if length > limit:
                break
    except RecursionError:
        return "[structured content that is nested too deep]"
    return "".join(pieces)
