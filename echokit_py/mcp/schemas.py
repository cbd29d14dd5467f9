"""Makes a tool's schema one that strict LLM servers accept, where that loses nothing. Pure; offers and calls nothing.

One schema that a server refuses costs the whole request, with every other tool in it. So each is rewritten in the words
that all of them know (OpenAI, Gemini, Groq, Mistral, llama.cpp): references written out, an object with properties at
the top, no combinations there, one type at a place, no words beyond the common ones. What can't be said that way goes
into the description, for the model to read, and stays in `strict`, for the check of arguments before the call: nothing
gets to the tool that its schema refuses. A schema that can't be mended costs its own tool only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from echokit_py.mcp.schema_join import merged_objects
from echokit_py.mcp.schema_refs import inlined
from echokit_py.mcp.schema_rules import Rules
from echokit_py.mcp.schema_words import Schema

MAX_DESCRIPTION = 1024  # OpenAI's limit, and Azure's, DeepSeek's …: longer ones fail the request
MAX_SIZE = 100_000  # characters of JSON, of one tool
MAX_RULE = 600  # of what the description takes over

_AT_THE_TOP = ("anyOf", "oneOf", "allOf", "enum", "const")
"""What OpenAI and Anthropic refuse at the top of a schema, besides what the rules remove everywhere."""


@dataclass(frozen=True, slots=True)
class Mended:
    """A schema and a description that servers accept.

    Attributes:
        strict: what arguments are checked against; None when that is just what `parameters` says.
    """

    parameters: Mapping[str, Any]
    description: str
    strict: Mapping[str, Any] | None = None


def mend(schema: Schema, description: str) -> Mended:
    """Make the schema of a tool's arguments, and its description, acceptable. `schema` isn't changed.

    Raises:
        ValueError: a sentence that goes into the log: the tool can't be offered.
    """
    whole, was_cut = inlined(schema)
    _be_an_object(whole)
    rules = Rules(for_model=True)
    parameters = rules.schema(whole)
    notes = [parameters.pop("description", "")]
    differs = _simple_at_the_top(parameters, notes) or rules.is_loose or rules.is_narrow or was_cut
    parameters = {"type": "object", "properties": {}, **parameters}
    if parameters.get("additionalProperties") is not False:
        for name in parameters.get("required", []):  # Gemini wants each to be there
            parameters["properties"].setdefault(name, {})
    _check(parameters)
    strict = None
    if differs:
        strict = schema if was_cut else Rules(for_model=False).schema(whole)
    return Mended(parameters, _description(description, notes), strict)


def _be_an_object(schema: Schema) -> None:
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise ValueError(f"its arguments are no object but {json.dumps(kind, default=str)[:40]}")
    schema["type"] = "object"


def _simple_at_the_top(parameters: Schema, notes: list[str]) -> bool:
    """Move what may not stand at the top into the properties and the notes; whether something was lost by that."""
    found = {key: parameters.pop(key) for key in _AT_THE_TOP if key in parameters}
    for key, schemas in found.items():
        if key in {"anyOf", "oneOf"}:
            merged_objects(parameters, schemas)
        elif key == "allOf":
            for each in schemas:
                merged_objects(parameters, [each])
        text = json.dumps(schemas, ensure_ascii=False, default=str)
        rule = f"{key} {text}" if len(text) <= MAX_RULE else "rules that an error will name"
        notes.append(f"The arguments together must fit: {rule}")
    return bool(found)


def _check(parameters: Schema) -> None:
    try:
        text = json.dumps(parameters, ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError):  # a lone surrogate is a ValueError too
        raise ValueError("its schema can't be written as JSON") from None
    if size > MAX_SIZE:
        raise ValueError(f"its schema is too large: {size} bytes")


def _description(description: str, notes: list[str]) -> str:
    """The description with as many of the notes as fit; the description itself is cut last."""
    text = description.strip().encode("utf-8", "replace").decode()
    for note in filter(None, notes):
        if note not in text and len(text) + len(note) < MAX_DESCRIPTION:
            text = f"{text}\n{note}" if text else note
    return text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 1] + "…"
