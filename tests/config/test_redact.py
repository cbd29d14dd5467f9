"""Tests for echokit_py.config.redact."""

from __future__ import annotations

import pytest

from echokit_py.config.redact import MASK, hide, is_secret_name, mask_urls


@pytest.mark.parametrize(
    "name",
    ["api_key", "key", "x-api-key", "apiKey", "Authorization", "access_token", "token", "PASSWORD", "client_secret"],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["max_tokens", "model", "monkey", "tokenizer", "keyboard", "url", ""])
def test_other_names(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://example.org/v1?model=x", "https://example.org/v1?model=x"),
        ("https://user:pa@ss@example.org/v1", f"https://{MASK}@example.org/v1"),
        ("http://h/?key=abc&model=x#f", f"http://h/?key={MASK}&model=x#f"),
        ("http://h/?a=1&api_key=abc", f"http://h/?a=1&api_key={MASK}"),
        ("see http://u@h/x?access-token=q and more", f"see http://{MASK}@h/x?access-token={MASK} and more"),
        ("me@example.org", "me@example.org"),
        ("http://h/path@2", "http://h/path@2"),
    ],
)
def test_urls(text: str, expected: str) -> None:
    assert mask_urls(text) == expected


def test_hides_at_any_depth_and_leaves_the_original() -> None:
    value = {
        "tools": [{"headers": {"Authorization": "Bearer s3cret"}, "url": "http://u:s3cret@h"}],
        "api_key": "",
        "n": 5,
    }
    assert hide(value) == {
        "tools": [{"headers": {"Authorization": MASK}, "url": f"http://{MASK}@h"}],
        "api_key": "",
        "n": 5,
    }
    assert value["tools"] == [{"headers": {"Authorization": "Bearer s3cret"}, "url": "http://u:s3cret@h"}]
    assert hide(("http://u:s3cret@h", 1)) == (f"http://{MASK}@h", 1)
    assert hide(["one", "two"], "token") == [MASK, MASK]


def test_what_goes_to_a_program_or_a_server_is_hidden_whatever_it_is_called() -> None:
    value = {"args": ("-v", ""), "env": {"A": "x", "B": 5}, "headers": {"X-House": "12"}, "environment": "x"}
    assert hide(value) == {
        "args": (MASK, ""),
        "env": {"A": MASK, "B": 5},
        "headers": {"X-House": MASK},
        "environment": "x",
    }
