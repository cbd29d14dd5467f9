"""Downloads against a server with faults."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from echokit_py.errors import ModelError
from echokit_py.models.checks import Checksum
from echokit_py.models.fetch import Downloader, Unreachable, client, disk_error, part_path
from tests.models.fake_hub import FakeHub, some_bytes

CONTENT = some_bytes(3_000_000)
CHECKSUM = Checksum(hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
async def hub() -> AsyncIterator[FakeHub]:
    async with FakeHub({"model": CONTENT}) as server:
        yield server


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


class Run:
    """One run of the downloader; what it reported and how long it would have waited stay here."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.progress: list[tuple[int, int]] = []

    async def fetch(self, url: str, target: Path, checksum: Checksum | None = CHECKSUM) -> None:
        async def pause(seconds: float) -> None:
            self.pauses.append(seconds)

        def progress(_: str, done: int, total: int) -> None:
            self.progress.append((done, total))

        async with client() as session:
            await Downloader(session, progress, pause).fetch("the model", url, target, checksum)


async def test_a_file_arrives_whole_and_progress_ends_at_its_size(hub: FakeHub, tmp_path: Path) -> None:
    run = Run()
    await run.fetch(f"{hub.url}/model", tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == CONTENT
    assert run.progress[-1] == (len(CONTENT), len(CONTENT))
    assert run.progress == sorted(run.progress)
    assert names(tmp_path) == ["model"]


async def test_a_cut_connection_is_resumed_where_it_broke(hub: FakeHub, tmp_path: Path) -> None:
    hub.cuts.extend([1_000_000, 500_000])
    await Run().fetch(f"{hub.url}/model", tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == CONTENT
    assert hub.gets() == ["", "bytes=1000000-", "bytes=1500000-"]


async def test_a_later_run_goes_on_with_what_an_earlier_one_left(hub: FakeHub, tmp_path: Path) -> None:
    hub.cuts.extend([1_000_000, *[0] * 20])
    run = Run()
    with pytest.raises(ModelError, match="goes on where it stopped"):
        await run.fetch(f"{hub.url}/model", tmp_path / "model")
    assert len(run.pauses) == 5
    assert not (tmp_path / "model").exists()
    hub.cuts.clear()
    hub.asked.clear()
    await Run().fetch(f"{hub.url}/model", tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == CONTENT
    assert hub.gets() == ["bytes=1000000-"]


async def test_a_server_without_ranges_sends_it_all_again(hub: FakeHub, tmp_path: Path) -> None:
    hub.ranges = False
    hub.cuts.append(1_000_000)
    await Run().fetch(f"{hub.url}/model", tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == CONTENT


async def test_a_part_from_another_place_than_asked_for_is_not_appended(hub: FakeHub, tmp_path: Path) -> None:
    hub.cuts.append(1_000_000)
    hub.wrong_ranges = 1
    await Run().fetch(f"{hub.url}/model", tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == CONTENT
    assert hub.gets() == ["", "bytes=1000000-", "bytes=1000000-"]


async def test_a_complete_part_is_used_without_fetching_a_byte(hub: FakeHub, tmp_path: Path) -> None:
    part_path(tmp_path / "model", CHECKSUM).write_bytes(CONTENT)
    await Run().fetch(f"{hub.url}/model", tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == CONTENT


async def test_a_part_of_another_version_is_left_alone(hub: FakeHub, tmp_path: Path) -> None:
    part_path(tmp_path / "model", Checksum("0" * 64)).write_bytes(b"old")
    await Run().fetch(f"{hub.url}/model", tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == CONTENT
    assert hub.gets() == [""]


async def test_a_damaged_file_is_fetched_once_more(hub: FakeHub, tmp_path: Path) -> None:
    hub.bodies.append(some_bytes(len(CONTENT), seed=2))
    await Run().fetch(f"{hub.url}/model", tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == CONTENT
    assert hub.gets() == ["", ""]


async def test_a_file_that_is_damaged_twice_is_refused(hub: FakeHub, tmp_path: Path) -> None:
    hub.bodies.extend([b"rubbish"] * 3)
    with pytest.raises(ModelError, match=r"damaged twice from 127\.0\.0\.1"):
        await Run().fetch(f"{hub.url}/model", tmp_path / "model")
    assert names(tmp_path) == []
    assert len(hub.gets()) == 2


async def test_without_a_checksum_what_comes_is_taken(hub: FakeHub, tmp_path: Path) -> None:
    await Run().fetch(f"{hub.url}/model", tmp_path / "model", None)
    assert (tmp_path / "model").read_bytes() == CONTENT


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_busy_server_is_asked_again(hub: FakeHub, tmp_path: Path, status: int) -> None:
    hub.statuses.extend([status, status])
    run = Run()
    await run.fetch(f"{hub.url}/model", tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == CONTENT
    assert run.pauses == [2.0, 4.0]


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (404, ModelError, "has no the model any more .*404"),
        (401, Unreachable, "doesn't let us"),
        (403, Unreachable, "doesn't let us"),
        (418, ModelError, "answers HTTP 418"),
    ],
)
async def test_a_refusal_is_final(
    hub: FakeHub, tmp_path: Path, status: int, error: type[ModelError], words: str
) -> None:
    hub.statuses.append(status)
    with pytest.raises(ModelError, match=words) as caught:
        await Run().fetch(f"{hub.url}/model", tmp_path / "model")
    assert type(caught.value) is error
    assert len(hub.gets()) == 1


async def test_no_server_gives_one_sentence_at_once(hub: FakeHub, tmp_path: Path) -> None:
    url = f"{hub.url}/model"
    await hub.__aexit__()
    run = Run()
    with pytest.raises(Unreachable, match=r"can't reach 127\.0\.0\.1 .*check the network"):
        await run.fetch(url, tmp_path / "model")
    assert run.pauses == []


async def test_a_folder_that_cannot_be_written_to_is_named(hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=f"can't write to {tmp_path}/none .*ECHOKIT_MODELS_DIR"):
        await Run().fetch(f"{hub.url}/model", tmp_path / "none" / "model")


def test_a_full_disk_is_said_in_one_sentence(tmp_path: Path) -> None:
    error = disk_error(tmp_path / "model", OSError(errno.ENOSPC, "No space left on device"))
    assert str(error).startswith(f"the disk is full: make room at {tmp_path}")
