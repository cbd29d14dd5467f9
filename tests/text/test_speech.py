from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echokit_py.text.sentences import HARD_MAX, SentenceSplitter
from echokit_py.text.speech import CODE_NOTE, SpeechFilter, speakable


@pytest.mark.parametrize(
    ("piece", "spoken"),
    [
        ("The parcel comes on **Friday 3 July** 📦️.", "The parcel comes on Friday 3 July."),
        ("Great! 👨‍👩‍👧 Yes 🇩🇪, ok 👍🏽!", "Great! Yes, ok!"),
        ("1️⃣ First → second", "1 First second"),
        ("① and ❷ and ½", "① and ❷ and ½"),
        ("Word\u200bs and\x07 soft\u00adly \ufeffspoken\u202e", "Words and softly spoken"),
        ("می\u200cخواهم क्\u200dष a\u200db", "می\u200cخواهم क्\u200dष ab"),
        ("line one\nline two", "line one line two"),
        ("(*) Bye. () [ ] （）", "Bye."),
        ("Name ------- value ~~~~ x ===", "Name value x"),
        ("so it is , and . so", "so it is, and. so"),
        (".5 is half, -3 is cold", ".5 is half, -3 is cold"),
        ("你好😊！今天🌞 。", "你好！今天。"),
        ("If 5 < 7 and 9 > 2, then a<b holds.", "If 5 < 7 and 9 > 2, then a<b holds."),
        ("42.", "42."),
        ("五", "五"),
    ],
)
def test_what_is_spoken(piece: str, spoken: str) -> None:
    assert speakable(piece) == spoken


@pytest.mark.parametrize(
    "piece",
    [
        "",
        " ",
        "...",
        "—",
        "😊",
        "!!!",
        "(*)",
        "---",
        "***",
        "```",
        "$$",
        "<br>",
        "|---|---|",
        "[^1]",
        "\x00",
        "![](a.png)",
    ],
)
def test_what_has_no_letter_or_digit_is_nothing(piece: str) -> None:
    assert SpeechFilter().speakable(piece).replace(CODE_NOTE, "") == ""


def test_code_is_announced_not_read() -> None:
    assert speakable("Try this: ```print('hi')``` and see.") == f"Try this: {CODE_NOTE} and see."
    assert speakable("```python\nprint('hi')\n```\nDone.") == f"{CODE_NOTE} Done."
    assert speakable("Run `ls -l` now.") == "Run ls -l now."


def test_code_is_announced_in_the_language_of_the_last_words() -> None:
    speech = SpeechFilter()
    assert [speech.speakable(piece) for piece in ("你好。", "——", "```\nx")] == ["你好。", "", "代码。"]


def test_code_over_several_pieces_is_announced_once() -> None:
    speech = SpeechFilter()
    pieces = ["Here:", "```python", "def f(x):", "# A comment. Nothing", "return x", "```\nIt returns x.", "Clear?"]
    assert [speech.speakable(piece) for piece in pieces] == ["Here:", CODE_NOTE, "", "", "", "It returns x.", "Clear?"]


def test_a_longer_fence_holds_shorter_ones() -> None:
    speech = SpeechFilter()
    pieces = ["````md", "```py", "x = 1", "```", "````\nDone.", "~~~~\na", "~~~\nb", "~~~~~\nEnd."]
    assert [speech.speakable(piece) for piece in pieces] == [CODE_NOTE, "", "", "", "Done.", CODE_NOTE, "", "End."]
    assert speakable("`" * 900 + " a ``` b") == CODE_NOTE
    assert _of("`" * 1_500 + " So. Yes.") == [CODE_NOTE, "So.", "Yes."]


def test_tildes_fence_code_only_at_the_start_of_a_line() -> None:
    speech = SpeechFilter()
    assert [speech.speakable(piece) for piece in ("~~~\ncode", "a ~~~ b", "~~~ End.")] == [CODE_NOTE, "", "End."]
    assert speakable("好的~~~ 再见") == "好的 再见"


def test_a_comment_is_not_spoken_over_pieces_either() -> None:
    speech = SpeechFilter()
    assert [speech.speakable(piece) for piece in ("So <!-- this is", "hidden.", "Still --> it is.")] == [
        "So",
        "",
        "it is.",
    ]


def test_a_formula_over_several_pieces_is_read_without_its_markup() -> None:
    speech = SpeechFilter()
    pieces = ["It is", "$$\nx = \\frac{1}{2}", "\\times \\pi", "$$\nand \\[ y", "\\alpha \\] done."]
    assert [speech.speakable(piece) for piece in pieces] == ["It is", "x = 1/2", "× π", "and y", "α done."]


