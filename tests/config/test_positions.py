"""Tests for echokit_py.config.positions: every key of a valid document has its line."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import tomli
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echokit_py.config.positions import KeyPath, dotted, locate

DOCUMENT = textwrap.dedent(
    '''\
    # a comment with [brackets] and key = "value"
    addr = "0.0.0.0:8080"  # [not.a.table]
    "quoted key" = 1
    'literal.key' = 2
    a.b . "c d" = 3

    [llm]  # comment
    platform = "openai_chat"
    sys_prompts = [
        # [comment]
        { role = "system", content = """
    [asr]
    role = "x" \\""" still
    """ },
        { role = "user",
          content = "two" },
    ]
    text = \'\'\'
    [tts]
    \'\'\'
    history = 5

    [[llm.mcp_server]]
    server = "http://one"

    [[llm.mcp_server]]
    server = "http://two"
    [llm.mcp_server.headers]
    x = 1

    [llm.extra]
    tools = [ [1, 2], [
      3 ] ]
    when = 1979-05-27 07:32:00
    '''
)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("addr",), 2),
        (("quoted key",), 3),
        (("literal.key",), 4),
        (("a",), 5),
        (("a", "b", "c d"), 5),
        (("llm",), 7),
        (("llm", "platform"), 8),
        (("llm", "sys_prompts"), 9),
        (("llm", "sys_prompts", 0), 11),
        (("llm", "sys_prompts", 0, "content"), 11),
        (("llm", "sys_prompts", 1, "role"), 15),
        (("llm", "sys_prompts", 1, "content"), 16),
        (("llm", "text"), 18),
        (("llm", "history"), 21),
        (("llm", "mcp_server"), 23),
        (("llm", "mcp_server", 0), 23),
        (("llm", "mcp_server", 0, "server"), 24),
        (("llm", "mcp_server", 1), 26),
        (("llm", "mcp_server", 1, "server"), 27),
        (("llm", "mcp_server", 1, "headers"), 28),
        (("llm", "mcp_server", 1, "headers", "x"), 29),
        (("llm", "extra", "tools", 0, 1), 32),
        (("llm", "extra", "tools", 1, 0), 33),
        (("llm", "extra", "when"), 34),
    ],
)
def test_each_key_has_its_line(path: KeyPath, line: int) -> None:
    tomli.loads(DOCUMENT)
    positions = locate(DOCUMENT)
    assert positions.lines[path] == line
    assert positions.line(path) == line


def test_texts_that_look_like_tables_are_none() -> None:
    positions = locate(DOCUMENT)
    assert ("asr",) not in positions.lines
    assert ("tts",) not in positions.lines


def test_a_missing_key_has_the_line_of_its_table() -> None:
    positions = locate(DOCUMENT)
    assert positions.line(("llm", "url")) == 7
    assert positions.line(("llm", "mcp_server", 1, "api_key")) == 26
    assert positions.line(("llm", "sys_prompts", 1, "nothing")) == 15
    assert positions.line(("asr", "url")) == 0
    assert positions.line(()) == 0


def test_a_tables_own_header_is_its_line_whatever_stands_before() -> None:
    assert locate("[asr.vad]\nthreshold = 0.5\n\n[asr]\nurl = 1\n").lines[("asr",)] == 4
    assert locate("[asr.vad]\nthreshold = 0.5\n").lines[("asr",)] == 1


def test_windows_line_ends() -> None:
    assert locate("a = 1\r\n\r\n[b]\r\nc = [\r\n 2,\r\n 3 ]\r\n").lines == {
        ("a",): 1,
        ("b",): 3,
        ("b", "c"): 4,
        ("b", "c", 0): 5,
        ("b", "c", 1): 6,
    }


@pytest.mark.parametrize("text", ["", "\n", "# only\n", "\n\n# a\n\n"])
def test_nothing_to_find(text: str) -> None:
    assert locate(text).lines == {}


@pytest.mark.parametrize(
    "text", ["a = [1", "a = {b", "= 3", "a = [,,", "[a", "]\n]\n", "a = [}", 'a = """x', "[[", "a = {{}"]
)
def test_what_is_no_toml_ends_too(text: str) -> None:
    locate(text)


@pytest.mark.parametrize(
    ("path", "text"),
    [((), ""), (("a",), "a"), (("a", "b"), "a.b"), (("llm", "mcp_server", 0, "server"), "llm.mcp_server[0].server")],
)
def test_paths_are_written_as_people_write_them(path: KeyPath, text: str) -> None:
    assert dotted(path) == text


# --- a writer of random documents that knows its lines -----------------------------------------------------------

ALPHABET = "ab1\"'\\#[]{}=,. \t中é-_"
TEXT = st.text(ALPHABET, max_size=8)
LINES = st.text(ALPHABET + "\n", max_size=12)
BARE_KEY = st.text("abcXYZ019_-", min_size=1, max_size=3)
NOISE = st.sampled_from(["", " ", "\n", "  # [x] = {\n", "\n\n\t", ' # \'"""\n'])
SCALARS = ("1", "-0.5", "true", "1979-05-27 07:32:00Z", "0x1F", "inf")


@dataclass
class Writer:
    """Writes a document piece by piece; `expected` holds the line of each path."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    text: str = ""
    expected: dict[KeyPath, int] = field(default_factory=dict)

    def mark(self, path: KeyPath) -> None:
        self.expected[path] = self.text.count("\n") + 1

    def keys(self, count: int) -> list[str]:
        keys: list[str] = self.draw(st.lists(BARE_KEY | TEXT, min_size=0, max_size=count, unique=True))
        return keys

    def write_key(self, key: str) -> str:
        bare = key != "" and all(character in "abcXYZ019_-" for character in key)
        if bare and self.draw(st.booleans()):
            return key
        if "'" not in key and self.draw(st.booleans()):
            return f"'{key}'"
        return json.dumps(key, ensure_ascii=False)

    def string(self) -> str:
        kind = self.draw(st.sampled_from(["basic", "literal", "lines", "literal lines"]))
        if kind == "basic":
            return json.dumps(self.draw(LINES), ensure_ascii=False)
        if kind == "literal":
            return f"'{self.draw(TEXT).replace(chr(39), '')}'"
        first = self.draw(st.sampled_from(["", "\n"]))
        if kind == "lines":
            inside = self.draw(LINES).replace("\\", "\\\\").replace('"""', '""\\"')
            return f'"""{first}{inside}"""'
        return f"'''{first}{self.draw(LINES.filter(lambda text: chr(39) * 3 not in text))}'''"

    def value(self, path: KeyPath, depth: int) -> None:
        kind = self.draw(st.sampled_from(["scalar", "string"] + (["array", "table"] if depth else [])))
        if kind == "array":
            self.text += "["
            for index in range(self.draw(st.integers(0, 3))):
                self.text += self.draw(NOISE)
                self.mark((*path, index))
                self.value((*path, index), depth - 1)
                self.text += self.draw(NOISE) + ","
            self.text += self.draw(NOISE) + "]"
        elif kind == "table":
            self.text += "{"
            for number, key in enumerate(self.keys(3)):
                self.text += ", " if number else " "
                self.pair((*path, key), depth - 1)
            self.text += " }"
        else:
            self.text += self.string() if kind == "string" else self.draw(st.sampled_from(SCALARS))

    def pair(self, path: KeyPath, depth: int) -> None:
        self.mark(path)
        self.text += self.write_key(str(path[-1])) + self.draw(st.sampled_from(["=", " = ", "\t= "]))
        self.value(path, depth)

    def table(self, path: KeyPath, names: list[str], depth: int) -> None:
        """The pairs of a table, then its sub-tables and arrays of tables."""
        used = self.keys(4)
        for key in used:
            self.text += self.draw(st.sampled_from(["", "  ", "\n# note [x]\n"]))
            self.pair((*path, key), 2)
            self.text += self.draw(st.sampled_from(["\n", "  # = 1\n", "\r\n"]))
        for key in [key for key in self.keys(2) if key not in used] if depth else []:
            header = ".".join(self.write_key(name) for name in [*names, key])
            if self.draw(st.booleans()):
                self.mark((*path, key))
                self.text += f"[{header}]\n"
                self.table((*path, key), [*names, key], depth - 1)
            else:
                self.mark((*path, key))
                for index in range(self.draw(st.integers(1, 3))):
                    self.mark((*path, key, index))
                    self.text += f"[[ {header} ]] # x\n"
                    self.table((*path, key, index), [*names, key], depth - 1)


@st.composite
def documents(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Writer:
    writer = Writer(draw)
    writer.table((), [], 2)
    return writer


def paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from paths(item, (*path, key))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(documents())
def test_any_document_has_the_lines_it_was_written_with(writer: Writer) -> None:
    found = locate(writer.text).lines
    assert found == writer.expected
    assert set(paths(tomli.loads(writer.text))) == set(found)
