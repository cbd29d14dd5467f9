"""The errors: which are worth another try, and what they say."""

from __future__ import annotations

import pytest

from echokit_py.errors import BackendError, ConfigError, ConfigIssue, EchoKitError, ErrorKind, ModelError, Stage


@pytest.mark.parametrize(
    ("kind", "retryable"),
    [
        (ErrorKind.CONNECT, True),
        (ErrorKind.TIMEOUT, True),
        (ErrorKind.AUTH, False),
        (ErrorKind.RATE_LIMIT, True),
        (ErrorKind.REFUSED, False),
        (ErrorKind.CONTEXT, False),
        (ErrorKind.SERVER, True),
        (ErrorKind.BAD_ANSWER, False),
        (ErrorKind.BROKEN_OFF, True),
        (ErrorKind.INTERNAL, False),
    ],
)
def test_which_errors_are_worth_another_try(kind: ErrorKind, retryable: bool) -> None:
    assert BackendError(Stage.LLM, kind, "m").retryable is retryable


def test_a_backend_error_names_stage_and_kind() -> None:
    error = BackendError(Stage.ASR, ErrorKind.RATE_LIMIT, "answered 429", status=429, retry_after=7.0)
    assert str(error) == "asr rate_limit: answered 429"
    assert (error.stage, error.kind, error.status, error.retry_after) == (Stage.ASR, ErrorKind.RATE_LIMIT, 429, 7.0)
    plain = BackendError(Stage.TTS, ErrorKind.CONNECT, "gone")
    assert (plain.status, plain.retry_after) == (None, None)


def test_the_names_are_stable() -> None:
    """Logs, metrics and users' scripts contain them."""
    assert {stage.value for stage in Stage} == {"vad", "asr", "llm", "tts", "tool"}
    assert " ".join(kind.value for kind in ErrorKind) == (
        "connect timeout auth rate_limit refused context server bad_answer broken_off internal"
    )


def test_a_config_error_lists_every_mistake() -> None:
    issues = [
        ConfigIssue("config.toml", 3, "asr.urll", "unknown key; did you mean url?"),
        ConfigIssue("config.toml", 0, "llm", "missing"),
    ]
    error = ConfigError(issues)
    assert error.issues == issues
    assert str(error) == "config.toml:3: asr.urll: unknown key; did you mean url?\nconfig.toml:0: llm: missing"


def test_all_are_errors_of_this_project() -> None:
    assert all(issubclass(kind, EchoKitError) for kind in (BackendError, ConfigError, ModelError))
