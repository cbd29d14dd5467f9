"""Real MCP servers that others wrote, as commands. Starts none.

They are installed once into the user's cache, from the usual package indexes.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

CACHE = Path.home() / ".cache" / "echokit-py" / "tests"
TIME = "mcp-server-time==2026.10.19"
EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"
LIMIT_S = 180


class CannotBeHad(Exception):
    """A sentence for the tests that are skipped for that."""


def time_server() -> list[str]:
    """`mcp-server-time`, with an environment of its own: it may want another SDK than we do. It speaks stdio.

    Raises:
        CannotBeHad: it is not here, and could not be installed.
    """
    folder = CACHE / TIME
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "15", TIME]
    _install(folder, [sys.executable, "-m", "venv", str(folder)], pip)
    return [str(python), "-m", "mcp_server_time", "--local-timezone", "UTC"]


def everything_server() -> list[str]:
    """`@modelcontextprotocol/server-everything`; the next word is stdio, sse or streamableHttp, the port $PORT.

    Raises:
        CannotBeHad: there is no node, or as above.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise CannotBeHad("node and npm aren't here, so the MCP server that is written in JavaScript can't be run")
    folder = CACHE / EVERYTHING.replace("/", "-")
    options = ["--no-audit", "--no-fund", "--silent", "--fetch-retries", "1"]
    _install(folder, [npm, "install", "--prefix", str(folder), *options, EVERYTHING])
    return [node, str(folder / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js")]


def _install(folder: Path, *commands: list[str]) -> None:
    """Run the commands, unless they have run to their end before."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        done = folder / ".installed"
        if not done.exists():
            _run(folder.name, *commands)
            done.touch()


def _run(name: str, *commands: list[str]) -> None:
    for command in commands:
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            raise CannotBeHad(f"{name} could not be installed within {LIMIT_S} s") from None
        if ended.returncode:
            raise CannotBeHad(f"{name} could not be installed: {ended.stderr.strip()[-300:]}")
