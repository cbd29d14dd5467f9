from __future__ import annotations

from echokit_py.text.unicode import is_utf8


def test_is_utf8() -> None:
    assert is_utf8("grüß 😀")
    assert not is_utf8("\ud83d")
