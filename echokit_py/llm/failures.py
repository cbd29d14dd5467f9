"""Turns what a server says of its own failure into a typed error. Reads no stream."""

from __future__ import annotations

import re
from collections.abc import Mapping

from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.log import sanitize

_TRY_AGAIN = re.compile(
    r"(?:try again|retry) (?:in|after) (\d+(?:\.\d+)?)\s*(ms|milliseconds?|m(?:in\w*)?\b)?", re.IGNORECASE
)
_UNITS = {"ms": 0.001, "mi": 60.0, "m": 60.0}

# Words in code, type or message of an error, most telling first. Sources: the error pages of OpenAI, OpenRouter, Groq,
# and the texts of llama.cpp ("exceed_context_size_error") and vLLM ("maximum context length").
_BY_WORD: tuple[tuple[re.Pattern[str], ErrorKind], ...] = (
    (re.compile(r"context[ _](?:length|size|window)|too many tokens|prompt is too long", re.I), ErrorKind.CONTEXT),
    (re.compile(r"insufficient_quota|billing|payment", re.I), ErrorKind.REFUSED),
    (re.compile(r"rate[ _-]?limit|too many requests|overloaded", re.I), ErrorKind.RATE_LIMIT),
    (re.compile(r"authenticat|unauthori[sz]ed|permission|forbidden|invalid[ _]api[ _]key", re.I), ErrorKind.AUTH),
    # The model wrote a call that the server could not read: asking again may well help.
    (re.compile(r"tool_use_failed", re.I), ErrorKind.SERVER),
    (
        re.compile(r"invalid[ _]request|invalid_prompt|not[ _]found|unsupported|no such model|content_policy", re.I),
        ErrorKind.REFUSED,
    ),
)


def answer_error(kind: ErrorKind, message: str) -> BackendError:
    """Return the error for an answer that is of no use."""
    return BackendError(Stage.LLM, kind, message)


def reported_error(reported: object) -> BackendError:
    """Return the error for what stands in an `error` member or event: an object, a text, or anything else."""
    fields: Mapping[str, object] = reported if isinstance(reported, Mapping) else {"message": reported}
    inner = fields.get("error")
    if isinstance(inner, Mapping):
        fields = inner
    elif isinstance(inner, str) and inner:
        fields = {"message": inner, **fields}
    message = _text(fields, "message") or _text(fields, "detail") or _text(fields, "code") or "no reason given"
    status = _status(fields)
    words = " ".join(_text(fields, key) for key in ("code", "type", "message"))
    return BackendError(
        Stage.LLM,
        _kind(words, status),
        f"the server reports: {sanitize(message)}",
        status=status,
        retry_after=_retry_after(fields, message),
    )


def _text(fields: Mapping[str, object], key: str) -> str:
    value = fields.get(key)
    return value[:2000] if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def _status(fields: Mapping[str, object]) -> int | None:
    for key in ("code", "status", "status_code"):
        value = fields.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return value
        if isinstance(value, str) and re.fullmatch(r"[45]\d\d", value):
            return int(value)
    return None


def _kind(words: str, status: int | None) -> ErrorKind:
    for pattern, kind in _BY_WORD:
        if pattern.search(words):
            return kind
    if status in (401, 403):
        return ErrorKind.AUTH
    if status == 429:
        return ErrorKind.RATE_LIMIT
    return ErrorKind.REFUSED if status is not None and status < 500 else ErrorKind.SERVER


def _retry_after(fields: Mapping[str, object], message: str) -> float | None:
    """Seconds to wait, from a field or from the sentence that OpenAI and others write."""
    for key in ("retry_after", "retry_after_seconds"):
        value = fields.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6:
            return float(value)
    found = _TRY_AGAIN.search(message[:500])
    if found is None:
        return None
    return float(found[1]) * _UNITS.get((found[2] or "").lower()[:2], 1.0)
