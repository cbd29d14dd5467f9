"""Lines of bounded length."""

from __future__ import annotations

import pytest

from echokit_py.mcp.lines import Lines

TEXT = b"one\n\ntwo\r\n" + b"x" * 30 + b"\nthree\nrest"
LINES = [b"one", b"", b"two\r", b"", b"three"]


@pytest.mark.parametrize("size", [1, 2, 7, len(TEXT)])
def test_lines_are_the_same_however_the_bytes_arrive(size: int) -> None:
    lines = Lines(20)
    found = [line for start in range(0, len(TEXT), size) for line in lines.feed(TEXT[start : start + size])]
    assert found == LINES
    assert lines.feed(b" of it\n") == [b"rest of it"]


def test_a_line_that_never_ends_is_not_kept() -> None:
    lines = Lines(10)
    for _ in range(100):
        assert lines.feed(b"y" * 8) == []
    assert sum(len(piece) for piece in lines._pieces) == 0
    assert lines.feed(b"\nnext\n") == [b"", b"next"]
