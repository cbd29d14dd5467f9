"""The settings as types: frozen, validated, secrets masked. Reading TOML and naming mistakes is `load.py`.

Field names are the keys of the configuration file. What the Rust server understands means the same here; what is
new here is said so in `config.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    SerializerFunctionWrapHandler,
    Strict,
    model_serializer,
)

from echokit_py.config.address import parse_address
from echokit_py.config.redact import hide
from echokit_py.config.values import (
    Address,
    JsonTable,
    Key,
    Language,
    LogLevel,
    Milliseconds,
    Origin,
    Probability,
    Seconds,
    Speed,
    Turns,
    Url,
)

__all__ = ["Seconds", "Url"]


class Section(BaseModel):
    """A table of the file: unknown keys are mistakes. `repr`, `str` and `model_dump` never show a secret."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), hide_input_in_errors=True)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, hide(value, name or "")

    @model_serializer(mode="wrap")
    def _masked(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        masked: dict[str, Any] = hide(handler(self))
        return masked


class Timeouts(Section):
    """How long a back end may be silent, and how long a whole turn may take. In seconds."""

    connect_s: Seconds = 5
    first_byte_s: Seconds = 20
    between_bytes_s: Seconds = 10
    turn_s: Seconds = 90


class VadSettings(Section):
    """End of speech, in the terms of the Rust server and Silero; `max_utterance_s` is new."""

    threshold: Probability = 0.5
    neg_threshold: Probability | None = None
    min_speech_duration_ms: Milliseconds = 400
    max_silence_duration_ms: Milliseconds = 200
    hangover_ms: Milliseconds = 500
    max_utterance_s: Annotated[float, Strict(), Field(ge=1, le=300)] = 60
    vad_url: str | None = None  # of older Rust servers; accepted, not used
    vad_realtime_url: str | None = None

    @property
    def exit_threshold(self) -> float:
        """The probability below which speech ends: `neg_threshold`, by default threshold − 0.15, at least 0.05."""
        return max(0.05, self.threshold - 0.15) if self.neg_threshold is None else self.neg_threshold


class OpenAiAsr(Section):
    """Transcription over OpenAI's HTTP API (`/audio/transcriptions`), which many servers speak."""

    platform: Literal["openai"] = "openai"
    url: Url
    api_key: Key = SecretStr("")
    model: str = ""
    lang: Language = ""
    prompt: str = ""
    vad: VadSettings = VadSettings()
    vad_url: str | None = None
    vad_realtime_url: str | None = None


class FasterWhisperAsr(Section):
    """Whisper on this machine, by faster-whisper."""

    platform: Literal["faster_whisper"] = "faster_whisper"
    model: str = "tiny.en"
    lang: Language = ""
    prompt: str = ""
    device: Literal["cpu", "cuda", "auto"] = "cpu"
    compute_type: str = "int8"
    cpu_threads: Annotated[int, Strict(), Field(ge=0, le=64)] = 0
    num_workers: Annotated[int, Strict(), Field(ge=1, le=64)] = 2
    beam_size: Annotated[int, Strict(), Field(ge=1, le=10)] = 1
    vad: VadSettings = VadSettings()


class OpenAiTts(Section):
    """Speech over OpenAI's HTTP API (`/audio/speech`)."""

    platform: Literal["openai"] = "openai"
    url: Url = "https://api.openai.com/v1/audio/speech"
    api_key: Key = SecretStr("")  # the Rust server insists on one; servers at home often have none
    model: str = "gpt-4o-tts"
    voice: str = "alloy"
    speed: Speed | None = None


class PiperTts(Section):
    """Piper on this machine. `voice` is a name that `echokit-py models` lists, or a path to a `.onnx` file."""

    platform: Literal["piper"] = "piper"
    voice: str = "en_US-joe-medium"
    speaker: Annotated[int, Strict(), Field(ge=0)] | None = None
    speed: Speed = 1.0
    volume: Annotated[float, Strict(), Field(gt=0, le=4)] = 1.0


class Prompt(Section):
    """One message of `sys_prompts` or `dynamic_prompts`."""

    role: Literal["system", "user", "assistant"]
    content: str


class McpServer(Section):
    """An MCP server whose tools the model may call."""

    server: Url
    api_key: Key = SecretStr("")
    type: Literal["sse", "http_streamable"] = "http_streamable"
    call_mcp_message: str = ""


class Conversation(Section):
    """What every kind of LLM has in common. `history` counts turns; 0 sends the current one only.

    `tool_rounds`: how often in one turn the model may call tools, before it has to answer without.
    """

    sys_prompts: tuple[Prompt, ...] = ()
    dynamic_prompts: tuple[Prompt, ...] = ()
    prompts_url: Url | None = None
    history: Turns = 10  # the Rust server insists on a value
    tool_rounds: Annotated[int, Strict(), Field(ge=1, le=50)] = 8
    mcp_server: tuple[McpServer, ...] = ()
    extra: JsonTable = {}


class OpenAiChatLlm(Conversation):
    """A server of OpenAI's chat completions API."""

    platform: Literal["openai_chat"] = "openai_chat"
    url: Url = Field(validation_alias=AliasChoices("url", "llm_chat_url"))
    api_key: Key = SecretStr("")
    model: str = ""


class OpenAiResponsesLlm(Conversation):
    """OpenAI's Responses API, or a server that has it too. The first of `sys_prompts` overrides `instructions`."""

    platform: Literal["openai_responses"] = "openai_responses"
    url: Url = Field("https://api.openai.com/v1/responses", validation_alias=AliasChoices("url", "llm_responses_url"))
    api_key: Key = SecretStr("")
    model: str = "gpt-4.1"
    instructions: str = "You are a helpful assistant."

    @property
    def address(self) -> str:
        """`url`, but for the one in the Rust server's example for Groq: nothing answers there, /chat is too much."""
        return re.sub(r"^(https://api\.groq\.com/openai/v1)/chat(/responses)$", r"\1\2", self.url)


class LlamaCppLlm(Conversation):
    """llama.cpp on this machine, in a child process. `model`: "auto", a name of `echokit-py models`, or a GGUF path."""

    platform: Literal["llama_cpp"] = "llama_cpp"
    model: str = "auto"
    context: Annotated[int, Strict(), Field(ge=256, le=1_000_000)] = 4096
    threads: Annotated[int, Strict(), Field(ge=0, le=256)] = 0
    parallel: Annotated[int, Strict(), Field(ge=1, le=64)] = 2


class PluginSettings(Conversation):
    """Settings of a platform that another package brings: all keys are kept as they are (`model_extra`)."""

    model_config = ConfigDict(extra="allow")
    platform: str
    vad: VadSettings = VadSettings()


AsrSettings = OpenAiAsr | FasterWhisperAsr | PluginSettings
TtsSettings = OpenAiTts | PiperTts | PluginSettings
LlmSettings = OpenAiChatLlm | OpenAiResponsesLlm | LlamaCppLlm | PluginSettings


class Settings(Section):
    """The whole file."""

    addr: Address = "0.0.0.0:8080"
    hello_wav: str | None = None
    allowed_origins: tuple[Origin, ...] = ()
    log_level: LogLevel = "INFO"
    models_dir: str | None = None
    timeouts: Timeouts = Timeouts()
    asr: AsrSettings
    tts: TtsSettings
    llm: LlmSettings

    @property
    def host(self) -> str:
        """The host part of `addr`."""
        return parse_address(self.addr)[0]

    @property
    def port(self) -> int:
        """The port part of `addr`; 0 means that the system chooses."""
        return parse_address(self.addr)[1]
