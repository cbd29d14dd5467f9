"""The store: finding, fetching, checking, choosing."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from echokit_py.errors import ModelError
from echokit_py.models import machine
from echokit_py.models.catalogue import CATALOGUE, File, Hub, Model
from echokit_py.models.choose import PACKAGED_LLM
from echokit_py.models.store import ModelStore
from tests.models.fake_hub import FakeHub, some_bytes
from tests.models.package_index import FILES, toy_model, toy_wheel, use_folder

WEIGHTS, CONFIG = some_bytes(50_000), b"{}"
PREFIX = "maker/voice/resolve/main/"
VOICE = Model(
    "voice",
    "tts",
    "CC0",
    Hub("maker/voice"),
    (File("voice.onnx", "deep/voice.onnx", 50_000), File("voice.onnx.json", "deep/voice.onnx.json", 2)),
    main="voice.onnx",
)
FOLDER = Model("folder", "asr", "MIT", Hub("maker/voice"), VOICE.files)


@pytest.fixture
async def hub(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeHub]:
    files = {f"{PREFIX}deep/voice.onnx": WEIGHTS, f"{PREFIX}deep/voice.onnx.json": CONFIG}
    async with FakeHub(files) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def a_store(root: Path, *models: Model) -> ModelStore:
    return ModelStore(root / "cache", catalogue={model.name: model for model in models or (VOICE, FOLDER)})


async def test_a_model_of_the_hub_is_fetched_checked_and_then_found_without_a_net(hub: FakeHub, tmp_path: Path) -> None:
    path = await a_store(tmp_path).path("voice")
    assert path == tmp_path / "cache" / "voice" / "voice.onnx"
    assert path.read_bytes() == WEIGHTS
    assert (path.parent / "voice.onnx.json").read_bytes() == CONFIG
    hub.asked.clear()
    assert await a_store(tmp_path).path("voice") == path
    assert hub.asked == []


async def test_a_model_of_several_equal_files_is_a_folder(hub: FakeHub, tmp_path: Path) -> None:
    assert await a_store(tmp_path).path("folder") == tmp_path / "cache" / "folder"


async def test_a_checked_file_is_not_read_again(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await a_store(tmp_path).path("voice")

    def unexpected(*_: object) -> bool:
        raise AssertionError("hashed again")

    monkeypatch.setattr("echokit_py.models.checks.Checksum.matches", unexpected)
    await a_store(tmp_path).path("voice")


async def test_a_file_that_was_damaged_on_disk_is_fetched_again_and_no_other(hub: FakeHub, tmp_path: Path) -> None:
    path = await a_store(tmp_path).path("voice")
    path.write_bytes(b"damaged")
    assert a_store(tmp_path).state(VOICE).word == "damaged"
    hub.asked.clear()
    await a_store(tmp_path).path("voice")
    assert path.read_bytes() == WEIGHTS
    assert hub.gets() == [""]
    assert hub.gets("json") == []


async def test_a_silent_change_is_found_by_the_check(hub: FakeHub, tmp_path: Path) -> None:
    path = await a_store(tmp_path).path("voice")
    stat = path.stat()
    path.write_bytes(some_bytes(50_000, seed=9))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert a_store(tmp_path).state(VOICE).word == "ready"
    assert a_store(tmp_path).state(VOICE, rehash=True).word == "damaged"


async def test_a_broken_off_fetch_shows_as_partly(hub: FakeHub, tmp_path: Path) -> None:
    hub.statuses.extend([200, 404])
    with pytest.raises(ModelError):
        await a_store(tmp_path).path("voice")
    assert a_store(tmp_path).state(VOICE).word == "partly"
    assert await a_store(tmp_path).path("voice")


async def test_two_who_ask_at_once_fetch_once(hub: FakeHub, tmp_path: Path) -> None:
    one = a_store(tmp_path)
    paths = await asyncio.gather(one.path("voice"), one.path("voice"), a_store(tmp_path).path("voice"))
    assert len(set(paths)) == 1
    assert len(hub.gets("voice.onnx")) == 2  # the model and its .json


async def test_a_model_of_a_package_is_unpacked_and_the_wheel_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_folder(monkeypatch, tmp_path / "wheels")
    path = await a_store(tmp_path, toy_model()).path("toy")
    assert path.read_bytes() == FILES["first.bin"]
    assert {entry.name for entry in path.parent.iterdir()} == {*FILES, ".lock", ".checked.json"}


async def test_a_wheel_with_other_content_is_tried_twice_and_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    use_folder(monkeypatch, tmp_path / "wheels", toy_wheel({"first.bin": b"other", "second.json": b""}))
    with pytest.raises(ModelError, match=r"first\.bin .* is not the file"):
        await a_store(tmp_path, toy_model()).path("toy")
    assert caplog.text.count("fetching it again") == 1
    assert not list((tmp_path / "cache" / "toy").glob("*.bin"))


@pytest.mark.parametrize("same", [True, False])
async def test_an_installed_package_is_used_without_importing_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, same: bool
) -> None:
    data = tmp_path / "site" / "toy_elsewhere" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").write_text("raise RuntimeError('imported')")
    for name, content in FILES.items():
        (data / name).write_bytes(content if same else b"another version")
    monkeypatch.syspath_prepend(tmp_path / "site")
    use_folder(monkeypatch, tmp_path / "wheels")
    model = toy_model(installed=("toy_not_there", "toy_elsewhere"))
    path = await a_store(tmp_path, model).path("toy")
    assert path == (data if same else tmp_path / "cache" / "toy") / "first.bin"
    assert await a_store(tmp_path, model).path("toy") == path
    assert "toy_elsewhere" not in sys.modules


async def test_an_unknown_name_names_near_ones(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no model 'voise': did you mean voice\?"):
        await a_store(tmp_path).path("voise")
    with pytest.raises(ModelError, match="`echokit-py models` lists them"):
        await a_store(tmp_path).path("xyz")


async def test_a_path_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.gguf").write_bytes(b"own")
    assert await a_store(tmp_path).path(str(tmp_path / "own.gguf")) == tmp_path / "own.gguf"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert await a_store(tmp_path).path("own.gguf") == tmp_path / "own.gguf"
    assert await a_store(tmp_path).path("~/own.gguf") == tmp_path / "own.gguf"
    with pytest.raises(ModelError, match=r"there is no file .*/none\.gguf"):
        await a_store(tmp_path).path("none.gguf")
    for text in ("~nobody-of-that-name/own.gguf", "x" * 5000 + ".gguf"):
        with pytest.raises(ModelError, match="is not the path of a model: "):
            await a_store(tmp_path).path(text)


async def test_a_root_that_cannot_be_made_is_named(hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"a file stands here")
    with pytest.raises(ModelError, match=f"can't write to {tmp_path}/cache.*ECHOKIT_MODELS_DIR"):
        await a_store(tmp_path).path("voice")


async def test_too_little_room_is_said_before_the_first_byte(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(ModelError, match=r"voice needs 0\.1 MB, but .* has 0\.0 MB left"):
        await a_store(tmp_path).path("voice")
    assert hub.asked == []


async def test_a_disk_that_fills_meanwhile_is_said(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ModelError, match="the disk is full"):
        await a_store(tmp_path).path("voice")


async def test_what_would_be_fetched_is_described(hub: FakeHub, tmp_path: Path) -> None:
    one = a_store(tmp_path, VOICE, toy_model())
    assert await one.describe(["voice", "toy", "voice", "/a/path"]) == "voice 0.1 MB, toy 0.7 MB: 0.8 MB"
    await one.path("voice")
    assert await one.describe(["voice", "toy"]) == "toy 0.7 MB: 0.7 MB"
    assert await one.describe(["voice"]) == ""


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ECHOKIT_MODELS_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert ModelStore().root == tmp_path / ".cache" / "echokit-py" / "models"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert ModelStore().root == Path("/xdg/echokit-py/models")
    monkeypatch.setenv("ECHOKIT_MODELS_DIR", "~/mine")
    assert ModelStore().root == tmp_path / "mine"
    assert ModelStore(Path("/given")).root == Path("/given")


@pytest.fixture
def large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "available_memory", lambda: 32_000_000_000)
    monkeypatch.setattr(machine, "physical_cores", lambda: 4)
    monkeypatch.delenv("ECHOKIT_OFFLINE", raising=False)

    async def found() -> list[tuple[str, str]]:
        return [("Ollama", "http://127.0.0.1:11434/v1/chat/completions")]

    monkeypatch.setattr(machine, "local_servers", found)


@pytest.mark.usefixtures("large_machine")
async def test_auto_takes_what_fits_where_the_hub_answers(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["Qwen/Qwen3-1.7B-GGUF/resolve/main/Qwen3-1.7B-Q8_0.gguf"] = WEIGHTS
    one = ModelStore(tmp_path)
    assert await one.auto_llm() == "qwen3-1.7b"
    asked = len(hub.asked)
    assert await one.auto_llm() == "qwen3-1.7b"
    assert len(hub.asked) == asked == 1


@pytest.mark.usefixtures("large_machine")
async def test_auto_falls_back_and_says_in_one_line_what_would_be_better(
    hub: FakeHub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert await ModelStore(tmp_path).auto_llm() == PACKAGED_LLM
    assert len([record for record in caplog.records if record.name.startswith("echokit_py")]) == 1
    assert "found on this machine: Ollama" in caplog.text


@pytest.mark.usefixtures("large_machine")
async def test_offline_the_hub_is_not_asked(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOKIT_OFFLINE", "1")
    assert await ModelStore(tmp_path).auto_llm() == PACKAGED_LLM
    assert hub.asked == []


@pytest.mark.usefixtures("large_machine")
async def test_a_model_that_is_here_is_taken_without_asking_the_hub(hub: FakeHub, tmp_path: Path) -> None:
    small = Model(
        "qwen3-0.6b",
        "llm",
        "Apache-2.0",
        Hub("maker/voice"),
        (File("voice.onnx", "deep/voice.onnx", 50_000, hashlib.sha256(WEIGHTS).hexdigest()),),
    )
    one = ModelStore(tmp_path, catalogue={**CATALOGUE, "qwen3-0.6b": small})
    await one.path("qwen3-0.6b")
    hub.asked.clear()
    assert await one.auto_llm() == "qwen3-0.6b"
    assert hub.asked == []
