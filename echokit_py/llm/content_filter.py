"""Parts the content of an answer while it streams: visible text, reasoning in tags, calls written as text.

Runs no call it finds: a call written as text is withheld, never spoken and never guessed at.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum

from echokit_py.llm.names import Offer


class Kind(Enum):
    """What a piece of the content is."""

    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"
    HEADER = "header"  # of a Harmony message; says what the message is
    NOISE = "noise"  # a control token
    WAS_REASONING = "was_reasoning"  # the text so far was reasoning: its opening tag was in the prompt


@dataclass(frozen=True, slots=True)
class _Span:
    """What an opening marker opens. `end` None: to the end of the content; "": the marker stands alone."""

    kind: Kind
    end: str | None


_ALONE = _Span(Kind.NOISE, "")

# Formats in which models write reasoning and calls when their server doesn't parse them. Sources: the chat templates
# of the models named. Not here is what an answer may be made of: <answer>, <output>, <summary>, <analysis>, <plan>.
_OPENINGS: dict[str, _Span] = {
    "<think>": _Span(Kind.REASONING, "</think>"),  # DeepSeek, Qwen, GLM
    "<thinking>": _Span(Kind.REASONING, "</thinking>"),
    "<thought>": _Span(Kind.REASONING, "</thought>"),
    "[THINK]": _Span(Kind.REASONING, "[/THINK]"),  # Mistral
    "◁think▷": _Span(Kind.REASONING, "◁/think▷"),  # Kimi-VL, Kimi-Dev
    "<seed:think>": _Span(Kind.REASONING, "</seed:think>"),  # Seed-OSS
    "<|START_THINKING|>": _Span(Kind.REASONING, "<|END_THINKING|>"),  # Cohere Command A
    "<reasoning>": _Span(Kind.REASONING, "</reasoning>"),  # models tuned at home by the usual recipe for GRPO
    "<reflection>": _Span(Kind.REASONING, "</reflection>"),  # Reflection 70B
    "<scratchpad>": _Span(Kind.REASONING, "</scratchpad>"),  # what vendors advise to ask models for in prompts
    "</think>": _Span(Kind.WAS_REASONING, ""),
    "◁/think▷": _Span(Kind.WAS_REASONING, ""),
    "</seed:think>": _Span(Kind.WAS_REASONING, ""),
    "<tool_call>": _Span(Kind.CALL, "</tool_call>"),  # Hermes, Qwen, GLM
    "<tool_calls>": _Span(Kind.CALL, "</tool_calls>"),
    "<function_call>": _Span(Kind.CALL, "</function_call>"),
    "<function_calls>": _Span(Kind.CALL, "</function_calls>"),
    "<function=": _Span(Kind.CALL, "</function>"),  # Llama 3.1, Qwen3-Coder
    "<invoke ": _Span(Kind.CALL, "</invoke>"),
    "<seed:tool_call>": _Span(Kind.CALL, "</seed:tool_call>"),  # Seed-OSS
    "<|START_ACTION|>": _Span(Kind.CALL, "<|END_ACTION|>"),  # Cohere Command A
    "<minimax:tool_call>": _Span(Kind.CALL, "</minimax:tool_call>"),
    "<|tool_calls_section_begin|>": _Span(Kind.CALL, "<|tool_calls_section_end|>"),  # Kimi K2
    "<|tool_call_begin|>": _Span(Kind.CALL, "<|tool_call_end|>"),
    "<｜tool▁calls▁begin｜>": _Span(Kind.CALL, "<｜tool▁calls▁end｜>"),  # DeepSeek
    "<|python_tag|>": _Span(Kind.CALL, None),  # Llama 3
    "<|tool_call|>": _Span(Kind.CALL, None),  # Granite, Phi-4
    "[TOOL_CALLS]": _Span(Kind.CALL, None),  # Mistral
    "[TOOL_REQUEST]": _Span(Kind.CALL, "[END_TOOL_REQUEST]"),  # LM Studio
    "```tool_code": _Span(Kind.CALL, "```"),  # Gemma
    "```tool_call": _Span(Kind.CALL, "```"),
    "<|start|>": _Span(Kind.HEADER, "<|message|>"),  # Harmony (gpt-oss)
    "<|channel|>": _Span(Kind.HEADER, "<|message|>"),
    "</tool_call>": _ALONE,
    "<|call|>": _ALONE,
    "<|end|>": _ALONE,
    "<|return|>": _ALONE,
    "<|im_end|>": _ALONE,
    "<|eot_id|>": _ALONE,
    "<|eom_id|>": _ALONE,
    "<|START_RESPONSE|>": _ALONE,
    "<|END_RESPONSE|>": _ALONE,
}
_OPENING = re.compile("|".join(re.escape(marker) for marker in sorted(_OPENINGS, key=len, reverse=True)))
_FIRST_CHARACTERS = frozenset(marker[0] for marker in _OPENINGS)
_BEGINNINGS = frozenset(marker[:length] for marker in _OPENINGS for length in range(1, len(marker)))
_LONGEST = max(map(len, _OPENINGS))

# A tag of reasoning within these is talked about: "models think between `<think>` and `</think>`".
_QUOTES = {"`": "`", '"': '"', "'": "'", "‘": "’", "“": "”", "„": "“", "«": "»", "「": "」"}

_MAX_HEADER = 200
_MAX_BARE = 64 * 1024
"""An object that begins an answer is withheld up to this length; a longer one is no call."""

# The keys by which a call written as a bare object begins (Llama 3, small models without a template of their own).
_BARE_CALL = re.compile(r'\{\s*"(?:name|function|tool|tool_name|type|parameters|arguments)"')


class ContentFilter:
    """Takes content in pieces of any size; each piece of the result is certain. Linear time."""

    def __init__(self, offered: Offer | None) -> None:
        self._pythonic = tuple(f"[{name}(" for name in offered or ())  # Llama 3.2 and 4: [set_lamp(room="hall")]
        self._pending = ""
        self._span: _Span | None = None
        self._at_start = True  # nothing but white space so far
        self._before = ""  # the last character of the text, if nothing else came after it
        self._mentioned = False  # a tag of reasoning was talked about
        self._bare: list[str] | None = None  # what may be a call written as a bare object
        self._bare_length = 0
        self._reasoned = False

    def feed(self, text: str) -> list[tuple[Kind, str]]:
        """Take in content; return what is certain by now."""
        found: list[tuple[Kind, str]] = []
        self._pending += text
        while self._pending and self._step(found):
            pass
        return found

    def flush(self) -> list[tuple[Kind, str]]:
        """Take the end of the content; return what was withheld."""
        found: list[tuple[Kind, str]] = []
        rest, self._pending = self._pending, ""
        if self._bare is not None:
            self._release_bare(found, rest)
        elif rest:
            kind = Kind.TEXT if self._span is None else self._span.kind
            found.append((Kind.CALL if kind is Kind.HEADER else kind, rest))
        return found

    def _step(self, found: list[tuple[Kind, str]]) -> bool:
        """Take one decision about the pending text. Returns whether another can be taken."""
        if self._bare is not None:
            return self._collect_bare(found)
        if self._span is not None:
            return self._inside(self._span, found)
        if self._at_start:
            held = self._begins_with_call()
            if held is None:
                return False
            if held:
                return True
        return self._outside(found)

    def _outside(self, found: list[tuple[Kind, str]]) -> bool:
        opening = _OPENING.search(self._pending)
        if opening is None:
            keep = self._possible_opening()
            self._text(found, self._pending[:keep])
            self._pending = self._pending[keep:]
            return False
        self._text(found, self._pending[: opening.start()])
        self._pending = self._pending[opening.start() :]
        span, marker = _OPENINGS[opening.group()], opening.group()
        mentioned = self._mentions(span, marker)
        if mentioned is None:
            return False
        self._pending = self._pending[len(marker) :]
        if mentioned:
            self._mentioned = True
            self._text(found, marker)
            return True
        self._before = ""
        if span.kind is Kind.WAS_REASONING:
            if not self._reasoned:
                found.append((Kind.WAS_REASONING, ""))
        elif span.kind is not Kind.NOISE:
            self._span = span
            if span.kind is Kind.CALL:
                found.append((Kind.CALL, marker))
        self._reasoned = self._reasoned or span.kind in (Kind.REASONING, Kind.WAS_REASONING)
        return True

    def _mentions(self, span: _Span, marker: str) -> bool | None:
        """Whether the marker that the pending text begins with is only talked about; None when it is too early to tell.

        A closing tag alone may follow reasoning that ends in a quotation, so it is one only after an opening one.
        """
        closing = span.kind is Kind.WAS_REASONING
        if self._before not in _QUOTES or not (closing or span.kind is Kind.REASONING):
            return False
        if closing and not self._mentioned:
            return False
        if len(self._pending) == len(marker):
            return None
        return self._pending[len(marker)] == _QUOTES[self._before]

    def _possible_opening(self) -> int:
        """Return where a marker may begin that is not all there yet; the length of the pending text if nowhere."""
        length = len(self._pending)
        for start in range(max(0, length - _LONGEST), length):
            if self._pending[start] in _FIRST_CHARACTERS and self._pending[start:] in _BEGINNINGS:
                return start
        return length

    def _inside(self, span: _Span, found: list[tuple[Kind, str]]) -> bool:
        if span.kind is Kind.HEADER:
            return self._header(found)
        end = self._pending.find(span.end) if span.end else -1
        if end < 0:
            kept = len(span.end) - 1 if span.end else 0
            certain = max(0, len(self._pending) - kept)
            found.append((span.kind, self._pending[:certain]))
            self._pending = self._pending[certain:]
            return False
        assert span.end
        marker = span.end if span.kind is Kind.CALL else ""
        found.append((span.kind, self._pending[:end] + marker))
        self._pending = self._pending[end + len(span.end) :]
        self._span = None
        return True

    def _header(self, found: list[tuple[Kind, str]]) -> bool:
        header, message, rest = self._pending.partition("<|message|>")
        if not message and len(header) <= _MAX_HEADER:
            return False
        self._pending = rest
        self._span = None
        if " to=" in header or not message:
            found.append((Kind.CALL, header + message))
            self._span = _Span(Kind.CALL, "<|call|>")
        elif "analysis" in header:
            self._span = _Span(Kind.REASONING, "<|end|>")
        return True

    # A call as a bare object, or in Python's notation, at the start of the content

    def _begins_with_call(self) -> bool | None:
        """Whether the content begins with a call; None when it is too early to tell."""
        begun = self._pending.lstrip()
        if not begun:
            return False
        if begun[0] == "[":
            return self._begins_pythonic(begun)
        if begun[0] != "{":
            return False
        if begun.count('"', 0, 40) < 2 and len(begun) < 40:
            return None
        if _BARE_CALL.match(begun) is None:
            return False
        self._bare = []
        return True

    def _begins_pythonic(self, begun: str) -> bool | None:
        if begun.startswith(self._pythonic):
            self._span = _Span(Kind.CALL, None)
            return True
        return None if any(call.startswith(begun) for call in self._pythonic) else False

    def _collect_bare(self, found: list[tuple[Kind, str]]) -> bool:
        assert self._bare is not None
        self._bare.append(self._pending)
        self._bare_length += len(self._pending)
        self._pending = ""
        if self._bare_length > _MAX_BARE:
            self._release_bare(found, "")
        return False

    def _release_bare(self, found: list[tuple[Kind, str]], rest: str) -> None:
        text = "".join(self._bare or ()) + rest
        self._bare = None
        if _is_written_call(text):
            found.append((Kind.CALL, text))
        else:
            self._text(found, text)

    def _text(self, found: list[tuple[Kind, str]], text: str) -> None:
        if text:
            found.append((Kind.TEXT, text))
            self._before = text[-1]
            self._at_start = self._at_start and text.isspace()


def _is_written_call(text: str) -> bool:
    """Whether `text` begins with an object that names a function and holds its arguments."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return False
    function = value.get("function")
    if isinstance(function, dict):
        value = function
    has_name = any(isinstance(value.get(key), str) for key in ("name", "function", "tool", "tool_name"))
    return has_name and any(isinstance(value.get(key), dict | str) for key in ("arguments", "parameters"))
