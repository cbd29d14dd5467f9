"""Decides which fragments of streamed tool calls make one call. Pure; reads no arguments and runs nothing.

`tool_calls.py` files the fragments under heads while the stream runs; here, at the end, heads become calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from echokit_py.llm import arguments, names

_ENOUGH_NAMES = 16
"""Of a name that a server repeats with each fragment, these many pieces say all."""


@dataclass(slots=True, eq=False)
class Head:
    """Fragments that certainly belong together: one with a name or an id, and those after it that have none.

    `previous` is the head that it goes on with, if it is no call of its own. `whole` are the arguments once more, from
    an event that holds all of them; `cut` says that the server calls them incomplete.
    """

    index: int | None
    previous: Head | None
    id: str = ""
    names: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    whole: str | None = None
    cut: bool = False

    def may_end_before(self, index: int | None, call_id: str, name: str) -> bool:
        """Whether a fragment with this id and name could be the first of another call. Decided for good at the end."""
        if call_id and call_id == self.id:
            return bool(name and self.names and self.names[-1] != name)
        another_id = index is None and bool(call_id and self.id)
        return another_id or bool(name and self.names)


class Call:
    """A call as it is put together from heads."""

    def __init__(self, head: Head) -> None:
        self.id = head.id
        self.names = list(head.names)
        self.pieces = list(head.pieces)
        self.whole = head.whole
        self.cut = head.cut
        self._known = set(head.names)
        self._closing = arguments.Closing()
        self._looked_at = 0  # pieces that the two before and after have seen
        self._length = 0
        self._blank = True

    @property
    def begun(self) -> bool:
        """Whether there is anything of a call."""
        return bool(self.id or self.names or self.pieces or self.whole)

    @property
    def blank(self) -> bool:
        """Whether no arguments came."""
        self._look()
        return self._blank

    @property
    def complete(self) -> bool:
        """Whether the value of the arguments has closed."""
        self._look()
        return self._closing.closed

    def says(self, text: str) -> bool:
        """Whether the arguments are `text`."""
        self._look()
        return self._length == len(text) and "".join(self.pieces) == text

    def has_names(self, other: Iterable[str]) -> bool:
        """Whether all these pieces of names came before."""
        return self._known.issuperset(other)

    def go_on(self, head: Head) -> None:
        """Add what `head` has; arguments that only say again what is there are passed over."""
        self.id = self.id or head.id
        if len(self.names) < _ENOUGH_NAMES or not self.has_names(head.names):
            self.names += head.names
            self._known.update(head.names)
        if head.id or not self.complete or not self.says("".join(head.pieces)):
            self.pieces += head.pieces
        self.whole = head.whole or self.whole
        self.cut = self.cut or head.cut

    def _look(self) -> None:
        for place in range(self._looked_at, len(self.pieces)):
            piece = self.pieces[place]
            self._length += len(piece)
            self._blank = self._blank and arguments.is_blank(piece)
            self._closing.feed(piece)
        self._looked_at = len(self.pieces)


def resolve(heads: Iterable[Head], offered: names.Offer | None) -> list[Call]:
    """Return the calls that the heads make, in the order in which they were opened."""
    calls: list[Call] = []
    call_of: dict[Head, Call] = {}
    for head in heads:
        call = call_of[head.previous] if head.previous is not None else None
        if call is not None and _goes_on(head, call, offered):
            call.go_on(head)
        else:
            call = Call(head)
            calls.append(call)
        call_of[head] = call
    return [call for call in calls if call.begun]


def _goes_on(head: Head, call: Call, offered: names.Offer | None) -> bool:
    """Whether `head` goes on with `call`, instead of being a call of its own."""
    new_id = bool(head.id and call.id and head.id != call.id)
    text = "".join(head.pieces)
    if not head.names:
        # An id that never gets a name names no call: it is one that the server changes with every fragment.
        return not call.complete or arguments.is_blank(text)
    if new_id and head.index is None:
        return False
    repeated = call.has_names(head.names)
    if call.complete:
        same_id = bool(head.id) and head.id == call.id
        return repeated and not new_id and (same_id or arguments.is_blank(text) or call.says(text))
    return repeated or _names_go_on(head, call, offered, new_id=new_id)


def _names_go_on(head: Head, call: Call, offered: names.Offer | None, *, new_id: bool) -> bool:
    """Whether the names of `head` go on with those of `call`, whose arguments are open or have not begun."""
    if offered is None:
        return call.blank and not new_id
    if new_id and all(names.settle(pieces, offered) in offered for pieces in (call.names, head.names)):
        return False  # both stand for themselves, and the ids tell them apart
    return names.may_belong_together([*call.names, *head.names], offered)
