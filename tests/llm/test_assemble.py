"""`echokit-py assemble`: what a user sees of a recorded answer."""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from echokit_py.llm import assemble as command
from echokit_py.llm.assemble import ToolsError, assemble, read_tools
from echokit_py.llm.base import Tool

CALL = {"index": 0, "id": "a", "function": {"name": "count_sheep", "arguments": '{"n":1.50,"big":9007199254740993}'}}
BODY = b"".join(
    b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"
    for chunk in (
        {"choices": [{"delta": {"reasoning_content": "Hm."}}]},
        {"choices": [{"delta": {"content": "Zählen…"}}]},
        {"choices": [{"delta": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}]},
    )
)
REPORT = {
    "text": "Zählen…",
    "reasoning": "Hm.",
    "finish_reason": "tool_calls",
    "calls": [{"id": "a", "name": "count_sheep", "arguments": {"n": 1.5, "big": 9007199254740993}}],
    "refused": [],
    "error": None,
}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    status = command.run(parser.parse_args(arguments))
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.fixture
def body(tmp_path: Path) -> str:
    file = tmp_path / "answer.sse"
    file.write_bytes(BODY)
    return str(file)


def test_the_report_is_the_same_at_any_read_size() -> None:
    for size in (1, 7, 4096):
        pieces = [BODY[start : start + size] for start in range(0, len(BODY), size)]
        assert assemble(pieces, "chat", ["count_sheep"]) == REPORT


def test_a_file_is_read_and_numbers_are_printed_as_written(capsys: pytest.CaptureFixture[str], body: str) -> None:
    for more in ([], ["--read-size", "1"]):
        status, out, err = run(capsys, body, "--api", "chat", *more)
        assert (status, err) == (0, "")
        assert json.loads(out) == REPORT
        assert '{"n":1.50,"big":9007199254740993}' in out
        assert out.endswith("}\n")


def test_standard_input_is_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BODY)))
    status, out, _ = run(capsys, "--api", "chat", "--read-size", "3")
    assert (status, json.loads(out)) == (0, REPORT)


@pytest.mark.parametrize(
    ("tools", "refused"),
    [(["count_sheep"], False), (["open_blind"], True), ([{"name": "count_sheep", "type": "function"}], False)],
)
def test_the_tools_decide_what_runs(
    capsys: pytest.CaptureFixture[str], body: str, tmp_path: Path, tools: list[Any], refused: bool
) -> None:
    offer = tmp_path / "tools.json"
    offer.write_text(json.dumps(tools))
    status, out, _ = run(capsys, body, "--api", "chat", "--tools", str(offer))
    report = json.loads(out)
    assert status == 0
    assert [call["reason"] for call in report["refused"]] == (["unknown_tool"] if refused else [])
    assert len(report["calls"]) == (0 if refused else 1)


def test_an_answer_that_is_no_answer_is_reported_and_no_failure(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "page"
    page.write_text("<html>Log in</html>")
    for api in ("chat", "responses"):
        status, out, _ = run(capsys, str(page), "--api", api)
        assert status == 0
        assert "HTML" in json.loads(out)["error"]


def test_a_call_written_as_text_is_reported() -> None:
    content = "Ok. <tool_call>{}</tool_call>"
    chunk = {"choices": [{"delta": {"content": content}, "finish_reason": "stop"}]}
    report = assemble([b"data: " + json.dumps(chunk).encode() + b"\n\n"], "chat", None)
    assert report["text"] == "Ok. "
    assert report["refused"] == [{"name": "", "raw": "<tool_call>{}</tool_call>", "reason": "written_as_text"}]


@pytest.mark.parametrize("arguments", [["missing.sse"], [], ["--tools", "missing.json"]])
def test_what_cannot_be_read_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError("gone")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Broken()))
    status, out, err = run(capsys, *arguments, "--api", "chat")
    assert (status, out) == (1, "")
    assert err.startswith("echokit-py assemble: cannot read ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("size", ["0", "-1", "x"])
def test_a_read_size_is_a_positive_number(capsys: pytest.CaptureFixture[str], body: str, size: str) -> None:
    with pytest.raises(SystemExit):
        run(capsys, body, "--api", "chat", "--read-size", size)


def test_tools_of_every_form() -> None:
    schema = {"type": "object", "required": ["n"]}
    listed = [
        "a",
        {"type": "function", "function": {"name": "b", "parameters": schema}},
        {"name": "c", "parameters": None},
    ]
    tools = [Tool("a", "", {}), Tool("b", "", schema), Tool("c", "", {})]
    assert read_tools(json.dumps(listed)) == tools
    assert read_tools(json.dumps({"tools": listed})) == tools


@pytest.mark.parametrize("text", ["", "{}", "5", '[{"type":"web_search"}]', "[5]", '[{"function":"x"}]'])
def test_tools_that_are_none(text: str) -> None:
    with pytest.raises(ToolsError):
        read_tools(text)
