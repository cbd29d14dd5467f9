"""Takes the marks of Markdown and HTML out of a piece of text and leaves its words. Pure and stateless (see speech)."""

from __future__ import annotations

import html
import re

from echokit_py.text.latex import plain

_TAG_NAMES = (
    "a|abbr|answer|b|big|blockquote|body|br|button|center|cite|code|col|dd|del|details|div|dl|dt|em|figure|font|footer"
    "|h[1-6]|head|header|hr|html|i|img|input|ins|kbd|label|li|main|mark|nav|ol|p|pre|q|ruby|rp|rt|s|samp|section|small"
    "|span|strike|strong|sub|summary|sup|table|tbody|td|tfoot|th|thead|tr|tt|u|ul|var|video|wbr"
)
# Attributes must look like attributes: "a<b and c>d" has no tag in it.
_TAG = re.compile(rf"</?(?:{_TAG_NAMES})(?:\s+[\w:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))*\s*/?>", re.IGNORECASE)
_ATTRIBUTES = r"(?:\s+[\w:-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))?)*"
# Tags that we don't know the names of: they have attributes, or close themselves or another one.
_OTHER_TAG = re.compile(rf"<([a-z][\w:-]{{0,30}})({_ATTRIBUTES})\s*(/?)>", re.IGNORECASE)
_CLOSING_TAG = re.compile(r"</([a-z][\w:-]{0,30})\s*>", re.IGNORECASE)
# "The `<b>` tag": what stands in code marks is talked about.
_QUOTED_TAG = re.compile(r"`</?([a-z][\w:-]{0,30})\s?/?>`", re.IGNORECASE)
_KEY_NAME = re.compile(r"(?<!\w)<(/?[^\W\d][\w +-]{0,30})>")  # "Press <Enter>"

_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])")
_LINK_TARGET = re.compile(r"^\s*\[[^\]^][^\]]*\]:\s*\S+.*$", re.MULTILINE)
_FOOTNOTE = re.compile(
    r"\[\^[^\]\s]+\]:?|(?<=[^\s\[\]])(?:\[\d{1,3}(?:[,–-]\s*\d{1,3})*\])+|【[^】]{0,40}†[^】]{0,40}】"
)
# The target of a link whose text began in the piece before, or that is cut off itself.
_LINK_END = re.compile(r"\]\([^\s()]*(?:\([^\s()]*\)[^\s()]*)*(?:\)|\Z)")
# What an address does not hold; Chinese, Japanese and Korean put no space around one.
NO_ADDRESS = "\\s<>\"'`\\]}\u2e80-\u9fff\uac00-\ud7a3\uff00-\uffef"
ADDRESS_START = r"(?<![a-z0-9])(?:[a-z][a-z0-9+.-]{1,15}://|www\.|mailto:)"
_ADDRESS = re.compile(f"<?{ADDRESS_START}[^{NO_ADDRESS}]+>?", re.IGNORECASE)
_MAIL = re.compile(r"<([^\s<>@]{1,64}@[^\s<>@]{1,190})>")
_HOST = re.compile(r"(?:[a-z0-9+.-]+://|mailto:)?(?:[^/@]*@)?(?:www\.)?([^/:?#]*)", re.IGNORECASE)

_FORMULA = re.compile(
    r"\\\((.{1,300}?)\\\)|(?<![\w$\\])\$(?=[^\s$])((?:[^$\n]{0,300}[^\s$\\])?)\$(?![\w$])",
    re.DOTALL,
)
# LaTeX without its dollar signs: "\\boxed{42}".
_COMMAND = re.compile(r"\\[A-Za-z]+\*?(?:\{[^{}\n]*\}){1,2}")
# ":smile:"
_SHORTCODE = re.compile(r"(?<!\S):[a-z][a-z0-9_+-]{1,30}:(?=[\s.,!?]|$)")
_ARROW = re.compile(r"(?<!\S)(?:<?[-=]{1,3}>|<[-=]{1,3})(?!\S)")
_HIGHLIGHT = re.compile(r"==(?=[^\s=])([^=\n]{1,200})==")
_SMILEY = re.compile(r"(?<!\S)(?:[:;]['’]?-?[)(\[\]DPp]+|<3+|\^_?\^)(?=[\s.,!?]|$)")

