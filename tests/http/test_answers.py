"""What failed answers mean: shapes of error bodies, kinds, waiting times. No network."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from echokit_py.errors import ErrorKind, Stage
from echokit_py.http.answers import MAX_RETRY_AFTER_S, context_exceeded, describe, error_kind, read_words, retry_after

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("body", "words", "codes"),
    [
        ('{"error": {"message": "No.", "type": "t", "code": "c"}}', "No.", "c t"),
        ('{"error": {"message": "No.", "type": null, "code": 400, "status": "BAD"}}', "No.", "400 None BAD"),
        ('{"error": "model not found"}', "model not found", ""),
        ('{"message": "No.", "code": "c"}', "No.", "c"),
        ('{"detail": "Not Found"}', "Not Found", ""),
        (
            '{"detail": [{"loc": ["body", "model"], "msg": "Field required", "type": "missing"}]}',
            "Field required",
            "missing",
        ),
        ('[{"error": {"message": "API key not valid.", "code": 400}}]', "API key not valid.", "400"),
        ('{"error": null, "message": "No."}', "No.", ""),
        ('{"error": ""}', '{"error": ""}', ""),
        ('{"odd": "näher"}', '{"odd": "näher"}', ""),
        ("[]", "[]", ""),
        ('"text"', '"text"', ""),
        ("upstream connect error", "upstream connect error", ""),
        ('{"error": {"message": "cut of', '{"error": {"message": "cut of', ""),
        ("", "nothing", ""),
        ("[" * 100_000, "[" * 100_000, ""),
        ("\ufffd", "\ufffd", ""),
    ],
)
def test_words_of_an_error_body(body: str, words: str, codes: str) -> None:
    assert read_words(body.encode()) == (words, codes)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title>", "an HTML page (502 Bad  Gateway)"),
        ("  <HTML lang='en'><TITLE dir=ltr>Hi</TITLE>", "an HTML page (Hi)"),
        ("<!-- a comment --><html><body>no title", "an HTML page"),
        ("<?xml version='1.0'?><!DOCTYPE HTML PUBLIC><html></html>", "an HTML page"),
        ("say <html> to me", "say <html> to me"),
    ],
)
def test_a_web_page_is_reduced_to_its_title(page: str, words: str) -> None:
    assert read_words(page.encode())[0] == words


def test_a_description_stays_on_one_short_line() -> None:
    assert describe(b"a\r\nb\x1b[31m\xe2\x80\xae") == "a b [31m"
    assert len(describe(b"x" * 60_000)) == 200
    assert describe(b"\xff\xfe\x00") == "\ufffd\ufffd"


# Wordings as the servers' sources and documentation have them; `True`: the conversation is too long.
CONTEXT_WORDINGS = [
    ("This model's maximum context length is 4097 tokens. However, your messages resulted in 5000 tokens.", True),
    ("context_length_exceeded", True),
    ("the request exceeds the available context size, try increasing it", True),
    ("exceed_context_size_error", True),
    ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", True),
    ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", True),
    ("This model's maximum prompt length is 131072 but the request contains 140000 tokens.", True),
    ("prompt is too long: 200001 tokens > 200000 maximum", True),
    ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000", True),
    ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", True),
    ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", True),
    ("Invalid request: Your request exceeded model token limit: 8192", True),
    ("Range of input length should be [1, 30720]", True),
    ("Please reduce the length of the messages or completion.", True),
    ("Trying to keep the first 5000 tokens when context overflows. The model has context length of only 4096", True),
    ("max_tokens is too large: 100000. This model supports at most 4096 completion tokens", False),
    ("An assistant message with 'tool_calls' must be followed by tool messages", False),
    ("Invalid 'messages[3].content': string expected", False),
]


@pytest.mark.parametrize(("words", "expected"), CONTEXT_WORDINGS)
def test_how_servers_say_that_the_conversation_is_too_long(words: str, expected: bool) -> None:
    assert context_exceeded(words) is expected
    for status in (400, 422):
        assert (error_kind(Stage.LLM, status, words) is ErrorKind.CONTEXT) is expected
    assert error_kind(Stage.TTS, 400, words) is ErrorKind.REFUSED  # only a conversation can be shortened


@pytest.mark.parametrize(
    ("stage", "status", "words", "kind"),
    [
        (Stage.ASR, 401, "", ErrorKind.AUTH),
        (Stage.ASR, 403, "", ErrorKind.AUTH),
        (Stage.LLM, 400, "API key not valid. Please pass a valid API key.", ErrorKind.AUTH),
        (Stage.LLM, 402, "Insufficient Balance", ErrorKind.REFUSED),
        (Stage.LLM, 404, "", ErrorKind.REFUSED),
        (Stage.LLM, 408, "", ErrorKind.SERVER),
        (Stage.LLM, 413, "", ErrorKind.CONTEXT),
        (Stage.ASR, 413, "", ErrorKind.REFUSED),
        (Stage.LLM, 425, "", ErrorKind.SERVER),
        (Stage.LLM, 429, "Rate limit reached", ErrorKind.RATE_LIMIT),
        (Stage.LLM, 429, "Rate limit reached for context length", ErrorKind.RATE_LIMIT),
        (Stage.LLM, 429, "You exceeded your current quota insufficient_quota", ErrorKind.REFUSED),
        (Stage.LLM, 500, "", ErrorKind.SERVER),
        (Stage.LLM, 500, "the request exceeds the available context size", ErrorKind.CONTEXT),
        (Stage.LLM, 503, "Loading model", ErrorKind.SERVER),
        (Stage.LLM, 529, "overloaded", ErrorKind.SERVER),
        (Stage.TTS, 307, "", ErrorKind.REFUSED),
    ],
)
def test_kind_of_a_status(stage: Stage, status: int, words: str, kind: ErrorKind) -> None:
    assert error_kind(stage, status, words) is kind


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("86400", MAX_RETRY_AFTER_S),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 01 Mar 2026 14:00:10 +0200", 10.0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("Sun, 99 Mar 2026 12:00:30 GMT", None),
    ],
)
def test_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": value}, NOW) == seconds


def test_retry_after_in_milliseconds_is_the_more_exact_one() -> None:
    assert retry_after({"retry-after-ms": "250", "retry-after": "1"}, NOW) == 0.25
    assert retry_after({}, NOW) is None
