from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echokit_py.text.sentences import FIRST_CLAUSE_MIN, SentenceSplitter


def split(text: str, *cuts: int, first_clause_min: int = FIRST_CLAUSE_MIN) -> list[str]:
    splitter = SentenceSplitter(first_clause_min)
    edges = [0, *sorted(cuts), len(text)]
    pieces = [piece for a, b in pairwise(edges) for piece in splitter.feed(text[a:b])]
    return pieces + splitter.flush()


def bare(text: str) -> str:
    return "".join(text.split())


# Each line is cut at the bars.
EXAMPLES = [
    # plain ends
    "Hello there.| How are you?| Fine!| Good",
    "Is it?!| Yes.| No?!",
    "Bonjour !| Ça va ?| Oui.",
    "It ends here.\u00a0| And begins.",
    # numbers, versions, times, names of files and hosts
    "Pi is 3.14159 and e is 2.71828.| Both are numbers.",
    "It costs $3.50 or 1,299.99 yen.| Buy it.",
    "Python 3.12.1 is out.| Version 2.0 too.",
    "Meet at 10.30 a.m. on Monday.| Or at 5 p.m.| Then we eat.",
    "Open config.toml or readme.md on depot.example.org.| Then go on.",
    "See https://example.org/a.b?c=d.e!f for more.| Thanks.",
    "It was in 1999.| Then came 2000.| It costs 42.| Cheap.",
    "Es kostet 1.000,50 Euro.| Am 3. Juli geht es los.| Es sind 3.| Danach nicht.",
    "Byl 2. v pořadí.| Dobře.",
    "Der 5. Mann kam.| Dann der 6. und der 7. Gast.| Im 19. Jahrhundert.| Das ist der 1. FC Köln.",
    "Am 3.4. Ostern, am 24. 12. 2026 nicht.| Ich nehme die 3.| Dann gehe ich.",
    "Es war der\n|24.12.| Peter kam.",
    "I am 5.| Mom is 40.| You are 6.",
    "The 3. \n|Next line",
    # abbreviations, initials, numbers of things
    "Mr. Smith and Dr. Jones met Mrs. Berg.| They talked.",
    "J. R. R. Tolkien wrote it.| George W. Bush did not.| J.-P. Sartre too.",
    "Take vitamin C.| It",
    "Take vitamin C.| It helps.| She lives in the U.S.| They don't.| Plan B.| However, no.",
    "EE. UU. es grande.| World War II.| Millions died.| Das sind z. B. Sie.| Gut.",
    "He lives on Main St.| The house is red.| St. Petersburg is cold.| Add 2 tbsp. oil.| यह डॉ. शर्मा हैं।|",
    "The answer: 42.| The question: unknown.| Take: 1. Milk 2. Eggs.| Done.",
    "The U.S. Army and the U.K. are there.| Yes.",
    "Fruit, e.g. apples, i.e. food.| Nuts etc. are food.| Bread etc.| And so on.",
    "See No. 5 and p. 12, Fig. 3, vol. 2.| It is no.| Yes.",
    "On Jan. 5 we go.| It was in Jan.| Then Feb. came.",
    "Acme Inc. sells it.| Acme Inc.| Another one.",
    "Das ist z.B. Holz bzw. Stein.| Gut.",
    "Dr.| \n|A new line ends it all",
    "It is Mary's.| I don't.| She can’t.| 'Tis so.| Done.",
    "We meet at 10:30.| Then we eat.| Steps:1. Eat 2. Go.| In 2020: 1. Eat 2. Drink.| End.",
    # quotes and brackets
    'He said "Stop! Now!" and left.| "Why?" she asked.| "Go."| Then silence.',
    "„Halt! Sofort!“ rief er.| „Ja.“| Dann ging er.",
    "« Non ! Jamais ! » dit-il.| Bien.",
    "»Halt! Sofort!« rief er.| »Ja.«| Dann ging er.| Er sagte: ›Nein. Nie.‹| Gut.",
    "»Ja. Nej.»| Sedan gick han.| Go to File » Save.| Then quit.| The end.",
    "In Menu›Save.| Then quit.| Done.| “\nHello.| Yes.",
    "(ฉันไปเที่ยวที่เชียงใหม่เมื่อวานนี้ อากาศดีมาก)",
    'Press the ` key.| Then " too.| Done.',
    "(He stayed. She left.)| Then nothing.| (Really.)",
    "It is 5\" long.| It's 6' wide.| Don't.",
    "Sad :( but true.| Happy :) but not so.| No.",
    "An [open bracket never closed. It goes on. Still going on. And on and on, and on and on, until it is long enough"
    " to be cut here.| Yes.",
    "He meant (the [first. one) really.| Good.",
    "Run `a. B` now.| Done.",
    # emphasis and footnotes at the end
    "This is **bold.**| This is *it.*| _Under._| Next",
    "A fact.[1]| Another.[^2]| A third.¹| End.",
    "A fact.[see the long note] Goes on.| End.",
    # ellipses
    "Well... you know.| Wait…| What?| Hm...| Then no",
    "So it goes....| Again.",
    "And then . . . it ended.| Yes.",
    # lists and lines
    "Three things:\n|1. Milk\n|2. Eggs and 1.5 litres\n|3. Bread\n|",
    "Take this: 1. Milk 2. Eggs 3. Bread.| Done.",
    "- One thing\n|- Another\n|\n* Third\n|1.\nFourth\n|",
    "First line\n|Second line\r\n|Third\u2028|Fourth",
    "A\n|\n\n---\n\nB\n|",
    # what has nothing to speak joins what follows
    "... — Hm.| 😊 !!! 42. (*) Bye.",
    "Great!🎉| Let's go.👍🏽| Fine.❤️| 你好！😊|很好。🇩🇪|好",
    "Great!| 😊 Next one.| ✅",
    # other scripts
    "你好！|我是小助手。|今天气温25.5度，注意防晒。|你想听什么？|",
    "他说：“你好。”|然后走了。|「行く。」と言った。|はい。|",
    "３．５度です。|そう１。２",
    "你好!|我是.|他...走了。|",
    '他说："你好。我来了。"|然后走了。|"再见。"|门关了。|',
    '他说:"你好。我来了。"|然后走了。|他说,"好。"|门关了。|',
    'It says title="A b. C" there.| Yes.',
    "मैं ठीक हूँ।| आप कैसे हैं?| यह है॥|",
    "هل أنت بخير؟| نعم۔| جيد.",
    "ฉันไปเที่ยวที่เชียงใหม่เมื่อวานนี้ |อากาศดีมาก |",
    "เมื่อปี พ.ศ. 2567 นะ",
    "Բարև։| Ինչպես ես։|",
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_at_every_split_point(example: str) -> None:
    text = example.replace("|", "")
    expected = [piece.strip() for piece in example.split("|") if piece.strip()]
    assert split(text) == expected
    assert split(text, *range(1, len(text))) == expected
    for at in range(len(text)):
        assert split(text, at) == expected, at


ALPHABET = [
    *"aAbZ1259 \n\t.,!?…;:。，！（）「」“”„\"'`*_()[]{}<^-—–#|",
    *(
        "Dr",
        "e.g.",
        "etc.",
        "\r\n",
        "的",
        "ก",
        "か",
        "é",
        "\u0301",
        "1. ",
        "No. ",
        "Juli",
        "   " * 7,
        "x" * 30,
        "字" * 30,
    ),
    *("»", "«", "›", "‹", "der 5. ", "am ", "J. ", "U.S. ", "It ", "The", "St. ", "– ", "\ufe0f"),
    *("word " * 9, "....", "[^1]", "😊", "\u200d", '5"', "：", "।"),
]


@settings(deadline=None, max_examples=250)
@given(st.lists(st.sampled_from(ALPHABET), max_size=60).map("".join), st.lists(st.integers(0, 400), max_size=8))
def test_the_split_into_deltas_does_not_matter_and_no_word_is_lost(text: str, cuts: list[int]) -> None:
    whole = split(text)
    assert bare("".join(whole)) == bare(text)
    assert all(piece and piece == piece.strip() for piece in whole)
    assert split(text, *(cut for cut in cuts if cut < len(text))) == whole
    assert split(text, *range(1, len(text))) == whole


def test_a_plain_sentence_is_out_with_the_space_after_it() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("Hello there.") == []
    assert splitter.feed(" ") == ["Hello there."]
    assert splitter.feed("Is it?") == []
    assert splitter.feed("\n") == ["Is it?"]


def test_a_doubtful_end_waits_for_one_character() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("So it is. ") == []
    assert splitter.feed("T") == ["So it is."]
    assert splitter.feed("his is it, Mr. ") == []
    assert splitter.flush() == ["This is it, Mr."]


def test_a_possible_month_is_waited_for_no_longer_than_a_month_is() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("Es sind 3. ") == []
    assert splitter.feed("Donaudamp") == []
    assert splitter.feed("fs") == ["Es sind 3."]


def test_white_space_without_end_is_not_waited_for() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("So it is." + " " * 16) == []
    assert splitter.feed(" ") == ["So it is."]


def test_the_first_piece_may_end_at_a_clause() -> None:
    text = (
        "When the morning comes and the sun is up, the birds begin to sing, and so do we."
        " After that, which is a long time from now, we go."
    )
    assert split(text) == [
        "When the morning comes and the sun is up,",
        "the birds begin to sing, and so do we.",
        "After that, which is a long time from now, we go.",
    ]
    assert len(split(text, first_clause_min=0)) == 2
    assert split("Yes, of course, my dear friend. No.")[0] == "Yes, of course, my dear friend."


def test_a_row_of_marks_is_no_clause() -> None:
    assert split("~" * 40 + ", and so it is. Yes.") == ["~" * 40 + ", and so it is.", "Yes."]


def test_a_clause_of_chinese_is_shorter() -> None:
    text = "当早晨来临太阳升起来的时候，鸟儿开始唱歌。"
    assert split(text) == ["当早晨来临太阳升起来的时候，", "鸟儿开始唱歌。"]
    assert split("好的，我知道了。") == ["好的，我知道了。"]
    assert split("这个城市的人口一共有大约1，000，000人。") == ["这个城市的人口一共有大约1，000，000人。"]


def test_a_dash_between_numbers_is_no_pause() -> None:
    assert len(split("The temperature there will be some 5 – 6 degrees")) == 1
    assert len(split("The temperature there will be fine – 6 degrees")) == 2


def test_no_clause_ends_inside_a_bracket() -> None:
    assert len(split("The first part of it (which is long enough, as you see) goes on.")) == 1


def test_each_answer_has_a_first_piece() -> None:
    splitter = SentenceSplitter()
    text = "When the morning comes and the sun is up, we"
    for _ in range(2):
        assert splitter.feed(text) == ["When the morning comes and the sun is up,"]
        assert splitter.flush() == ["we"]


def test_a_run_without_marks_is_parted_at_a_word() -> None:
    pieces = split("word " * 100)
    assert max(map(len, pieces)) <= 200
    assert {piece.split()[0] for piece in pieces} == {piece.split()[-1] for piece in pieces} == {"word"}
    assert min(map(len, pieces[:-1])) > 190


def test_a_run_with_a_pause_is_parted_there() -> None:
    assert [len(piece) for piece in split("Hm. Word " + "word " * 28 + "word, " + "word " * 30)] == [3, 150, 149]


def test_an_early_pause_is_no_reason_to_part() -> None:
    assert [len(piece) for piece in split("Hm. Word, " + "word " * 60)][1] > 190


def test_scripts_without_spaces_are_parted_between_letters() -> None:
    assert [len(piece) for piece in split("字" * 450)] == [199, 199, 52]
    pieces = split("字\u0301" * 200)
    assert all(piece[0] == "字" for piece in pieces)


def test_what_has_no_gap_at_all_is_cut_in_the_end() -> None:
    assert [len(piece) for piece in split("x" * 2500)] == [1000, 1000, 500]
    pieces = split("x" * 999 + "\u0301" * 50 + "x" * 10)
    assert [len(piece) for piece in pieces] == [1049, 10]
    assert max(map(len, split("\u0301" * 5000))) <= 2000


@pytest.mark.parametrize(
    "endless", ["." * 5000, "a." + "*" * 5000, "a " + "“" * 5000, "- " * 3000, "1. " * 2000, "\n" * 5000]
)
def test_nothing_is_held_without_bound(endless: str) -> None:
    splitter, held, out = SentenceSplitter(), 0, 0
    for char in endless:
        out += sum(map(len, map(bare, splitter.feed(char))))
        held = max(held, len(splitter._text))
    assert held <= 2100


def test_an_address_is_not_parted() -> None:
    address = "https://example.org/" + "a" * 300
    assert address in split("See this: " + address + " and go on.")


def test_empty_deltas_and_empty_answers() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("") == []
    assert splitter.flush() == []
    assert splitter.feed("  \n ") == []
    assert splitter.flush() == []
