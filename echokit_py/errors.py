"""The errors that cross module borders: who is at fault, and whether another try can help. Does no I/O.

Each carries one sentence for the person who must act on it. Texts that come from a peer are cut and stripped of
control characters by `log.sanitize` before they get here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """The part of a turn that a failure belongs to."""

    VAD = "vad"
    ASR = "asr"
    LLM = "llm"
    TTS = "tts"
    TOOL = "tool"


class ErrorKind(StrEnum):
    """What went wrong with a back end. Stable: logs, metrics and tests name these."""

    CONNECT = "connect"  # no connection: refused, unknown host, TLS
    TIMEOUT = "timeout"  # it was silent for longer than the configured time
    AUTH = "auth"  # 401, 403: the key
    RATE_LIMIT = "rate_limit"  # 429
    REFUSED = "refused"  # another 4xx: the request as it stands is not accepted
    CONTEXT = "context"  # the conversation is too long for the model
    SERVER = "server"  # 5xx, or an error event inside a stream
    BAD_ANSWER = "bad_answer"  # an answer that can't be read: HTML, broken JSON, no audio
    BROKEN_OFF = "broken_off"  # the connection ended in the middle of the answer
    INTERNAL = "internal"  # a model of ours failed


RETRYABLE = frozenset(
    {ErrorKind.CONNECT, ErrorKind.TIMEOUT, ErrorKind.RATE_LIMIT, ErrorKind.SERVER, ErrorKind.BROKEN_OFF}
)


class EchoKitError(Exception):
    """Base of all errors of this project."""


class BackendError(EchoKitError):
    """A back end (VAD, ASR, LLM, TTS, tool) did not do its work.

    Attributes:
        stage: which one.
        kind: what went wrong; `retryable` follows from it.
        status: the HTTP status, where there was one.
        retry_after: seconds the back end asked us to wait, or None.
    """

    def __init__(
        self,
        stage: Stage,
        kind: ErrorKind,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.stage = stage
        self.kind = kind
        self.status = status
        self.retry_after = retry_after

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind in RETRYABLE

    def __str__(self) -> str:
        return f"{self.stage} {self.kind}: {super().__str__()}"


@dataclass(frozen=True, slots=True)
class ConfigIssue:
    """One mistake in a configuration file. `line` counts from 1; 0 when the file as a whole is meant."""

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.key}: {self.message}"


class ConfigError(EchoKitError):
    """A configuration that can't be used; holds every mistake found, one `file:line: key: message` line each."""

    def __init__(self, issues: list[ConfigIssue]) -> None:
        super().__init__("\n".join(str(issue) for issue in issues))
        self.issues = issues


class ModelError(EchoKitError):
    """A model file is missing, damaged or can't be fetched; the message says what to do."""
