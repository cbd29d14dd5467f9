"""Turns pydantic's findings about a table into sentences with the nearest right key. Pure; finds nothing itself."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import AliasChoices, BaseModel
from pydantic_core import ErrorDetails

from echokit_py.config.redact import PRIVATE, is_secret_name, mask_urls
from echokit_py.config.settings import Settings
from echokit_py.log import sanitize

NOT_USED = frozenset({"vad_url", "vad_realtime_url"})
"""Keys of older files that are accepted and never suggested."""

_MEANT = {
    "apikey": "api_key",
    "key": "api_key",
    "token": "api_key",
    "base_url": "url",
    "endpoint": "url",
    "language": "lang",
    "model_id": "model",
    "speaker": "voice",
    "system_prompt": "sys_prompts",
    "instructions": "sys_prompts",
    "few_shot": "dynamic_prompts",
    "origins": "allowed_origins",
    "cors": "allowed_origins",
    "url": "server",
    "transport": "type",
    "transport_type": "type",
    "cmd": "command",
    "arguments": "args",
    "environment": "env",
    "bearer_token": "api_key",
    "label": "name",
    "server_name": "name",
    "timeout": "timeout_sec",
    "timeout_ms": "timeout_sec",
    "tool_timeout": "timeout_sec",
    "allowed_tools": "allow",
    "enabled_tools": "allow",
    "include": "allow",
    "denied_tools": "deny",
    "disabled_tools": "deny",
    "excluded_tools": "deny",
    "exclude": "deny",
    "speculative": "speculate",
    "silence_duration_ms": "hangover_ms",
    "simplified": "to_simplified",
    "http": "http_streamable",
    "streamable": "http_streamable",
    "streamable_http": "http_streamable",
    "streamablehttp": "http_streamable",
}
"""What other programs call our keys, and our kinds of MCP servers."""

_TABLES = {
    "vad": "[asr.vad]",
    "mcp": "[[llm.mcp_server]]",
    "mcp_server": "[[llm.mcp_server]]",
    "sys_prompts": "[[llm.sys_prompts]]",
    "dynamic_prompts": "[[llm.dynamic_prompts]]",
    "extra": "[llm.extra]",
    "whisper": "[asr]",
    "stt": "[asr]",
}
"""Tables at the top of the file that belong elsewhere."""

_REQUEST_KEYS = frozenset(
    {"temperature", "max_tokens", "max_completion_tokens", "top_p", "top_k", "min_p", "stop", "seed", "enable_search"}
    | {"presence_penalty", "frequency_penalty", "reasoning_effort", "response_format", "tools", "tool_choice"}
    | {"max_output_tokens", "include", "reasoning", "store", "truncation"}
)
"""Keys of a request to the model, which belong into `[llm.extra]`."""

_EXAMPLES = {
    ("asr", "url"): 'url = "https://api.openai.com/v1/audio/transcriptions"',
    ("llm", "url"): 'url = "https://api.openai.com/v1/chat/completions"',
    ("llm", "server"): 'server = "http://localhost:8000/mcp"',
    ("llm", "command"): 'command = "uvx" and args = ["mcp-server-time"]',
}

_NEEDED = {
    "bool_type": "true or false, without quotes",
    "int_type": "a whole number, without quotes",
    "float_type": "a number, without quotes",
    "string_type": 'a text in quotes "…"',
    "tuple_type": "a list in brackets […]",
    "dict_type": "a table of keys and values",
    "model_type": "a table of keys and values",
}

_LIMITS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def sentence(error: ErrorDetails, model: type[BaseModel], table: str, *, show: bool) -> str:
    """Say what is wrong and what is right.

    Args:
        error: a finding about a table that `model` validated.
        model: the type of the table.
        table: the name of the table, or "" for the top of the file.
        show: whether the value may be quoted (not when it came from the environment).
    """
    key = str(error["loc"][-1])
    # Of what goes to a program or a server as it is nothing is shown, whatever its name.
    private = next((part for part in error["loc"] if part in PRIVATE), key)
    found = describe(error["input"], str(private), show=show)
    match error["type"]:
        case "missing":
            example = _EXAMPLES.get((table, key))
            text = f"is missing; write for example {example}" if example else "is missing"
        case "extra_forbidden":
            text = _unknown_key(key, _model_at(model, error["loc"][:-1]), table, len(error["loc"]))
        case "tuple_type" if isinstance(error["input"], dict):
            text = f"is a list of tables: write [[{table}.{key}]], with two brackets on each side"
        case "int_type" | "float_type" | "bool_type" as kind if not show:
            what, it = ("true or false", "it") if kind == "bool_type" else ("a number", "the number")
            text = f"must be {what}, and ${{NAME}} gives texts only; write {it} itself, without quotes"
        case kind if kind in _NEEDED:
            text = f"must be {_NEEDED[kind]}; found {found}"
        case "literal_error":
            text = _choice(error, found)
        case kind if kind in _LIMITS:
            words, limit = _LIMITS[kind]
            text = f"must be {words} {error['ctx'][limit]:g}{_unit(key)}; found {found}"
        case "value_error":
            silent = is_secret_name(key) or isinstance(error["input"], dict | list | tuple)
            text = f"{error['ctx']['error']}" + ("" if silent else f"; found {found}")
        case _:
            text = f"{error['msg'][:1].lower()}{error['msg'][1:]}"
    return text


def describe(value: Any, key: str = "", *, show: bool = True) -> str:
    """Name a value as a person would, without showing a secret."""
    if isinstance(value, dict | list | tuple):
        return "a table" if isinstance(value, dict) else "a list"
    if is_secret_name(key) or key in PRIVATE:
        return "something else (it isn't shown)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        text = sanitize(mask_urls(value), 60)
        return f'the text "{text}"' if show else "what the environment variable holds"
    return "a date or time"


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The one of `names` that `name` was most likely meant to be."""
    plain = name.lower().replace("-", "_")
    meant = _MEANT.get(plain, "")
    for right in (meant, _MEANT.get(meant)):
        if right in names:
            return right
    near = difflib.get_close_matches(plain, names, n=1, cutoff=0.7)
    return near[0] if near else None


