"""Tests for echokit_py.mcp.names: one-to-one, the same in any order, short where it can be."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echokit_py.mcp.names import clashes, exposed_names
from echokit_py.tools.base import NAME

LONG = "x" * 64


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        ([("house", "lamp_on")], ["lamp_on"]),
        ([("house", LONG)], [LONG]),
        ([("cal", "user.list"), ("cal", "profile/update"), ("cal", "New event"), ("cal", "")],
         ["cal_user_list", "cal_profile_update", "cal_New_event", "cal_"]),
        ([("a", "on"), ("b", "on"), ("b", "off")], ["a_on", "b_on", "off"]),
        ([("h", "天气"), ("h", "weather")], ["h__", "weather"]),
    ],
)  # fmt: skip
def test_names(tools: list[tuple[str, str]], names: list[str]) -> None:
    found = exposed_names(tools)
    assert [found[tool] for tool in tools] == names


def test_what_would_collide_gets_a_hash() -> None:
    for tools in (
        [("cal", "a.b"), ("cal", "a/b")],  # the same when replaced
        [("s", LONG + "1"), ("s", LONG + "2")],  # the same when cut
        [("a", "b_c"), ("a_b", "c"), ("x", "b_c"), ("x", "c")],  # the same when the server's name stands before it
    ):
        found = exposed_names(tools)
        assert len(set(found.values())) == len(tools)
        assert all(NAME.fullmatch(name) for name in found.values())
    assert found["a", "b_c"][:6] == found["a_b", "c"][:6] == "a_b_c_"
    assert found["x", "c"] == "x_c"


def test_a_name_that_is_there_is_not_taken_from_its_tool() -> None:
    found = exposed_names([("a", "on"), ("b", "on"), ("c", "a_on")])
    assert found["c", "a_on"] == "a_on"
    assert found["a", "on"].startswith("a_on_")
    assert found["b", "on"] == "b_on"


def test_a_name_that_is_made_to_collide_with_a_hash() -> None:
    wanted = exposed_names([("a", "on"), ("b", "on"), ("c", "a_on")])["a", "on"]
    found = exposed_names([("a", "on"), ("b", "on"), ("c", "a_on"), ("c", wanted)])
    assert found["c", wanted] == wanted
    assert len(set(found.values())) == 4


def test_a_name_that_clashed_once_is_not_used_again() -> None:
    assert clashes([("a", "on"), ("b", "on"), ("a", "off"), ("a", "off")]) == {"on"}
    assert exposed_names([("a", "on")], {"on"}) == {("a", "on"): "a_on"}


_words = st.text(st.sampled_from("ab_.é"), max_size=4)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(_words, st.one_of(_words, st.sampled_from([LONG, LONG + "a", LONG + "b"]))), max_size=12),
    st.randoms(use_true_random=False),
)
def test_one_to_one_and_the_same_in_any_order(tools: list[tuple[str, str]], chance: random.Random) -> None:
    found = exposed_names(tools)
    assert found.keys() == set(tools)
    assert len(set(found.values())) == len(found)
    assert all(NAME.fullmatch(name) for name in found.values())
    chance.shuffle(tools)
    assert exposed_names(tools) == found
