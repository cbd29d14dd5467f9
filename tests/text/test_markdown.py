from __future__ import annotations

import pytest

from echokit_py.text.markdown import words_of


def words(text: str) -> str:
    return " ".join(words_of(text).split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # emphasis
        ("**bold**, *it*, ***both***, ~~gone~~, __under__, _so_", "bold, it, both, gone, under, so"),
        ("**never closed", "never closed"),
        ("my_variable_name and __init__", "my variable name and init"),
        ("2 * 3 = 6 and 2*3 and a * b", "2 × 3 = 6 and 2 × 3 and a × b"),
        ("\\*not emphasis\\* C:\\dir", "not emphasis C: dir"),
        ("Run `git status` now", "Run git status now"),
        # headings, quotes, lists, rules
        ("# Title\n## Sub ##\n#hashtag #1 C#", "Title Sub hashtag #1 C#"),
        ("> quoted\n> > twice", "quoted twice"),
        ("- one\n* two\n+ three\n• four\n1. five", "one two three four 1. five"),
        ("- [ ] open\n- [x] done", "open done"),
        ("a\n---\n***\n===\nb", "a b"),
        ("-5 degrees, - so", "-5 degrees, - so"),
        # tables
        ("| Name | Age |\n|------|:---:|\n| Bob  | 5   |", "Name, Age Bob, 5"),
        ("Name | Age", "Name, Age"),
        ("|A|B|\n|-|-|\n|1|2|", "A, B 1, 2"),
        ("A | B\n:-:|-\n1 | 2", "A, B 1, 2"),
        ("a || b", "a || b"),
        ("at most | 5 |", "at most, 5"),
        ("| It is.", "It is."),
        # links and addresses
        ("See [the table](https://example.org/t?id=42&x=1).", "See the table."),
        ("[a](b) ![alt](c.png) [![pic](d)](e) [ref][1] [ ](x)", "a alt pic ref"),
        ("[Foo](https://en.wikipedia.org/wiki/Foo_(bar)) it", "Foo it"),
        ("[1]: https://example.org Title\nText", "Text"),
        ("Go to https://www.example.com/a/b?c=d.", "Go to example.com."),
        ("(see http://user:pw@example.org:8080/x_(y)).", "(see example.org)."),
        ("<https://example.org/a> or www.example.org/b, ok", "example.org or example.org, ok"),
        ("mailto:me@example.org or me@example.org", "example.org or me@example.org"),
        ("file:///etc/hosts there", "there"),
        ("请看https://x.org/a/b就好，www.x.org。", "请看x.org就好，x.org。"),
        ("ここhttps://x.org/aです", "ここx.orgです"),
        ("docs](https://x.org/a_(b)) and [text](https://x.org/cut", "docs and [text"),
        ("<me@example.org> and <b@x.de>", "me@example.org and b@x.de"),
        ("a <b @ c> d", "a <b @ c> d"),
        # tags that are talked about
        ("Between `<think>` and `</think>`, `<b>`, `<br />`; `<b>x</b>`.", "Between think and think, b, br; x ."),
        # footnotes and sources
        ("So.[1][2] It is so.[1] And[^2] so [3] 【4†source】", "So. It is so. And so [3]"),
        ("[^1]: The note", "The note"),
        ("[1, 2] and x[1, 2]", "[1, 2] and x"),
        # HTML
        ('<b>Hi</b> &amp; <a href="x" target=_blank>you</a><br/>ok', "Hi & you ok"),
        ("<span style='color: red'>Rot</span>", "Rot"),
        ("a<b and c>d, Press <Enter>, </p>", "a<b and c>d, Press Enter,"),
        ("1 &lt; 2 &nbsp; 3", "1 < 2 3"),
        # smileys
        ("Nice :) and ;-) <3 :D ^_^ but at 10:30 (so)", "Nice and but at 10:30 (so)"),
        # formulas
        ("It is $x^2$ and \\(y\\), costs $5 and $10.", "It is x² and y, costs $5 and $10."),
        ("$n$ US$5 $", "n US$5 $"),
        ("$5-$10, $5/$10 or $ x{1} b$ c", "$5-$10, $5/$10 or $ x{1} b$ c"),
    ],
)
def test_marks_go_words_stay(text: str, expected: str) -> None:
    assert words(text) == expected
