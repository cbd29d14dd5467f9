"""Addresses and checksums of the hub."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from echokit_py.errors import ModelError
from echokit_py.models import hub
from echokit_py.models.catalogue import Hub
from echokit_py.models.fetch import Unreachable, client
from tests.models.fake_hub import FakeHub, git_sha1, some_bytes

LARGE = some_bytes(5000)
SMALL = b'{"small": true}'


@pytest.fixture
async def server() -> AsyncIterator[FakeHub]:
    async with FakeHub({"large": LARGE, "small": SMALL}) as fake:
        yield fake


def test_an_address_follows_the_mirror_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror.example/")
    assert hub.file_url(Hub("a/b"), "c d/e.bin") == "http://mirror.example/a/b/resolve/main/c%20d/e.bin"
    monkeypatch.delenv("HF_ENDPOINT")
    assert hub.file_url(Hub("a/b", "v1/x"), "e").startswith("https://huggingface.co/a/b/resolve/v1%2Fx/e")


async def test_large_files_have_a_sha256_and_small_ones_gits_sha1(server: FakeHub) -> None:
    async with client() as session:
        assert (await hub.checksum_of(session, f"{server.url}/large")).digest == hashlib.sha256(LARGE).hexdigest()
        assert (await hub.checksum_of(session, f"{server.url}/small")).digest == git_sha1(SMALL)


async def test_a_file_that_is_gone_is_named(server: FakeHub) -> None:
    async with client() as session:
        with pytest.raises(ModelError, match="has no /gone"):
            await hub.checksum_of(session, f"{server.url}/gone")


async def test_a_mirror_without_checksums_is_refused(server: FakeHub) -> None:
    server.etags = False
    async with client() as session:
        with pytest.raises(ModelError, match="states no checksum"):
            await hub.checksum_of(session, f"{server.url}/large")


async def test_no_hub_is_unreachable(server: FakeHub) -> None:
    url = f"{server.url}/large"
    await server.__aexit__()
    async with client() as session:
        with pytest.raises(Unreachable, match=r"can't reach the model hub at 127\.0\.0\.1"):
            await hub.checksum_of(session, url)


@pytest.mark.parametrize("hops", [1, 4, 40])
async def test_redirects_within_the_hub_are_followed_so_far(hops: int) -> None:
    async def answer(request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        if number == 0:
            return web.Response(headers={"ETag": f'"{"a" * 64}"'})
        return web.Response(status=307, headers={"Location": f"/{number - 1}"})

    app = web.Application()
    app.router.add_route("HEAD", "/{number}", answer)
    async with TestServer(app) as server, client() as session:
        url = str(server.make_url(f"/{hops}"))
        if hops < 5:
            assert (await hub.checksum_of(session, url)).digest == "a" * 64
        else:
            with pytest.raises(ModelError, match="states no checksum"):
                await hub.checksum_of(session, url)


async def test_a_redirect_to_another_host_is_not_asked_for_checksums() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "http://cdn.invalid/file"})

    app = web.Application()
    app.router.add_route("HEAD", "/file", answer)
    async with TestServer(app) as server, client() as session:
        with pytest.raises(ModelError, match="states no checksum"):
            await hub.checksum_of(session, str(server.make_url("/file")))
