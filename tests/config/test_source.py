"""Tests for echokit_py.config.source and syntax: files that can't be read, texts that are no TOML."""

from __future__ import annotations

from pathlib import Path

import pytest

from echokit_py.config.source import MAX_BYTES, decode, parse_toml, read_text
from echokit_py.config.syntax import explain
from echokit_py.errors import ConfigError, ConfigIssue


def issue(error: pytest.ExceptionInfo[ConfigError]) -> ConfigIssue:
    (only,) = error.value.issues
    return only


def test_reads_utf_8_with_or_without_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b'\xef\xbb\xbfaddr = "x"\r\n')
    assert parse_toml(read_text(path), "f") == {"addr": "x"}
    path.write_bytes('a = "é"\n'.encode())
    assert parse_toml(read_text(path), "f") == {"a": "é"}


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file") as error:
        read_text(tmp_path / "none.toml")
    assert issue(error).line == 0
    assert str(issue(error)).startswith(f"{tmp_path}/none.toml:0: file: ")


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="this is a folder"):
        read_text(tmp_path)


def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="can't be read: Not a directory"):
        read_text(tmp_path / "file" / "config.toml")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "open", refuse)  # root reads everything: permissions can't show it
    with pytest.raises(ConfigError, match="this user may not read the file"):
        read_text(tmp_path / "config.toml")


def test_a_path_that_is_none() -> None:
    with pytest.raises(ConfigError, match=r"can't be read: .*null"):
        read_text(Path("a\0b"))


def test_a_file_without_end() -> None:
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        read_text(Path("/dev/zero"))


def test_the_largest_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"#" * MAX_BYTES)
    assert len(read_text(path)) == MAX_BYTES


def test_another_encoding_names_the_line_and_the_key() -> None:
    with pytest.raises(ConfigError, match="must be UTF-8, and the byte 0xe9 isn't") as error:
        decode(b'addr = "x"\n[llm]\nmodel = "caf\xe9"\n', "f.toml")
    assert (issue(error).line, issue(error).key) == (3, "model")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf_16(encoding: str) -> None:
    with pytest.raises(ConfigError, match="save it as UTF-8") as error:
        decode('\ufeffaddr = "x"'.encode(encoding), "f.toml")
    assert issue(error).line == 1


