"""The composition root: the only place that builds providers from the configuration. It runs nothing itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from echokit_py import registry
from echokit_py.asr import simplified
from echokit_py.asr.base import Asr
from echokit_py.audio.pcm import AudioError
from echokit_py.audio.resample import to_mono_16k
from echokit_py.audio.wav import read_wav
from echokit_py.config.language import spoken_language
from echokit_py.config.settings import Settings
from echokit_py.errors import ModelError, Stage
from echokit_py.http import HttpClient
from echokit_py.llm.base import Llm, Message
from echokit_py.models.store import ModelStore
from echokit_py.session import apologies
from echokit_py.session.encoding import LANES
from echokit_py.session.journal import Journal
from echokit_py.session.services import Services
from echokit_py.tools.base import NoTools, ToolSource
from echokit_py.tts.base import Tts
from echokit_py.vad.base import Vad

if TYPE_CHECKING:
    from echokit_py.mcp.source import McpTools

log = logging.getLogger(__name__)

# A hello sound is a greeting, not a song: 60 s are 2 MB per connection that is on its way.
HELLO_LIMIT_BYTES = 60 * 32_000


@dataclass(frozen=True, slots=True)
class Providers:
    """What the configuration names, built but not started."""

    vad: Vad
    asr: Asr
    llm: Llm
    tts: Tts

    def by_stage(self) -> dict[Stage, Any]:
        """The providers by the stage they serve."""
        return {Stage.VAD: self.vad, Stage.ASR: self.asr, Stage.LLM: self.llm, Stage.TTS: self.tts}


@asynccontextmanager
async def providers(settings: Settings) -> AsyncIterator[Providers]:
    """Build the providers; they are closed when the block is left. Raises ModelError for one that isn't installed."""
    async with AsyncExitStack() as stack:
        http = HttpClient(connect_s=settings.timeouts.connect_s)
        stack.push_async_callback(http.close)
        models = ModelStore(Path(settings.models_dir) if settings.models_dir else None)

        def build(kind: registry.Kind, section: Any, platform: str) -> Any:
            try:
                provider = registry.find(kind, platform)(section, http=http, models=models)
            except LookupError as error:
                raise ModelError(str(error)) from None
            stack.push_async_callback(provider.close)
            return provider

        yield Providers(
            vad=cast(Vad, build("vad", None, "silero")),
            asr=simplified.wrap(cast(Asr, build("asr", settings.asr, settings.asr.platform)), settings.asr),
            llm=cast(Llm, build("llm", settings.llm, settings.llm.platform)),
            tts=cast(Tts, build("tts", settings.tts, settings.tts.platform)),
        )


async def start(built: Providers) -> None:
    """Load all models at once. Raises BackendError or ModelError for the first that can't be used."""
    async with asyncio.TaskGroup() as group:
        for provider in built.by_stage().values():
            group.create_task(provider.start())


@asynccontextmanager
async def mcp_tools(settings: Settings) -> AsyncIterator[McpTools | None]:
    """The tools of the MCP servers in the configuration, None when there are none.

    Connecting begins when the block is entered, and nothing waits for it; all is disconnected when it is left.
    """
    servers = settings.llm.mcp_server
    if not servers:
        yield None
        return
    from echokit_py.mcp.source import McpTools

    tools = McpTools(servers)
    try:
        await tools.start()
        yield tools
    finally:
        await tools.close()


@asynccontextmanager
async def services(settings: Settings, built: Providers, tools: ToolSource | None = None) -> AsyncIterator[Services]:
    """What sessions share, from started or starting providers."""
    with ThreadPoolExecutor(LANES, thread_name_prefix="encoder") as encoder:
        yield Services(
            vad=built.vad,
            asr=built.asr,
            llm=built.llm,
            tts=built.tts,
            vad_settings=settings.asr.vad,
            timeouts=settings.timeouts,
            language=spoken_language(settings.asr),
            encoder=encoder,
            tools=tools or NoTools(),
            tool_rounds=settings.llm.tool_rounds,
            history_turns=settings.llm.history,
            system=_messages(settings.llm.sys_prompts),
            few_shot=_messages(settings.llm.dynamic_prompts),
            journal=Journal(texts=settings.log_texts),
            hello=await asyncio.to_thread(load_hello, settings.hello_wav),
            apologies=await asyncio.to_thread(apologies.load, apologies.language_of(settings)),
        )


def load_hello(path: str | None) -> bytes:
    """The hello sound as s16le mono 16 kHz, b"" when there is none or it can't be used (the log says why). Blocks."""
    if not path:
        return b""
    try:
        pcm = to_mono_16k(read_wav(Path(path).expanduser().read_bytes()))
    except (OSError, AudioError) as error:
        log.warning("hello_wav: %s; boards get no hello sound", error)
        return b""
    if len(pcm) > HELLO_LIMIT_BYTES:
        log.warning("hello_wav: longer than %d s; it is cut", HELLO_LIMIT_BYTES // 32_000)
    return pcm[:HELLO_LIMIT_BYTES]


def _messages(prompts: Any) -> tuple[Message, ...]:
    return tuple({"role": prompt.role, "content": prompt.content} for prompt in prompts)
