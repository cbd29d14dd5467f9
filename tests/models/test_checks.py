"""Checksums and the marker of checked files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from echokit_py.models.checks import MARKER, Checksum, Mark, is_intact, read_marks, write_marks

SHA256 = hashlib.sha256(b"hello\n").hexdigest()
GIT_SHA1 = "ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object of "hello\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"hello\n")
    return path


@pytest.mark.parametrize("digest", [SHA256, GIT_SHA1])
def test_both_sorts_of_checksum_tell_right_from_wrong(file: Path, digest: str) -> None:
    checksum = Checksum.parse(digest)
    assert checksum is not None
    assert checksum.matches(file)
    file.write_bytes(b"hellO\n")
    assert not checksum.matches(file)


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        (f'"{SHA256}"', SHA256),
        (f'W/"{GIT_SHA1}"', GIT_SHA1),
        (SHA256.upper(), SHA256),
        ("", None),
        ('"5e-abc"', None),
        ("g" * 64, None),
    ],
)
def test_an_etag_is_a_checksum_or_nothing(text: str, digest: str | None) -> None:
    checksum = Checksum.parse(text)
    assert (checksum.digest if checksum else None) == digest


def test_marks_come_back_as_they_were_written(file: Path) -> None:
    marks = {"file": Mark.of(file, Checksum(SHA256))}
    write_marks(file.parent, marks)
    assert read_marks(file.parent) == marks


@pytest.mark.parametrize("content", [b"", b"[]", b'{"file": 3}', b'{"file": {"other": 1}}', b"\xff\xfe"])
def test_a_spoilt_marker_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MARKER).write_bytes(content)
    assert read_marks(tmp_path) == {}


def test_a_marker_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "occupied").write_bytes(b"here")
    write_marks(tmp_path / "occupied", {})
    assert read_marks(tmp_path / "occupied") == {}
    assert (tmp_path / "occupied").read_bytes() == b"here"


def test_an_unchanged_file_is_not_hashed_again_until_asked(file: Path) -> None:
    mark = is_intact(file, None, SHA256)
    assert mark is not None
    stat = file.stat()
    file.write_bytes(b"hellO\n")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert is_intact(file, mark, SHA256) == mark
    assert is_intact(file, mark, SHA256, rehash=True) is None


def test_a_touched_file_is_hashed_again(file: Path) -> None:
    mark = is_intact(file, None, SHA256)
    file.write_bytes(b"hellO\n")
    os.utime(file, ns=(1, 1))
    assert is_intact(file, mark, SHA256) is None


def test_the_mark_of_another_catalogue_entry_does_not_count(file: Path) -> None:
    mark = is_intact(file, None, SHA256)
    assert is_intact(file, mark, hashlib.sha256(b"new version").hexdigest()) is None


def test_without_any_checksum_a_file_is_not_trusted(file: Path) -> None:
    assert is_intact(file, None, "") is None
    assert is_intact(file, Mark.of(file, Checksum(GIT_SHA1)), "") is not None


def test_a_missing_file_is_not_intact(tmp_path: Path) -> None:
    assert is_intact(tmp_path / "none", None, SHA256) is None
    assert not Mark(str(tmp_path / "none"), 0, 0, SHA256).still_holds(tmp_path / "none")
