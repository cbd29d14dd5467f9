"""Keeps the collection of garbage short. Decides nothing else about memory."""

from __future__ import annotations

import gc


def settle() -> None:
    """Take all objects of now out of the collection of garbage: modules and models stay until the end anyway.

    Looking through them all takes 75 to 115 ms, again and again, in which no board gets audio; what comes later takes
    well under a millisecond. Blocks for that time once.
    """
    gc.collect()
    gc.freeze()
