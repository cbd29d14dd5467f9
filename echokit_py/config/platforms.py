"""Which settings a platform name means: every spelling the Rust server knows, and what isn't built yet. Pure.

A name is compared without case, `-` and `_`, so that OpenAIChat, openai_chat and openai-chat are one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, Literal

from echokit_py.config.settings import (
    FasterWhisperAsr,
    LlamaCppLlm,
    OpenAiAsr,
    OpenAiChatLlm,
    OpenAiResponsesLlm,
    OpenAiTts,
    PiperTts,
    PluginSettings,
    Section,
)

Kind = Literal["asr", "tts", "llm"]
KINDS: tuple[Kind, ...] = ("asr", "tts", "llm")

SETTINGS: Mapping[Kind, Mapping[str, type[Section]]] = {
    "asr": {"faster_whisper": FasterWhisperAsr, "openai": OpenAiAsr},
    "tts": {"piper": PiperTts, "openai": OpenAiTts},
    "llm": {"llama_cpp": LlamaCppLlm, "openai_chat": OpenAiChatLlm, "openai_responses": OpenAiResponsesLlm},
}
"""The platforms of this package, the local one first."""

_ALIASES: Mapping[Kind, Mapping[str, str]] = {"asr": {"whisper": "openai"}, "tts": {}, "llm": {}}

WORK: Mapping[Kind, str] = {
    "asr": "recognise speech",
    "tts": "speak",
    "llm": "answer",
}

_OPENAI_SPEECH = (
    'platform = "openai" with url, api_key, model and voice of a server that speaks OpenAI\'s /audio/speech'
)
_INSTEAD: Mapping[Kind, str] = {
    "asr": 'write platform = "faster_whisper" (on this machine), or "openai" with the url of a transcription server',
    "tts": f'write platform = "piper" (on this machine), or {_OPENAI_SPEECH}',
    "llm": 'write platform = "openai_chat" with the url of the same service that ends in /chat/completions',
}

_NOT_YET: Mapping[Kind, Mapping[str, str]] = {
    "asr": {
        "paraformerv2": _INSTEAD["asr"],
        "elevenlabs": _INSTEAD["asr"],
    },
    "tts": {
        "groq": 'write platform = "openai" and add url = "https://api.groq.com/openai/v1/audio/speech"; the rest stays',
        "gsv": _INSTEAD["tts"],
        "stable": _INSTEAD["tts"],
        "streamgsv": _INSTEAD["tts"],
        "streaming": _INSTEAD["tts"],
        "fish": _INSTEAD["tts"],
        "cosyvoice": _INSTEAD["tts"],
        "elevenlabs": _INSTEAD["tts"],
    },
    "llm": {},
}
"""What the Rust server serves, or its documents name, and this version doesn't: what to write instead."""

MODES: Mapping[str, str] = {
    "gemini": "Gemini Live isn't in this version yet; write [asr] and [tts], and"
    ' [llm] with platform = "openai_chat" and url = "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions";'
    " the api_key stays",
    "claude": "Claude Code isn't in this version yet; write [asr], [llm] and [tts] to talk to a language model",
}
"""Tables that choose another way of working in the Rust server."""


def squash(name: str) -> str:
    """A platform name without what people write differently."""
    return re.sub(r"[-_ .]", "", name).lower()


def choose(kind: Kind, table: Mapping[str, Any], plugins: frozenset[str]) -> tuple[str, type[Section]]:
    """Return the canonical platform name of a table and the type of its settings.

    Raises:
        ValueError: with a sentence; the platform is missing, unknown, or not in this version.
    """
    name = table["platform"] if "platform" in table else _implied(kind, table)
    if not isinstance(name, str):
        raise ValueError("the platform must be a text in quotes")
    if name in plugins and name not in SETTINGS[kind]:
        return name, PluginSettings
    known = {squash(platform): platform for platform in SETTINGS[kind]} | dict(_ALIASES[kind])
    if canonical := known.get(squash(name)):
        return canonical, SETTINGS[kind][canonical]
    if instead := _NOT_YET[kind].get(squash(name)):
        raise ValueError(f'"{name}" isn\'t in this version yet; {instead}')
    raise ValueError(_unknown(kind, name, [*SETTINGS[kind], *sorted(plugins)]))


def _implied(kind: Kind, table: Mapping[str, Any]) -> str:
    """The platform of a table without one, as the Rust server's older documents have them."""
    if kind == "asr" and "url" in table:
        return "openai"
    if kind == "asr" and "paraformer_token" in table:
        return "paraformer_v2"
    if kind == "llm" and ("url" in table or "llm_chat_url" in table):
        return "openai_chat"
    if kind == "llm" and "llm_responses_url" in table:
        return "openai_responses"
    raise ValueError(f"is missing: {_INSTEAD[kind]}")


def _unknown(kind: Kind, name: str, platforms: list[str]) -> str:
    near = difflib.get_close_matches(squash(name), [squash(platform) for platform in platforms], n=1)
    listed = ", ".join(f'"{platform}"' for platform in platforms)
    if not near:
        return f'there is no platform "{name[:40]}" that can {WORK[kind]}; there are {listed}'
    right = next(platform for platform in platforms if squash(platform) == near[0])
    return f'there is no platform "{name[:40]}"; did you mean "{right}"? There are {listed}'


def missing_table(kind: Kind) -> str:
    """What to write when the table of `kind` isn't in the file."""
    local, *others = SETTINGS[kind]
    remote = " or ".join(f'"{platform}"' for platform in others)
    return (
        f'the table is missing: add a line [{kind}] and below it platform = "{local}" to {WORK[kind]} on this machine,'
        f" or {remote} for a server"
    )
