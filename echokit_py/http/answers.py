"""What a failed answer says and means: its words, the kind of error, when to ask again. Pure; it reads no socket."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from echokit_py.errors import ErrorKind, Stage
from echokit_py.log import sanitize

MAX_RETRY_AFTER_S = 3600.0  # who asks for more says "not today"

# How servers say that the conversation is too long for the model: OpenAI and most others "context_length_exceeded",
# llama.cpp "exceed_context_size_error", vLLM and DeepSeek "maximum context length", SGLang "longer than the model's
# context length", xAI "maximum prompt length", Anthropic "prompt is too long", TGI and Together "`inputs` tokens +
# `max_new_tokens` must be <=", Gemini "input token count exceeds", Mistral "too large for model", Moonshot "exceeded
# model token limit", DashScope "Range of input length", Groq "reduce the length of the messages".
_CONTEXT = re.compile(
    r"context[ _-]?(length|size|window)|maximum (prompt|model|input) length|prompt (is too long|exceeds max)"
    r"|too many tokens|inputs`? tokens? \+|token count .{0,20}exceeds|exceeded model token limit|too large for model"
    r"|range of input length|reduce the length of the|longer than the maximum model length",
    re.IGNORECASE,
)
# Codes of 429 and 402 that no waiting helps against: OpenAI, DeepSeek, Moonshot.
_NO_MONEY = re.compile(r"insufficient_(quota|balance|funds)|exceeded_current_quota|billing_(hard_limit|not_active)")
# Gemini's OpenAI API answers a wrong key with 400.
_BAD_KEY = re.compile(r"invalid_api_key|api_key_invalid|api key not valid", re.IGNORECASE)
_HTML = re.compile(r"<(!doctype html|html|head|body)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,400})", re.IGNORECASE)


def read_words(body: bytes) -> tuple[str, str]:
    """(what an error's body says, its codes and types). Of a web page only its title; the words are not sanitized.

    Known shapes: `{"error": {"message"}}` (OpenAI), `{"error": "…"}` (Ollama), `{"message"}`, `{"detail"}` (FastAPI,
    also as a list of `{"msg"}`), and a list around these (Gemini).
    """
    text = body.decode("utf-8", "replace").strip()
    if _HTML.search(text[:500]) and text.startswith("<"):
        title = _TITLE.search(text)
        return f"an HTML page ({sanitize(title[1], 100)})" if title else "an HTML page", ""
    try:
        return _json_words(json.loads(text))
    except (ValueError, RecursionError):
        return text or "nothing", ""


def describe(body: bytes) -> str:
    """What a body that isn't the expected answer says, for a message: its error's words, or "an HTML page (title)"."""
    return sanitize(read_words(body)[0])


def context_exceeded(words: str) -> bool:
    """Whether an error's words (message, code or type) say that the conversation is too long for the model."""
    return _CONTEXT.search(words) is not None


def error_kind(stage: Stage, status: int, words: str) -> ErrorKind:
    """The kind of error that an answer with `status` (3xx to 5xx) is. `words`: its message, codes and types."""
    if stage is Stage.LLM and (status == 413 or (status in (400, 422, 500) and context_exceeded(words))):
        return ErrorKind.CONTEXT
    if status in (401, 403) or (status == 400 and _BAD_KEY.search(words)):
        return ErrorKind.AUTH
    if status == 429:
        return ErrorKind.REFUSED if _NO_MONEY.search(words) else ErrorKind.RATE_LIMIT
    # 408 and 425 are 4xx that invite the same request again.
    return ErrorKind.SERVER if status >= 500 or status in (408, 425) else ErrorKind.REFUSED


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, of `Retry-After` (seconds, or an HTTP date: RFC 9110 §10.2.3) or OpenAI's `retry-after-ms`."""
    if "retry-after-ms" in headers:
        seconds = _number(headers["retry-after-ms"]) / 1000
    else:
        text = headers.get("retry-after", "")
        seconds = _number(text)
        seconds = _seconds_until(text, now) if math.isnan(seconds) else seconds
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S) if math.isfinite(seconds) else None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _seconds_until(date: str, now: datetime) -> float:
    try:
        then = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return math.nan
    return ((then if then.tzinfo else then.replace(tzinfo=UTC)) - now).total_seconds()


def _json_words(value: Any) -> tuple[str, str]:
    if isinstance(value, list) and value:
        return _json_words(value[0])
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False), ""
    codes = " ".join(str(value[name]) for name in ("code", "type", "status") if name in value)
    for name in ("error", "message", "detail", "errors", "msg"):
        inner = value.get(name)
        if isinstance(inner, str) and inner:
            return inner, codes
        if isinstance(inner, dict | list) and inner:
            words, inner_codes = _json_words(inner)
            return words, f"{codes} {inner_codes}".strip()
    return json.dumps(value, ensure_ascii=False), codes
