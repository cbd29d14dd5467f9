"""Scripted providers for tests of the session's logic: real interfaces, no models, no sockets.

What a real back end does on the wire is tested with the servers in `chat_server.py` and `speech_server.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from echokit_py.asr.base import Transcript
from echokit_py.config.settings import Timeouts, VadSettings
from echokit_py.llm.base import LlmEvent, Message, Step, TextDelta, Tool
from echokit_py.session.apologies import SENTENCES, STATUS, Apology
from echokit_py.session.services import Services

SECOND = 32_000  # bytes of s16le mono 16 kHz audio
LOUD = b"\x00\x40"
QUIET = b"\x00\x00"


def speech(seconds: float) -> bytes:
    """Audio that ScriptedVad takes for speech."""
    return LOUD * int(seconds * 16_000)


def silence(seconds: float) -> bytes:
    """Audio that it doesn't."""
    return QUIET * int(seconds * 16_000)


async def obstacle(gate: asyncio.Event | None, stubborn_s: float, error: BaseException | None) -> None:
    """What stands in a provider's way: wait for `gate` (going on for `stubborn_s` seconds after a cancellation, which
    is then forgotten), then raise `error`."""
    try:
        if gate is not None:
            await gate.wait()
    except asyncio.CancelledError:
        if not stubborn_s:
            raise
        await asyncio.sleep(stubborn_s)
    if error is not None:
        raise error


class _LevelStream:
    def __init__(self, vad: ScriptedVad) -> None:
        self._vad = vad
        self._rest = b""

    async def feed(self, pcm: bytes) -> list[float]:
        await obstacle(self._vad.gate, self._vad.stubborn_s, self._vad.error)
        self._rest += pcm
        whole = len(self._rest) // 1024
        frames = [self._rest[at * 1024 : at * 1024 + 1024] for at in range(whole)]
        self._rest = self._rest[whole * 1024 :]
        return [0.9 if frame.count(LOUD) > 256 else 0.01 for frame in frames]


@dataclass
class ScriptedVad:
    """Loud is speech. Waits for `gate`, raises `error`."""

    error: BaseException | None = None
    gate: asyncio.Event | None = None
    stubborn_s: float = 0.0

    def stream(self) -> _LevelStream:
        return _LevelStream(self)

    async def start(self) -> None: ...

    async def close(self) -> None: ...


@dataclass
class ScriptedAsr:
    """Answers with `text`; raises `error`; waits for `gate`."""

    text: str = "What time is it?"
    error: BaseException | None = None
    gate: asyncio.Event | None = None
    stubborn_s: float = 0.0
    heard: list[bytes] = field(default_factory=list)

    async def transcribe(self, pcm: bytes) -> Transcript:
        self.heard.append(pcm)
        text = self.text
        await obstacle(self.gate, self.stubborn_s, self.error)
        return Transcript(text)

    async def start(self) -> None: ...

    async def probe(self) -> str:
        return "scripted"

    async def close(self) -> None: ...


@dataclass
class ScriptedLlm:
    """Streams `deltas`, then raises `error` or ends; waits for `gate` before the delta of that number."""

    deltas: Sequence[str] = ("It is ", "noon. ", "Enjoy your ", "lunch.")
    error: BaseException | None = None
    gate: asyncio.Event | None = None
    gate_at: int = 0
    stubborn_s: float = 0.0
    asked: list[list[Message]] = field(default_factory=list)
    running: int = 0

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AsyncGenerator[LlmEvent, None]:
        self.asked.append(list(messages))
        self.running += 1
        try:
            for number, delta in enumerate(self.deltas):
                if number == self.gate_at:
                    await obstacle(self.gate, self.stubborn_s, None)
                yield TextDelta(delta)
            await obstacle(None, 0, self.error)
            yield Step("".join(self.deltas), "", "stop")
        finally:
            self.running -= 1

    async def start(self) -> None: ...

    async def probe(self) -> str:
        return "scripted"

    async def close(self) -> None: ...


@dataclass
class ScriptedTts:
    """Speaks a tenth of a second a character; `fails` says for which text it waits for `gate` and raises `error`."""

    seconds_per_character: float = 0.1
    error: BaseException | None = None
    fails: Callable[[str], bool] = lambda text: True
    pieces: int = 1  # of that length
    pause_s: float = 0.0  # before each piece but the first
    gate: asyncio.Event | None = None
    stubborn_s: float = 0.0
    empty: bool = False
    spoken: list[str] = field(default_factory=list)
    running: int = 0

    async def synthesize(self, text: str) -> AsyncGenerator[bytes, None]:
        self.spoken.append(text)
        self.running += 1
        try:
            if self.fails(text):
                await obstacle(self.gate, self.stubborn_s, self.error)
            for number in range(0 if self.empty else self.pieces):
                await asyncio.sleep(self.pause_s if number else 0)
                yield speech(self.seconds_per_character * len(text))
        finally:
            self.running -= 1

    async def start(self) -> None: ...

    async def probe(self) -> str:
        return "scripted"

    async def close(self) -> None: ...


@dataclass
class Scripted:
    """The scripted providers together, and the services made of them."""

    vad: ScriptedVad
    asr: ScriptedAsr
    llm: ScriptedLlm
    tts: ScriptedTts
    services: Services


@contextmanager
def scripted(
    timeouts: Timeouts | None = None, hello: bytes = b"", history_turns: int = 10, encoder: Executor | None = None
) -> Iterator[Scripted]:
    """Scripted providers in services with the default settings."""
    vad, asr, llm, tts = ScriptedVad(), ScriptedAsr(), ScriptedLlm(), ScriptedTts()
    with encoder or ThreadPoolExecutor(1) as threads:
        services = Services(
            vad=vad,
            asr=asr,
            llm=llm,
            tts=tts,
            vad_settings=VadSettings(),
            timeouts=timeouts or Timeouts(),
            encoder=threads,
            history_turns=history_turns,
            system=({"role": "system", "content": "Be brief."},),
            hello=hello,
            apologies={name: Apology(text, STATUS[name], silence(0.5)) for name, text in SENTENCES.items()},
        )
        yield Scripted(vad, asr, llm, tts, services)
