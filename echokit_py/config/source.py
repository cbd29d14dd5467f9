"""Reads the file and parses its TOML; says in sentences why it can't be read. Knows no key of ours.

Raises `ConfigError` with one issue: a file with a slip in its syntax has no further mistakes that could be found.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli

from echokit_py.config.syntax import explain, key_of_line
from echokit_py.errors import ConfigError, ConfigIssue

MAX_BYTES = 1 << 20  # prompts of a few pages fit 50 times; a device file or a wrong file doesn't fill the memory
MAX_DEPTH = 64  # what walks the document afterwards recurses

Document = dict[str, Any]


def read_text(path: Path) -> str:
    """Return the text of the configuration file, without a byte order mark. Raises ConfigError."""
    return decode(_read_bytes(path), str(path))


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _whole_file(
            path, "there is no such file; give the path of a configuration, or copy config.toml there"
        ) from None
    except IsADirectoryError:
        raise _whole_file(path, "this is a folder; give the path of the file in it, e.g. config.toml") from None
    except PermissionError:
        raise _whole_file(path, "this user may not read the file (see its permissions: ls -l)") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        raise _whole_file(path, f"can't be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise _whole_file(path, "is larger than 1 MiB; this is no configuration file")
    return data


def decode(data: bytes, file: str) -> str:
    """Return `data` as text. Raises ConfigError with the line of the first byte that isn't UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _issue(file, 1, "", 'the file is UTF-16 ("Unicode" in some editors); save it as UTF-8')
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        before = data[: error.start].rpartition(b"\n")[2].decode("utf-8", "replace")
        found = f"the byte 0x{data[error.start]:02x}"
        message = (
            f"the file must be UTF-8, and {found} isn't (in an older encoding, such as Latin-1?); save it as UTF-8"
        )
        raise _issue(file, line, key_of_line(before), message) from None


def parse_toml(text: str, file: str) -> Document:
    """Return the document. Raises ConfigError with tomli's line and a sentence about the slip."""
    try:
        document = tomli.loads(text.removeprefix("\ufeff"))
    except tomli.TOMLDecodeError as error:
        found = explain(error.doc, error.msg, error.pos)
        raise _issue(file, found.line, found.key, found.message) from None
    except RecursionError:
        raise _issue(file, 0, "", "tables and arrays are nested too deeply") from None
    if _depth(document) > MAX_DEPTH:
        raise _issue(file, 0, "", f"tables and arrays are nested more than {MAX_DEPTH} deep")
    return document


def _depth(document: Document) -> int:
    """How deep tables and arrays are nested; without recursion, since the depth is what is in doubt."""
    depth = 0
    level: list[dict[str, Any] | list[Any]] = [document]
    while level and depth <= MAX_DEPTH:
        depth += 1
        items = (item for outer in level for item in (outer.values() if isinstance(outer, dict) else outer))
        level = [item for item in items if isinstance(item, dict | list)]
    return depth


def _whole_file(path: Path, message: str) -> ConfigError:
    return _issue(str(path), 0, "", message)


def _issue(file: str, line: int, key: str, message: str) -> ConfigError:
    return ConfigError([ConfigIssue(file, line, key or "file", message)])
