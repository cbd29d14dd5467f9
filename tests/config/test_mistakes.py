"""Tests for echokit_py.config.mistakes: what test_load.py doesn't reach through whole files."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_core import ErrorDetails

from echokit_py.config.mistakes import describe, nearest, sentence
from echokit_py.config.settings import OpenAiChatLlm


def test_a_finding_of_a_kind_that_is_new_to_us_is_passed_on() -> None:
    finding = ErrorDetails(type="new_kind", loc=("model",), msg="Input should be nicer", input="x")
    assert sentence(finding, OpenAiChatLlm, "llm", show=True) == "input should be nicer"


def test_an_unknown_key_in_a_place_without_a_type() -> None:
    finding = ErrorDetails(type="extra_forbidden", loc=("extra", "unknown", "x"), msg="", input="x")
    assert sentence(finding, OpenAiChatLlm, "llm", show=True) == "there is no such key here; there are "


@pytest.mark.parametrize(
    ("value", "key", "text"),
    [
        ("x" * 61, "", f'the text "{"x" * 59}…"'),
        ("a\nb\x1b[1m", "", 'the text "a b [1m"'),
        ("s3cret", "token", "something else (it isn't shown)"),
        (True, "api_key", "something else (it isn't shown)"),
        (["s3cret"], "api_key", "a list"),
        ({"a": "s3cret"}, "api_key", "a table"),
        ("s3cret", "args", "something else (it isn't shown)"),
    ],
)
def test_values_are_named_without_showing_too_much(value: Any, key: str, text: str) -> None:
    assert describe(value, key) == text


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("API-KEY", "api_key"),
        ("token", "api_key"),
        ("language", "lang"),
        ("base_url", "url"),
        ("modle", "model"),
        ("zzz", None),
        ("speaker", None),
    ],
)
def test_the_nearest_key(name: str, right: str | None) -> None:
    assert nearest(name, ["api_key", "url", "model", "lang"]) == right
