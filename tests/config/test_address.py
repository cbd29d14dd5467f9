"""Tests for echokit_py.config.address."""

from __future__ import annotations

import pytest

from echokit_py.config.address import parse_address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.0.0.0:8080", ("0.0.0.0", 8080)),
        (" 127.0.0.1:0 ", ("127.0.0.1", 0)),
        (":8080", ("0.0.0.0", 8080)),
        ("[::]:8080", ("::", 8080)),
        ("[fe80::1]:65535", ("fe80::1", 65535)),
        ("localhost:80", ("localhost", 80)),
        ("my-box.local:80", ("my-box.local", 80)),
    ],
)
def test_reads(text: str, expected: tuple[str, int]) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("8080", "the host is missing"),
        ("localhost", "the port is missing"),
        ("", "the port is missing"),
        ("0.0.0.0:", "the port, after"),
        ("0.0.0.0:65536", "from 0 to 65535"),
        ("0.0.0.0:-1", "from 0 to 65535"),
        ("0.0.0.0:" + 5000 * "9", "from 0 to 65535"),
        ("0.0.0.0:٣", "from 0 to 65535"),
        ("0.0.0.0:http", "from 0 to 65535"),
        ("http://0.0.0.0:8080", 'without "http://"'),
        ("0.0.0.0:8080/ws", 'without "http://"'),
        ("::1:8080", "needs brackets"),
        ("[::z]:8080", "looks like an IP address"),
        ("[127.0.0.1]:8080", "looks like an IP address"),
        ("256.0.0.1:8080", "looks like an IP address"),
        ("0.0.0:8080", "looks like an IP address"),
        ("my box:8080", "the host, before"),
        ("-x:8080", "the host, before"),
    ],
)
def test_refuses_with_a_sentence(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_address(text)
