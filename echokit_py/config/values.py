"""The types of single values: numbers with limits, URLs, keys, language codes. What they stand for is in `settings.py`.

Numbers are strict: `history = "5"` and `history = true` are mistakes, not 5 and 1. The messages of the ValueErrors are
sentences for the person who wrote the file; what was found is added by `mistakes.py`, which knows what may be shown.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, Strict

from echokit_py.config.address import parse_address

LOG_LEVELS = frozenset({"DEBUG", "INFO", "WARNING", "ERROR"})

_BEARER = re.compile(r"bearer\s+", re.IGNORECASE)
_VISIBLE_ASCII = re.compile(r"[!-~]*")  # what an HTTP header can carry without escapes
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s?#@]+")


def _http_url(text: str) -> str:
    text = text.strip()
    try:
        parts = urlsplit(text)
        right = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a broken IPv6 address
        right = False
    if not right or re.search(r"\s", text):
        raise ValueError("must be a URL that starts with http:// or https://")
    return text


def _url_or_none(text: str) -> str:
    return _http_url(text) if text.strip() else ""


def _key(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value().strip()
    prefix = _BEARER.match(text)
    text = text[prefix.end() :] if prefix else text
    if not _VISIBLE_ASCII.fullmatch(text):
        raise ValueError("a key has no spaces, line breaks or letters beyond ASCII, and this one does (it isn't shown)")
    return SecretStr(text)


def _language(code: str) -> str:
    code = code.strip()
    return "auto" if code.lower() == "auto" else code


def _address(text: str) -> str:
    parse_address(text)
    return text.strip()


def _origin(text: str) -> str:
    text = text.strip().rstrip("/").lower()
    if text != "*" and not _ORIGIN.fullmatch(text):
        raise ValueError('must be a scheme and a host without a path, such as "https://example.org"')
    return text


def _json(value: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("dates, times, inf and nan can't be sent to a model; write them as texts in quotes") from None
    return value


def _level(value: object) -> object:
    return value.upper() if isinstance(value, str) and value.upper() in LOG_LEVELS else value


Seconds = Annotated[float, Strict(), Field(gt=0, le=3600)]
Milliseconds = Annotated[int, Strict(), Field(ge=0, le=10_000)]
Probability = Annotated[float, Strict(), Field(gt=0, lt=1)]
Flag = Annotated[bool, Strict()]
Speed = Annotated[float, Strict(), Field(ge=0.25, le=4)]
Turns = Annotated[int, Strict(), Field(ge=0, le=1000)]

Address = Annotated[str, AfterValidator(_address)]
Url = Annotated[str, AfterValidator(_http_url)]
UrlOrNone = Annotated[str, AfterValidator(_url_or_none)]
Origin = Annotated[str, AfterValidator(_origin)]

Key = Annotated[SecretStr, AfterValidator(_key)]
"""A key without "Bearer " before it; older files of the Rust server have that in the key itself."""

Language = Annotated[str, AfterValidator(_language)]
"""A language code; "auto" means that the language is detected, "" leaves it to the recogniser (most detect it)."""

JsonTable = Annotated[dict[str, Any], AfterValidator(_json)]
"""A table that goes into a JSON request as it is."""

LogLevel = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_level)]
