"""What is there before `settle` is not looked through again."""

from __future__ import annotations

import gc

from echokit_py.heap import settle


def test_what_is_there_is_no_longer_looked_through() -> None:
    kept = [[number] for number in range(1000)]
    try:
        settle()
        assert gc.get_freeze_count() > len(kept)
        assert len(gc.get_objects()) < gc.get_freeze_count() / 10
    finally:
        gc.unfreeze()
