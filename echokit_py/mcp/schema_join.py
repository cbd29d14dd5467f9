"""Puts schemas together that hold at once, or one of which holds. Pure; knows no server."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from echokit_py.mcp.schema_words import NOTES, Schema


def alternatives(schemas: Iterable[Schema]) -> list[Schema]:
    """Each of `schemas` once."""
    kept: list[Schema] = []
    for schema in schemas:
        if schema not in kept:
            kept.append(schema)
    return kept


def join(node: Schema, other: Schema, *, without: str = "") -> bool:
    """Add to `node` what `other` says too; False, with `node` unchanged, when that can't be said in one table.

    `without`: a keyword of `node` that `other` stands for, and which goes.
    """
    mine = {key: value for key, value in node.items() if key != without}
    if {"properties", "additionalProperties"} <= mine.keys() | other.keys() and (
        _closes(mine, other) or _closes(other, mine)
    ):
        return False
    joined = dict(mine)
    for key, value in other.items():
        if key == "required":
            joined[key] = list(dict.fromkeys([*mine.get(key, []), *value]))
        elif key == "properties" and all(
            mine.get(key, {}).get(name, schema) == schema for name, schema in value.items()
        ):
            joined[key] = mine.get(key, {}) | value
        elif key in NOTES:
            joined.setdefault(key, value)
        elif joined.setdefault(key, value) != value:
            return False
    node.clear()
    node.update(joined)
    return True


def _closes(one: Schema, other: Schema) -> bool:
    """Whether `one` forbids properties that only `other` names: together they would be allowed."""
    return "additionalProperties" in one and not other.get("properties", {}).keys() <= one.get("properties", {}).keys()


def merged_objects(node: Schema, kinds: list[Schema]) -> None:
    """Write the properties of every alternative into `node`; required is what all of them require."""
    found: dict[str, list[Schema]] = {}
    for kind in kinds:
        for name, schema in kind.get("properties", {}).items():
            found.setdefault(name, []).append(schema)
    properties = node.setdefault("properties", {})
    for name, schemas in found.items():
        properties.setdefault(name, _one_of(alternatives(schemas)))
    shared = set.intersection(*(set(kind.get("required", [])) for kind in kinds))
    required = dict.fromkeys([*node.get("required", []), *sorted(shared)])
    if required:
        node["required"] = list(required)


def _one_of(schemas: list[Schema]) -> Schema:
    if len(schemas) == 1:
        return schemas[0]
    first = schemas[0]
    if all(
        schema.keys() <= NOTES | {"type", "enum"} and "enum" in schema and schema.get("type") == first.get("type")
        for schema in schemas
    ):
        kind = {key: first[key] for key in ("type",) if key in first}
        return kind | {"enum": distinct(value for schema in schemas for value in schema["enum"])}
    return {"anyOf": schemas}


def distinct(values: Iterable[Any]) -> list[Any]:
    """Each of `values` once, as JSON tells them apart (1 is not true)."""
    return list({json.dumps(value, sort_keys=True, default=str): value for value in values}.values())
