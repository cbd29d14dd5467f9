"""An answer as a model streams it: where it is cut, and what of each piece a voice gets. One test for each thing that
was asked for; the corner cases stand in the tests of the modules.
"""

from __future__ import annotations

import pytest

from echokit_py.text.sentences import LENGTH_MAX, SentenceSplitter
from echokit_py.text.speech import CODE_NOTE, SpeechFilter


def spoken(*deltas: str) -> list[str]:
    """What the voice gets, piece by piece."""
    splitter, speech = SentenceSplitter(), SpeechFilter()
    pieces = [piece for delta in deltas for piece in splitter.feed(delta)] + splitter.flush()
    return [text for piece in pieces if (text := speech.speakable(piece))]


def cut(text: str) -> list[str]:
    """The pieces, which must not depend on how the text came."""
    splitter = SentenceSplitter()
    whole = splitter.feed(text) + splitter.flush()
    for at in range(1, len(text), 1 + len(text) // 200):
        assert splitter.feed(text[:at]) + splitter.feed(text[at:]) + splitter.flush() == whole
    return whole


# Each line is cut at the bars.
ENDS = {
    "decimals": "Pi is 3.14159 or so.| It costs $3.50.| That is -0.5 degrees.",
    "versions": "Use Python 3.12.1 or v1.2-beta.3.| Not 2.0.",
    "times": "Meet at 10.30 p.m. on Monday.| It starts at 5:30.| Come at 5 a.m.| Bye.",
    "dates": "On 24.12.2026 it is closed.| Am 3. Juli nicht.",
    "abbreviations": "Dr. Berg met Mrs. Ash, e.g. on Jan. 3.| Nuts etc. are fine.",
    "numbers of things": "Take exit No. 5 on p. 12.| Then see fig. 3.| Is it No. 7?| No.| Yes.",
    "initials": "J. R. R. Tolkien and George W. Bush of the U.S. Army came.| They left.",
    "addresses": "See https://example.org/a.b?c=d!e for more.| Write to bob@mail.example.org.| Open main.py.",
    "quotes": 'He said "Stop! Now!" and left.| „Halt! Sofort!“ rief er.| "Why?" she asked.',
    "brackets": "(He stayed. She left.)| Then nothing (at all. Really).| End.",
    "ellipses": "Well... maybe.| Wait… what?| And then . . . silence.",
    "lists": "Do this:\n|1. Open it.\n|2. Close it.\n|- One\n|- Two\n|In short: 1. Open 2. Close.| Done.",
    "Chinese": '你好！|今天25.5度。|他说："好。走吧。"|然后走了。|',
    "Japanese": "「行く。」と言った。|はい！|",
    "Thai": "ฉันไปเที่ยวที่เชียงใหม่เมื่อวานนี้ |อากาศดีมาก",
    "Devanagari": "मैं ठीक हूँ।| यह दूसरा है॥| आप?",
    "contractions": "I don't.| It is Mary's.| We can’t.| Fine.",
}


@pytest.mark.parametrize("name", ENDS)
def test_sentences_end_where_they_end(name: str) -> None:
    example = ENDS[name]
    assert cut(example.replace("|", "")) == [piece.strip() for piece in example.split("|") if piece.strip()]


def test_the_first_piece_may_end_at_a_clause_and_no_other() -> None:
    text = (
        "The weather in Paris is going to be nice today, with sun, and a light breeze from the west, says the report."
    )
    assert cut(f"{text} {text}") == [text[:47], text[48:], text]


@pytest.mark.parametrize("word", ["word ", "字"])
def test_a_run_without_marks_is_cut_at_a_word(word: str) -> None:
    pieces = cut(word * (700 // len(word)))
    assert len(pieces) > 2
    assert all(LENGTH_MAX * 0.9 < len(piece) <= LENGTH_MAX for piece in pieces[:-1])
    assert all(set(piece.split(" ")) == {"word"} for piece in pieces if word == "word ")


NOT_SPOKEN = {
    "emphasis": ("It is **very** _nice_, ~~not~~ ==truly== `so`.", "It is very nice, not truly so."),
    "headings": ("# Title\n## Part *two*\n> A quote\n---\nText.", "Title| Part two| A quote| Text."),
    "lists": ("- [x] done\n* **Milk**: white\n", "done| Milk: white"),
    "tables": ("| City | Now |\n|---|--:|\n| Paris | 20 °C |\nWarm.", "City, Now| Paris, 20 °C| Warm."),
    "tables without borders": ("City | Now\n--- | ---\nParis | 20\n", "City, Now| Paris, 20"),
    "code": ("Try:\n```python\nx = 1.5\n# A. B.\n```\nIt works.", f"Try:| {CODE_NOTE}| It works."),
    "code in Chinese": ("试试这个：\n```python\nx = 1\n```\n好了。", "试试这个：| 代码。| 好了。"),
    "code in Japanese": ("これです。\n```\nx\n```\n", "これです。| コードです。"),
    "code in Korean": ("이렇게 하세요:\n```\nx\n```\n", "이렇게 하세요:| 코드입니다."),
    "code in Russian": ("Вот так:\n~~~\nx\n~~~\n", "Вот так:| Код."),
    "emoji": ("Great 👍🏽! 👨‍👩‍👧 Yes 🇩🇪 ❤️ :smile: ok ✅. 🎉", "Great!| Yes ok."),
    "links": (
        "See [the *docs*](https://x.org/a_(b)) or https://x.org/y?z=1. ![A cat](c.png) Ok.",
        "See the docs or x.org.| A cat Ok.",
    ),
    "link targets": ("Look [here][1].\n\n[1]: https://x.org\nBye.", "Look here.| Bye."),
    "footnotes": ("A fact[^1] and more.[12] Fine.【4†source】", "A fact and more.| Fine."),
    "HTML": ("<b>Bold</b><br/>new &amp; old <span class='x'>one</span>.", "Bold new & old one."),
    "unknown tags": ("<my-card>Hi</my-card> <x-icon name='a'/> there. Press <Enter>.", "Hi there.| Press Enter."),
    "scripts": ("So <script>let a = 1; b();</script><style>p {}</style> it is.", "So it is."),
    "comparisons": ("If a<b and c>d, List<String> is fine.", "If a<b and c>d, List<String> is fine."),
    "LaTeX": (
        r"It is $\frac{1}{2}x^2$ and \(a \times b\). \[ \sqrt{2} \] So \boxed{42} it costs $5.",
        "It is 1/2 x² and a × b.| √2 So 42 it costs $5.",
    ),
    "control characters": (
        "Hi\x00 the\u200bre\u202e, \x1b[1;31mred\x1b[0m soft\u00adly.\ufeff",
        "Hi there, red softly.",
    ),
    "arrows": ("Go A -> B => C → D.", "Go A B C D."),
    "reasoning": ("<think>Secret. Really.</think>Hello. Go.", "Hello.| Go."),
    "its relatives": ("<reasoning>\nA secret.\n\nAnother.</reasoning>\nHello.", "Hello."),
    "one with a prefix": ("<seed:think>A secret. B.</seed:think>Hello.", "Hello."),
    "a word for it": (
        "The tag is called <analysis> there. It is empty.",
        "The tag is called analysis there.| It is empty.",
    ),
    "no letter or digit": ("... — 😊\n***\n!!!\n\n(*)\n", ""),
}


@pytest.mark.parametrize("name", NOT_SPOKEN)
def test_what_is_for_the_eye_is_not_spoken(name: str) -> None:
    text, expected = NOT_SPOKEN[name]
    wanted = [piece.strip() for piece in expected.split("|") if piece]
    assert spoken(text) == wanted
    assert spoken(*text) == wanted


def test_the_display_and_the_history_keep_the_words() -> None:
    """The filter makes a text of its own for the voice: the pieces are the answer's, marks and all."""
    text = "It is **bold** 😊 and [a link](https://x.org). <b>Yes</b>"
    assert " ".join(cut(text)) == text
