"""Writes out the references (`$ref`) of a tool's schema, which many LLM servers don't follow. Pure; fetches nothing.

A definition that holds itself can't be written out: it is cut where it comes again.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from echokit_py.log import sanitize
from echokit_py.mcp.schema_words import LISTS, MAPS, NOTES, SINGLE, Schema

MAX_DEPTH = 60  # of tables in each other; who needs more describes a document, not arguments
MAX_SCHEMAS = 5000  # written out; definitions that hold each other twice grow without end


def inlined(schema: Schema) -> tuple[Schema, bool]:
    """Return a copy without `$ref` and definitions, and whether something was cut that holds itself.

    Raises:
        ValueError: a sentence; a reference leads nowhere or out of the schema, or the whole becomes too large.
    """
    inliner = _Inliner(schema)
    return inliner.table(schema, frozenset({"#"}), 0), inliner.was_cut


class _Inliner:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._count = 0
        self.was_cut = False

    def schema(self, node: Any, inside: frozenset[str], depth: int) -> Any:
        return self.table(node, inside, depth) if isinstance(node, dict) else node

    def table(self, node: Schema, inside: frozenset[str], depth: int) -> Schema:
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_SCHEMAS:
            raise ValueError("its schema is too large or too deep")
        reference = node.get("$ref")
        rest = {
            key: self._value(key, value, inside, depth + 1)
            for key, value in node.items()
            if not key.startswith("$") and key != "definitions"
        }
        if isinstance(reference, str):
            return _both(self._target(reference, inside, depth), rest)
        if "$dynamicRef" in node or "$recursiveRef" in node:
            raise ValueError("its schema has references of a kind that few servers know")
        return rest

    def _value(self, key: str, value: Any, inside: frozenset[str], depth: int) -> Any:
        if isinstance(value, dict):
            if key in MAPS:
                return {name: self.schema(item, inside, depth) for name, item in value.items()}
            if key in SINGLE:
                return self.table(value, inside, depth)
        elif isinstance(value, list) and key in (LISTS | SINGLE):
            return [self.schema(item, inside, depth) for item in value]
        return value

    def _target(self, reference: str, inside: frozenset[str], depth: int) -> Schema:
        found = self._find(reference)
        if reference not in inside:
            return self.table(found, inside | {reference}, depth + 1)
        self.was_cut = True
        return {key: found[key] for key in ("type", "title", "description") if key in found}

    def _find(self, reference: str) -> Schema:
        if not reference.startswith("#"):
            raise ValueError(f"its schema refers to another document: {sanitize(reference, 80)}")
        found: Any = self._root
        for part in reference[1:].split("/")[1:]:
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                found = found.get(name) if isinstance(found, dict) else None
        if not isinstance(found, dict) or (reference != "#" and not reference.startswith("#/")):
            raise ValueError(f"its schema refers to {sanitize(reference, 80)}, which isn't there")
        return found


def _both(target: Schema, rest: Schema) -> Schema:
    """What a reference and the keywords beside it say together."""
    if all(key in NOTES or key not in target or target[key] == rest[key] for key in rest):
        return target | rest
    return {"allOf": [target, rest]}
