"""Takes a server's secrets out of texts that are logged or told to the model. Decides nothing about what is logged."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

from echokit_py.config.redact import is_secret_name
from echokit_py.config.settings import McpServer

Mask = Callable[[str], str]

_SHORTEST = 6  # shorter ones are no secrets, but pieces of words


def mask(server: McpServer) -> Mask:
    """Return a function that replaces the server's key, headers, secret variables and what its URL hides by ***."""
    secrets = sorted((text for text in _secrets(server) if len(text) >= _SHORTEST), key=len, reverse=True)

    def hide(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, "***")
        return text

    return hide


def _secrets(server: McpServer) -> set[str]:
    found = {server.api_key.get_secret_value()}
    for header in server.headers.values():
        value = header.get_secret_value()
        found |= {value, value.rpartition(" ")[2]}  # "Bearer abc": a server repeats abc
    # Only those: every value of env may be a secret, but a folder's name in a tool's answer has to stay right.
    found |= {value for name, value in server.env.items() if is_secret_name(name)}
    if server.server:
        url = urlsplit(server.server)
        found |= {url.password or ""} | {value for name, value in parse_qsl(url.query) if is_secret_name(name)}
    return found
