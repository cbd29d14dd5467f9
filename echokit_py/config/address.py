"""Reads the address the server listens on, `HOST:PORT`. Resolves and binds nothing."""

from __future__ import annotations

import ipaddress
import re

ANY_HOST = "0.0.0.0"  # boards speak IPv4; `[::]:8080` is there for who wants both

_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")
_DOTTED_NUMBERS = re.compile(r"[\d.]+")


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, `[IPV6]:PORT` or `:PORT` (every interface). Port 0 lets the system choose.

    Raises:
        ValueError: with a sentence that says how to write it.
    """
    if "://" in text or "/" in text:
        raise ValueError('only HOST:PORT is needed, without "http://" and path, e.g. "0.0.0.0:8080"')
    host, colon, port = text.strip().rpartition(":")
    if not colon:
        missing = "host" if port.isdecimal() else "port"
        raise ValueError(f'the {missing} is missing: write HOST:PORT, e.g. "0.0.0.0:8080"')
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65_535):
        raise ValueError('the port, after the last ":", must be a number from 0 to 65535')
    return _host(host), int(port)


def _host(host: str) -> str:
    if not host:
        return ANY_HOST
    if host.startswith("[") and host.endswith("]"):
        return str(_ip(host[1:-1], ipaddress.IPv6Address))
    if ":" in host:
        raise ValueError('an IPv6 address needs brackets, e.g. "[::]:8080"')
    if _DOTTED_NUMBERS.fullmatch(host):
        return str(_ip(host, ipaddress.IPv4Address))
    if not _HOST_NAME.fullmatch(host):
        raise ValueError('the host, before the ":", must be an address of this machine, or "0.0.0.0" for all of them')
    return host


def _ip(text: str, kind: type[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> object:
    try:
        return kind(text)
    except ValueError:
        raise ValueError('the host, before the ":", looks like an IP address and is none') from None
