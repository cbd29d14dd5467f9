"""An MCP server of the SDK with 155 tools and about 250 kB of schemas, some of them awkward. Its tools only repeat.

python -m tests.mcp_servers.big stdio|http [--port PORT] [--legacy]
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from tests.mcp_servers.serving import arguments, serve

COUNT = 155
PAGE = 50

AWKWARD: dict[str, dict[str, Any]] = {
    "no_properties": {"type": "object"},
    "only_a_dialect": {"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"},
    "with.a.dot": {"type": "object", "properties": {"text": {"type": "string"}}},
    "a name with blanks": {"type": "object", "properties": {}},
    "long_" + "x" * 90: {"type": "object", "properties": {}},
    "long_" + "x" * 90 + "_too": {"type": "object", "properties": {}},
    "with_definitions": {
        "type": "object",
        "properties": {"from": {"$ref": "#/$defs/Place"}, "to": {"$ref": "#/$defs/Place"}},
        "$defs": {"Place": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
        "required": ["to"],
    },
    "odd_formats": {"type": "object", "properties": {"at": {"type": "string", "format": "local-time-of-day"}}},
    "a_tree": {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "$defs": {
            "Node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
        },
    },
    "points_nowhere": {"type": "object", "properties": {"x": {"$ref": "#/$defs/Missing"}}},
}
"""By name, schemas that some language models' servers refuse. The last one cannot be mended."""


def _plain(number: int) -> types.Tool:
    words = "of the device, as it is written on the label below its bottom, without blanks or dashes"
    properties = {
        f"setting_{place}": {
            "type": ["string", "integer", "boolean"][place % 3],
            "description": f"Setting {place} {words}.",
        }
        for place in range(10)
    }
    schema = {"type": "object", "properties": properties, "required": ["setting_0"], "additionalProperties": False}
    return types.Tool(name=f"device_{number:03}", description=f"Sets device {number} up. " * 4, input_schema=schema)


def catalogue() -> list[types.Tool]:
    """All of them."""
    awkward = [
        types.Tool(name=name, description=f"Awkward: {name[:20]}.", input_schema=schema)
        for name, schema in AWKWARD.items()
    ]
    return [*awkward, *(_plain(number) for number in range(COUNT - len(awkward)))]


async def main() -> None:
    """Serve them, in pages."""
    parser = argparse.ArgumentParser()
    arguments(parser)
    options = parser.parse_args()
    tools = catalogue()

    async def listed(
        _: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        start = int((params and params.cursor) or 0)
        following = str(start + PAGE) if start + PAGE < len(tools) else None
        return types.ListToolsResult(tools=tools[start : start + PAGE], next_cursor=following)

    async def called(_: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        text = f"{params.name} was called with {json.dumps(params.arguments, sort_keys=True)}"
        return types.CallToolResult(content=[types.TextContent(text=text)])

    await serve(Server("big", version="1", on_list_tools=listed, on_call_tool=called), options)


if __name__ == "__main__":
    asyncio.run(main())
