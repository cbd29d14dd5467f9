"""The settings as types: frozen, validated, secrets masked. Reading TOML and naming mistakes is `load.py`.

Field names are the keys of the configuration file. What the Rust server understands means the same here; what is
new here is said so in `config.toml`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

Seconds = Annotated[float, Field(gt=0, le=3600)]
Url = Annotated[str, Field(pattern=r"^https?://\S+$")]


class Section(BaseModel):
    """A table of the file: unknown keys are mistakes."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class Timeouts(Section):
    """How long a back end may be silent, and how long a whole turn may take. In seconds."""

    connect_s: Seconds = 5
    first_byte_s: Seconds = 20
    between_bytes_s: Seconds = 10
    turn_s: Seconds = 90


class VadSettings(Section):
    """End of speech, in the terms of the Rust server and Silero; `max_utterance_s` is new."""

    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5
    neg_threshold: Annotated[float, Field(gt=0, lt=1)] | None = None
    min_speech_duration_ms: Annotated[int, Field(ge=0, le=10_000)] = 400
    max_silence_duration_ms: Annotated[int, Field(ge=0, le=10_000)] = 200
    hangover_ms: Annotated[int, Field(ge=0, le=10_000)] = 500
    max_utterance_s: Annotated[float, Field(ge=1, le=300)] = 60
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
    api_key: SecretStr = SecretStr("")
    model: str = ""
    lang: str = ""
    prompt: str = ""
    vad: VadSettings = VadSettings()
    vad_url: str | None = None
    vad_realtime_url: str | None = None


class FasterWhisperAsr(Section):
    """Whisper on this machine, by faster-whisper."""

    platform: Literal["faster_whisper"] = "faster_whisper"
    model: str = "tiny.en"
    lang: str = ""
    prompt: str = ""
    device: Literal["cpu", "cuda", "auto"] = "cpu"
    compute_type: str = "int8"
    cpu_threads: Annotated[int, Field(ge=1, le=64)] = 1
    num_workers: Annotated[int, Field(ge=1, le=64)] = 2
    beam_size: Annotated[int, Field(ge=1, le=10)] = 1
    vad: VadSettings = VadSettings()


class OpenAiTts(Section):
    """Speech over OpenAI's HTTP API (`/audio/speech`)."""

    platform: Literal["openai"] = "openai"
    url: Url = "https://api.openai.com/v1/audio/speech"
    api_key: SecretStr
    model: str = "gpt-4o-tts"
    voice: str = "alloy"
    speed: Annotated[float, Field(ge=0.25, le=4)] | None = None


class PiperTts(Section):
    """Piper on this machine. `voice` is a name that `echokit-py models` lists, or a path to a `.onnx` file."""

    platform: Literal["piper"] = "piper"
    voice: str = "en_US-joe-medium"
    speaker: Annotated[int, Field(ge=0)] | None = None
    speed: Annotated[float, Field(ge=0.25, le=4)] = 1.0
    volume: Annotated[float, Field(gt=0, le=4)] = 1.0


class Prompt(Section):
    """One message of `sys_prompts` or `dynamic_prompts`."""

    role: Literal["system", "user", "assistant"]
    content: str


class McpServer(Section):
    """An MCP server whose tools the model may call."""

    server: Url
    api_key: SecretStr = SecretStr("")
    type: Literal["sse", "http_streamable"] = "http_streamable"
    call_mcp_message: str = ""


class Conversation(Section):
    """What every kind of LLM has in common: prompts, history, tools."""

    sys_prompts: tuple[Prompt, ...] = ()
    dynamic_prompts: tuple[Prompt, ...] = ()
    prompts_url: Url | None = None
    mcp_server: tuple[McpServer, ...] = ()
    extra: dict[str, Any] = {}


class OpenAiChatLlm(Conversation):
    """A server of OpenAI's chat completions API. `history` counts turns; 0 sends the current one only."""

    platform: Literal["openai_chat"] = "openai_chat"
    url: Url
    api_key: SecretStr = SecretStr("")
    model: str = ""
    history: Annotated[int, Field(ge=0, le=1000)]


class LlamaCppLlm(Conversation):
    """llama.cpp on this machine, in a child process. `model` is "auto", a name of `echokit-py models`, or a GGUF path."""

    platform: Literal["llama_cpp"] = "llama_cpp"
    model: str = "auto"
    context: Annotated[int, Field(ge=256, le=1_000_000)] = 4096
    threads: Annotated[int, Field(ge=0, le=256)] = 0
    parallel: Annotated[int, Field(ge=1, le=64)] = 2
    history: Annotated[int, Field(ge=0, le=1000)] = 10


class PluginSettings(BaseModel):
    """Settings of a platform that another package brings: all keys are kept as they are."""

    model_config = ConfigDict(frozen=True, extra="allow")
    platform: str
    vad: VadSettings = VadSettings()
    history: int = 10
    sys_prompts: tuple[Prompt, ...] = ()
    dynamic_prompts: tuple[Prompt, ...] = ()


AsrSettings = OpenAiAsr | FasterWhisperAsr | PluginSettings
TtsSettings = OpenAiTts | PiperTts | PluginSettings
LlmSettings = OpenAiChatLlm | LlamaCppLlm | PluginSettings


class Settings(Section):
    """The whole file."""

    addr: str = "0.0.0.0:8080"
    hello_wav: str | None = None
    allowed_origins: tuple[str, ...] = ()
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    models_dir: str | None = None
    timeouts: Timeouts = Timeouts()
    asr: AsrSettings
    tts: TtsSettings
    llm: LlmSettings
