"""Downloads one file over HTTP: resumable across runs, checked, put in place at once. Knows no models and no sources.

What has come stays in a `.part` file beside the target, named after the checksum it must have, so that a later run
goes on with it and never mixes two versions. A file reaches its own name only after its checksum was right.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from echokit_py.errors import ModelError
from echokit_py.log import sanitize
from echokit_py.models.checks import Checksum
from echokit_py.models.progress import Progress

log = logging.getLogger(__name__)

_BUFFER = 1 << 20  # written in pieces of this size: a thread hop for each small chunk would cost more than the write
_FRUITLESS_TRIES = 5  # tries in a row that bring no byte before we give up
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=30)


class Unreachable(ModelError):
    """The host can't be reached or won't let us in; another way to the same file may work."""


class _CutOff(Exception):
    """The answer ended early, or the server asks us to come again later."""


def client() -> aiohttp.ClientSession:
    """A session for downloads: proxies of the environment, the system's certificate authorities, no total time-out."""
    return aiohttp.ClientSession(
        timeout=_TIMEOUT,
        trust_env=True,
        read_bufsize=_BUFFER,
        auto_decompress=False,
        headers={"Accept-Encoding": "identity", "User-Agent": "echokit-py"},
    )


def part_path(target: Path, checksum: Checksum | None) -> Path:
    """Where the incomplete file is kept."""
    version = checksum.digest[:12] if checksum else "any"
    return target.with_name(f".{target.name}.{version}.part")


class Downloader:
    """Downloads over one HTTP session. `pause(seconds)` is what waits between tries."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        progress: Progress,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._progress = progress
        self._pause = pause

    async def fetch(self, label: str, url: str, target: Path, checksum: Checksum | None) -> None:
        """Bring `url` to `target`; a file with a wrong checksum is fetched once more. `label` names it to the user.

        Raises ModelError with one sentence; Unreachable when the host could not be talked to.
        """
        part = part_path(target, checksum)
        try:
            for final in (False, True):
                await self._complete(label, url, part)
                if checksum is None or await asyncio.to_thread(checksum.matches, part):
                    await asyncio.to_thread(part.replace, target)
                    return
                part.unlink()
                log.warning("%s arrived damaged (wrong checksum)%s", label, "" if final else "; fetching it again")
        except OSError as error:
            raise disk_error(target, error) from error
        raise ModelError(f"{label} arrived damaged twice from {_host(url)}; try again later or from another network")

    async def _complete(self, label: str, url: str, part: Path) -> None:
        """Request until the part is whole: as long as every few tries bring something, a bad line only takes longer."""
        fruitless = 0
        while True:
            before = _size(part)
            try:
                await self._request(label, url, part)
                return
            except _CutOff as error:
                fruitless = 0 if _size(part) > before else fruitless + 1
                if fruitless >= _FRUITLESS_TRIES:
                    where = f"fetching {label} from {_host(url)}"
                    raise ModelError(
                        f"{where} broke off ({error}); run it again, it goes on where it stopped"
                    ) from error
                log.info("fetching %s broke off (%s); going on", label, error)
                await self._pause(min(2.0**fruitless, 20.0))

    async def _request(self, label: str, url: str, part: Path) -> None:
        """Make one request for what is missing. Raises _CutOff, ModelError, OSError."""
        offset = _size(part)
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        try:
            async with self._session.get(url, headers=headers) as response:
                if response.status == 416:  # nothing is missing, or the part is longer than the file: the sum will tell
                    return
                _refuse(label, response)
                if not _continues(response, offset):
                    offset = 0
                await self._save(label, response, part, offset)
        except aiohttp.ClientConnectorError as error:
            reason = sanitize(error.os_error)
            raise Unreachable(f"can't reach {_host(url)} for {label} ({reason}); check the network") from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _CutOff(sanitize(error) or type(error).__name__) from error

    async def _save(self, label: str, response: aiohttp.ClientResponse, part: Path, offset: int) -> None:
        total = offset + (response.content_length or 0) if response.content_length is not None else 0
        done = offset
        buffer = bytearray()
        with part.open("ab" if offset else "wb") as file:
            try:
                async for chunk in response.content.iter_any():
                    buffer += chunk
                    done += len(chunk)
                    if len(buffer) >= _BUFFER:
                        await asyncio.to_thread(file.write, bytes(buffer))
                        buffer.clear()
                        self._progress(label, done, total)
            finally:
                file.write(buffer)  # what came before a break is kept: at most 1 MiB and one chunk
        self._progress(label, done, total or done)


def disk_error(path: Path, error: OSError) -> ModelError:
    """Put a failure to write into one sentence that says what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ModelError(f"the disk is full: make room at {path.parent}, or set ECHOKIT_MODELS_DIR to another folder")
    reason = sanitize(error.strerror or error)
    return ModelError(f"can't write to {path.parent} ({reason}); set ECHOKIT_MODELS_DIR to a folder you may write to")


def _refuse(label: str, response: aiohttp.ClientResponse) -> None:
    """Turn a status that brings no file into an error."""
    host = response.url.host
    match response.status:
        case 200 | 206:
            return
        case 401 | 403 | 407:
            raise Unreachable(f"{host} doesn't let us fetch {label} (HTTP {response.status})")
        case 404 | 410:
            raise ModelError(f"{host} has no {label} any more (HTTP {response.status}); choose another model")
        case 429 | 500 | 502 | 503 | 504:
            raise _CutOff(f"HTTP {response.status}")
        case _:
            raise ModelError(f"{host} answers HTTP {response.status} for {label}")


def _continues(response: aiohttp.ClientResponse, offset: int) -> bool:
    """Whether the body goes on at `offset`: a server without ranges sends the whole file again."""
    if response.status != 206:
        return False
    if not response.headers.get("Content-Range", "").startswith(f"bytes {offset}-"):
        raise _CutOff("the server sent another part than asked for")
    return True


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _host(url: str) -> str:
    return urlsplit(url).hostname or url
