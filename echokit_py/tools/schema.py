"""Checks a call's arguments against its tool's schema (JSON Schema, Draft 2020-12). Changes neither; fetches nothing.

A schema that is broken itself breaks no call: then the arguments are not checked, and the log says so once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry

from echokit_py.log import sanitize
from echokit_py.tools.base import Tool

log = logging.getLogger(__name__)

MAX_KEPT = 1000  # compiled schemas; more tools than that fit into no prompt
MAX_FAULTS = 5  # of one call: what a model can mend at once
SMALL_SCHEMA = 200  # characters: compiled within 2 ms. It takes 15 ms for 2,000
MAX_FAULT_CHARS = 300  # jsonschema repeats the value that doesn't fit

# Without references to other documents: the library would fetch them, from wherever a tool's author says.
_REGISTRY: Registry[Any] = Registry()


class Schemas:
    """The compiled schemas of tools."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Mapping[str, Any], Draft202012Validator | None]] = {}
        self._compiling = asyncio.Lock()

    async def prepare(self, tool: Tool) -> None:
        """Compile a tool's schema before its first `fault`, so that this holds up no event loop.

        In a thread, and one at a time: many of them would keep the interpreter from the loop.
        """
        if self._find(tool) is not None or len(str(tool.wanted)) <= SMALL_SCHEMA:
            return
        async with self._compiling:
            if self._find(tool) is None:
                await asyncio.to_thread(self._validator, tool)

    def fault(self, tool: Tool, arguments: dict[str, Any]) -> str:
        """Say in one sentence for the model what doesn't fit; "" when all does, or when the schema is of no use."""
        validator = self._validator(tool)
        if validator is None:
            return ""
        try:
            faults = [_words(error) for error in islice(validator.iter_errors(arguments), MAX_FAULTS)]
        except Exception as error:  # noqa: BLE001 - a boundary: schemas come from outside and fail in many ways in use
            self._give_up(tool, error)
            return ""
        return f"the arguments don't fit the tool {tool.name}: {'; '.join(faults)}" if faults else ""

    def _find(self, tool: Tool) -> tuple[Mapping[str, Any], Draft202012Validator | None] | None:
        kept = self._kept.get(tool.name)
        return kept if kept is not None and (kept[0] is tool.wanted or kept[0] == tool.wanted) else None

    def _validator(self, tool: Tool) -> Draft202012Validator | None:
        kept = self._find(tool)
        if kept is not None:
            return kept[1]
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        try:
            Draft202012Validator.check_schema(tool.wanted)
        except (SchemaError, RecursionError) as error:
            self._give_up(tool, error)
            return None
        validator = Draft202012Validator(tool.wanted, registry=_REGISTRY)
        self._kept[tool.name] = (tool.wanted, validator)
        return validator

    def _give_up(self, tool: Tool, error: Exception) -> None:
        log.warning(
            "the schema of the tool %s is broken, its arguments are not checked: %s", sanitize(tool.name), _brief(error)
        )
        self._kept[tool.name] = (tool.wanted, None)


def _brief(error: Exception) -> str:
    return sanitize(error.message if isinstance(error, SchemaError) else error)


def _words(error: ValidationError) -> str:
    place = ".".join(str(part) for part in error.absolute_path)
    text = f"{place}: {error.message}" if place else error.message
    return text if len(text) <= MAX_FAULT_CHARS else text[: MAX_FAULT_CHARS - 1] + "…"
