"""How long is waited before a server is connected to again."""

from __future__ import annotations

from echokit_py.mcp.backoff import GOOD_AFTER_S, Backoff


def test_pauses_double_from_one_second_to_a_minute() -> None:
    backoff = Backoff(chance=lambda: 0.0)
    assert [backoff.pause_s(0) for _ in range(9)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_chance_shortens_a_pause_by_up_to_a_half() -> None:
    assert Backoff(chance=lambda: 1.0).pause_s(0) == 0.5
    assert Backoff(chance=lambda: 0.5).pause_s(0) == 0.75


def test_a_server_that_was_connected_is_tried_again_at_once_and_then_more_and_more_seldom() -> None:
    """It crashes a second after each start: the first restart is free, the others aren't."""
    backoff = Backoff(chance=lambda: 0.0)
    assert [backoff.pause_s(1.0) for _ in range(4)] == [0, 1, 2, 4]


def test_a_good_connection_makes_the_pauses_begin_anew() -> None:
    backoff = Backoff(chance=lambda: 0.0)
    for _ in range(5):
        backoff.pause_s(1.0)
    assert [backoff.pause_s(GOOD_AFTER_S), backoff.pause_s(0), backoff.pause_s(0)] == [0, 1, 2]
