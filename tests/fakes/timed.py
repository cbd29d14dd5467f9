"""Back ends that take exactly so long, and a board with a microphone in real time; for tests in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from echokit_py.asr.base import Transcript
from echokit_py.config.settings import Timeouts, VadSettings
from echokit_py.llm.base import LlmEvent, Message, Step, TextDelta, Tool
from echokit_py.session.journal import TurnRecord
from echokit_py.session.session import Session
from firmware_protocol.events import ASR, AudioChunk, StartAudio, StartChat, Text
from tests.fakes.providers import Scripted, scripted, silence, speech
from tests.fakes.reading import ReadingBoard
from tests.fakes.talking import Bench
from tests.fakes.virtual_time import InlineExecutor, run

FRAME_S = 0.032
SPOKEN_S = 0.992  # in whole frames
FIXED = VadSettings(adaptive=False)  # the end of speech doesn't depend on the words


@dataclass
class Back:
    """What one back end does: takes `takes_s`, then raises the next of `errors` that isn't None. `asked`: when."""

    takes_s: float = 0.1
    errors: list[BaseException | None] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)
    running: int = 0
    cancelled: int = 0

    async def work(self) -> None:
        error = self.errors.pop(0) if self.errors else None
        self.asked.append(asyncio.get_running_loop().time())
        self.running += 1
        try:
            await asyncio.sleep(self.takes_s)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        if error is not None:
            raise error


@dataclass
class TimedAsr(Back):
    """Understands `text`; of more than one the next, the last one stays."""

    texts: list[str] = field(default_factory=lambda: ["What time is it?"])
    pcm: list[bytes] = field(default_factory=list)

    async def transcribe(self, pcm: bytes) -> Transcript:
        self.pcm.append(pcm)
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        await self.work()
        return Transcript(text)

    async def start(self) -> None: ...

    async def probe(self) -> str:
        return "timed"

    async def close(self) -> None: ...


@dataclass
class TimedLlm(Back):
    """Says the next of `steps`, whole after `takes_s`; the last one stays."""

    steps: list[Step] = field(default_factory=lambda: [Step("It is noon. Enjoy.", "", "stop")])
    messages: list[list[Message]] = field(default_factory=list)

    async def stream(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AsyncGenerator[LlmEvent, None]:
        self.messages.append(list(messages))
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        await self.work()
        yield TextDelta(step.text)
        yield step

    async def start(self) -> None: ...

    async def probe(self) -> str:
        return "timed"

    async def close(self) -> None: ...

    @property
    def questions(self) -> list[str]:
        return [str(messages[-1]["content"]) for messages in self.messages]


@dataclass
class TimedTts(Back):
    """Speaks for half a second."""

    spoken: list[str] = field(default_factory=list)

    async def synthesize(self, text: str) -> AsyncGenerator[bytes, None]:
        self.spoken.append(text)
        await self.work()
        yield speech(0.5)

    async def start(self) -> None: ...

    async def probe(self) -> str:
        return "timed"

    async def close(self) -> None: ...


class Device:
    """A board that reads all at once, and a microphone in real time: 32 ms at a time, so that times are exact."""

    def __init__(self, made: Scripted, settings: VadSettings) -> None:
        self.asr, self.llm, self.tts, self.tools = TimedAsr(), TimedLlm(), TimedTts(), Bench()
        self.vad = made.vad
        self.services = replace(
            made.services, asr=self.asr, llm=self.llm, tts=self.tts, tools=self.tools.source, vad_settings=settings
        )
        self.session = Session("board", self.services)
        board = ReadingBoard(self.session)
        self.connect, self.disconnect = board.connect, board.disconnect
        self.command, self.audio, self.seen = board.command, board.audio, board.seen
        self.quiet_since = 0.0

    async def cut_in(self, how: str, text: str = "And now?") -> None:
        """What a user does in the middle of something: "StartChat", "Text" (types `text`), "connect", "disconnect"."""
        match how:
            case "StartChat":
                await self.command(StartChat())
            case "Text":
                await self.command(Text(text))
            case "connect":
                await self.connect()
            case _:
                await self.disconnect()

    async def say(self, seconds: float) -> None:
        await self._send(speech(FRAME_S), seconds)
        self.quiet_since = asyncio.get_running_loop().time()

    async def pause(self, seconds: float) -> None:
        await self._send(silence(FRAME_S), seconds)

    async def _send(self, frame: bytes, seconds: float) -> None:
        for _ in range(round(seconds / FRAME_S)):
            await asyncio.sleep(FRAME_S)
            await self.audio(frame)

    async def ask(self, then: float = 3.0) -> None:
        await self.command(StartChat())
        await self.say(SPOKEN_S)
        await self.pause(then)

    def events(self) -> list[str]:
        return [type(event).__name__ for _, event in self.seen if not isinstance(event, AudioChunk)]

    @property
    def first_audio_s(self) -> float:
        """From the end of speech to the first audio."""
        return next(at for at, event in self.seen if isinstance(event, AudioChunk)) - self.quiet_since

    @property
    def spoken(self) -> list[str]:
        return [event.text for _, event in self.seen if isinstance(event, StartAudio)]

    @property
    def texts(self) -> list[str]:
        return [event.text for _, event in self.seen if isinstance(event, ASR)]

    @property
    def record(self) -> TurnRecord:
        return list(self.services.journal)[-1]

    @property
    def at_work(self) -> int:
        return self.asr.running + self.llm.running + self.tts.running + self.tools.running


def in_time(
    story: Callable[[Device], Coroutine[Any, Any, None]], vad: VadSettings = FIXED, timeouts: Timeouts | None = None
) -> None:
    """Let `story` happen to a connected device; nothing may be reported to the loop, nothing left behind."""
    errors: list[dict[str, Any]] = []

    async def whole(made: Scripted) -> None:
        device = Device(made, vad)
        await device.connect()
        await story(device)
        await device.disconnect()
        await device.session.close()
        await asyncio.sleep(5)
        assert [task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}] == []
        assert device.at_work == 0

    with scripted(timeouts, encoder=InlineExecutor()) as made:
        run(whole(made), errors.append)
    assert errors == []
