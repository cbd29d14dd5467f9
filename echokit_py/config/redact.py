"""Hides keys, tokens and passwords in values that may be shown. Pure; decides nothing about what is shown.

Keys of the configuration are `SecretStr` already; this is for what can hold a secret without being typed as one: URLs,
the free tables `extra`, and the settings of platforms that other packages bring.
"""

from __future__ import annotations

import re
from typing import Any

MASK = "**********"

PRIVATE = frozenset({"args", "env", "headers"})
"""What goes to a program or a server as it is: every value in there may be a secret, whatever it is called."""

_SECRET_NAME = re.compile(
    r"(?:(?:^|[-_. ]|api)key|token|secret|password|passwd|authorization|signature|credentials?|cookie)$", re.IGNORECASE
)
_USER_INFO = re.compile(r"(?<=://)[^/\s?#]*@")
_QUERY_VALUE = re.compile(
    r"([?&;](?:[\w.-]*(?:key|token|secret|password|passwd|signature|sig|auth))=)[^&;#\s]+", re.IGNORECASE
)


def is_secret_name(name: str) -> bool:
    """Whether a key of this name holds a secret (`api_key`, `Authorization`, `access_token`; not `max_tokens`)."""
    return _SECRET_NAME.search(name) is not None


def mask_urls(text: str) -> str:
    """Return `text` with `user:password@` and the values of `?key=`, `?token=` … of any URL in it masked."""
    return _QUERY_VALUE.sub(rf"\g<1>{MASK}", _USER_INFO.sub(f"{MASK}@", text))


def hide(value: Any, name: str = "") -> Any:
    """Return a copy of `value`, the value of key `name`, that may be shown: secrets at any depth are masked."""
    if isinstance(value, dict):
        return {key: hide(item, name if name in PRIVATE else str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([hide(item, name) for item in value])
    if isinstance(value, str):
        return MASK if value and (name in PRIVATE or is_secret_name(name)) else mask_urls(value)
    return value
