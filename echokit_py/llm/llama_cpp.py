"""A language model on this machine: llama.cpp's own HTTP server in a child process, asked like any OpenAI server.

Running the child is `llama_supervisor.py`, asking it is `chat.py`.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from echokit_py.config.settings import LlamaCppLlm
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.http import HttpClient
from echokit_py.llm.base import LlmEvent, Message, Tool
from echokit_py.llm.chat import OpenAiChat
from echokit_py.llm.llama_supervisor import LlamaServer, Options
from echokit_py.models.machine import physical_cores
from echokit_py.models.store import ModelStore

log = logging.getLogger(__name__)

_MOST_THREADS = 16  # beyond that, memory bandwidth decides


def build(settings: LlamaCppLlm, *, http: HttpClient, models: ModelStore) -> LlamaCpp:
    """Make the provider; nothing is started or fetched before `start()`."""
    return LlamaCpp(settings, http=http, models=models)


def choose_threads(cores: int) -> int:
    """Threads for a machine of `cores` physical cores: one stays free for recognition, synthesis and the event loop.

    llama.cpp's threads wait for each other after every layer, so one that has to share its core slows all of them.
    """
    return max(1, min(cores - 1, _MOST_THREADS))


class LlamaCpp:
    """An `Llm` (see `base.py`) shared by all devices."""

    def __init__(self, settings: LlamaCppLlm, *, http: HttpClient, models: ModelStore) -> None:
        self._settings = settings
        self._http = http
        self._models = models
        self._server: LlamaServer | None = None
        self._chat: OpenAiChat | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id, None while it is not serving."""
        return self._server.pid if self._server else None

    async def start(self) -> None:
        """Fetch the model if need be, start the child and wait until it serves. Raises ModelError."""
        settings = self._settings
        name = await self._models.auto_llm() if settings.model == "auto" else settings.model
        path = await self._models.path(name)
        alias = Path(name).stem if "/" in name else name
        options = Options(
            model=str(path),
            alias=alias,
            context=settings.context,
            parallel=settings.parallel,
            threads=settings.threads or choose_threads(physical_cores()),
            api_key=secrets.token_urlsafe(24),
        )
        server = LlamaServer(options)
        await server.start()
        self._server = server
        self._chat = OpenAiChat(
            self._http, url=server.chat_url, api_key=options.api_key, model=alias, extra=settings.extra
        )
        log.info("language model %s serves with %d threads, %d tokens", alias, options.threads, options.context)

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AsyncIterator[LlmEvent]:
        """See `Llm.stream`. While the child is restarted, requests fail at once."""
        return self._running().stream(messages, tools)

    async def probe(self) -> str:
        """See `Llm.probe`."""
        return await self._running().probe()

    async def close(self) -> None:
        """Stop the child."""
        if self._server is not None:
            await self._server.close()

    def _running(self) -> OpenAiChat:
        if self._chat is None:
            raise BackendError(Stage.LLM, ErrorKind.CONNECT, "the local language model is not started")
        return self._chat
