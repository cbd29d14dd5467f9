"""The check behind `scripts/vectors` finds what differs, and finds nothing in the vectors as they are."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from firmware_protocol.vectors import Vectors, load_vectors
from firmware_protocol.vectors.check import compare

ROOT = Path(__file__).parents[2]


def faults(vectors: Vectors) -> dict[str, str]:
    """The findings that are faults, by subject."""
    return {finding.subject: finding.fault for finding in compare(vectors) if finding.fault}


def changed(change: Callable[[dict[str, Any]], object]) -> Vectors:
    """The vectors after `change` has been made to their JSON."""
    content = msgspec.to_builtins(load_vectors())
    content = {key: list(value) if isinstance(value, tuple) else value for key, value in content.items()}
    change(content)
    return msgspec.convert(content, Vectors)


def test_the_codec_agrees_with_every_vector() -> None:
    findings = compare(load_vectors())
    assert len(findings) == 18 + 5 + 5 + 2
    assert faults(load_vectors()) == {}


def test_the_vectors_are_those_that_came_with_the_firmware_s_description() -> None:
    shared = ROOT.parent / "shared" / "protocol" / "vectors.json"
    if not shared.exists():
        pytest.skip("the description of the firmware isn't beside this checkout")
    assert json.loads((ROOT / "firmware_protocol/vectors/vectors.json").read_text()) == json.loads(shared.read_text())


CHANGES: list[tuple[str, Callable[[dict[str, Any]], object], str, str]] = [
    ("other bytes", lambda c: c["server_events"][0].update(msgpack="a0"), "HelloStart (1 bytes)", "encoded as aa48"),
    (
        "an event that isn't there",
        lambda c: c["server_events"][0].update(event="Bogus"),
        "Bogus (11 bytes)",
        "AttributeError",
    ),
    ("a field that isn't there", lambda c: c["server_events"][4].update(fields={"x": 1}), "ASR (9 bytes)", "TypeError"),
    ("other fields", lambda c: c["server_events"][4].update(fields={"text": 1}), "ASR (9 bytes)", "ProtocolError"),
    (
        "another named form",
        lambda c: c["server_events"][4].update(msgpack_named=c["server_events"][5]["msgpack_named"]),
        "ASR (9 bytes)",
        "decoded as ASR(text='你好')",
    ),
    ("another command", lambda c: c["client_commands"][0].update(x=1), "StartRecord (command)", "TypeError"),
    (
        "a command of other content",
        lambda c: c["client_commands"][4].update(index=True),
        "Select (command)",
        "ProtocolError",
    ),
    (
        "a refusal of what is fine",
        lambda c: c["refused_by_device"][0].update(msgpack="a6456e64566164"),
        "refused: data as msgpack bin",
        "accepted as EndVad()",
    ),
    (
        "an event without a vector",
        lambda c: c["server_events"].pop(0),
        "all events have a vector",
        "none for HelloStart",
    ),
    ("a command without one", lambda c: c["client_commands"].pop(2), "all commands have a vector", "none for Submit"),
]


@pytest.mark.parametrize(("change", "subject", "fault"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_a_difference_is_found(change: Callable[[dict[str, Any]], object], subject: str, fault: str) -> None:
    assert fault in faults(changed(change))[subject]


def test_a_command_that_is_written_or_read_differently_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firmware_protocol.vectors.check.decode_command", lambda text: None)
    assert faults(load_vectors())["Submit (command)"] == "decoded as None"
    monkeypatch.setattr("firmware_protocol.vectors.check.encode_command", lambda command: "{}")
    assert faults(load_vectors())["Submit (command)"] == "encoded as {}"


def test_the_script_prints_a_table() -> None:
    done = subprocess.run([ROOT / "scripts/vectors"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "ok      refused: data as msgpack bin" in done.stdout
    assert done.stdout.endswith("30 checks, 0 differ\n")
