"""Shows how far a download is: a bar on a terminal, a line of the log every 10 % elsewhere. Downloads nothing."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TextIO

log = logging.getLogger(__name__)

Progress = Callable[[str, int, int], None]
"""`progress(name, done, total)` in bytes, called as data comes; `total` is 0 while it is unknown."""

_WIDTH = 30
_STEP_UNKNOWN = 50_000_000  # a line each 50 MB where the total is unknown


def megabytes(size: int) -> str:
    """Bytes as people read them: `0.9 MB`, `76 MB`, `2.5 GB`."""
    if size >= 1_000_000_000:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.1f} MB" if size < 10_000_000 else f"{size / 1e6:.0f} MB"


class Bar:
    """One line that is drawn over on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._drawn = ""

    def __call__(self, name: str, done: int, total: int) -> None:
        """Draw when the picture has changed; end the line when the download is complete."""
        share = min(1.0, done / total) if total else 0.0
        filled = int(share * _WIDTH)
        amount = f"{megabytes(done)} of {megabytes(total)}" if total else megabytes(done)
        line = f"{name} [{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%} {amount}"
        if line == self._drawn:
            return
        padding = " " * max(0, len(self._drawn) - len(line))
        end = "\n" if total and done >= total else ""
        self._stream.write(f"\r{line}{padding}{end}")
        self._stream.flush()
        self._drawn = "" if end else line


class Lines:
    """A record of the log at each tenth of a download."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def __call__(self, name: str, done: int, total: int) -> None:
        """Log when a further tenth (or 50 MB of an unknown total) is there."""
        step = done * 10 // total if total else done // _STEP_UNKNOWN
        if step <= self._seen.get(name, -1):
            return
        self._seen[name] = step
        if total:
            log.info("fetching %s: %d %% of %s", name, step * 10, megabytes(total))
        else:
            log.info("fetching %s: %s", name, megabytes(done))
        if total and done >= total:
            del self._seen[name]


def default() -> Progress:
    """The way that suits standard error."""
    return Bar(sys.stderr) if sys.stderr.isatty() else Lines()
