"""Speech for the simulated board's `--say`: the packaged Piper voice."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from echokit_py.config.settings import PiperTts
from echokit_py.http import HttpClient
from echokit_py.models.store import ModelStore
from echokit_py.tts.piper import build


class Voice:
    """The packaged voice, loaded for the time of the block: `async with Voice() as voice`."""

    def __init__(self) -> None:
        self._http = HttpClient(connect_s=5)
        self._voice = build(PiperTts(), http=self._http, models=ModelStore())

    async def __aenter__(self) -> Self:
        """Load it. Raises ModelError or BackendError."""
        await self._voice.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._voice.close()
        await self._http.close()

    async def say(self, text: str) -> bytes:
        """Speak `text`; return s16le mono 16 kHz audio. Raises BackendError."""
        return b"".join([piece async for piece in self._voice.synthesize(text)])


async def say(text: str) -> bytes:
    """Speak one text; return s16le mono 16 kHz audio. Raises ModelError or BackendError."""
    async with Voice() as voice:
        return await voice.say(text)
