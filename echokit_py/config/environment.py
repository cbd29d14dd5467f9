"""Puts environment variables in the place of `${NAME}` in the texts of a document. Pure: the variables are handed in.

- `${NAME}` is replaced wherever a text is a setting, also inside a larger text: `"http://${HOST}:9000/v1"`.
- Any other `$` stays as it is, also `$NAME`, `$$` and a lone `$`: passwords have them, and a shell's rules surprise.
- Texts written for a model (`content` of a prompt, `prompt`, `instructions`) are left alone: they may explain a shell.
- What a variable holds isn't looked at again: a `${` inside it stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from echokit_py.config.positions import KeyPath
from echokit_py.text.unicode import is_utf8

TEXTS_FOR_MODELS = frozenset({"content", "prompt", "prompts", "instructions"})

_REFERENCE = re.compile(r"\$\{([^}]*)(\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Expansion:
    """A document with its variables filled in.

    Attributes:
        document: a copy; texts whose variable is missing stay as they were.
        filled: the paths of texts that a variable changed; their values aren't shown in messages.
        mistakes: paths and sentences about variables that can't be filled in.
        empty: paths and names of variables that exist and hold nothing.
    """

    document: dict[str, Any]
    filled: frozenset[KeyPath]
    mistakes: Mapping[KeyPath, str]
    empty: Mapping[KeyPath, str]


@dataclass(slots=True)
class _Expander:
    environ: Mapping[str, str]
    filled: set[KeyPath] = field(default_factory=set)
    mistakes: dict[KeyPath, str] = field(default_factory=dict)
    empty: dict[KeyPath, str] = field(default_factory=dict)

    def value(self, value: Any, path: KeyPath) -> Any:
        if isinstance(value, dict):
            return {key: self.value(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, str) and "${" in value and path[-1] not in TEXTS_FOR_MODELS:
            return self.text(value, path)
        return value

    def text(self, text: str, path: KeyPath) -> str:
        self.filled.add(path)
        return _REFERENCE.sub(lambda match: self.reference(match, path), text)

    def reference(self, match: re.Match[str], path: KeyPath) -> str:
        name, closed = match[1], match[2]
        if not closed:
            self.mistakes.setdefault(path, 'a "${" has no closing "}"; write ${NAME} for an environment variable')
        elif not _NAME.fullmatch(name):
            problem = "isn't the name of an environment variable: letters, digits and _, nothing else"
            self.mistakes.setdefault(path, f"${{{name[:40]}}} {problem}")
        elif name not in self.environ:
            self.mistakes.setdefault(
                path, f"the environment variable {name} is not set; set it (export {name}=…) and start again"
            )
        elif not is_utf8(self.environ[name]):
            self.mistakes.setdefault(path, f"what the environment variable {name} holds isn't UTF-8; set it again")
        else:
            if not self.environ[name]:
                self.empty[path] = name
            return self.environ[name]
        return match[0]


def expand(document: dict[str, Any], environ: Mapping[str, str]) -> Expansion:
    """Fill in the variables of `document`, which isn't changed."""
    expander = _Expander(environ)
    expanded = expander.value(document, ())
    return Expansion(expanded, frozenset(expander.filled), expander.mistakes, expander.empty)
