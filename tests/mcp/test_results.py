"""Tests for echokit_py.mcp.results: what the model reads of each kind of result."""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import mcp_types as types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echokit_py.mcp.results import NO_OUTPUT, NO_REASON, shortened, tool_result
from echokit_py.tools.base import ToolResult


def text(value: str) -> types.TextContent:
    return types.TextContent(text=value)


def read(*content: types.ContentBlock, structured: Any = None, is_error: bool = False, limit: int = 8000) -> ToolResult:
    result = types.CallToolResult(content=list(content), structured_content=structured, is_error=is_error)
    return tool_result(result, limit)


def test_texts_are_joined() -> None:
    assert read(text("one"), text("  "), text("two\r\nthree\n")) == ToolResult("one\ntwo\nthree")


@pytest.mark.parametrize("content", [[], [text("")], [text(" \n\t")], [text("\x1b[0m\x00")]])
def test_nothing_is_said_to_be_nothing(content: list[types.TextContent]) -> None:
    assert read(*content) == ToolResult(NO_OUTPUT)
    assert read(*content, is_error=True) == ToolResult(NO_REASON, is_error=True)


def test_an_error_keeps_its_text_and_a_text_about_errors_is_none() -> None:
    assert read(text("the disk is full"), is_error=True) == ToolResult("the disk is full", is_error=True)
    assert read(text("Error: as the log says")) == ToolResult("Error: as the log says")


def test_what_is_no_text_is_named() -> None:
    data = base64.b64encode(b"12345").decode()
    found = read(
        types.ImageContent(data=data, mime_type="image/png"),
        types.AudioContent(data="", mime_type="audio/wav\n"),
        types.ResourceLink(
            name="log", uri="file:///log\x07", size=12, mime_type="text/plain", description="The last hour."
        ),
        types.ResourceLink(name="x", title="The X", uri="x:1"),
        types.EmbeddedResource(resource=types.TextResourceContents(uri="note://1", text="Milk.")),
        types.EmbeddedResource(resource=types.BlobResourceContents(uri="b:1", mime_type="a/b", blob=data)),
    )
    assert found.text.splitlines() == [
        "[image: image/png, 5 bytes; you can't see or hear it]",
        "[audio: audio/wav, 0 bytes; you can't see or hear it]",
        "[link to a resource: log (file:///log, text/plain, 12 bytes)]",
        "The last hour.",
        "[link to a resource: The X (x:1)]",
        "[resource: note://1]",
        "Milk.",
        "[resource: b:1, a/b, 5 bytes; you can't see or hear it]",
    ]


@pytest.mark.parametrize(
    ("texts", "structured"),
    [
        (['{"b": [1, 2.5], "a": null}'], {"a": None, "b": [1, 2.5]}),
        (["see below", '{"a": 1}'], {"a": 1}),
        (["21 degrees"], {"result": "21 degrees"}),
        (["21"], {"result": 21}),
        (["1", '"x"'], {"result": [1, "x"]}),
        (["x", "y"], ["x", "y"]),
        (["x", "y"], {"result": "x\ny"}),
    ],
)
def test_structured_content_that_a_text_says_is_not_said_twice(texts: list[str], structured: Any) -> None:
    assert read(*map(text, texts), structured=structured).text == "\n".join(texts)


def test_structured_content_that_no_text_says_is_added() -> None:
    assert read(structured={"t": 21, "where": "außen"}).text == '{"t": 21, "where": "außen"}'
    assert read(text("Done."), structured={"result": "x", "more": 1}).text == 'Done.\n{"result": "x", "more": 1}'
    assert read(text("[" * 100_000), structured={"a": 1}, limit=150_000).text.endswith('\n{"a": 1}')
    assert read(structured=[]).text == "[]"


def test_structured_content_without_end_is_cut() -> None:
    found = read(structured={"numbers": list(range(100_000))}, limit=1000).text
    assert len(found) == 1000
    assert "truncated" in found
    assert json.loads(found[: found.rindex(",")] + "]}")["numbers"][:3] == [0, 1, 2]


def test_structured_content_that_is_too_deep() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    result = types.CallToolResult.model_construct(content=[], structured_content=deep, is_error=False)
    assert tool_result(result, 1000).text == "[structured content that is nested too deep]"


def test_a_long_text_is_cut_with_a_note() -> None:
    found = read(text("é水" * 250_000), structured={"a": 1})
    assert len(found.text) == 8000
    assert found.text.endswith("\n[truncated: the result is longer than 8000 characters]")
    assert len(found.text.encode()) <= 20_000
    assert not found.is_error
    assert read(text("x" * 8000)).text == "x" * 8000


@pytest.mark.parametrize(
    ("seen", "limit"),
    [
        ("e\u0301", 100),  # an accent of its own
        ("👍🏽", 100),  # a colour of skin
        ("👩\u200d🚒", 101),  # two that are joined
        ("❤\ufe0f", 100),
        ("கி", 100),
    ],
)
def test_it_is_never_cut_between_what_belongs_together(seen: str, limit: int) -> None:
    for length in range(limit - 5, limit + 5):
        kept = shortened(seen * 200, length).partition("\n[truncated")[0]
        assert kept == seen * (len(kept) // len(seen))


def test_a_pile_of_accents_is_cut_all_the_same() -> None:
    found = shortened("a" + "\u0301" * 5000, 100)
    assert len(found) == 100
    assert len(shortened("a" * 200, 10)) > 10  # no room for the note: it is there, and nothing else
    assert shortened("a" * 200, 10).startswith("\n[truncated")


def test_hostile_text_is_harmless() -> None:
    evil = "\ufeffa\x1b[2Jb\x1b]0;title\x07c\x00\x08d\u202ee\u2066f\ud800g\u2028h\x1bMi\x9bj"
    assert read(text(evil)).text == "abcdef\ufffdg\nhij"


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=300), st.integers(100, 200))
def test_every_text_can_be_sent(value: str, limit: int) -> None:
    found = read(text(value), limit=limit).text
    found.encode()
    assert 0 < len(found) <= limit
    assert not any(unicodedata.category(each) == "Cc" and each not in "\n\t" for each in found)


class Counting(list[Any]):
    """Counts what is read of it."""

    read = 0

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            self.read += 1
            yield item


def test_of_many_parts_no_more_are_read_than_can_be_kept() -> None:
    parts = Counting([text("ab")] * 5000)
    result = types.CallToolResult.model_construct(content=parts, structured_content=None, is_error=False)
    told = tool_result(result, 100).text
    assert len(told) <= 100
    assert "truncated" in told
    assert parts.read < 60


def test_of_long_structured_content_no_more_is_written_than_can_be_kept() -> None:
    encoded: list[Any] = []

    class Encoder(json.JSONEncoder):
        def iterencode(self, o: Any, _one_shot: bool = False) -> Iterator[str]:
            encoded.append(o)
            return super().iterencode(o, _one_shot)

    for structured in ({"data": "x" * 5000}, {"data": {"list": list(range(5000))}}, {"x" * 5000: 1}):
        with patch("json.JSONEncoder", Encoder):
            told = read(structured=structured, limit=200).text
        assert json.dumps(structured)[:100] == told[:100]
        assert "truncated" in told
        assert len(json.dumps(encoded.pop())) < 2000
