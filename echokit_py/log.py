"""Logging for the whole program: format, levels, and what may stand in a line. Knows no module's content.

Above DEBUG no audio, transcripts, prompts, keys or tool results are logged; text from outside goes through `sanitize`.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import TextIO

# C0 and C1 controls, the Unicode line separators, and the bidirectional overrides that can make a log line lie.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def sanitize(text: object, limit: int = 200) -> str:
    """Return `text` on one line, without control characters, cut to `limit` characters."""
    clean = _UNPRINTABLE.sub(" ", str(text)[: limit * 4]).strip()
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def setup(level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send the log to `stream` (standard error), one line a record. Raises ValueError for an unknown level."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # These say at INFO what only their own developers need (every request, every model file).
    for name in ("aiohttp.access", "httpx", "httpx2", "mcp", "faster_whisper", "piper", "libav"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
