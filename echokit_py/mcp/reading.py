"""Reads tools as servers write them, one by one, so that one that breaks the specification doesn't cost the others.

Judges no schema: that is `schemas.py`'s.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import mcp_types as types
from pydantic import ValidationError


def read_tool(raw: Any) -> types.Tool | None:
    """Return the tool of one entry of tools/list; None when it has no name. What can't be read of it is left out."""
    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
        return None
    schema = raw.get("inputSchema")
    entry = {**raw, "inputSchema": schema if isinstance(schema, dict) else {}}
    entry.pop("outputSchema", None)  # results are not checked: an answer that came is better than none
    with suppress(ValidationError):
        return types.Tool.model_validate(entry, by_name=False)
    tool = types.Tool(name=entry["name"], input_schema=entry["inputSchema"])
    if isinstance(about := entry.get("description"), str):
        tool.description = about
    with suppress(ValidationError):
        tool.annotations = types.ToolAnnotations.model_validate(entry.get("annotations"), by_name=False)
    return tool


def essence(tool: types.Tool) -> dict[str, Any]:
    """What the SDK needs to know of a tool (the headers that 2026-07-28 makes of arguments), as it accepts it."""
    return {"name": tool.name, "inputSchema": {**tool.input_schema, "type": "object"}}