_LINE_MARKS = re.compile(r"^\s*(?:>\s*)*(?:#{1,6}(?=\s|$)\s*|(?:[-*+•◦▪‣·●○■□–]\s+)+)?(?:\[[ xX]\]\s+)?", re.MULTILINE)
_RULE = re.compile(r"^\s*(?:[-*_=]\s*){3,}$|^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$", re.MULTILINE)
_TABLE_ROW = re.compile(r"^\s*\|(.*?)\|?\s*$", re.MULTILINE)
# The rest of a row that was parted at a sentence's end inside a cell.
_ROW_END = re.compile(r"(?<=\S)\s\|$", re.MULTILINE)

_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_TIMES = re.compile(r"(?<=\d)\s?\*\s?(?=\d)|(?<=[\w)]) \* (?=[\w(])")
_EMPHASIS = re.compile(r"\*+|~~+|`+|(?<![^\W_])_+|_+(?![^\W_])")
_LONE_HASH = re.compile(r"(?<!\S)#+(?!\S)|(?<!\w)#(?=[^\W\d])")


def words_of(text: str) -> str:
    """Return `text` without its marks; line breaks stay. Blocks of code and formulas and comments are cut out before.

    `text` has no runs of white space (`speech` sees to it): the patterns here would be slow on long ones.
    """
    text = _FORMULA.sub(lambda found: plain(found[1] or found[2]), text)
    text = _COMMAND.sub(lambda found: plain(found[0]), text)
    text = _without_links(text)
    text = _KEY_NAME.sub(r"\1", _without_tags(_QUOTED_TAG.sub(r"\1", text)))
    text = html.unescape(text)
    text = _SHORTCODE.sub(" ", _SMILEY.sub(" ", _ARROW.sub(" ", text)))
    text = _HIGHLIGHT.sub(r"\1", text)
    text = _LINE_MARKS.sub("", _RULE.sub("", text))
    text = _ROW_END.sub("", _TABLE_ROW.sub(_cells, text)).replace(" | ", ", ")
    text = _TIMES.sub(" × ", _ESCAPE.sub(r"\1", text))
    text = _EMPHASIS.sub("", text)
    return _LONE_HASH.sub("", text).replace("_", " ").replace("\\", " ")


def _without_tags(text: str) -> str:
    if "<" not in text:
        return text
    text = _TAG.sub(" ", text)
    closed = {name.lower() for name in _CLOSING_TAG.findall(text)}

    def words(found: re.Match[str]) -> str:
        name, attributes, alone = found.groups()
        return " " if "=" in attributes or alone or name.lower() in closed else found[0]

    return _CLOSING_TAG.sub(" ", _OTHER_TAG.sub(words, text))


def _without_links(text: str) -> str:
    """Links keep their text; an address on its own keeps the name of its host: nobody can take down the rest by ear."""
    text = _FOOTNOTE.sub("", _LINK_TARGET.sub("", text))
    text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))  # twice: a picture may be the text of a link
    return _ADDRESS.sub(_host, _MAIL.sub(r"\1", _LINK_END.sub("", text)))


def _host(found: re.Match[str]) -> str:
    address = found[0].strip("<>")
    bare = address.rstrip(".,;:!?")
    while bare.endswith(")") and bare.count("(") < bare.count(")"):  # the bracket around it
        bare = bare[:-1].rstrip(".,;:!?")
    host = _HOST.match(bare)
    return (host[1] if host else "") + address[len(bare) :]


def _cells(found: re.Match[str]) -> str:
    return ", ".join(cell for cell in (part.strip() for part in found[1].split("|")) if cell)
