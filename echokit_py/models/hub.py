"""Addresses and checksums of files on the Hugging Face hub. Downloads nothing itself.

The answers' headers are those that the hub's own client relies on: `X-Linked-Etag` is the SHA-256 of a large file,
`ETag` git's SHA-1 of a small one.
"""

from __future__ import annotations

import os
from urllib.parse import quote, urljoin, urlsplit

import aiohttp

from echokit_py.errors import ModelError
from echokit_py.log import sanitize
from echokit_py.models.catalogue import Hub
from echokit_py.models.checks import Checksum
from echokit_py.models.fetch import Unreachable

_MOST_REDIRECTS = 5  # a renamed repository redirects once or twice within the hub
_HEAD_TIMEOUT = aiohttp.ClientTimeout(total=20, sock_connect=10)


def endpoint() -> str:
    """The hub's address: $HF_ENDPOINT (a mirror), or the public one."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"


def file_url(hub: Hub, path: str) -> str:
    """The address of a file of a repository."""
    return f"{endpoint()}/{hub.repo}/resolve/{quote(hub.revision, safe='')}/{quote(path)}"


async def checksum_of(session: aiohttp.ClientSession, url: str) -> Checksum:
    """Ask the hub for the checksum of a file. Raises ModelError; Unreachable when the hub doesn't answer."""
    host = urlsplit(url).hostname
    try:
        for _ in range(_MOST_REDIRECTS):
            async with session.head(url, allow_redirects=False, timeout=_HEAD_TIMEOUT) as response:
                headers = response.headers
                if response.status == 404:
                    raise ModelError(f"{host} has no {urlsplit(url).path} (HTTP 404); choose another model")
                if checksum := Checksum.parse(headers.get("X-Linked-Etag") or headers.get("ETag") or ""):
                    return checksum
                target = urljoin(url, headers.get("Location", url))
            if target == url or urlsplit(target).hostname != host:
                break
            url = target
    except (aiohttp.ClientError, TimeoutError) as error:
        reason = sanitize(error) or "no answer"
        raise Unreachable(f"can't reach the model hub at {host} ({reason}); check the network and try again") from error
    raise ModelError(f"{host} states no checksum for {urlsplit(url).path}; unset HF_ENDPOINT or use another mirror")
