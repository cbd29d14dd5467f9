"""Turns a TOML parser's complaint into a sentence for somebody who doesn't know TOML. Pure; knows no key of ours.

The text around the mistake may hold a secret, so values are never quoted, only the names of keys and tables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from echokit_py.config.positions import STRINGS

_KEY = re.compile(r"""\s*["']?([\w.-]+)["']?\s*[=:]""")
_COMMENT = re.compile(r"#[^\n]*")
_QUOTE_OR_COMMENT = re.compile("[\"'#]")
_HEADER = re.compile(r"\s*(\[+)\s*([\w.-]+)\s*(\]*)")

_OPEN_TEXT = "the closing quote of the text that begins here is missing"
_CONTROL = "there is an invisible control character in this line; type the line again"
_BACKSLASH = r"in a text, \ begins a special character; write \\ instead, or use single quotes: 'C:\models'"

_VALUE_SLIPS = (
    (re.compile(r"$|#"), "the value is missing; to leave an option as it is, put # before the line"),
    (re.compile("[“”„‟‘’«»]"), 'these are typographic quotes; write straight ones: "…"'),
    (re.compile("=|>"), "one = stands between key and value"),
    (
        re.compile(r"(?i:true|false|yes|no|on|off)\s*(?:#|$)"),
        "yes and no are written true and false, in lower case and without quotes",
    ),
    (
        re.compile(r"(?i:null|nil|none|undefined)\s*(?:#|$)"),
        "TOML has no word for nothing; put # before the line to leave the option as it is",
    ),
    (
        re.compile("[\"']"),
        'something follows the closing quote; a line holds one value, and a quote inside a text is written \\"',
    ),
    (re.compile(r"[\[{]"), "something follows the closing bracket, or the list in this line isn't right"),
    (re.compile(r".*[,;]$"), "nothing may follow a value; remove the , or ; at the end"),
    (re.compile(""), 'text must stand in quotes, such as model = "tiny.en"; a number is digits only'),
)
"""What a value that can't be read begins with, and what to say."""

_TEXT_SLIPS = (
    ("Illegal character '\\n'", "the closing quote is missing; a text of several lines stands between three quotes"),
    ("Unterminated string", _OPEN_TEXT),
    ("Expected \"'", _OPEN_TEXT),
    ("Illegal character", _CONTROL),
    ("Found invalid character", _CONTROL),
    ("Unescaped", _BACKSLASH),
    ("Invalid hex", _BACKSLASH),
    ("Escaped character", _BACKSLASH),
    ("Unclosed array", 'a comma or the closing "]" is missing at the end of this line'),
    ("Unclosed inline table", 'a comma or the closing "}" is missing at the end of this line'),
)
"""How a complaint begins, and what to say."""

_NO_STATEMENT = ("Invalid statement", "Expected '=' after a key", "Invalid initial character for a key")

_LINE_SLIPS = (
    (re.compile(r"//|;|--|/\*|<!--"), "a comment begins with #"),
    (re.compile(r"\{"), 'this looks like JSON; the configuration is TOML: [table] and key = "value" lines'),
    (re.compile("<"), "this looks like a web page, not like a configuration file"),
    (re.compile(r"""["']?[\w.-]+["']?\s*:"""), 'write = between key and value, instead of ":"'),
    (re.compile("="), "the key before = is missing"),
    (re.compile(""), 'a line is [table], key = "value", or a comment that begins with #; a key is one word'),
)
"""What a line that can't be read begins with, and what to say."""


@dataclass(frozen=True, slots=True)
class Slip:
    """What is wrong with the syntax, and where. `line` counts from 1; `key` is a key, a table, or ""."""

    line: int
    key: str
    message: str


def key_of_line(line: str) -> str:
    """The key or table name that a line begins with, or ""."""
    if match := _KEY.match(line):
        return match[1]
    header = _HEADER.match(line)
    return header[2] if header else ""


def explain(text: str, complaint: str, position: int) -> Slip:
    """Explain tomli's `complaint` at `position` (an index into `text`, with the line ends as tomli made them)."""
    start = max(0, _slip_at(text, complaint, position))
    number = text.count("\n", 0, start) + 1
    line = text.split("\n")[number - 1]
    message = (
        _ended(text, complaint, position)
        or _brackets(line)
        or _value(line, complaint)
        or _text(complaint)
        or _statement(line, complaint)
        or _repeated(text, number, complaint)
        or f"this isn't TOML: {complaint[:1].lower()}{complaint[1:]}"
    )
    return Slip(number, key_of_line(line), message)


def _slip_at(text: str, complaint: str, position: int) -> int:
    """Where the person has to look, which is often before the place where the parser gave up."""
    if complaint.startswith(("Unterminated string", "Expected \"'")):
        return _open_quote(text[:position])
    if complaint.startswith("Unclosed"):
        position = len(text[:position].rstrip()) - 1
    return min(position, len(text.rstrip()) - 1)


def _open_quote(text: str) -> int:
    """Where the text begins that never ends: the first quote that has no partner."""
    at = 0
    while match := _QUOTE_OR_COMMENT.search(text, at):
        at = match.start()
        whole = next((found for string in (*STRINGS, _COMMENT) if (found := string.match(text, at))), None)
        if whole is None or (text.startswith(('"""', "'''"), at) and len(whole[0]) == 2):
            return at
        at = whole.end()
    return len(text) - 1


def _ended(text: str, complaint: str, position: int) -> str:
    if (
        complaint == "Invalid value"
        and "\n" in text.rstrip()
        and position >= len(text.rstrip())
        and text.rstrip()[-1] != "="
    ):
        return 'the file ends in the middle of a value; a closing "]" or "}" is missing'
    return ""


def _brackets(line: str) -> str:
    match = _HEADER.match(line)
    if not match or len(match[1]) == len(match[3]):
        return ""
    name = match[2]
    if not match[3]:
        return f'the closing "]" is missing: write {match[1]}{name}{"]" * len(match[1])}'
    return f"the brackets don't match: write [[{name}]] for an entry of a list, or [{name}] for a table"


def _value(line: str, complaint: str) -> str:
    """What is wrong with the value after the `=`."""
    if complaint not in {"Invalid value", "Expected newline or end of document after a statement"}:
        return ""
    value = line.partition("=")[2].strip()
    return next(message for pattern, message in _VALUE_SLIPS if pattern.match(value))


def _text(complaint: str) -> str:
    """What is wrong inside a quoted text or behind an item of a list."""
    return next((message for beginning, message in _TEXT_SLIPS if complaint.startswith(beginning)), "")


def _statement(line: str, complaint: str) -> str:
    """What is wrong with a line that isn't `key = value`."""
    if not complaint.startswith(_NO_STATEMENT):
        return ""
    return next(message for pattern, message in _LINE_SLIPS if pattern.match(line.strip()))


def _repeated(text: str, number: int, complaint: str) -> str:
    """Where the key or table stands that is defined a second time in line `number`."""
    if not complaint.startswith(("Cannot", "Duplicate inline")):
        return ""
    lines = text.split("\n")
    name = key_of_line(lines[number - 1])
    is_header = _HEADER.match(lines[number - 1]) is not None
    earlier = lines[: number - 1]
    if not is_header:  # only keys of the same table count: cut everything before its header
        headers = [index for index, line in enumerate(earlier) if _HEADER.match(line)]
        earlier = [""] * headers[-1] + earlier[headers[-1] :] if headers else earlier
    first = next((index for index, line in enumerate(earlier, 1) if key_of_line(line) == name), 0)
    where = f" (first in line {first})" if first else ""
    what = f"[{name}]" if is_header else name or "a key"
    return f"{what} is there twice{where}; keep one, with all that belongs to it"
