"""Tests for echokit_py.config.environment."""

from __future__ import annotations

import pytest

from echokit_py.config.environment import expand

ENVIRON = {"KEY": "sk-1", "HOST": "box.local", "EMPTY": "", "NESTED": "${KEY}"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${KEY}", "sk-1"),
        ("http://${HOST}:9000/${KEY}", "http://box.local:9000/sk-1"),
        ("${EMPTY}", ""),
        ("${NESTED}", "${KEY}"),
        ("$", "$"),
        ("$$", "$$"),
        ("$KEY", "$KEY"),
        ("pa$$word", "pa$$word"),
        ("$${KEY}", "$sk-1"),
        ("{KEY}", "{KEY}"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    expansion = expand({"a": text}, ENVIRON)
    assert expansion.document == {"a": expected}
    assert expansion.mistakes == {}


def test_reaches_every_text_and_nothing_else() -> None:
    document = {"a": [{"b": "${KEY}"}, 1, True], "${KEY}": "x"}
    expansion = expand(document, ENVIRON)
    assert expansion.document == {"a": [{"b": "sk-1"}, 1, True], "${KEY}": "x"}
    assert expansion.filled == {("a", 0, "b")}
    assert document["a"] == [{"b": "${KEY}"}, 1, True]


@pytest.mark.parametrize("key", ["content", "prompt", "prompts", "instructions"])
def test_texts_for_models_are_left_alone(key: str) -> None:
    document = {"llm": {key: "Say ${KEY} and ${UNKNOWN}."}}
    assert expand(document, ENVIRON).document == document
    assert expand(document, ENVIRON).mistakes == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${UNKNOWN}", "the environment variable UNKNOWN is not set; set it (export UNKNOWN=…) and start again"),
        (
            "${KEY} ${UNKNOWN} ${OTHER}",
            "the environment variable UNKNOWN is not set; set it (export UNKNOWN=…) and start again",
        ),
        ("${KEY", 'a "${" has no closing "}"; write ${NAME} for an environment variable'),
        ("${MY-KEY}", "${MY-KEY} isn't the name of an environment variable: letters, digits and _, nothing else"),
        ("${}", "${} isn't the name of an environment variable: letters, digits and _, nothing else"),
        ("${KEY:-x}", "${KEY:-x} isn't the name of an environment variable: letters, digits and _, nothing else"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    assert expand({"llm": {"api_key": text}}, ENVIRON).mistakes == {("llm", "api_key"): message}


def test_a_variable_that_is_no_text_is_named_and_not_taken() -> None:
    found = expand({"llm": {"model": "a${BYTES}"}}, {"BYTES": "caf\udce9"})
    (message,) = found.mistakes.values()
    assert message == "what the environment variable BYTES holds isn't UTF-8; set it again"
    assert found.document == {"llm": {"model": "a${BYTES}"}}


def test_empty_variables_are_named() -> None:
    assert expand({"a": "x${EMPTY}"}, ENVIRON).empty == {("a",): "EMPTY"}
