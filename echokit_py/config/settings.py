"""The settings as types: frozen, validated, secrets masked. Reading TOML and naming mistakes is `load.py`.

Field names are the keys of the configuration file. What the Rust server understands means the same here; what is
new here is said so in `config.toml`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    ConfigDict,
    Field,
    SecretStr,
    Strict,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from echokit_py.config.address import parse_address
from echokit_py.config.mcp_server import McpServer, with_names_apart
from echokit_py.config.section import Section
from echokit_py.config.values import (
    Address,
    Flag,
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

__all__ = ["McpServer", "Seconds", "Section", "Url"]


class Timeouts(Section):
    """How long a back end may be silent, and how long a whole turn may take. In seconds."""

    connect_s: Seconds = 5
    first_byte_s: Seconds = 20
    between_bytes_s: Seconds = 10
    turn_s: Seconds = 90


# Recognisers put a full stop after half of the beginnings of sentences: that alone must not end a turn sooner.
def _least_hangover(vad: dict[str, Any]) -> int:
    return int(vad.get("hangover_ms", 0))


def _most_hangover(vad: dict[str, Any]) -> int:
    return int(2 * vad.get("hangover_ms", 0))


class VadSettings(Section):
    """End of speech. The options up to `hangover_ms` are the Rust server's and mean the same, the others are new.

    Attributes:
        speculate: recognise and think while the hangover still runs; what was begun is dropped when speech resumes.
        speculate_tts: synthesise the first sentence as well by then.
        adaptive: end sooner after what sounds finished, later after what does not: between `min_hangover_ms` and
            `max_hangover_ms`, by default `hangover_ms` and twice that.
    """

    threshold: Probability = 0.5
    neg_threshold: Probability | None = None
    min_speech_duration_ms: Milliseconds = 400
    max_silence_duration_ms: Milliseconds = 200
    hangover_ms: Milliseconds = 500
    max_utterance_s: Annotated[float, Strict(), Field(ge=1, le=300)] = 60
    speculate: Flag = True
    speculate_tts: Flag = False
    adaptive: Flag = True
    min_hangover_ms: Milliseconds = Field(default_factory=_least_hangover)
    max_hangover_ms: Milliseconds = Field(default_factory=_most_hangover)
    vad_url: str | None = None  # of older Rust servers; accepted, not used
    vad_realtime_url: str | None = None

    @field_validator("min_hangover_ms", "max_hangover_ms")
    @classmethod
    def _on_its_side(cls, limit: int, info: ValidationInfo) -> int:
        hangover = info.data.get("hangover_ms", limit)
        if info.field_name == "min_hangover_ms" and limit > hangover:
            raise PydanticCustomError("too_long", "must be at most hangover_ms, which is {ms}", {"ms": hangover})
        if info.field_name == "max_hangover_ms" and limit < hangover:
            raise PydanticCustomError("too_short", "must be at least hangover_ms, which is {ms}", {"ms": hangover})
        return limit

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
    to_simplified: Flag | None = None
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
    to_simplified: Flag | None = None
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


class Conversation(Section):
    """What every kind of LLM has in common. `history` counts turns; 0 sends the current one only.

    `tool_rounds`: how often in one turn the model may call tools, before it has to answer without.
    """

    sys_prompts: tuple[Prompt, ...] = ()
    dynamic_prompts: tuple[Prompt, ...] = ()
    prompts_url: Url | None = None
    history: Turns = 10  # the Rust server insists on a value
    tool_rounds: Annotated[int, Strict(), Field(ge=1, le=50)] = 8
    mcp_server: Annotated[tuple[McpServer, ...], AfterValidator(with_names_apart)] = ()
    extra: JsonTable = Field(default_factory=dict)


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
    to_simplified: Flag | None = None


AsrSettings = OpenAiAsr | FasterWhisperAsr | PluginSettings
TtsSettings = OpenAiTts | PiperTts | PluginSettings
LlmSettings = OpenAiChatLlm | OpenAiResponsesLlm | LlamaCppLlm | PluginSettings


class Settings(Section):
    """The whole file."""

    addr: Address = "0.0.0.0:8080"
    hello_wav: str | None = None
    allowed_origins: tuple[Origin, ...] = ()
    log_level: LogLevel = "INFO"
    log_texts: Flag = False
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
