"""Judges by a transcript whether the speaker has finished. Pure, by tables; hears nothing, decides no end of speech.

What a recogniser's punctuation is worth: Whisper puts a full stop behind nearly everything that silence follows,
beginnings too, and invents the word that it expects next ("Set a timer for 10." of "Set a timer for"). So the words
come first: one that no sentence ends with means OPEN whatever stands behind it. A full stop counts only when nothing
speaks against it and there are a few words; "?" and "!" are better evidence; a comma, a dash or an ellipsis is put
where the voice stayed up, and means OPEN. What can't be told is UNKNOWN, and changes nothing.

That leaves FINISHED weak: of 80 beginnings (the test recordings, cut at a word) tiny.en made 40 that look finished. So
it may shorten a hangover only to what is still longer than most pauses inside a sentence, never to nothing.

The words are English and Chinese (the latter as the ends of texts, since it has no spaces). In other languages only
the marks speak.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Protocol

from echokit_py.text.abbreviations import ALWAYS_CONTINUED, BEFORE_NUMBERS, MAY_END
from echokit_py.text.characters import ENDS, FULL_PAUSES, SPACED_PAUSES, TRAILERS, is_unspaced


class Completeness(StrEnum):
    """How a transcript ends."""

    FINISHED = "finished"  # like a whole sentence
    OPEN = "open"  # in the middle of one
    UNKNOWN = "unknown"


class Limits(Protocol):
    """The settings that `hangover_ms` needs, all in milliseconds of audio (`VadSettings` has them)."""

    @property
    def adaptive(self) -> bool: ...
    @property
    def min_hangover_ms(self) -> int: ...
    @property
    def hangover_ms(self) -> int: ...
    @property
    def max_hangover_ms(self) -> int: ...


class _Mark(StrEnum):
    NONE = "none"
    OPEN = "open"  # a comma, a dash, an ellipsis
    STOP = "stop"  # what Whisper puts everywhere
    STRONG = "strong"  # a question or an exclamation mark


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# No more of the text is looked at, however long somebody has spoken.
_TAIL = 200
# Fewer words with a full stop are as often a beginning ("Hey computer.", "Set a.") as a command.
_FEW = 3

# With these no English sentence ends. ("an" is not here: German commands end with it.)
_NEVER_LAST = _words(
    "a the and or but nor because if unless than although whether whereas my your our every"
    " i'm you're we're they're it's that's there's here's what's who's where's how's let's i'll you'll we'll they'll"
    " it'll i've you've we've they've i'd you'd we'd they'd"
    " um umm uh uhh uhm er erm hm hmm mmm"
)
# With these only questions do ("Where is it from?"), and a few statements that may wait a moment.
_SELDOM_LAST = _words(
    "of to for from with at by as into onto about between without during until since per via against toward towards"
    " among upon like wanna gonna gotta their"
)
# With these statements may end as well ("Yes, I do."), but as often not: their full stop is no evidence.
_DOUBTFUL_LAST = _words(
    "is are was were am be been being has have had do does did will would shall should can could may might must"
    " that this these those which what who whose when where how why some any more most not his her its all so very just"
    " also then well please i you want need tell set turn one"
)

_DIGITS = _words("zero oh one two three four five six seven eight nine")
_NUMBERS = _DIGITS | _words(
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty"
    " seventy eighty ninety hundred thousand million billion"
)
_NO_NUMBER_ALONE = _words("oh one")  # "play that one"
_AFTER_NUMBERS = _words("point dot dash hyphen plus minus times")

_CHINESE_OPEN = re.compile(
    r"(?:(?<![温饱缓平共总中柔暖谦])和|跟|以及|或|或者|还是|但|但是|可是|不过|然而|因为|由于|所以|因此|如果|要是|假如|虽然|尽管"
    r"|而且|并且|然后|接着|还有|另外|比如|比如说|例如|就是说|也就是|关于|对于|为了|除了|我想|我要|我想要|请帮我|帮我"
    r"|那个|嗯+|呃+)\Z"
)
# Particles at the end of a sentence; many recognisers of Chinese put no marks.
_CHINESE_END = re.compile(r"[吗吧呢]\Z")
_CHINESE_DIGIT = re.compile(r"[零〇一二三四五六七八九幺]\Z")
_CHINESE_DIGITS = re.compile(r"[零〇一二三四五六七八九幺]{2}\Z")

_OPEN_MARKS = frozenset(SPACED_PAUSES + FULL_PAUSES + "-…([{（「『")
_STRONG_MARKS = frozenset("?!？！؟‼⁇⁈⁉")
_ALL_MARKS = frozenset(ENDS) | _OPEN_MARKS
_WORD = re.compile(r"[^\W_](?:[\w.'%-]*[\w%])?")
_NUMERIC = re.compile(r"\d[\d.-]*%?\Z")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]\Z")
_LATIN_BEYOND_ENGLISH = re.compile(r"[À-ɏͰ-ϿЀ-ӿ]")
_KANA_OR_HANGUL = re.compile(r"[\u3041-\u30ff\uac00-\ud7af]")
_CHINESE = frozenset({"", "zh", "yue", "cmn"})
_ENGLISH = frozenset({"", "en"})


def completeness(text: str, language: str = "") -> Completeness:
    """Judge a transcript. `language`: an ISO 639 code; "" for English or Chinese, whichever the text looks like."""
    tail = text[-_TAIL:].replace("’", "'").strip().rstrip("".join(TRAILERS) + " ")
    bare = tail.rstrip("".join(_ALL_MARKS) + " ")
    words = _WORD.findall(bare.lower())
    if not words:
        return Completeness.UNKNOWN
    mark = _mark(tail[len(bare) :].replace(" ", ""))
    english = language in _ENGLISH and not _LATIN_BEYOND_ENGLISH.search(bare)
    chinese = language in _CHINESE and not _KANA_OR_HANGUL.search(bare)
    if mark is _Mark.OPEN or _open_by_words(bare, words, mark, english=english, chinese=chinese):
        return Completeness.OPEN
    if mark is _Mark.NONE:
        return Completeness.FINISHED if chinese and _CHINESE_END.search(bare) else Completeness.UNKNOWN
    if _size(words) < _FEW or (mark is _Mark.STOP and _doubtful(bare, words, english=english)):
        return Completeness.UNKNOWN
    return Completeness.FINISHED


def hangover_ms(text: str, limits: Limits, language: str = "") -> int:
    """Return after how many milliseconds without speech an utterance is over of which `text` has been heard.

    `language`: what is spoken, as in `completeness`.
    """
    if not limits.adaptive:
        return limits.hangover_ms
    chosen = {
        Completeness.FINISHED: limits.min_hangover_ms,
        Completeness.OPEN: limits.max_hangover_ms,
        Completeness.UNKNOWN: limits.hangover_ms,
    }
    return chosen[completeness(text, language)]


def _mark(marks: str) -> _Mark:
    if not marks:
        return _Mark.NONE
    if marks[-1] in _OPEN_MARKS or marks.endswith(("..", "。。")):
        return _Mark.OPEN
    return _Mark.STRONG if _STRONG_MARKS.intersection(marks) else _Mark.STOP


def _open_by_words(bare: str, words: list[str], mark: _Mark, *, english: bool, chinese: bool) -> bool:
    last, previous = words[-1], words[-2] if len(words) > 1 else ""
    if english and last in _NEVER_LAST:
        return True
    if mark is _Mark.STRONG:
        return False
    if _CHINESE_DIGITS.search(bare) or (_is_digit(last) and _is_digit(previous)):
        return True
    if chinese and _CHINESE_OPEN.search(bare):
        return True
    if mark is _Mark.STOP and last in ALWAYS_CONTINUED:
        return True
    return english and (last in _SELDOM_LAST or (last in _AFTER_NUMBERS and _is_number(previous)))


def _doubtful(bare: str, words: list[str], *, english: bool) -> bool:
    """Whether a full stop may be an abbreviation's, or the sentence may well go on after it."""
    last = words[-1]
    if last in MAY_END:
        return False
    if _INITIALS.match(last) and not is_unspaced(last[0]):
        return True
    number = (_is_number(last) and last not in _NO_NUMBER_ALONE) or _CHINESE_DIGIT.search(bare)
    return bool(number) or last in BEFORE_NUMBERS or (english and last in _DOUBTFUL_LAST)


def _is_digit(word: str) -> bool:
    """Whether `word` is a part of a number that is said digit by digit."""
    return word in _DIGITS or bool(_NUMERIC.match(word))


def _is_number(word: str) -> bool:
    return word in _NUMBERS or bool(_NUMERIC.match(word))


def _size(words: list[str]) -> int:
    """How many words; of a script without spaces, how many characters."""
    return sum(len(word) if is_unspaced(word[-1]) else 1 for word in words)
