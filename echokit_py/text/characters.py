"""Which characters end, open, close and join pieces of text, in the scripts we know. Looks at one character only."""

from __future__ import annotations

import unicodedata

# Ends of sentences that white space has to follow.
SPACED_ENDS = ".!?…‼⁇⁈⁉"
# Ends of sentences that stand alone: Chinese and Japanese, Devanagari and its sisters, Arabic and Urdu, Thai, Khmer,
# Burmese, Ethiopic, Armenian, Tibetan.
FULL_ENDS = "。！？｡．।॥؟۔๚๛។៕။።፧։།"
ENDS = SPACED_ENDS + FULL_ENDS

# Where a long sentence may be parted: after these and white space, or after these as they are.
SPACED_PAUSES = ",;:—–"
FULL_PAUSES = "，、；：､،؛၊፣"

NEWLINES = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"

PAIRS = {
    "(": ")",
    "[": "]",
    "{": "}",
    "“": "”",
    "„": "“",
    "«": "»",
    "‹": "›",
    "「": "」",
    "『": "』",
    "（": "）",
    "［": "］",
    "【": "】",
    "《": "》",
    "〈": "〉",
    "»": "«",
    "›": "‹",
    '"': '"',
    "`": "`",
}
# Quotes that open in one language and close in another.
TWO_WAY_QUOTES = "»›"
CLOSERS = frozenset(PAIRS.values())
# What may stand between the full stop and the white space: ends of quotes, brackets and emphasis, footnote digits.
TRAILERS = CLOSERS | frozenset("'’*_~¹²³⁴⁵⁶⁷⁸⁹⁰†‡")

# Scripts that put no spaces between words: any place between two letters will do, if it must be.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x9FFF),  # CJK, kana, Bopomofo and their punctuation
    (0xF900, 0xFAFF),
    (0xFF00, 0xFFEF),
    (0x20000, 0x3FFFF),
)
_THAI = (0x0E00, 0x0E7F)
_COMBINING = ("Mn", "Mc", "Me", "Cf")


def is_unspaced(char: str) -> bool:
    """Whether `char` belongs to a script without spaces between words."""
    code = ord(char)
    return code >= _UNSPACED[0][0] and any(low <= code <= high for low, high in _UNSPACED)


def is_cjk(char: str) -> bool:
    """Whether `char` is Chinese or Japanese, punctuation included."""
    return ord(char) >= 0x2E80 and is_unspaced(char)


def is_hiragana(char: str) -> bool:
    """Whether `char` is hiragana, the script of Japanese particles."""
    return "\u3040" <= char <= "\u309f"


def is_thai(char: str) -> bool:
    """Whether `char` is Thai, a script that ends its sentences with a space."""
    return _THAI[0] <= ord(char) <= _THAI[1]


def is_attached(char: str) -> bool:
    """Whether `char` can't begin a piece: it modifies the one before it."""
    return unicodedata.category(char) in _COMBINING
