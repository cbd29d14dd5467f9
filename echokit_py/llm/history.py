"""The conversation of one device: whole turns in, messages that every server takes out. Does no I/O, knows no clock.

A turn changes the history only by whole units: a step of the model with all its calls, each with exactly one result.
Whatever the order of events, `render()` passes `message_rules.check`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from itertools import takewhile

from echokit_py.llm.base import Message, ToolCall
from echokit_py.llm.message_rules import check
from echokit_py.llm.turns import (
    StoredCall,
    Turn,
    Unit,
    append,
    as_note,
    clean,
    clean_arguments,
    clean_name,
    clean_result,
    fill,
    keep_heard,
    parse,
    shorten_ids,
    to_messages,
    to_text,
    unique_id,
)

__all__ = ["Form", "History", "Missing", "check"]

MAX_CHARS = 256_000
"""Of all past turns together: 64,000 tokens of English, half of what today's large models take, a quarter megabyte of
memory a device. Smaller models say so, and get fewer turns (`forms`). Enforced when a turn ends."""

MAX_UNANSWERED = 3
"""Questions in a row that got no answer. They are sent as one message; who isn't answered repeats himself."""

RECENT_IDS = 256
"""Ids that are not used again although their turn may be gone: a tool that outlived it may still answer."""


class Missing(StrEnum):
    """What stands for the result of a call that the tool itself has not answered."""

    CANCELLED = (
        "The user interrupted before the tool answered. Whether the call took effect is not known: outcome unknown."
    )
    TIMEOUT = "Error: the tool did not answer in time. Whether the call took effect is not known: outcome unknown."
    ERROR = "Error: no answer came from the tool. Whether the call took effect is not known: outcome unknown."


@dataclass(frozen=True, slots=True)
class Form:
    """A way to send the history. `turns` is the number of past turns in it."""

    name: str
    messages: list[Message]
    turns: int


class _Style(Enum):
    FULL = auto()
    PLAIN = auto()  # no reasoning; ids of nine letters and digits, as Mistral's templates demand
    TEXT = auto()  # no tool messages
    BRIEF = auto()  # no tool messages, their results cut


