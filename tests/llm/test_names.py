"""Names of tools from their pieces: joined, repeated or growing as the offer tells; near names are not guessed."""

from __future__ import annotations

import pytest

from echokit_py.llm import names
from echokit_py.llm.base import Tool

OFFER = names.offer(["open_blind", "open_blinds_all", "tata", "go"])


@pytest.mark.parametrize(
    ("pieces", "name"),
    [
        (["open_blind"], "open_blind"),
        (["open_", "blind"], "open_blind"),
        (["o", "pen", "_b", "lind"], "open_blind"),
        (["open_blind", "open_blind", "open_blind"], "open_blind"),
        (["open", "open_bl", "open_blind"], "open_blind"),
        (["open_", "blind", "open_blind"], "open_blind"),
        (["open_blind", "s_all"], "open_blinds_all"),
        (["ta", "ta"], "tata"),
        (["go", "go"], "go"),
        # No reading leads to an offered tool: the name is the plain one, and unknown.
        (["open_blind", "s"], "open_blinds"),
        (["open_blind", "go"], "open_blindgo"),
        (["close_", "blind"], "close_blind"),
    ],
)
def test_pieces_become_the_name_that_was_offered(pieces: list[str], name: str) -> None:
    assert names.settle(pieces, OFFER) == name


@pytest.mark.parametrize(
    ("pieces", "name"),
    [(["a_", "b"], "a_b"), (["a_b", "a_b"], "a_b"), (["a", "a_b"], "a_b")],
)
def test_without_an_offer_the_plain_reading_counts(pieces: list[str], name: str) -> None:
    assert names.settle(pieces, None) == name


def test_an_endless_name_is_none() -> None:
    assert len(names.settle(["xy"] * 100_000, None)) <= 2
    endless = names.settle([f"{number}_" for number in range(100_000)], OFFER)
    assert names.MAX_NAME_CHARACTERS < len(endless) < 2 * names.MAX_NAME_CHARACTERS


def test_a_written_null_is_no_name_unless_a_tool_is_called_so() -> None:
    assert names.is_no_name("", OFFER)
    assert names.is_no_name("null", OFFER)
    assert names.is_no_name("None", None)
    assert not names.is_no_name("null", names.offer(["null"]))
    assert not names.is_no_name("go", OFFER)


def test_pieces_belong_together_when_a_name_can_come_of_them() -> None:
    assert names.may_belong_together(["open_", "bl"], OFFER)
    assert names.may_belong_together(["anything", "else"], None)
    assert names.may_belong_together(["strange", "strange"], OFFER)
    assert not names.may_belong_together(["go", "open_blind"], OFFER)


def test_an_offer_knows_which_tools_require_arguments() -> None:
    needy = Tool("a", "", {"type": "object", "required": ["x"]})
    assert names.offer([needy, Tool("b", "", {}), "c"]) == {"a": True, "b": False, "c": False}
    assert names.offer(None) is None
