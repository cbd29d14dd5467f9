"""Arguments from fragments: concatenation first, then only readings that lose and add nothing."""

from __future__ import annotations

import json

import pytest

from echokit_py.llm.arguments import ArgumentsError, Closing, read_fragments, read_object
from echokit_py.llm.base import Refusal


def read(*pieces: str) -> str:
    return read_fragments(pieces, nothing_required=True)


@pytest.mark.parametrize(
    "text",
    [
        '{"song":"Clair de lune"}',
        '{ "a" : [1, {"b": null}] , "c":"\\ud83c\\udfb5 ♫" }\n',
        '{"big":9007199254740993,"exact":0.1234567890123456789,"zero":-0.0,"exp":1E2}',
        '{"inner":"{\\"looks\\":\\"like JSON\\"}"}',
        "{}",
    ],
)
def test_the_text_stays_as_the_model_wrote_it_wherever_it_is_cut(text: str) -> None:
    assert read(text) == text
    assert read(*text) == text
    for place in range(1, len(text)):
        assert read(text[:place], "", text[place:]) == text


@pytest.mark.parametrize("pieces", [(), ("",), (" \n", "\t"), ("null",), ("nu", "ll")])
def test_nothing_means_an_empty_object_where_nothing_is_required(pieces: tuple[str, ...]) -> None:
    assert read(*pieces) == "{}"
    with pytest.raises(ArgumentsError) as refused:
        read_fragments(pieces, nothing_required=False)
    assert refused.value.refusal is (Refusal.NOT_AN_OBJECT if "n" in "".join(pieces) else Refusal.BAD_JSON)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        # growing snapshots
        (('{"n"', '{"n":"half', '{"n":"half past"}'), '{"n":"half past"}'),
        (('{"n":1}', '{"n":1}', '{"n":1}'), '{"n":1}'),
        # fragments, then the whole once more
        (('{"n":', "1}", '{"n":1}'), '{"n":1}'),
        (('{"n":"ha', '{"n":"half"}'), '{"n":"half"}'),
        # fragments, then the same fragments, or the same spaced differently
        (('{"n":', "1}", '{"n":', "1}"), '{"n":1}'),
        (('{"n": 1,', '"m":2}', '{"m":2,', '"n":1}'), '{"n": 1,"m":2}'),
        # a placeholder first
        (("{}", '{"n":', "1}"), '{"n":1}'),
        # encoded twice
        (('"{\\"n\\":', '1}"'), '{"n":1}'),
    ],
)
def test_other_readings_are_tried_when_the_join_is_no_json(pieces: tuple[str, ...], expected: str) -> None:
    assert read(*pieces) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{'n':1}", Refusal.BAD_JSON),
        ('{"n":1', Refusal.BAD_JSON),
        ('{"n":1}}', Refusal.BAD_JSON),
        ('{"n":1,}', Refusal.BAD_JSON),
        ('{"n":NaN}', Refusal.BAD_JSON),
        ('{"n":-Infinity}', Refusal.BAD_JSON),
        ('{"n":1e999}', Refusal.BAD_JSON),
        ('{"n":"\\ud83c"}', Refusal.BAD_JSON),
        ('{"n":"a\nb"}', Refusal.BAD_JSON),
        ('{"n":1}<|end|>', Refusal.BAD_JSON),
        ('{"n":1}{"n":1}', Refusal.BAD_JSON),  # in one fragment: the model's own words, and nobody knows what they mean
        ("[" * 50_000, Refusal.BAD_JSON),
        ('{"n":' + "9" * 5000 + "}", Refusal.BAD_JSON),
        ("12", Refusal.NOT_AN_OBJECT),
        ('["a"]', Refusal.NOT_AN_OBJECT),
        ("true", Refusal.NOT_AN_OBJECT),
        ('"open"', Refusal.NOT_AN_OBJECT),
        ('"[1]"', Refusal.NOT_AN_OBJECT),
    ],
)
def test_what_is_no_object_is_refused(text: str, reason: Refusal) -> None:
    for pieces in ([text], [text[:3], text[3:]] if len(text) < 50 else [text]):
        with pytest.raises(ArgumentsError) as refused:
            read(*pieces)
        assert refused.value.refusal is reason


@pytest.mark.parametrize(
    "pieces",
    [
        ('{"n":1}', '{"n":2}'),  # two objects
        ('{"n":1}', '{"n":true}'),  # equal only to Python
        ('{"n":1}', '{"n":1.0}'),
        ('{"n":1}', "[1]"),
        ('{"n":1}', '{"n":'),
        ("[1]", "[1]"),
        ("{}", "{'n':1}"),
        ('{"n":1', '{"n":1,"m"'),  # snapshots that never close
        ('{"n":1}', '{"n":1}', "x"),
    ],
)
def test_a_reading_that_would_lose_something_is_none(pieces: tuple[str, ...]) -> None:
    with pytest.raises(ArgumentsError) as refused:
        read(*pieces)
    assert refused.value.refusal is Refusal.BAD_JSON


def test_read_object_gives_exact_integers() -> None:
    assert read_object('{"n":9007199254740993,"f":0.5}') == {"n": 9007199254740993, "f": 0.5}
    with pytest.raises(ArgumentsError) as refused:
        read_object("[]")
    assert refused.value.refusal is Refusal.NOT_AN_OBJECT


@pytest.mark.parametrize("text", ['{"a":"}\\"}","b":[{}]}', "[[]]", '"{\\\\"', "{}"])
def test_closing_sees_the_end_of_the_value_and_not_before(text: str) -> None:
    closing = Closing()
    for character in text[:-1]:
        closing.feed(character)
        assert not closing.closed
    closing.feed(text[-1])
    assert closing.closed
    assert json.loads(text) is not None
    closing.feed(" ")
    assert closing.closed
    closing.feed("{")
    assert not closing.closed
