"""The example configurations of the Rust server: each loads, or is refused with what to write instead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomli

from echokit_py.config.load import read
from echokit_py.config.settings import OpenAiAsr, OpenAiChatLlm, OpenAiResponsesLlm, OpenAiTts
from echokit_py.errors import ConfigError

FOLDER = Path(__file__).parents[2].parent / "shared" / "compat" / "examples"
EXAMPLES = sorted(FOLDER.glob("*.toml"))
ENVIRON = {"TELNYX_API_KEY": "KEY123"}

LOADS = {
    *("config", "docker", "grok-chat", "groq-chat", "openai-chat", "skill-voice-companion", "telnyx"),
    *("grok-responses", "groq-responses", "openai-responses"),
}
"""Those that name nothing but OpenAI's HTTP APIs. The others name a platform of a later version."""

pytestmark = pytest.mark.skipif(
    not EXAMPLES, reason="the example configurations of the Rust server are not beside the checkout"
)


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.stem in LOADS], ids=lambda path: path.stem)
def test_loads_and_means_the_same(path: Path) -> None:
    written = tomli.loads(path.read_text().replace("${TELNYX_API_KEY}", "KEY123"))
    loaded = read(path, environ=ENVIRON)
    settings = loaded.settings
    assert settings.addr == written["addr"]
    wrong_url = ["llm.url"] if path.stem == "groq-responses" else []  # nothing answers at the address it names
    assert [warning.key for warning in loaded.warnings] == ["hello_wav", *wrong_url]
    for section, kind, table in (
        (settings.asr, OpenAiAsr, written["asr"]),
        (settings.tts, OpenAiTts, written["tts"]),
        (settings.llm, OpenAiResponsesLlm if "responses" in path.stem else OpenAiChatLlm, written["llm"]),
    ):
        assert isinstance(section, kind)
        meant = dict(section)
        meant["api_key"] = meant["api_key"].get_secret_value()
        meant["sys_prompts"] = [dict(prompt) for prompt in meant.get("sys_prompts", ())]
        assert {key: meant[key] for key in table} == table


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.stem not in LOADS], ids=lambda path: path.stem)
def test_is_refused_with_what_to_write_instead(path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        read(path, environ=ENVIRON)
    lines = path.read_text().splitlines()
    for issue in error.value.issues:
        assert issue.file == str(path)
        assert issue.key in {"asr.platform", "tts.platform", "llm.platform", "gemini"}
        assert re.search(r"isn't in this version yet; write .*(platform = |\[asr\])", issue.message)
        assert lines[issue.line - 1].startswith(("platform = ", "[gemini]"))


def test_all_are_there() -> None:
    assert {path.stem for path in EXAMPLES} >= LOADS
    assert len(EXAMPLES) == 27


def test_a_missing_variable_is_named_at_each_place() -> None:
    with pytest.raises(ConfigError) as error:
        read(FOLDER / "telnyx.toml", environ={})
    assert [(issue.line, issue.key) for issue in error.value.issues] == [
        (7, "asr.api_key"),
        (15, "tts.api_key"),
        (21, "llm.api_key"),
    ]
