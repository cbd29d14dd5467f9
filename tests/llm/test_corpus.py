"""Recorded answers of real servers and odd shapes reported from the field, read whole and in pieces.

The data stand beside the checkout (../shared/corpus) and are not part of it.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from echokit_py.llm.assemble import assemble, read_tools
from echokit_py.llm.base import Tool
from echokit_py.llm.stream import ChatStream, ResponsesStream
from tests.beside import STREAMS, Case, cases, needs_corpus, streams

READ_SIZES = (1, 7, 4096)  # bytes, besides the whole at once

pytestmark = needs_corpus


def manifest() -> list[dict[str, Any]]:
    return [entry for entry in streams() if entry["api"] in ("chat", "responses")]


def recorded() -> list[Case]:
    return [case for case in cases("sse", "toolcall") if "llm_script" not in case["input"]]


def tools_of(entry: dict[str, Any]) -> list[Tool] | None:
    if "tool_schemas" in entry:
        listed = [{"name": name, "parameters": schema} for name, schema in entry["tool_schemas"].items()]
        return read_tools(json.dumps(listed))
    return read_tools(json.dumps(entry["tools"])) if "tools" in entry else None


def read(body: bytes, size: int) -> list[bytes]:
    return [body[start : start + size] for start in range(0, len(body), size)]


def cut(body: bytes, chance: random.Random) -> Iterator[bytes]:
    start = 0
    while start < len(body):
        size = chance.choice([1, 2, 3, 7, 40, 300, 4096])
        yield body[start : start + size]
        start += size


def differences(report: dict[str, Any], expected: dict[str, Any], *, ordered: bool) -> list[str]:
    """Return what in the report is not as expected; the wording of an error doesn't count, ids only where given."""

    def plain(calls: list[dict[str, Any]]) -> list[str]:
        found = [json.dumps([call["name"], call["arguments"]], sort_keys=True) for call in calls]
        return found if ordered else sorted(found)

    wanted = {call["id"] for call in expected["calls"] if call["id"] is not None}
    ids = [call["id"] for call in report["calls"]]
    checks = {
        "text": (report["text"] or "").strip() == (expected.get("text") or "").strip(),
        "calls": plain(report["calls"]) == plain(expected["calls"]),
        "ids": wanted <= set(ids) and len(set(ids)) == len(ids) and all(ids),
        "error": bool(report["refused"] or report["error"]) == bool(expected["error"]),
    }
    return [name for name, fits in checks.items() if not fits]


@pytest.mark.parametrize("entry", manifest(), ids=lambda entry: str(entry["file"]))
def test_streams(entry: dict[str, Any]) -> None:
    body = (STREAMS / entry["file"]).read_bytes()
    tools = tools_of(entry)
    report = assemble([body], entry["api"], tools)
    readings = [entry["expect"], *({**entry["expect"], **other} for other in entry.get("accept_also", []))]
    ordered = entry.get("order_matters", True)
    found = [differences(report, reading, ordered=ordered) for reading in readings]
    assert [] in found, (found, report)

    chance = random.Random(entry["file"])
    pieces = [*(read(body, size) for size in READ_SIZES), list(cut(body, chance))]
    if "tcp_splits" in entry:
        places = [0, *entry["tcp_splits"], len(body)]
        pieces.append([body[start:end] for start, end in pairwise(places)])
    for cuts in pieces:
        assert same(assemble(cuts, entry["api"], tools), report)


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two reports say the same; ids that were made up differ each time."""
    made_up = [call["id"] for call in other["calls"]]
    for call, call_id in zip(one["calls"], made_up, strict=True):
        call["id"] = call_id if str(call_id).startswith("call_") else call["id"]
    return one == other


@pytest.mark.parametrize("case", recorded(), ids=lambda case: str(case["id"]))
def test_cases(case: Case) -> None:
    given = case["input"]
    if "wire_chunks_b64" in given:
        chunks = [base64.b64decode(chunk) for chunk in given["wire_chunks_b64"]]
    else:
        chunks = [f"data: {payload}\n\n".encode() for payload in given["payloads"]]
    whole = b"".join(chunks)
    for cuts in [chunks, [whole], *(read(whole, size) for size in READ_SIZES)]:
        assert_outcome(case, cuts)


def assert_outcome(case: dict[str, Any], chunks: list[bytes]) -> None:
    given, expected = case["input"], case["expect"]
    reader = ChatStream(given["tools"]) if given["api"] == "chat" else ResponsesStream(given["tools"])
    for chunk in chunks:
        reader.feed(chunk)
    outcome = reader.close(clean=given["end"] == "clean")
    step = outcome.step
    calls = [(call.name, json.loads(call.arguments)) for call in step.calls]
    assert calls == [(call["name"], call["arguments"]) for call in expected["dispatch"]]
    for call, wanted in zip(step.calls, expected["dispatch"], strict=True):
        assert wanted["id"] in ("*", call.id)
    assert [call.name for call in step.refused] == [call["name"] for call in expected["refused"]]
    assert [str(call.reason) for call in step.refused] == [call["reason"] for call in expected["refused"]]
    assert step.text.strip() == expected.get("text", "").strip()
    assert (outcome.error is not None) == (expected["turn"] == "failed")
    for words in expected.get("must_not_contain", []):
        assert words not in step.text
