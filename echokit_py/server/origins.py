"""Which browser pages may connect. Boards and programs send no Origin; a page of another site must not reach a
microphone's server or a home's tools through its visitor's browser. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit


class Origins:
    """The configured origins (`https://host[:port]`, or "*" for all), besides this server's own."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = frozenset(origin.rstrip("/").lower() for origin in allowed)

    def allows(self, origin: str | None, host: str) -> bool:
        """Whether a request may connect. `origin`, `host`: its headers; no origin means no browser."""
        if origin is None or "*" in self._allowed or origin.lower() in self._allowed:
            return True
        # Behind a proxy that ends TLS our own page's origin is https while we see http: the host decides.
        return bool(host) and urlsplit(origin.lower()).netloc == host.lower()