def test_an_environment_is_a_formula() -> None:
    speech = SpeechFilter()
    pieces = ["So\n\\begin{align*}\nx &= 1.", "\\\\\ny &= 2", "\\end{align*} done. A & B."]
    assert [speech.speakable(piece) for piece in pieces] == ["So x = 1.", ", y = 2", "done. A & B."]
    assert speakable("It is $\\begin{matrix} 1 & 2 \\end{matrix}$ so.") == "It is 1 2 so."


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("<think >a. b.</think>Hi.", "Hi."),
        ('<THINK foo="1">a. b.</THINK>Hi.', "Hi."),
        ("Hi.<Thinking>a. b.</Thinking> Bye.", "Hi. Bye."),
        ("好。<Think>a. b.</Think>再见。", "好。 再见。"),
        ("The <think> tag.", "The think tag."),
        ("The `x`<think> tag.", "The xthink tag."),
    ],
)
def test_reasoning_begins_a_line_or_follows_a_sentence(text: str, spoken: str) -> None:
    assert speakable(text) == spoken


def _of(text: str) -> list[str]:
    splitter, speech = SentenceSplitter(), SpeechFilter()
    return [spoken for piece in splitter.feed(text) + splitter.flush() if (spoken := speech.speakable(piece))]


@pytest.mark.parametrize("length", [300, 1_500, 5_000])
def test_the_rest_of_a_long_address_is_not_spelt(length: int) -> None:
    address = "example.org/" + "ab/" * (length // 3)
    assert _of(f"See https://{address} and go on.") == ["See", "example.org", "and go on."]
    assert _of(f"See [the docs](https://{address}) and go on.") == ["See [the", "docs", "and go on."]
    assert _of(f"A ![black cat](data:image/png;base64,{address}) is.") == ["A ![black", "cat", "is."]
    assert _of(f"See https://{address}。好的。")[-1] == "好的。"


def test_the_rest_of_a_parted_address_is_known_by_its_place_only() -> None:
    speech = SpeechFilter()
    address = "https://x.org/" + "a" * HARD_MAX
    assert speech.speakable(address) == "x.org"
    assert speech.speakable("a" * HARD_MAX) == ""
    assert speech.speakable('a"' + "b" * HARD_MAX) == '"' + "b" * HARD_MAX
    assert speech.speakable("c.") == "c."
    assert speech.speakable(address) == "x.org"
    assert speech.speakable("a) So.") == "So."
    assert [speech.speakable(piece) for piece in ("<!-- a > b", address, "aa--> Done.")] == ["", "", "Done."]


def test_a_long_word_is_no_address() -> None:
    assert "".join(_of("ab" * 2_000)) == "ab" * 2_000


@pytest.mark.parametrize(
    "run",
    [
        "\n",
        " ",
        "- ",
        "> ",
        "\\(",
        "[",
        "|",
        "<b ",
        "* ",
        "【",
        "<x a=b ",
        "</x>",
        "<x ",
        "\\a{",
        "==",
        "<",
        ": ",
        ":a",
    ],
)
def test_a_long_run_of_marks_takes_no_time_to_speak_of(run: str) -> None:
    assert speakable(run * (2_000 // len(run)) + "a").endswith("a")  # minutes, when a pattern backtracks


def test_each_answer_has_a_filter_of_its_own() -> None:
    speech = SpeechFilter()
    speech.speakable("```")
    assert speech.speakable("code") == ""
    assert speakable("code") == "code"


MARKS = [
    *"*_`~#|[]()<>{}$\\!-=^&;:/ \n.\"'",
    *("```", "$$", "\\[", "<!--", "-->", "https://", "a", "B", "1", "字", "😊", "**", "[^1]", "](", "\\frac{", "&amp;"),
    *("&#0;", "\x00", "\ud800"),
]


@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(MARKS), max_size=40).map("".join)))
def test_any_text_comes_out_clean(text: str) -> None:
    spoken = speakable(text)
    assert spoken == " ".join(spoken.split())
    assert not spoken or any(char.isalnum() for char in spoken)
    assert not {unicodedata.category(char) for char in spoken} & {"Cc", "Cs", "Co"}
    assert "*" not in spoken
    assert "`" not in spoken
    spoken.encode()


@given(st.lists(st.sampled_from(["One. ", "two ", "三。", "4 "]), min_size=1).map("".join))
def test_plain_text_is_left_alone(text: str) -> None:
    assert speakable(text) == text.strip()
