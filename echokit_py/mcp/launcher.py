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
_NEWS = frozenset({signal.SIGUSR1, signal.SIGCHLD})  # the parent died; the server did something
_LOOK_EVERY_S = 1.0  # should we not have been told


def main() -> int:
    """Run the command in argv[2:]; argv[1] is the process id of the parent. Return its exit status."""
    parent = int(sys.argv[1])
    # Meant for the server, which is in our group and gets them as well; we stay to report how it ended.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stay)
    # Blocked, and waited for: a handler might run just before the wait begins, and be of no use.
    signal.pthread_sigmask(signal.SIG_BLOCK, _NEWS)
    with contextlib.suppress(OSError, AttributeError):  # the look at the parent has to do
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)
    if os.getppid() != parent:  # it died before we asked to be told
        return 1
    try:
        server = subprocess.Popen(sys.argv[2:], preexec_fn=_hear_all)  # noqa: PLW1509 - there is one thread
    except OSError as error:
        sys.stderr.write(f"{sys.argv[2]}: {error.strerror}\n")
        return _NOT_FOUND
    for pipe in (0, 1):  # else the other side would not see that the server closed them
        os.close(pipe)
    while (status := server.poll()) is None:
        news = signal.sigtimedwait(_NEWS, _LOOK_EVERY_S)
        if (news is not None and news.si_signo == signal.SIGUSR1) or os.getppid() != parent:
            os.killpg(0, signal.SIGKILL)
    return status if status >= 0 else 128 - status


def _hear_all() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _NEWS)


def _stay(*_: Any) -> None:
    """A handler, not SIG_IGN: an ignored signal would be ignored by the server too."""


if __name__ == "__main__":
    sys.exit(main())
