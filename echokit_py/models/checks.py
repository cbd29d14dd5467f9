"""Checksums of files, and the marker that remembers which files were checked. Fetches nothing.

Hashing a gigabyte takes seconds, so a file that passed once is recognised by path, size and modification time
afterwards; `echokit-py models check` hashes again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from echokit_py.log import sanitize

log = logging.getLogger(__name__)

MARKER = ".checked.json"
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Checksum:
    """A digest in hex: 64 digits are SHA-256 of the content, 40 are git's SHA-1 of it as a blob.

    The hub names the first for large files and the second for small ones, which it keeps in git itself.
    """

    digest: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read an ETag or a hex digest; None when it is neither sort of checksum."""
        digest = text.strip().removeprefix("W/").strip('"').lower()
        is_hex = all(character in "0123456789abcdef" for character in digest)
        return cls(digest) if is_hex and len(digest) in (40, 64) else None

    def matches(self, path: Path) -> bool:
        """Whether the file's content has this checksum. Blocks; raises OSError."""
        if len(self.digest) == 64:
            hasher = hashlib.sha256()
        else:
            hasher = hashlib.sha1(usedforsecurity=False)
            hasher.update(b"blob %d\0" % path.stat().st_size)
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                hasher.update(block)
        return hasher.hexdigest() == self.digest


@dataclass(frozen=True, slots=True)
class Mark:
    """A file as it was when its checksum was right."""

    path: str
    size: int
    mtime_ns: int
    digest: str

    @classmethod
    def of(cls, path: Path, checksum: Checksum) -> Self:
        """Describe the file at `path`. Raises OSError."""
        stat = path.stat()
        return cls(str(path), stat.st_size, stat.st_mtime_ns, checksum.digest)

    def still_holds(self, path: Path) -> bool:
        """Whether `path` is the same file, unchanged as far as size and time tell."""
        try:
            stat = path.stat()
        except OSError:
            return False
        return (str(path), stat.st_size, stat.st_mtime_ns) == (self.path, self.size, self.mtime_ns)


def read_marks(folder: Path) -> dict[str, Mark]:
    """The marks of a model's folder by file name; empty when there is no marker or it can't be read."""
    try:
        document: Any = json.loads((folder / MARKER).read_bytes())
        return {str(name): Mark(**fields) for name, fields in document.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        log.debug("the marker in %s is not used: %s", folder, sanitize(error))
        return {}


def write_marks(folder: Path, marks: dict[str, Mark]) -> None:
    """Replace the marker of a model's folder. Without it files are hashed again, so failing is only worth a note."""
    document = {
        name: {"path": mark.path, "size": mark.size, "mtime_ns": mark.mtime_ns, "digest": mark.digest}
        for name, mark in marks.items()
    }
    temporary = folder / f"{MARKER}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(document, indent=1), encoding="utf-8")
        temporary.replace(folder / MARKER)
    except OSError as error:
        log.debug("the marker in %s can't be written: %s", folder, sanitize(error))


def is_intact(path: Path, mark: Mark | None, sha256: str, *, rehash: bool = False) -> Mark | None:
    """Return the mark of a good file, None for one that is missing, damaged or of unknown content. May hash: blocks.

    `sha256` is the catalogue's, "" when it has none and the checksum of `mark` must do.
    """
    digest = sha256 or (mark.digest if mark else "")
    checksum = Checksum.parse(digest)
    if checksum is None or not path.is_file():
        return None
    if not rehash and mark is not None and mark.digest == digest and mark.still_holds(path):
        return mark
    try:
        return Mark.of(path, checksum) if checksum.matches(path) else None
    except OSError:
        return None
