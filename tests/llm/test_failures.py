"""Errors that a server reports: who is at fault, and whether another try can help."""

from __future__ import annotations

import pytest

from echokit_py.errors import ErrorKind, Stage
from echokit_py.llm.failures import reported_error


@pytest.mark.parametrize(
    ("reported", "kind"),
    [
        ({"message": "worker gone", "type": "server_error", "code": 500}, ErrorKind.SERVER),
        ({"message": "worker gone"}, ErrorKind.SERVER),
        ("worker gone", ErrorKind.SERVER),
        (None, ErrorKind.SERVER),
        ({"error": "worker gone"}, ErrorKind.SERVER),
        ({"code": 503, "message": "The model is overloaded"}, ErrorKind.RATE_LIMIT),
        ({"error": {"code": "rate_limit_exceeded"}}, ErrorKind.RATE_LIMIT),
        ({"code": "429", "message": "slower"}, ErrorKind.RATE_LIMIT),
        ({"code": "insufficient_quota", "message": "see billing", "status": 429}, ErrorKind.REFUSED),
        ({"code": 401, "message": "who are you"}, ErrorKind.AUTH),
        ({"type": "authentication_error"}, ErrorKind.AUTH),
        ({"type": "exceed_context_size_error", "code": 400}, ErrorKind.CONTEXT),
        ({"message": "This model's maximum context length is 4096 tokens"}, ErrorKind.CONTEXT),
        ({"type": "invalid_request_error", "code": "tool_use_failed"}, ErrorKind.SERVER),
        ({"type": "invalid_request_error"}, ErrorKind.REFUSED),
        ({"code": 404, "message": "?"}, ErrorKind.REFUSED),
        ({"detail": "model x not found"}, ErrorKind.SERVER),
        ({"message": [[1]], "code": True, "status": 200}, ErrorKind.SERVER),
    ],
)
def test_kind(reported: object, kind: ErrorKind) -> None:
    error = reported_error(reported)
    assert (error.stage, error.kind) == (Stage.LLM, kind)
    assert error.retryable == (kind in (ErrorKind.SERVER, ErrorKind.RATE_LIMIT))


@pytest.mark.parametrize(
    ("reported", "seconds"),
    [
        ({"message": "Please try again in 1.5s."}, 1.5),
        ({"message": "Please try again in 250ms"}, 0.25),
        ({"message": "retry after 2 minutes"}, 120.0),
        ({"message": "try again in 7"}, 7.0),
        ({"retry_after": 3}, 3.0),
        ({"retry_after": -3, "retry_after_seconds": 4.5}, 4.5),
        ({"retry_after": True}, None),
        ({"message": "later"}, None),
    ],
)
def test_how_long_to_wait(reported: object, seconds: float | None) -> None:
    assert reported_error(reported).retry_after == seconds


def test_the_servers_words_are_cut_and_cleaned() -> None:
    error = reported_error({"message": "bad\x1b[31m\nthing" + "x" * 5000, "code": 502})
    assert "\x1b" not in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 300
    assert error.status == 502


def test_without_words_the_code_speaks() -> None:
    assert "E17" in str(reported_error({"code": "E17"}))
    assert "no reason given" in str(reported_error({}))
