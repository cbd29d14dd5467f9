"""Says over stdio what it is told to, in order: a scripted MCP server as a child process. Uses no SDK, checks nothing.

    python -m tests.mcp_servers.scripted_stdio SCRIPT.json STARTS

STARTS: a file to which it adds one character when it starts. SCRIPT.json: a list. A string is written to stdout as a
line as it is; an object is a response, whose `id` "$METHOD" stands for the id of the next request of that method, which
is waited for. Requests of other methods that come meanwhile are answered with "Method not found". At the end it waits
until its input is closed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def _wait_for(method: str) -> Any:
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == method:
            return message["id"]
        if "id" in message and "method" in message:
            error = {"code": -32601, "message": "Method not found"}
            _say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))
    sys.exit(0)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Play the script."""
    with Path(sys.argv[2]).open("a", encoding="utf-8") as starts:
        starts.write("*")
    for entry in json.loads(Path(sys.argv[1]).read_text("utf-8")):
        if isinstance(entry, str):
            _say(entry)
        elif str(entry.get("id", "")).startswith("$"):
            _say(json.dumps({**entry, "id": _wait_for(entry["id"][1:])}))
        else:
            _say(json.dumps(entry))
    _wait_for("nothing else")


if __name__ == "__main__":
    main()
