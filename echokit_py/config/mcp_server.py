"""One entry of `[[llm.mcp_server]]`, an MCP server whose tools the model may call. Connects to nothing.

`server`, `api_key`, `type` and `call_mcp_message` mean what they mean to the Rust server; the other keys are new.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, Strict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from echokit_py.config.section import Section
from echokit_py.config.values import Key, Milliseconds, Seconds, UrlOrNone

STDIO = "stdio"
MAX_NAME = 32  # a tool's name has 64 characters at most, and this stands before it when two servers have the same

_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_NAME}}}")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_HEADER_VALUE = re.compile(r"[\t -~]*")
_LAUNCHER = re.compile(r"(?:uvx?|pipx|npx|bunx?|pnpm|yarn|node|deno|python[\d.]*|docker|podman)$")
_WORD_OF_A_LAUNCHER = frozenset({"run", "exec", "tool", "dlx", "x"})


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"1 to {MAX_NAME} letters, digits, _ and -: it may stand before the names of its tools")
    return name


def _patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    if not all(patterns):
        raise ValueError('a pattern is empty; "*" stands for every tool')
    return patterns


def _variables(env: dict[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError('a variable has a name without "=", and no NUL in it (what was found isn\'t shown)')
    return env


def _headers(headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value.get_secret_value()):
            raise ValueError("no HTTP header can be like that: no line breaks, ASCII only (what was found isn't shown)")
    return headers


def _default_name(entry: dict[str, Any]) -> str:
    """A name from what was validated so far: the host and port, or the program."""
    if url := entry.get("server"):
        text = urlsplit(url).netloc.rpartition("@")[2]
    else:
        text = _program(entry.get("command", ""), entry.get("args", ()))
    return re.sub(r"[^A-Za-z0-9-]+", "_", text).strip("_")[:MAX_NAME] or "mcp"


def _program(command: str, args: Sequence[str]) -> str:
    """What runs: for `npx -y @scope/package` it is the package, since every server could be called npx."""
    name = PurePath(command).name
    if _LAUNCHER.match(name):
        words = (word for word in args if not word.startswith("-") and word not in _WORD_OF_A_LAUNCHER)
        name = next(words, name)
    return PurePath(name).name.partition("@")[0] or name


class McpServer(Section):
    """An MCP server, reached over HTTP at `server`, or started as a child process (`type = "stdio"`).

    Attributes:
        server: the address; "" for stdio.
        command: the program of stdio; "" for HTTP.
        env: variables added to the few that the child is given anyway. The values may be secrets; they aren't shown.
        headers: what goes out with each HTTP request besides the key.
        name: what logs call it, and what may stand before the names of its tools. Unique in a configuration.
        timeout_sec: how long a call may take.
        max_result_chars: how much of a result the model gets.
        allow: which tools are offered, as patterns of their names (`*`, `?`, `[abc]`; case counts); () for all.
        deny: which of these are not.
        call_mcp_message: what is said when a tool takes longer than `filler_after_ms`; "" for nothing.
    """

    type: Literal["http_streamable", "sse", "stdio"] = "http_streamable"
    command: Annotated[str, Field(validate_default=True)] = ""
    args: tuple[str, ...] = ()
    env: Annotated[dict[str, str], AfterValidator(_variables)] = Field(default_factory=dict)
    server: Annotated[UrlOrNone, Field(validate_default=True)] = ""
    api_key: Key = SecretStr("")
    headers: Annotated[dict[str, SecretStr], AfterValidator(_headers)] = Field(default_factory=dict)
    name: Annotated[str, AfterValidator(_name)] = Field(default_factory=_default_name)
    timeout_sec: Seconds = 30
    max_result_chars: Annotated[int, Strict(), Field(ge=100, le=1_000_000)] = 8000
    allow: Annotated[tuple[str, ...], AfterValidator(_patterns)] = ()
    deny: Annotated[tuple[str, ...], AfterValidator(_patterns)] = ()
    call_mcp_message: str = ""
    filler_after_ms: Milliseconds = 700

    @field_validator("command", "args", "env")
    @classmethod
    def _of_stdio(cls, value: Any, info: ValidationInfo) -> Any:
        kind = info.data.get("type", STDIO if value else "")
        if value and kind != STDIO:
            raise PydanticCustomError("of_stdio", 'belongs to a program that is started: write type = "stdio" as well')
        if info.field_name == "command" and kind == STDIO and not value.strip("\0 "):
            raise PydanticCustomError("missing", "is missing")
        return value

    @field_validator("server", "api_key", "headers")
    @classmethod
    def _of_http(cls, value: Any, info: ValidationInfo) -> Any:
        kind = info.data.get("type")
        given = bool(value.get_secret_value() if isinstance(value, SecretStr) else value)
        if kind == STDIO and given:
            raise PydanticCustomError("of_http", _OF_HTTP[info.field_name or ""])
        # An entry with a command was meant for stdio; that was said already.
        if info.field_name == "server" and kind in {"http_streamable", "sse"} and not given and "command" in info.data:
            raise PydanticCustomError("missing", "is missing")
        return value


_OF_HTTP = {
    "server": 'is the address of a server on the network; with type = "stdio" there is command',
    "api_key": 'goes to a server on the network; give a program its key in env, e.g. env = { API_KEY = "${MY_KEY}" }',
    "headers": "go to a server on the network; give a program what it needs in env or args",
}
"""What a key of HTTP says in an entry of stdio."""


def with_names_apart(servers: tuple[McpServer, ...]) -> tuple[McpServer, ...]:
    """Number the names that weren't given and are there already, in the order of the file.

    Raises:
        ValueError: two names that were given are the same.
    """
    given = [server.name for server in servers if "name" in server.model_fields_set]
    if twice := next((name for name in given if given.count(name) > 1), None):
        raise ValueError(f'two servers are called "{twice}"; give each its own name')
    taken = set(given)
    apart: list[McpServer] = []
    for server in servers:
        name, number = server.name, 1
        while name in taken and "name" not in server.model_fields_set:
            number += 1
            name = f"{server.name[: MAX_NAME - 4]}_{number}"
        taken.add(name)
        apart.append(server if name == server.name else server.model_copy(update={"name": name}))
    return tuple(apart)
