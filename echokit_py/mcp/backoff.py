"""How long to wait before a server is connected to again. Pure: no clock, no sleep; chance is injected."""

from __future__ import annotations

import random
from collections.abc import Callable

FIRST_S = 1.0
LONGEST_S = 60.0
GOOD_AFTER_S = 30.0  # a connection that lasted this long has proved that the server is well; the pauses begin anew
_DOUBLINGS = 6  # 1 s, 2, 4 … 32, then the longest; counting on would only make the power overflow


class Backoff:
    """The pauses for one server: 1 s, doubled each time up to 60 s, each shortened by up to a half by chance.

    A server that was connected is tried again at once, the first time: it has restarted, or has forgotten our session.

    Args:
        chance: a number from 0 to 1, so that servers that went together don't come back together.
    """

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._tries = 0
        self._at_once = True

    def pause_s(self, lasted_s: float) -> float:
        """Return the seconds to wait now. `lasted_s`: how long the last connection was good, 0 when there was none."""
        if lasted_s >= GOOD_AFTER_S:
            self._tries = 0
            self._at_once = True
        if lasted_s > 0 and self._at_once:
            self._at_once = False
            return 0.0
        pause: float = min(FIRST_S * 2**self._tries, LONGEST_S)
        self._tries = min(self._tries + 1, _DOUBLINGS)
        return pause * (1 - self._chance() / 2)