def _unknown_key(key: str, model: type[BaseModel] | None, table: str, depth: int) -> str:
    names = _names(model) if model else {}
    if key in names:
        other = next((name for name in names if name != key and names[name] == names[key]), names[key])
        return f'says the same as "{other}", which is there too; keep one of them'
    keys = [name for name in model.model_fields if name not in NOT_USED] if model else []
    if right := nearest(key, keys):
        return f'there is no such key here; did you mean "{right}"?'
    if table == "llm" and key in _REQUEST_KEYS and depth == 1:
        return "this goes to the model with each request; write it below a line [llm.extra]"
    if table and key in Settings.model_fields:
        return "this key belongs at the top of the file, before the first [table]"
    if not table and key in _TABLES:
        return f"there is no such table here; did you mean {_TABLES[key]}?"
    return f"there is no such key here; there are {', '.join(keys)}"


def _names(model: type[BaseModel]) -> dict[str, str]:
    """Every name a key of `model` may have in the file, and the field it sets."""
    names = {name: name for name in model.model_fields}
    for name, field in model.model_fields.items():
        if isinstance(field.validation_alias, AliasChoices):
            names |= {str(alias): name for alias in field.validation_alias.choices}
    return names


def _model_at(model: type[BaseModel], location: Sequence[str | int]) -> type[BaseModel] | None:
    """The type of the table at `location` inside a table of type `model`."""
    found: type[BaseModel] | None = model
    for part in location:
        if found is not None and isinstance(part, str):
            field = found.model_fields.get(part)
            found = next(_models_in(field.annotation), None) if field else None
    return found


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _unit(key: str) -> str:
    return " milliseconds" if key.endswith("_ms") else " seconds" if key.endswith(("_s", "_sec")) else ""


def _choice(error: ErrorDetails, found: str) -> str:
    choices = str(error["ctx"]["expected"]).replace("'", '"').replace(" or ", ", ")
    right = nearest(str(error["input"]), [choice.strip('"') for choice in choices.split(", ")])
    hint = f'; did you mean "{right}"?' if right else ""
    return f"must be one of {choices}; found {found}{hint}"
