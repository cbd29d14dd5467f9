"""The command `echokit-py models`."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from echokit_py.models import command
from echokit_py.models.store import ModelStore
from tests.models.package_index import toy_model, use_folder


@pytest.fixture(autouse=True)
def small_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = {"toy": toy_model(), "whole": toy_model("whole", main="")}
    monkeypatch.setattr(command, "ModelStore", lambda root: ModelStore(root, catalogue=catalogue))


async def run(folder: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return await command.run(parser.parse_args([*words, "--dir", str(folder)]))


async def test_without_an_action_all_models_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await run(tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "KIND", "LICENCE", "SIZE", "STATE", "PATH"]
    assert lines[1].split() == ["toy", "llm", "CC0", "0.7", "MB", "missing", "-"]
    assert lines[2].startswith("whole")
    assert str(tmp_path) in lines[3]


async def test_fetching_makes_a_model_ready(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_folder(monkeypatch, tmp_path / "wheels")
    assert await run(tmp_path / "cache", "fetch", "toy", "whole") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"toy: {tmp_path}/cache/toy/first.bin"
    assert second == f"whole: {tmp_path}/cache/whole"
    assert await run(tmp_path / "cache", "list", "toy") == 0
    assert "ready" in capsys.readouterr().out.splitlines()[1]


async def test_checking_finds_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_folder(monkeypatch, tmp_path / "wheels")
    await run(tmp_path / "cache", "fetch", "toy")
    capsys.readouterr()
    assert await run(tmp_path / "cache", "check") == 0
    assert capsys.readouterr().out == "toy: ready\n"  # what was never fetched is no news
    assert await run(tmp_path / "cache", "check", "whole") == 1
    (tmp_path / "cache" / "toy" / "first.bin").write_bytes(b"damaged")
    capsys.readouterr()
    assert await run(tmp_path / "cache", "check") == 1
    assert capsys.readouterr().out == "toy: damaged\n"


@pytest.mark.parametrize("action", ["list", "fetch", "check"])
async def test_an_unknown_name_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], action: str) -> None:
    assert await run(tmp_path, action, "toi") == 1
    assert capsys.readouterr().err == ("there is no model 'toi': did you mean toy? (a path to a file works too)\n")


async def test_auto_is_a_name_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def auto(_: ModelStore) -> str:
        return "toy"

    use_folder(monkeypatch, tmp_path / "wheels")
    monkeypatch.setattr(ModelStore, "auto_llm", auto)
    monkeypatch.setattr(command, "DEFAULT_NAMES", ("whole", "auto"))
    assert await run(tmp_path / "cache", "fetch") == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["whole", "toy"]
