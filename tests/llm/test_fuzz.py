"""Mutated streams: a small budget each time. `scripts/fuzz` runs the same for as long as one likes."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from tests.fakes import stream_fuzzer
from tests.fakes.stream_fuzzer import Seed, mutate, read, seeds, wrong


@cache
def all_seeds() -> list[Seed]:
    return seeds()


def own_seeds() -> list[Seed]:
    return [seed for seed in all_seeds() if ".sse" not in seed.name]


def test_every_seed_is_read_well_as_it_is() -> None:
    for seed in all_seeds():
        assert list(wrong(seed, seed.body, Random(1))) == [], seed.name
    assert any(read(seed, seed.body).step.calls for seed in own_seeds())


@pytest.mark.parametrize("number", range(40))
def test_mutated_streams_are_read_well(number: int) -> None:
    chance = Random(number)
    for seed in own_seeds():
        body = mutate(seed, own_seeds(), chance)
        assert list(wrong(seed, body, chance)) == [], (seed.name, body)


def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the tools had been others, and strict JSON had read nothing."""
    calls = next(seed for seed in own_seeds() if read(seed, seed.body).step.calls)
    monkeypatch.setattr(stream_fuzzer, "read_arguments", lambda _: None)
    assert any("no JSON object" in one for one in wrong(calls, calls.body, Random(0)))
    narrow = Seed("", calls.api, calls.body, ("other",))
    outcome = read(calls, calls.body)
    assert any("not offered" in one for one in stream_fuzzer._wrong_outcome(narrow, outcome))
