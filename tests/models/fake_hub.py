"""A model hub and a package index on loopback, with faults on order. Holds what it was asked."""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, field
from typing import Self

from aiohttp import web
from aiohttp.test_utils import TestServer


@dataclass
class FakeHub:
    """Serves `files` by path. Each GET takes one fault from the left of the queues, as long as there are any.

    cuts: bytes after which the connection is closed; statuses: answered instead of the file (200: the file);
    bodies: sent instead of the file.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    etags: bool = True
    wrong_ranges: int = 0
    authorization: str = ""
    cuts: deque[int] = field(default_factory=deque)
    statuses: deque[int] = field(default_factory=deque)
    bodies: deque[bytes] = field(default_factory=deque)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    _server: TestServer | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._server = TestServer(app)
        await self._server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        await self._server.close()

    @property
    def url(self) -> str:
        assert self._server is not None
        return str(self._server.make_url("")).rstrip("/")

    def gets(self, part: str = "") -> list[str]:
        """The Range headers ("" for none) of the GET requests whose path contains `part`."""
        return [ranged for method, path, ranged in self.asked if method == "GET" and part in path]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        ranged = request.headers.get("Range", "")
        path = request.match_info["path"]
        self.asked.append((request.method, path, ranged))
        if self.authorization and request.headers.get("Authorization") != self.authorization:
            return web.Response(status=401)
        content = self.files.get(path)
        if content is None:
            return web.Response(status=404)
        if request.method == "HEAD":
            return web.Response(headers=self._etag(content))
        status = self.statuses.popleft() if self.statuses else 200
        if status != 200:
            return web.Response(status=status)
        return await self._send(request, self.bodies.popleft() if self.bodies else content, ranged)

    async def _send(self, request: web.Request, content: bytes, ranged: str) -> web.StreamResponse:
        start = int(ranged.removeprefix("bytes=").rstrip("-")) if ranged and self.ranges else 0
        if start and start >= len(content):
            return web.Response(status=416)
        response = web.StreamResponse(status=206 if start else 200)
        if start:
            shown = start + 1 if self.wrong_ranges else start
            self.wrong_ranges = max(0, self.wrong_ranges - 1)
            response.headers["Content-Range"] = f"bytes {shown}-{len(content) - 1}/{len(content)}"
        if request.path.endswith("/"):
            response.content_type = "text/html"
        body = content[start:]
        response.content_length = len(body)
        await response.prepare(request)
        if self.cuts:
            await response.write(body[: self.cuts.popleft()])
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write(body)
        return response

    def _etag(self, content: bytes) -> dict[str, str]:
        if not self.etags:
            return {}
        if len(content) < 1000:  # as the hub does: small files are git's own
            return {"ETag": f'"{git_sha1(content)}"'}
        return {"X-Linked-Etag": f'"{hashlib.sha256(content).hexdigest()}"', "ETag": '"something-else"'}


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def some_bytes(size: int, seed: int = 1) -> bytes:
    """Bytes of which no part repeats, so that a piece in the wrong place is noticed."""
    return b"".join((seed * 1_000_000 + number).to_bytes(8, "big") for number in range(size // 8 + 1))[:size]
