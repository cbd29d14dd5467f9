"""The default configuration: it loads, explains every option, and the defaults it states are the real ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli
from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from echokit_py.config.load import parse, read
from echokit_py.config.mistakes import NOT_USED
from echokit_py.config.platforms import KINDS, SETTINGS
from echokit_py.config.settings import (
    FasterWhisperAsr,
    LlamaCppLlm,
    McpServer,
    PiperTts,
    Section,
    Settings,
    Timeouts,
    VadSettings,
)

PATH = Path(__file__).parents[2] / "config.toml"
TEXT = PATH.read_text(encoding="utf-8")
ENVIRON = {"OPENAI_API_KEY": "sk-1", "MY_TOOLS_KEY": "t"}

_HEADER = re.compile(r"#?(\[{1,2}[\w.]+\]{1,2})$")
_OPTION = re.compile(r"#(?=[a-z_]+ = )")

INSIDE: dict[str, type[Section]] = {
    "": Settings,
    "timeouts": Timeouts,
    "asr.vad": VadSettings,
    "llm.mcp_server": McpServer,
}


def blocks() -> Iterator[tuple[str, dict[str, Any], str]]:
    """The file with everything switched on, table by table: its name, what it says, its text."""
    header, lines = "", list[str]()
    for line in [*TEXT.splitlines(), "[end]"]:
        if match := _HEADER.match(line):
            yield header.strip("[]"), tomli.loads("\n".join(lines)), "\n".join([header, *lines])
            header, lines = match[1], []
        else:
            lines.append(_OPTION.sub("", line))


BLOCKS = list(blocks())


def model_of(name: str, table: dict[str, Any]) -> type[Section] | None:
    for kind in KINDS:
        if kind == name:
            return SETTINGS[kind][table["platform"]]
    return INSIDE.get(name)


def test_runs_as_it_is() -> None:
    loaded = read(PATH, environ={})
    assert loaded.warnings == ()
    settings = loaded.settings
    assert settings.asr == FasterWhisperAsr(model="tiny.en")
    assert settings.tts == PiperTts(voice="en_US-joe-medium")
    assert isinstance(settings.llm, LlamaCppLlm)
    assert settings.llm.model == "auto"
    assert "one or two short sentences" in settings.llm.sys_prompts[0].content


def test_every_option_is_explained() -> None:
    said: dict[type[Section], set[str]] = {}
    for name, table, _ in BLOCKS:
        if found := model_of(name, table):
            said.setdefault(found, set()).update(table)
    shared = said[LlamaCppLlm] | {"extra", "mcp_server"}  # the local [llm] explains what every [llm] has
    models = [*INSIDE.values(), *(model for kind in KINDS for model in SETTINGS[kind].values())]
    for model in models:
        options = set(model.model_fields) - NOT_USED - set(KINDS) - {"timeouts", "vad"}
        explained = said[model] | (shared if "sys_prompts" in model.model_fields else set())
        assert options - explained == set(), f"config.toml doesn't mention these options of {model.__name__}"
    assert {"timeouts", "asr", "asr.vad", "tts", "llm", "llm.extra", "llm.mcp_server"} == {
        name for name, *_ in BLOCKS
    } - {""}


@pytest.mark.parametrize(
    ("name", "table"), [block[:2] for block in BLOCKS], ids=[block[0] or "top" for block in BLOCKS]
)
def test_the_defaults_it_states_are_the_real_ones(name: str, table: dict[str, Any]) -> None:
    model = model_of(name, table)
    for key, value in table.items() if model else ():
        default = model.model_fields[key].default if model else None
        if default in (None, "", (), PydanticUndefined) or isinstance(default, SecretStr):
            continue  # what stands there is an example
        if (key, value) == ("type", "stdio"):
            continue  # another kind of entry, which begins with this
        assert value == default, f"{key} in [{name}]"


def test_the_defaults_that_are_computed() -> None:
    (vad,) = (table for name, table, _ in BLOCKS if name == "asr.vad")
    assert vad["neg_threshold"] == VadSettings().exit_threshold
    assert (vad["min_hangover_ms"], vad["max_hangover_ms"]) == (
        VadSettings().min_hangover_ms,
        VadSettings().max_hangover_ms,
    )


@pytest.mark.parametrize("choice", [0, 1, 2], ids=["local", "remote", "third"])
def test_everything_that_is_switched_off_works_when_switched_on(choice: int) -> None:
    seen: dict[str, int] = {}
    text = ""
    for name, _, block in BLOCKS:
        number = seen[name] = seen.get(name, -1) + 1
        if name not in KINDS or number == (choice if name == "llm" else min(choice, 1)):
            text += block + "\n"
    # In the file the tables below [llm] stand between the two [llm]; their order is free.
    loaded = parse(text, "config.toml", folder=PATH.parent, environ=ENVIRON)
    assert [warning.key for warning in loaded.warnings if warning.key != "hello_wav"] == [
        *(["llm.prompts_url"] if choice == 0 else []),
        *(["llm.extra.max_tokens"] if choice == 2 else []),
    ]
    assert [server.type for server in loaded.settings.llm.mcp_server] == ["http_streamable", "stdio"]
    platforms = [loaded.settings.asr.platform, loaded.settings.tts.platform, loaded.settings.llm.platform]
    assert (
        platforms
        == [
            ["faster_whisper", "piper", "llama_cpp"],
            ["openai", "openai", "openai_chat"],
            ["openai", "openai", "openai_responses"],
        ][choice]
    )


def test_every_option_has_an_explanation_before_it() -> None:
    explained = False
    for number, line in enumerate(TEXT.splitlines(), 1):
        if line.startswith(("# ", "    ")):
            explained = True
        elif line == "":
            explained = False
        elif not _HEADER.match(line) and line != "]" and not line.endswith(('platform = "openai"', "#")):
            assert explained or "platform = " in line, f"line {number}: {line}"
