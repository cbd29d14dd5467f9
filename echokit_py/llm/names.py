"""Settles which offered tool a streamed name means. Guesses no near names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from echokit_py.llm.base import Tool

Offer = Mapping[str, bool]
"""The tools that may run: name → whether its schema requires at least one argument."""

MAX_NAME_CHARACTERS = 256
"""What is longer is no name: APIs allow 64 characters, MCP servers seldom use more than 128."""

_NO_NAMES = frozenset({"null", "None", "undefined"})
"""What servers write for "no name here" when they forget that it is a string."""


def offer(tools: Iterable[str | Tool] | None) -> Offer | None:
    """Return what is known of the offered tools; None stays None (nothing is known, every name passes).

    For tools given by name alone it is taken that they require nothing: their own schema check comes later.
    """
    if tools is None:
        return None
    return {
        tool if isinstance(tool, str) else tool.name: not isinstance(tool, str)
        and bool(tool.parameters.get("required"))
        for tool in tools
    }


def is_no_name(piece: str, offered: Offer | None) -> bool:
    """Whether `piece` says nothing: empty, or a written null that no tool is called."""
    return not piece or (piece in _NO_NAMES and (offered is None or piece not in offered))


def settle(pieces: Sequence[str], offered: Offer | None) -> str:
    """Return the name that `pieces` (not empty, in order) spell.

    A server may split a name over fragments, repeat it with each, or send it growing. Of these readings the one that
    leads to an offered tool is taken, a repeat before a join. Where none does, the name is returned as it would be
    read without knowing the tools: it is unknown then, and the caller says so.
    """
    plain = _fold(pieces)
    if offered is None or plain in offered:
        return plain
    reached = [name for name in _readings(pieces, offered) if name in offered]
    return reached[0] if reached else plain


def may_belong_together(pieces: Sequence[str], offered: Offer | None) -> bool:
    """Whether `pieces` can be one name, or the beginning of one. True when nothing is known of the tools."""
    return offered is None or bool(_readings(pieces, offered)) or len(set(pieces)) == 1


def _fold(pieces: Sequence[str]) -> str:
    """Join the pieces; one that begins with all that came before (a repeat, a snapshot) stands for it."""
    name = ""
    for piece in pieces:
        name = piece if piece.startswith(name) else name + piece
        if len(name) > MAX_NAME_CHARACTERS:
            break
    return name


def _readings(pieces: Sequence[str], offered: Offer) -> list[str]:
    """All names the pieces can mean that are beginnings of offered ones, likelier ones first."""
    names = [""]
    for piece in pieces:
        candidates = [piece for name in names if piece.startswith(name)]
        candidates += [name + piece for name in names]
        # A late repeat of the whole, after a join: "find_", "train", "find_train".
        names = [name for name in dict.fromkeys(candidates) if any(known.startswith(name) for known in offered)]
    return names
