"""Assembles streamed tool calls, for every API alike: fragments in, whole calls and refusals out. Parses no events.

While the stream runs fragments are only filed; what they mean is decided once, at the end, when all of them are known
(`call_parts.py`). A call may run on two proofs: the stream ended normally, and its arguments are a JSON object.
"""

from __future__ import annotations

import uuid
from enum import Enum

from echokit_py.llm import arguments, names
from echokit_py.llm.base import Refusal, RefusedCall, ToolCall
from echokit_py.llm.call_parts import Call, Head, resolve
from echokit_py.llm.event_json import well_formed

MAX_CHARACTERS = 8 * 1024 * 1024
"""Arguments and names of one answer, all calls together; far more than any model writes."""

MAX_HEADS = 20_000
"""Fragments with a name or a new id in one answer (some servers repeat the name with each fragment)."""


class AssemblyError(ValueError):
    """The calls of an answer break a bound."""


class Ending(Enum):
    """How the stream ended, where nothing went wrong in it."""

    NORMAL = "normal"  # the server said so
    UNPROVEN = "unproven"  # the body ended cleanly, but nobody said that the answer is complete


class Assembler:
    """Takes fragments of calls in any order and form.

    The index tells calls apart where the server gives one, else the id; a fragment without either belongs to the call
    that was open last.
    """

    def __init__(self, offered: names.Offer | None) -> None:
        self._offered = offered
        self._heads: list[Head] = []
        self._at_index: dict[int, Head] = {}
        self._by_id: dict[str, Head] = {}
        self._last: Head | None = None
        self._characters = 0

    @property
    def empty(self) -> bool:
        """Whether no fragment of a call has come."""
        return not self._heads

    def add(self, index: int | None, call_id: str, name: str, fragment: str) -> None:
        """Take in one fragment; `index` None, a text "" where the server gave none. Raises AssemblyError."""
        head = self._at_index.get(index) if index is not None else self._last
        if call_id or name or head is None:
            head = self._head(index, call_id, name, open_one=bool(fragment))
            if head is None:
                return
        if fragment:
            head.pieces.append(fragment)
            self._count(fragment)
        self._last = head

    def put_whole(self, index: int, call_id: str, name: str, whole: str, *, cut: bool = False) -> None:
        """Take in a call, or its arguments, as an event gives them once more in full. The last one counts.

        `cut`: the server says of this very call that it is incomplete. Raises AssemblyError.
        """
        head = self._at_index.get(index)
        if head is None:
            head = self._open(index, call_id, name, None)
        head.id = head.id or call_id
        if not names.is_no_name(name, self._offered) and name not in head.names[-1:]:
            head.names.append(name)
        if not arguments.is_blank(whole):
            head.whole = whole
            self._count(whole)
        head.cut = head.cut or cut
        self._last = head

    def finish(self, end: Ending | Refusal) -> tuple[tuple[ToolCall, ...], tuple[RefusedCall, ...]]:
        """Decide what the fragments mean, and which calls may run. A Refusal as `end` voids them all.

        After an unproven end calls run only when every one has a complete, non-empty object.
        """
        calls: list[ToolCall] = []
        refused: list[RefusedCall] = []
        ids: set[str] = set()
        begun = resolve(self._heads, self._offered)
        # Arguments that no name claims may be those that a named call lacks: then nothing is not "no arguments".
        orphans = any(not call.names and not call.blank for call in begun)
        for call in begun:
            name = well_formed(names.settle(call.names, self._offered)) if call.names else ""
            read = self._read(call, name, end, orphans=orphans)
            if isinstance(read, Refusal):
                raw = call.whole if call.whole is not None else "".join(call.pieces)
                refused.append(RefusedCall(name, well_formed(raw), read))
            else:
                calls.append(ToolCall(_unique(call.id, ids), name, read))
        if end is Ending.UNPROVEN and refused:
            refused = [RefusedCall(one.name, one.raw, Refusal.STREAM_CUT) for one in refused]
            refused += [RefusedCall(one.name, one.arguments, Refusal.STREAM_CUT) for one in calls]
            calls = []
        return tuple(calls), tuple(refused)

    def _head(self, index: int | None, call_id: str, name: str, *, open_one: bool) -> Head | None:
        """Return where a fragment belongs that is the first of its index, or has an id or a name.

        None when it says nothing at all and `open_one` is false.
        """
        if names.is_no_name(name, self._offered):
            name = ""
        head = self._at_index.get(index) if index is not None else self._by_id.get(call_id, self._last)
        if head is None and index is not None:
            head = self._that_index_names(index, call_id, name)
        if head is None:
            return self._open(index, call_id, name, None) if call_id or name or open_one else None
        if head.may_end_before(index, call_id, name):
            return self._open(index, call_id, name, head)
        if call_id and not head.id:
            head.id = call_id
            self._by_id[call_id] = head
        if name and name not in head.names[-1:]:
            head.names.append(name)
            self._count(name)
        return head

    def _that_index_names(self, index: int, call_id: str, name: str) -> Head | None:
        """The call that a first fragment of `index` goes on with: the one with its id, or one without an index."""
        head = self._by_id.get(call_id) if call_id else self._last
        if head is None or name or (not call_id and head.index is not None):
            return None
        self._at_index[index] = head
        return head

    def _open(self, index: int | None, call_id: str, name: str, previous: Head | None) -> Head:
        if len(self._heads) >= MAX_HEADS:
            raise AssemblyError("too many calls in one answer")
        head = Head(index, previous, call_id, [name] if name else [])
        self._count(name)
        self._heads.append(head)
        if index is not None:
            self._at_index[index] = head
        if call_id:
            self._by_id[call_id] = head
        return head

    def _count(self, text: str) -> None:
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise AssemblyError("the calls of one answer are too long")

    def _read(self, call: Call, name: str, end: Ending | Refusal, *, orphans: bool) -> str | Refusal:
        """Return the arguments, as text, of a call that may run, or why it may not."""
        if isinstance(end, Refusal):
            return end
        if call.cut:
            return Refusal.TRUNCATED
        if not name or (self._offered is not None and name not in self._offered):
            return Refusal.UNKNOWN_TOOL if name else Refusal.NO_NAME
        required = orphans or bool(self._offered and self._offered[name])
        try:
            text = _read_arguments(call, nothing_required=not required)
        except arguments.ArgumentsError as error:
            return error.refusal
        if end is Ending.UNPROVEN and not arguments.read_object(text):
            return Refusal.STREAM_CUT
        return text


def _read_arguments(call: Call, *, nothing_required: bool) -> str:
    """Read the whole if there is one, else the fragments. Raises ArgumentsError."""
    pieces = call.pieces
    # Some gateways put an empty object into the last event although the fragments say more.
    if call.whole is not None and (call.whole.strip() != arguments.NO_ARGUMENTS or call.blank):
        pieces = [call.whole]
    return arguments.read_fragments(_pairs_joined(pieces), nothing_required=nothing_required)


def _pairs_joined(pieces: list[str]) -> list[str]:
    """Return the pieces, or their join where a server cut surrogate pairs in two. Raises ArgumentsError."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        mended = well_formed(text)
        if mended.count("\ufffd") > text.count("\ufffd"):
            raise arguments.ArgumentsError(Refusal.BAD_JSON, "the arguments hold half a character") from None
        return [mended]
    return pieces


def _unique(call_id: str, taken: set[str]) -> str:
    """Return the id, or a new one where it is missing or taken."""
    if not call_id or call_id in taken or well_formed(call_id) != call_id:
        call_id = f"call_{uuid.uuid4().hex[:24]}"
    taken.add(call_id)
    return call_id
