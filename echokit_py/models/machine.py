"""What this machine offers: free memory, cores, a reachable model hub, model servers on localhost. Decides nothing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import aiohttp

_HUB_LIMIT_S = 2.0
_LOCAL_LIMIT_S = 0.3
_SERVERS = (("Ollama", 11434), ("LM Studio", 1234), ("llama-server", 8080))
_MOST_ANSWER = 1 << 16


def available_memory(proc: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that can be taken without swapping: the kernel's estimate, less where a container has a limit."""
    free = _meminfo(proc)
    limit, used = _number(cgroup / "memory.max"), _number(cgroup / "memory.current")
    if limit is not None and used is not None:
        free = min(free, max(0, limit - used))
    return free


def _meminfo(path: Path) -> int:
    try:
        for line in path.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such limit: the file is missing or says "max"
        return None


def physical_cores(cpus: Path = Path("/sys/devices/system/cpu")) -> int:
    """Cores that this process may use; two threads of one core count once, since inference gains nothing from both."""
    usable = os.sched_getaffinity(0)
    cores = set()
    for number in usable:
        try:
            siblings = (cpus / f"cpu{number}" / "topology" / "thread_siblings_list").read_text(encoding="ascii")
        except OSError:
            siblings = str(number)
        cores.add(siblings.strip())
    return max(1, len(cores))


async def is_reachable(url: str) -> bool:
    """Whether a file of the hub could be fetched now; at most 2 s."""
    timeout = aiohttp.ClientTimeout(total=_HUB_LIMIT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
            session.head(url, allow_redirects=False) as response,
        ):
            return response.status < 400
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


async def local_servers(servers: tuple[tuple[str, int], ...] = _SERVERS) -> list[tuple[str, str]]:
    """Name and chat URL of the OpenAI-compatible servers that answer on localhost within 0.3 s."""
    timeout = aiohttp.ClientTimeout(total=_LOCAL_LIMIT_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        answers = await asyncio.gather(*(_lists_models(session, port) for _, port in servers))
    return [
        (name, f"http://127.0.0.1:{port}/v1/chat/completions")
        for (name, port), answers_so in zip(servers, answers, strict=True)
        if answers_so
    ]


async def _lists_models(session: aiohttp.ClientSession, port: int) -> bool:
    """Whether something there speaks OpenAI's API: only that tells a model server from ourselves on the same port."""
    try:
        async with session.get(f"http://127.0.0.1:{port}/v1/models", allow_redirects=False) as response:
            return response.status == 200 and b'"data"' in await response.content.read(_MOST_ANSWER)
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False