class History:
    """The turns of one device.

    Args:
        system: the system prompts; they go out as one message, always the first.
        few_shot: example turns (`dynamic_prompts`), always sent, before all others.
        max_turns: past turns that are kept, besides the current one.
    """

    def __init__(self, system: Sequence[Message] = (), few_shot: Sequence[Message] = (), max_turns: int = 10) -> None:
        self._pinned: list[Turn] = []  # the few-shot turns
        self._past: list[Turn] = []
        self._current: Turn | None = None
        self._max_turns = max_turns
        self._recent_ids: deque[str] = deque(maxlen=RECENT_IDS)
        texts, turns = parse([*system, *few_shot])
        self._system = "\n\n".join(texts)
        self._pinned = self._take_in(turns)

    @property
    def in_turn(self) -> bool:
        """Whether a turn has begun and not ended."""
        return self._current is not None

    @property
    def turns(self) -> int:
        """The number of past turns."""
        return len(self._past)

    def begin_turn(self, user_text: str) -> None:
        """Begin a turn with what the user said; one that is still open ends as if the user had interrupted it.

        Raises ValueError when `user_text` is blank: no server takes an empty question.
        """
        if not user_text.strip():
            raise ValueError("a turn needs a question")
        if self._current is not None:
            self.commit(heard="")
        self._current = Turn(clean(user_text.strip()))

    def ahead(self, user_text: str) -> History:
        """A copy in which a turn has begun with `user_text`: to see what its first request will be, before it is
        certain that it comes. Only to be rendered: its past turns are the same. Raises RuntimeError inside a turn,
        ValueError as `begin_turn` does.
        """
        if self._current is not None:
            raise RuntimeError("a turn is open")
        found = copy(self)
        found._past = list(self._past)
        found.begin_turn(user_text)
        return found

    def add_step(self, text: str, calls: Sequence[ToolCall] = (), reasoning: str = "") -> tuple[ToolCall, ...]:
        """Take in a whole step of the model. Returns its calls with the ids under which they are kept: run these.

        An id that is missing or was used before is replaced. A refused call may be given as well, to be answered with
        its error: what no server would take of its name and arguments is mended. Raises RuntimeError outside a turn.
        """
        turn, used = self._turn(), self._ids().union(self._recent_ids)
        unit = Unit(clean(text.strip()), reasoning=clean(reasoning))
        unique: list[ToolCall] = []
        for call in calls:
            call_id = unique_id(call.id, used)
            used.add(call_id)
            self._recent_ids.append(call_id)
            unique.append(replace(call, id=call_id))
            unit.calls.append(StoredCall(call_id, clean_name(call.name), clean_arguments(call.arguments)))
        if unit.text or unit.calls:
            turn.units.append(unit)
        return tuple(unique)

    def add_result(self, call_id: str, content: str) -> bool:
        """Store a call's result. Also after the turn has ended: a tool that outlived an interruption tells its outcome.

        Returns False, and changes nothing, when the call is not (or no longer) kept or has its result already.
        """
        for turn in self._all():
            for call in turn.calls:
                if call.id == call_id and not call.settled:
                    call.result, call.settled = clean_result(content), True
                    turn.size = turn.measure()
                    return True
        return False

    def commit(self, heard: str | None = None, missing: Missing = Missing.CANCELLED) -> None:
        """End the turn and keep it: all calls, and the text as far as the user heard it (None: all of it).

        A question without an answer is kept too and goes out together with the next one. `missing` stands for results
        that have not come. Does nothing outside a turn.
        """
        if self._close(heard, missing) is None:
            return
        unanswered = sum(1 for _ in takewhile(lambda turn: not turn.answered, reversed(self._past)))
        if unanswered > MAX_UNANSWERED:
            del self._past[-unanswered]
        self._trim()

    def abort(self, heard: str | None = "", missing: Missing = Missing.ERROR) -> None:
        """End a turn that failed: as `commit`, but when nothing was said and nothing called it leaves no trace.

        So a question that a server chokes on is not sent again with the next one.
        """
        turn = self._close(heard, missing)
        if turn is not None and not turn.answered:
            self._past.pop()
        self._trim()

    def reset(self) -> None:
        """Forget all turns; the prompts stay."""
        self._past, self._current = [], None

    def restore(self, messages: Sequence[Message]) -> None:
        """Replace the turns by those read from `messages`, mended wherever they are not valid. Their system messages,
        and what stands before the first question, are left out."""
        self.reset()
        self._past = self._take_in(parse(messages)[1])
        self._trim()

    def keep_last(self, turns: int) -> None:
        """Forget all but the last `turns` past turns: for a model that has no room for more."""
        self._past = self._newest(turns)

    def render(self, note: str = "") -> list[Message]:
        """The messages of the next request. `note` is a word of ours to the model at the end that is not kept.

        Raises RuntimeError outside a turn.
        """
        return self._compose(self._past, _Style.FULL, note)

    def forms(self, note: str = "", *, too_long: bool = False) -> Iterator[Form]:
        """The ladder for a server that refuses: `render()`, then simpler and simpler forms, each different, at most 7.

        With `too_long` (the context is exceeded) only the forms that are shorter than `render()`. Raises RuntimeError
        outside a turn.
        """
        seen: list[list[Message]] = [self.render(note)] if too_long else []
        for form in self._shorter(note) if too_long else self._simpler(note):
            if form.messages not in seen:
                seen.append(form.messages)
                yield form

    def _simpler(self, note: str) -> Iterator[Form]:
        yield self._form("as it is", self._past, _Style.FULL, note)
        yield self._form("without reasoning", self._past, _Style.PLAIN, note)
        yield self._form("tool steps as text", self._past, _Style.TEXT, note)
        yield self._form("fewer turns", self._newest(len(self._past) // 4), _Style.TEXT, note)
        yield from self._last(note)

    def _shorter(self, note: str) -> Iterator[Form]:
        turns = len(self._past)
        while turns > 0:  # by quarters: each try costs the user a round trip
            turns //= 4
            yield self._form("fewer turns", self._newest(turns), _Style.FULL, note)
        yield from self._last(note)

    def _last(self, note: str) -> Iterator[Form]:
        only = self._compose([], _Style.BRIEF, note)
        yield Form("only the current question", only, 0)
        if self._system:  # templates such as Gemma 2's know no system role
            text = f"{self._system}\n\n{only[-1]['content']}"
            yield Form("the system prompt inside the question", [{"role": "user", "content": text}], 0)

    def _form(self, name: str, past: Sequence[Turn], style: _Style, note: str) -> Form:
        return Form(name, self._compose(past, style, note), len(past))

    def _compose(self, past: Sequence[Turn], style: _Style, note: str) -> list[Message]:
        current = self._turn()
        parts: list[list[Message]] = []
        for turn in [*([] if style is _Style.BRIEF else self._pinned), *past, current]:
            last = turn is current
            if style in {_Style.TEXT, _Style.BRIEF}:
                parts.append(to_text(turn, current=last, brief=style is _Style.BRIEF))
            else:
                parts.append(to_messages(turn, current=last, reasoning=style is _Style.FULL))
        messages: list[Message] = [{"role": "system", "content": self._system}] if self._system else []
        for message in [message for part in parts for message in part] + as_note(note):
            append(messages, message)
        if style is _Style.PLAIN:
            shorten_ids(messages)
        return messages

    def _newest(self, turns: int) -> list[Turn]:
        return self._past[max(0, len(self._past) - turns) :]

    def _turn(self) -> Turn:
        if self._current is None:
            raise RuntimeError("no turn has begun")
        return self._current

    def _close(self, heard: str | None, missing: Missing) -> Turn | None:
        turn, self._current = self._current, None
        if turn is None:
            return None
        keep_heard(turn, heard)
        fill(turn, missing)
        for unit in turn.units:
            unit.reasoning = ""
        turn.size = turn.measure()
        self._past.append(turn)
        return turn

    def _trim(self) -> None:
        self.keep_last(self._max_turns)
        size = sum(turn.size for turn in self._past)
        while size > MAX_CHARS:
            size -= self._past.pop(0).size

    def _all(self) -> list[Turn]:
        return [*self._pinned, *self._past, *([self._current] if self._current else [])]

    def _ids(self) -> set[str]:
        return {call.id for turn in self._all() for call in turn.calls}

    def _take_in(self, turns: Sequence[Turn]) -> list[Turn]:
        """Turns of other origin, completed: every call with a result and an id of its own."""
        used = self._ids()
        for turn in turns:
            fill(turn, Missing.ERROR)
            for call in turn.calls:
                call.id = unique_id(call.id, used)
                used.add(call.id)
            turn.size = turn.measure()
        return list(turns)
