"""The program between us and a stdio server: starts it, and kills all of it when we are gone. Imports nothing of ours.

A server is often a program that starts another one (npx, uvx, a shell). The kernel tells only our direct child that we
died, by whatever cause; so that child is this program, and it takes its whole process group along. It stays out of the
way otherwise: the server has our pipes for its standard input and output, and its exit status becomes ours.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_NOT_FOUND = 127  # as shells have it


def main() -> int:
    """Run the command in argv[2:]; argv[1] is the process id of the parent. Return its exit status."""
    signal.signal(signal.SIGUSR1, _kill_all)
    # Meant for the server, which is in our group and gets them as well; we stay to report how it ended.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stay)
    with contextlib.suppress(OSError, AttributeError):  # elsewhere than on Linux: the end of the pipes has to do
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)
    if os.getppid() != int(sys.argv[1]):  # it died before we asked to be told
        return 1
    try:
        server = subprocess.Popen(sys.argv[2:])
    except OSError as error:
        sys.stderr.write(f"{sys.argv[2]}: {error.strerror}\n")
        return _NOT_FOUND
    for pipe in (0, 1):  # else the other side would not see that the server closed them
        os.close(pipe)
    status = server.wait()
    return status if status >= 0 else 128 - status


def _kill_all(*_: Any) -> None:
    os.killpg(0, signal.SIGKILL)


def _stay(*_: Any) -> None:
    """A handler, not SIG_IGN: an ignored signal would be ignored by the server too."""


if __name__ == "__main__":
    sys.exit(main())
