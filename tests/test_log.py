"""What may stand in a log line, and how the log is set up."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echokit_py import log


@pytest.fixture
def root_as_before() -> Iterator[logging.Logger]:
    """The root logger, put back afterwards: `setup` changes it for the whole process."""
    names = (None, "aiohttp.access", "httpx", "mcp", "libav", "faster_whisper", "piper", "httpx2")
    before = [(logging.getLogger(name), logging.getLogger(name).level) for name in names]
    handlers = logging.getLogger().handlers[:]
    yield logging.getLogger()
    logging.getLogger().handlers[:] = handlers
    for logger, level in before:
        logger.setLevel(level)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("  two\r\nlines\t", "two lines"),
        ("a\x1b[31mred\x1b[0m\x00b", "a [31mred [0m b"),
        ("c1 \x9b31m", "c1  31m"),
        ("sep\u2028arated\u2029", "sep arated"),
        ("spoof\u202egnp.exe", "spoof gnp.exe"),
        ("isolated\u2066x\u2069", "isolated x"),
        ("日本語 é 🎤", "日本語 é 🎤"),
        (ValueError("bad\nthing"), "bad thing"),
        ("", ""),
    ],
)
def test_a_text_from_outside_stays_on_one_line(text: object, clean: str) -> None:
    assert log.sanitize(text) == clean


def test_a_long_text_is_cut_visibly() -> None:
    assert log.sanitize("x" * 200) == "x" * 200
    assert log.sanitize("x" * 201) == "x" * 199 + "…"
    assert log.sanitize("x" * 10_000, 10) == "x" * 9 + "…"


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_no_text_breaks_a_line_or_its_limit(text: str, limit: int) -> None:
    clean = log.sanitize(text, limit)
    assert len(clean) <= limit
    assert len(clean.splitlines()) <= 1
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in clean)


def test_records_go_to_the_stream_with_level_and_name(root_as_before: logging.Logger) -> None:
    stream = io.StringIO()
    log.setup("info", stream)
    logging.getLogger("echokit_py.x").info("device %s", "abc")
    logging.getLogger("echokit_py.x").debug("not this")
    assert stream.getvalue().endswith(" INFO    echokit_py.x: device abc\n")
    assert stream.getvalue().count("\n") == 1


def test_setting_up_twice_writes_each_record_once(root_as_before: logging.Logger) -> None:
    first, second = io.StringIO(), io.StringIO()
    log.setup("INFO", first)
    log.setup("DEBUG", second)
    logging.getLogger("echokit_py.x").debug("now this")
    assert first.getvalue() == ""
    assert second.getvalue().count("now this") == 1


@pytest.mark.parametrize("level", ["DEBUG", "INFO", "ERROR"])
def test_libraries_say_only_what_a_user_needs(root_as_before: logging.Logger, level: str) -> None:
    stream = io.StringIO()
    log.setup(level, stream)
    for name in ("aiohttp.access", "httpx", "mcp", "mcp.client"):
        logging.getLogger(name).info("chatter")
        logging.getLogger(name).warning("warning of %s", name)
    assert "chatter" not in stream.getvalue()
    assert stream.getvalue().count("warning of") == (0 if level == "ERROR" else 4)


def test_an_unknown_level_is_refused(root_as_before: logging.Logger) -> None:
    with pytest.raises(ValueError, match="LOUD"):
        log.setup("loud", io.StringIO())
