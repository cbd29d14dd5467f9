"""What is shown while a download runs."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from echokit_py.models.progress import Bar, Lines, default, megabytes


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0.0 MB"), (1_289_603, "1.3 MB"), (75_537_502, "76 MB"), (2_497_280_256, "2.5 GB")]
)
def test_sizes_read_as_people_say_them(size: int, text: str) -> None:
    assert megabytes(size) == text


def test_the_bar_draws_over_itself_and_ends_its_line() -> None:
    stream = io.StringIO()
    bar = Bar(stream)
    bar("model", 50_000_000, 100_000_000)
    bar("model", 50_000_001, 100_000_000)  # looks the same: not drawn
    bar("model", 100_000_000, 100_000_000)
    drawn = stream.getvalue().split("\r")[1:]
    assert len(drawn) == 2
    assert drawn[0] == "model [" + "#" * 15 + "." * 15 + "]  50% 50 MB of 100 MB"
    assert drawn[1].rstrip(" \n") == "model [" + "#" * 30 + "] 100% 100 MB of 100 MB"
    assert drawn[1].endswith("\n")


def test_a_bar_of_unknown_total_shows_what_has_come() -> None:
    stream = io.StringIO()
    Bar(stream)("model", 5_000_000, 0)
    assert "5.0 MB" in stream.getvalue()
    assert "\n" not in stream.getvalue()


def test_lines_come_at_each_tenth(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    lines = Lines()
    for done in range(0, 1001):
        lines("model", done, 1000)
    shares = [record.getMessage().split()[2] for record in caplog.records]
    assert shares == [str(tenth * 10) for tenth in range(11)]


def test_lines_of_unknown_total_come_each_50_megabytes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    lines = Lines()
    for done in range(0, 120_000_000, 10_000_000):
        lines("model", done, 0)
    assert len(caplog.records) == 3


def test_the_way_follows_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(default(), Bar)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert isinstance(default(), Lines)
