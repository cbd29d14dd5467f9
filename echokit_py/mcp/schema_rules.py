"""Rewrites one schema, and all inside it, so that LLM servers accept it. Pure; knows nothing of tools. See schemas.py.

What servers refuse is known from public reports about each of them; a rule names whose it is. Most rules change the
words and not the meaning. Those that do lose something say so (`is_loose`), leave a note for the model where there is
room, and are skipped when the schema is for the check of arguments (`for_model=False`).
"""

from __future__ import annotations

import json
import re
from typing import Any

from echokit_py.mcp.schema_join import alternatives, distinct, join
from echokit_py.mcp.schema_words import FITS, KEYS_OF_TYPE, LISTS, MAPS, NOTES, SINGLE, TYPES, Schema

MAX_NOTE = 300  # characters; a rule that takes longer to read is not worth its tokens

# llama.cpp writes a rule for each repetition and refuses a grammar that grows too large.
MAX_REPEATED = 500
_REPEATED = frozenset({"minLength", "maxLength", "minItems", "maxItems"})

# Refused somewhere: `not` and conditions by OpenAI and llama.cpp, the rest by Gemini. JSON Schema's own words for them
# are understood by models.
_FOR_THE_CHECK_ONLY = frozenset(
    {"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "patternProperties"}
    | {"propertyNames", "unevaluatedProperties", "unevaluatedItems", "contains", "minContains", "maxContains"}
    | {"minProperties", "maxProperties"}
)

_OLD_FLAGS = frozenset({"exclusiveMinimum", "exclusiveMaximum", "nullable"})  # of draft 4 and of OpenAPI

# Gemini knows no other for texts ("only 'enum' and 'date-time' are supported").
_KNOWN_FORMATS = frozenset({"date-time"})

# Anchored, no look-around, no classes by letter: what llama.cpp's grammar can say.
_SIMPLE_PATTERN = re.compile(
    r"\^(?:[^\\()?*+{}|^$[]|\\[^\w\s]|\[[^\\\]]+\]|[?*+](?![?*+])|\{\d{1,2}(?:,\d{0,2})?\})*\$"
)

_TYPES_MEANT = {"int": "integer", "float": "number", "double": "number", "str": "string", "text": "string"} | {
    "bool": "boolean",
    "dict": "object",
    "map": "object",
    "list": "array",
    "none": "null",
}


class Rules:
    """Rewrites schemas; `is_loose`, `is_narrow` afterwards: what came out allows more, or less, than what went in."""

    def __init__(self, *, for_model: bool) -> None:
        self._for_model = for_model
        self.is_loose = self.is_narrow = False

    def schema(self, node: Any) -> Schema:
        """Rewrite a schema. Raises ValueError, with a sentence, for something that is none."""
        if isinstance(node, bool):
            self.is_loose |= not node
            return {} if node or self._for_model else {"not": {}}
        if isinstance(node, str) and _type_meant(node):
            return {"type": _type_meant(node)}
        if not isinstance(node, dict):
            raise ValueError("its schema has something in it that is no schema")
        return self._rewritten(self._known(node))

    def _known(self, node: Schema) -> Schema:
        """The keywords there are, with values they may have."""
        known: Schema = {}
        for key, value in node.items():
            if key in MAPS:
                known[key] = value if isinstance(value, dict) else {}
            elif key in SINGLE or _fits(key, value):
                known[key] = value
            elif key in (FITS.keys() | LISTS) - NOTES:
                self.is_loose = True
        return known

    def _rewritten(self, node: Schema) -> Schema:
        self._old_words(node)
        self._types(node)
        self._properties(node)
        self._inner(node)
        if self._for_model:
            self._for_strict_servers(node)
        return node

    def _old_words(self, node: Schema) -> None:
        """What drafts 4 to 7 and OpenAPI say in another way."""
        for exclusive, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(node.get(exclusive), bool) and node.pop(exclusive) and plain in node:
                node[exclusive] = node.pop(plain)
        if node.pop("nullable", False) is True and isinstance(node.get("type"), str):
            node["type"] = [node["type"], "null"]
        more = node.pop("additionalItems", None)
        if isinstance(node.get("items"), list):
            node["prefixItems"] = node.pop("items") or [{}]
            if more is not None:
                node["items"] = more

    def _types(self, node: Schema) -> None:
        if "type" not in node:
            return
        given = node["type"] if isinstance(node["type"], list) else [node["type"]]
        types = list(dict.fromkeys(meant for name in given if (meant := _type_meant(name))))
        if len(types) < len(dict.fromkeys(map(str, given))):
            self.is_loose = True
            types = []
        if "number" in types and "integer" in types:
            types.remove("integer")
        node["type"] = types[0] if len(types) == 1 else types
        if not types:
            del node["type"]

    def _properties(self, node: Schema) -> None:
        """`required` as a list of names, each once; draft 3 has it as a flag of the property."""
        required = node.pop("required", None)
        names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        for name, schema in node.get("properties", {}).items():
            if isinstance(schema, dict) and schema.get("required") is True:
                names.append(name)
        if names:
            node["required"] = list(dict.fromkeys(names))

    def _inner(self, node: Schema) -> None:
        for key, value in node.items():
            if key in MAPS:
                node[key] = {name: self.schema(schema) for name, schema in value.items()}
            elif key in LISTS:
                node[key] = [self.schema(schema) for schema in value]
            elif key in SINGLE and not isinstance(value, bool):
                node[key] = self.schema(value)

    def _for_strict_servers(self, node: Schema) -> None:
        notes: list[str] = []
        self._values(node)
        self._guess_type(node)
        self._tuples(node)
        self._texts(node, notes)
        self._sizes(node, notes)
        self._only_for_the_check(node, notes)
        self._combinations(node, notes)
        self._split_types(node)
        if notes:
            node["description"] = " ".join([*filter(None, [node.get("description")]), f"({'; '.join(notes)})"])

    def _guess_type(self, node: Schema) -> None:
        """Gemini wants a type everywhere; where there is none, it is plain what was meant."""
        if "type" in node or LISTS & node.keys():
            return
        if "properties" in node:
            node["type"] = "object"
            self.is_narrow = True
        elif "items" in node:
            node["type"] = "array"
            self.is_narrow = True
        elif "enum" in node and all(isinstance(value, str) for value in node["enum"]):
            node["type"] = "string"

    def _tuples(self, node: Schema) -> None:
        """OpenAI and Gemini want `items` as one schema in every array, and know no places in it."""
        places = node.pop("prefixItems", None)
        if places is not None:
            self.is_loose = True
            more = node.pop("items", False)
            kinds = alternatives([*places, *([more] if isinstance(more, dict) else [])])
            node["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        elif "array" in _as_list(node.get("type")) and not isinstance(node.get("items"), dict):
            self.is_loose |= node.get("items") is False
            node["items"] = {}

    def _values(self, node: Schema) -> None:
        """Gemini knows no `const`. Repeated values are refused by all that check."""
        if "const" in node:
            node["enum"] = [node.pop("const")]
        if "enum" in node:
            node["enum"] = distinct(node["enum"])

    def _texts(self, node: Schema, notes: list[str]) -> None:
        form = node.get("format")
        if form is not None and form not in _KNOWN_FORMATS:
            del node["format"]  # no check looks at formats
            if "string" in _as_list(node.get("type")):
                notes.append(f"format: {form[:MAX_NOTE]}")
        pattern = node.get("pattern")
        if pattern is not None and not _SIMPLE_PATTERN.fullmatch(pattern):
            self._note(node, "pattern", notes)

    def _sizes(self, node: Schema, notes: list[str]) -> None:
        for key in _REPEATED & node.keys():
            if node[key] > MAX_REPEATED:
                self._note(node, key, notes)

    def _only_for_the_check(self, node: Schema, notes: list[str]) -> None:
        if "patternProperties" in node and not isinstance(node.get("additionalProperties"), dict):
            node.pop("additionalProperties", None)  # with it, no name at all would be left
        for key in sorted(_FOR_THE_CHECK_ONLY & node.keys()):
            self._note(node, key, notes)

    def _note(self, node: Schema, key: str, notes: list[str]) -> None:
        self.is_loose = True
        text = json.dumps(node.pop(key), ensure_ascii=False, default=str)
        if len(text) <= MAX_NOTE:
            notes.append(f"{key}: {text}")

    def _combinations(self, node: Schema, notes: list[str]) -> None:
        """OpenAI's strict mode refuses `allOf` and `oneOf`, Gemini `oneOf`; a model reads "any of" the same way."""
        if "oneOf" in node and "anyOf" in node:
            self._note(node, "oneOf", notes)
        elif "oneOf" in node:
            self.is_loose = True
            node["anyOf"] = node.pop("oneOf")
        if "allOf" in node:
            rest = [schema for schema in node.pop("allOf") if not join(node, schema)]
            if rest:
                node["allOf"] = rest
        if "anyOf" in node:
            kinds = alternatives(node["anyOf"])
            if {} in kinds:
                del node["anyOf"]
            elif len(kinds) > 1 or not join(node, kinds[0], without="anyOf"):
                node["anyOf"] = kinds

    def _split_types(self, node: Schema) -> None:
        """Gemini takes one type only: a list of them becomes `anyOf`, each with what belongs to it."""
        types = node.get("type")
        if not isinstance(types, list) or "anyOf" in node:
            return
        parts: list[Schema] = [
            {"type": kind} | {key: node[key] for key in node if key in KEYS_OF_TYPE.get(kind, ())} for kind in types
        ]
        values = node.pop("enum", None)
        if values is not None:
            parts = [part | {"enum": fit} for part in parts if (fit := [v for v in values if _is_of(v, part["type"])])]
            parts = [{"type": "null"} if part["type"] == "null" else part for part in parts]
            self.is_loose |= not parts  # nothing would fit
        for key in [key for key in node if key == "type" or any(key in keys for keys in KEYS_OF_TYPE.values())]:
            del node[key]
        if parts:
            node["anyOf"] = parts


def _fits(key: str, value: Any) -> bool:
    if key in LISTS:
        return isinstance(value, list) and bool(value)
    return (key in FITS and FITS[key](value)) or (key in _OLD_FLAGS and isinstance(value, bool))


_CLASSES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


def _is_of(value: Any, kind: str) -> bool:
    return isinstance(value, _CLASSES[kind]) and isinstance(value, bool) == (kind == "boolean")


def _type_meant(name: Any) -> str:
    """The type of JSON Schema that `name` stands for, or ""."""
    plain = str(name).lower()
    return plain if plain in TYPES else _TYPES_MEANT.get(plain, "")


def _as_list(types: Any) -> list[str]:
    return types if isinstance(types, list) else [types]
