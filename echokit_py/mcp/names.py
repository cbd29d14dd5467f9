"""Under which name each tool of each MCP server is offered to the model. Pure; knows names only, no schemas.

The rule:

- A tool keeps its name when it fits `^[a-zA-Z0-9_-]{1,64}$` and no other tool has it.
- Otherwise the server's name is put before it, and what doesn't fit becomes `_`. In a clash *every* one of them gets
  its server's name: if one kept the plain name, that would mean another tool as soon as another server is there.
- Where that is cut to 64 characters, or is a name that is there already, a short hash of both names follows.

So the names depend on nothing but which tools there are; not on the order of servers, tools or connections. They are
computed from what each server last listed, also when it is down by now, and a name that has clashed once stays so: a
server that goes and comes back changes no name, and no name ever comes to mean another tool.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set

from echokit_py.tools.base import NAME

MAX_LENGTH = 64

_NOT_FITTING = re.compile(r"[^a-zA-Z0-9_-]+")
_HASH_LENGTHS = (6, 12, 32)  # longer only where somebody chose names to collide

Key = tuple[str, str]
"""The name of a server (each has its own), and what it calls a tool."""


def clashes(tools: Iterable[Key]) -> frozenset[str]:
    """The names that more than one server has."""
    counted = Counter(name for _, name in set(tools))
    return frozenset(name for name, number in counted.items() if number > 1)


def exposed_names(tools: Iterable[Key], clashed: Set[str] = frozenset()) -> Mapping[Key, str]:
    """The name of each tool for the model: one-to-one, each fits `tools.base.NAME`.

    Args:
        tools: all tools there are; the order doesn't matter.
        clashed: names that are not to be used as they are, besides those that clash now.
    """
    keys = sorted(set(tools))
    clashed = clashed | clashes(keys)
    plain = {key: key[1] for key in keys if NAME.fullmatch(key[1]) and key[1] not in clashed}
    others = {key: _NOT_FITTING.sub("_", "_".join(key)) for key in keys if key not in plain}
    taken = set(plain.values())
    counted = Counter(others.values())
    # Whoever needs no hash comes first, so that a hash never takes a name from it.
    short = {
        key: name
        for key, name in others.items()
        if len(name) <= MAX_LENGTH and counted[name] == 1 and name not in taken
    }
    taken.update(short.values())
    hashed: dict[Key, str] = {}
    for key in sorted(others.keys() - short.keys()):
        hashed[key] = _with_hash(key, others[key], taken)
        taken.add(hashed[key])
    return plain | short | hashed


def _with_hash(key: Key, name: str, taken: Set[str]) -> str:
    digest = hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()
    candidates = (f"{name[: MAX_LENGTH - length - 1]}_{digest[:length]}" for length in _HASH_LENGTHS)
    return next(candidate for candidate in candidates if candidate not in taken)
