from __future__ import annotations

import pytest

from echokit_py.text import characters


@pytest.mark.parametrize("char", "字かカ한ก។。ａ𠀀")
def test_scripts_without_spaces(char: str) -> None:
    assert characters.is_unspaced(char) is (char != "한")


@pytest.mark.parametrize("char", "aяअ ١é😊")
def test_scripts_with_spaces(char: str) -> None:
    assert not characters.is_unspaced(char)
    assert not characters.is_cjk(char)


def test_thai_and_hiragana() -> None:
    assert characters.is_thai("ก")
    assert not characters.is_cjk("ก")
    assert characters.is_hiragana("か")
    assert not characters.is_hiragana("カ")


def test_what_hangs_on_the_character_before() -> None:
    assert characters.is_attached("\u0301")
    assert characters.is_attached("\u200d")
    assert not characters.is_attached("e")


def test_no_mark_has_two_meanings() -> None:
    pauses = characters.SPACED_PAUSES + characters.FULL_PAUSES
    assert not set(characters.ENDS) & set(pauses)
    assert not set(characters.ENDS + pauses) & characters.TRAILERS
    assert not set(characters.ENDS) & set(characters.PAIRS)
    assert all(char.isspace() for char in characters.NEWLINES)
