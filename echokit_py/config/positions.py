"""Finds the line of every key in a TOML text that a TOML parser has accepted. Pure; judges nothing.

TOML parsers give values without their places. This scanner keeps the places and skips the values; since the text is
known to be valid, it can be lenient: where the grammar (toml.io, 1.0 and 1.1) forbids something, it doesn't look.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

import tomli

KeyPath = tuple[str | int, ...]
"""Where a value is: keys, and indexes of arrays, from the top of the file."""

_BLANK = re.compile(r"[ \t]*")
_BLANK_OR_COMMENT = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY_PART = re.compile(r"""[ \t]*([^\s.=\]"'#]+|"(?:[^"\\]|\\.)*"|'[^']*')[ \t]*(\.?)""")
STRINGS = (
    re.compile(r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}', re.DOTALL),
    re.compile(r"'''(?:[^']|'{1,2}(?!'))*'{3,5}"),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
"""Every kind of quoted text, the longest quotes first."""

_BARE_VALUE = re.compile(r"[^,\]}#\n]*")


def dotted(path: KeyPath) -> str:
    """Write a path as people do: `llm.mcp_server[0].server`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


@dataclass(frozen=True, slots=True)
class Positions:
    """The lines of keys and tables, counted from 1."""

    lines: Mapping[KeyPath, int]

    def line(self, path: KeyPath) -> int:
        """The line of `path`; of the nearest table around it when it isn't in the file; 0 when there is none."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 0


def locate(text: str) -> Positions:
    """Find the line of every key, table header and array item of `text`, a valid TOML document.

    A table that appears more than once (a header, dotted keys, sub-tables) has the line of its own header, or else of
    its first mention.
    """
    scanner = _Scanner(text)
    scanner.document()
    return Positions(scanner.lines)


class _Scanner:
    """One pass over the text; `at` is where it is."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._array_sizes: dict[KeyPath, int] = {}

    def document(self) -> None:
        table: KeyPath = ()
        self._skip(_BLANK_OR_COMMENT)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._key_and_value(table)
            self._skip(_BLANK_OR_COMMENT)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None or match.end() == self.at:
            return ""
        self.at = match.end()
        return match[0]

    def _take(self, character: str) -> bool:
        found = self.text.startswith(character, self.at)
        self.at += found
        return found

    def _line(self) -> int:
        return bisect_right(self._newlines, self.at - 1) + 1

    def _header(self) -> KeyPath:
        """A table header; returns the path of the table that the following keys belong to."""
        line = self._line()
        self._take("[")
        is_array = self._take("[")
        keys = self._keys()
        self.at += 2 if is_array else 1
        table: KeyPath = ()
        for key in keys[:-1]:
            table = self._inside((*table, key), line)
        table += tuple(keys[-1:])
        if is_array:
            index = self._array_sizes.get(table, 0)
            self._array_sizes[table] = index + 1
            self.lines.setdefault(table, line)
            table += (index,)
        self.lines[table] = line
        return table

    def _inside(self, table: KeyPath, line: int) -> KeyPath:
        """Step into `table`, or into its last item when it is an array of tables."""
        self.lines.setdefault(table, line)
        return (*table, self._array_sizes[table] - 1) if table in self._array_sizes else table

    def _keys(self) -> list[str]:
        """A key, as its dotted parts."""
        keys: list[str] = []
        while match := _KEY_PART.match(self.text, self.at):
            self.at = match.end()
            part = match[1]
            keys.append(tomli.loads(f"k = {part}")["k"] if part[0] in "\"'" else part)
            if not match[2]:
                break
        return keys

    def _key_and_value(self, table: KeyPath) -> None:
        line = self._line()
        start = self.at
        path = table
        for key in self._keys():
            path += (key,)
            self.lines.setdefault(path, line)
        self._take("=")
        self._skip(_BLANK)
        self._value(path)
        if self.at == start:  # only in a text that is no TOML: never stand still
            self.at = len(self.text)

    def _value(self, path: KeyPath) -> None:
        if self._take("["):
            self._array(path)
        elif self._take("{"):
            self._inline_table(path)
        elif not any(self._skip(string) for string in STRINGS):
            self._skip(_BARE_VALUE)

    def _array(self, path: KeyPath) -> None:
        index = 0
        self._skip(_BLANK_OR_COMMENT)
        while self.at < len(self.text) and not self._take("]"):
            item = (*path, index)
            start = self.at
            self.lines[item] = self._line()
            self._value(item)
            self._next_item()
            index += 1
            if self.at == start:
                return

    def _inline_table(self, path: KeyPath) -> None:
        self._skip(_BLANK_OR_COMMENT)
        while self.at < len(self.text) and not self._take("}"):
            self._key_and_value(path)
            self._next_item()

    def _next_item(self) -> None:
        self._skip(_BLANK_OR_COMMENT)
        self._take(",")
        self._skip(_BLANK_OR_COMMENT)
