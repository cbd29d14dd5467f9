"""The command line: names, defaults, exit codes, and one sentence for each failure."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from echokit_py import cli

ROOT = Path(__file__).parents[2]

MINIMAL = """
[asr]
platform = "openai"
url = "http://127.0.0.1:1/asr"
[tts]
platform = "openai"
url = "http://127.0.0.1:1/tts"
[llm]
platform = "openai_chat"
url = "http://127.0.0.1:1/llm"
"""


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("echokit-py ")


def test_serve_is_the_default_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "none.toml"
    assert cli.main([str(missing)]) == cli.main(["serve", str(missing)]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == second
    assert first.startswith(f"{missing}:0: ")


def test_the_configuration_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONFIG_PATH", "/nowhere/else.toml")
    assert cli.main([]) == 1
    assert capsys.readouterr().err.startswith("/nowhere/else.toml:0: ")


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:99999"])
def test_a_bad_address(tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(MINIMAL)
    assert cli.main(["serve", str(path), "--addr", address]) == 1
    assert "--addr: " in capsys.readouterr().err


def test_assemble_reads_a_recorded_stream(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    delta = {"choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}]}
    body = f"data: {json.dumps(delta)}\n\ndata: [DONE]\n\n".encode()
    stream = tmp_path / "stream.sse"
    stream.write_bytes(body)
    assert cli.main(["assemble", str(stream), "--api", "chat", "--read-size", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == "Hi."
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(body)))
    assert cli.main(["assemble", "--api", "chat"]) == 0
    assert json.loads(capsys.readouterr().out)["finish_reason"] == "stop"


def test_models_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models"]) == 0
    assert "en_US-joe-medium" in capsys.readouterr().out


def test_starting_imports_no_model_runtime() -> None:
    program = (
        "import sys; from echokit_py import cli; import echokit_py.commands.serve;"
        "heavy = {'onnxruntime', 'faster_whisper', 'ctranslate2', 'piper', 'xllamacpp', 'torch'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=os.environ, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