@pytest.mark.parametrize(
    ("text", "line", "key", "message"),
    [
        (
            "# x\n[llm.mcp_server]]\n",
            2,
            "llm.mcp_server",
            "the brackets don't match: write [[llm.mcp_server]] for an entry",
        ),
        ("[[llm.mcp_server]\n", 1, "llm.mcp_server", "the brackets don't match"),
        ("[llm\nurl = 1\n", 1, "llm", 'the closing "]" is missing: write [llm]'),
        ("[[llm\n", 1, "llm", 'the closing "]" is missing: write [[llm]]'),
        ("[llm]\nmodel = gpt-4\n", 2, "model", "text must stand in quotes"),
        ("addr = 0.0.0.0:8080\n", 1, "addr", "text must stand in quotes"),
        ("model = “gpt”\n", 1, "model", "these are typographic quotes"),
        ('model: "gpt"\n', 1, "model", 'write = between key and value, instead of ":"'),
        ('"model": "gpt"\n', 1, "model", 'write = between key and value, instead of ":"'),
        ('a = 1\nmodel = "gpt\nb = 2\n', 2, "model", "the closing quote is missing"),
        ("a = 1\nmodel = 'gpt\nb = 2\n", 2, "model", "the closing quote of the text that begins here is missing"),
        (
            'a = """x"""\nb = "y" # "\nc = """\nd = 1\n',
            3,
            "c",
            "the closing quote of the text that begins here is missing",
        ),
        ("a = '''\nb = 1\n", 1, "a", "the closing quote of the text that begins here is missing"),
        ('a = "x', 1, "a", "the closing quote of the text that begins here is missing"),
        ("x = True\n", 1, "x", "yes and no are written true and false"),
        ("x = no # comment\n", 1, "x", "yes and no are written true and false"),
        ("x = None\n", 1, "x", "TOML has no word for nothing"),
        ("x =\n", 1, "x", "the value is missing"),
        ("x = # nothing\n", 1, "x", "the value is missing"),
        ("x == 1\n", 1, "x", "one = stands between key and value"),
        ("x = 1,\n", 1, "x", "nothing may follow a value"),
        ('x = "say "hi""\n', 1, "x", "something follows the closing quote"),
        ("x = [1] 2\n", 1, "x", "something follows the closing bracket"),
        ('model = "C:\\models"\n', 1, "model", "in a text, \\ begins a special character"),
        ('model = "C:\\Users"\n', 1, "model", "in a text, \\ begins a special character"),
        ('model = "\\ud800"\n', 1, "model", "in a text, \\ begins a special character"),
        ('x = "a\0b"\n', 1, "x", "there is an invisible control character"),
        ("# a\0b\n", 1, "file", "there is an invisible control character"),
        ('p = [\n  { a = "x" }\n\n  { a = "y" }\n]\n', 2, "file", 'a comma or the closing "]" is missing'),
        ("p = [1, 2\nq = 3\n", 1, "p", 'a comma or the closing "]" is missing'),
        ("p = { a = 1\n[q]\n", 1, "p", 'a comma or the closing "}" is missing'),
        ("p = [\n  1,\n", 2, "file", "the file ends in the middle of a value"),
        ("[a]\nx = 1\n[b]\nx = 1\n[a]\n", 5, "a", "[a] is there twice (first in line 1)"),
        ("[b]\nx = 1\n[a]\nx = 1\nx = 2\n", 5, "x", "x is there twice (first in line 4)"),
        ("x = 1\nx = 2\n", 2, "x", "x is there twice (first in line 1)"),
        ("a.b = 1\n[a]\n", 2, "a", "[a] is there twice;"),
        ("x = { a = 1, a = 2 }\n", 1, "x", "x is there twice"),
        ("// comment\n", 1, "file", "a comment begins with #"),
        ('{"addr": 1}\n', 1, "file", "this looks like JSON"),
        ("<!DOCTYPE html>\n", 1, "file", "this looks like a web page"),
        ("= 3\n", 1, "file", "the key before = is missing"),
        ("\n\nhello world\n", 3, "file", 'a line is [table], key = "value"'),
        ("x = 2020-02-31\n", 1, "x", "this isn't TOML: invalid date or datetime"),
    ],
)
def test_slips_of_syntax(text: str, line: int, key: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_toml(text, "f.toml")
    found = issue(error)
    assert (found.file, found.line, found.key) == ("f.toml", line, key)
    assert found.message.startswith(message)


@pytest.mark.parametrize("complaint", ["Unterminated string", "Unclosed array", "Invalid value", "Cannot", "A new one"])
@pytest.mark.parametrize("text", ["", "\n", "a = 1", '"a" # b'])
def test_a_complaint_that_does_not_fit_the_text_still_makes_a_sentence(complaint: str, text: str) -> None:
    slip = explain(text, complaint, len(text))
    assert slip.line == 1
    assert slip.message


def test_a_byte_order_mark_in_a_text() -> None:
    assert parse_toml("\ufeffa = 1", "f.toml") == {"a": 1}


def test_a_key_in_a_line_with_a_slip_is_not_shown() -> None:
    for text in (
        "api_key = sk-s3cret\n",
        'api_key = "sk-s3cret\n',
        'api_key = "x" sk-s3cret\n',
        "api_key: sk-s3cret\n",
    ):
        with pytest.raises(ConfigError) as error:
            parse_toml(text, "f.toml")
        assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    "text", [f"{'a.' * 70}b = 1", f"a = {'[' * 70}{']' * 70}", f"a = {'[' * 900}{']' * 900}", f"{'a.' * 2000}b = 1"]
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"nested|TOML"):
        parse_toml(text, "f.toml")


def test_nesting_within_reason() -> None:
    assert parse_toml(f"a = {'[' * 40}{']' * 40}", "f.toml")["a"]
