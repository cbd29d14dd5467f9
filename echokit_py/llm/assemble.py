"""`echokit-py assemble`: shows what was understood of a recorded answer, what was refused, and why. Runs no tool."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from echokit_py.llm.base import Tool
from echokit_py.llm.stream import ChatStream, Outcome, ResponsesStream

Api = Literal["chat", "responses"]

_READ_SIZE = 64 * 1024


class ToolsError(ValueError):
    """TOOLS.json is not a list of names or of tool objects."""


def assemble(chunks: Iterable[bytes], api: Api, tools: Sequence[str | Tool] | None) -> dict[str, Any]:
    """Return what an answer says, as the command prints it; `arguments` are Python objects.

    Args:
        chunks: the body of the response, in pieces of any size; that it ends counts as a normal end of the connection.
        api: the API it was sent by.
        tools: the tools offered; None when they are not known, so that every name passes.
    """
    return _report(_outcome(chunks, api, tools), json.loads)


def read_tools(text: str) -> list[Tool]:
    """Return the tools listed in TOOLS.json: names, or OpenAI tool objects of either API. Raises ToolsError."""
    try:
        listed = json.loads(text)
    except ValueError as error:
        raise ToolsError(f"it is not JSON: {error}") from None
    if isinstance(listed, dict):
        listed = listed.get("tools")
    if not isinstance(listed, list):
        raise ToolsError("it is not a list of names or of tool objects")
    return [_tool(entry) for entry in listed]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to `parser`."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="the raw body of the answer (standard input)")
    parser.add_argument("--api", choices=("chat", "responses"), required=True, help="the API it was sent by")
    parser.add_argument("--tools", metavar="TOOLS.json", help="the tools offered: a list of names or of tool objects")
    parser.add_argument("--read-size", type=_positive, default=_READ_SIZE, metavar="N", help="feed N bytes at a time")


def run(args: argparse.Namespace) -> int:
    """Carry the command out; return its exit status: 0 when everything could be read, whatever it says."""
    try:
        tools = None if args.tools is None else read_tools(Path(args.tools).read_text("utf-8"))
    except (OSError, ValueError) as error:
        return _complain(f"cannot read the tools from {args.tools}: {error}")
    try:
        outcome = _outcome(_chunks(args.file, args.read_size), args.api, tools)
    except OSError as error:
        return _complain(f"cannot read {args.file or 'standard input'}: {error}")
    # The arguments stand as the model wrote them, so that no number changes on the way.
    report = _report(outcome, lambda arguments: msgspec.Raw(arguments.encode()))
    sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    return 0


def _outcome(chunks: Iterable[bytes], api: Api, tools: Sequence[str | Tool] | None) -> Outcome:
    stream = ChatStream(tools) if api == "chat" else ResponsesStream(tools)
    for chunk in chunks:
        stream.feed(chunk)
    return stream.close(clean=True)


def _report(outcome: Outcome, read_arguments: Any) -> dict[str, Any]:
    step = outcome.step
    refused = [{"name": call.name, "raw": call.raw, "reason": str(call.reason)} for call in step.refused]
    if outcome.call_text and not step.calls:
        refused.append({"name": "", "raw": outcome.call_text, "reason": "written_as_text"})
    return {
        "text": step.text,
        "reasoning": step.reasoning,
        "finish_reason": step.finish_reason,
        "calls": [
            {"id": call.id, "name": call.name, "arguments": read_arguments(call.arguments)} for call in step.calls
        ],
        "refused": refused,
        "error": None if outcome.error is None else str(outcome.error),
    }


def _tool(entry: object) -> Tool:
    if isinstance(entry, str):
        return Tool(entry, "", {})
    if isinstance(entry, dict):
        function = entry.get("function", entry)
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            return Tool(function["name"], "", parameters if isinstance(parameters, dict) else {})
    raise ToolsError(f"{json.dumps(entry)[:80]} is no name and no tool object")


def _chunks(file: str | None, size: int) -> Iterator[bytes]:
    if file is None:
        while chunk := sys.stdin.buffer.read(size):
            yield chunk
        return
    with Path(file).open("rb") as source:
        while chunk := source.read(size):
            yield chunk


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _complain(message: str) -> int:
    sys.stderr.write(f"echokit-py assemble: {message}\n")
    return 1
