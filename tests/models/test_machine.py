"""What is read from the machine."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from echokit_py.models import machine
from tests.models.fake_hub import FakeHub


@pytest.fixture
async def server() -> AsyncIterator[FakeHub]:
    async with FakeHub({"file": b"content"}) as fake:
        yield fake


def meminfo(folder: Path, text: str = "MemTotal: 16000 kB\nMemAvailable:    8000 kB\n") -> Path:
    (folder / "meminfo").write_text(text)
    return folder / "meminfo"


def test_memory_is_what_the_kernel_says(tmp_path: Path) -> None:
    assert machine.available_memory(meminfo(tmp_path), tmp_path) == 8000 * 1024


def test_a_container_s_limit_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert machine.available_memory(meminfo(tmp_path), tmp_path) == 4_000_000


def test_a_limit_that_says_max_is_none(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert machine.available_memory(meminfo(tmp_path), tmp_path) == 8000 * 1024


@pytest.mark.parametrize("text", ["", "MemAvailable:\n", "MemAvailable: much kB\n"])
def test_without_the_kernel_s_word_all_memory_counts(tmp_path: Path, text: str) -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert machine.available_memory(meminfo(tmp_path, text), tmp_path) == total
    assert machine.available_memory(tmp_path / "none", tmp_path) == total


def test_threads_of_one_core_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    for number, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        topology = tmp_path / f"cpu{number}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(siblings + "\n")
    assert machine.physical_cores(tmp_path) == 2
    assert machine.physical_cores(tmp_path / "none") == 4


async def test_a_hub_that_answers_is_reachable(server: FakeHub) -> None:
    assert await machine.is_reachable(f"{server.url}/file")
    assert not await machine.is_reachable(f"{server.url}/none")
    url = server.url
    await server.__aexit__()
    assert not await machine.is_reachable(f"{url}/file")


async def test_only_servers_of_models_are_found(server: FakeHub) -> None:
    port = int(server.url.rpartition(":")[2])
    assert await machine.local_servers((("ours", port),)) == []  # something else listens there
    server.files["v1/models"] = b'{"object": "list", "data": []}'
    async with FakeHub() as gone:
        closed = int(gone.url.rpartition(":")[2])
    found = await machine.local_servers((("Ollama", port), ("none", closed)))
    assert found == [("Ollama", f"http://127.0.0.1:{port}/v1/chat/completions")]
