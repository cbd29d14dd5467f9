"""The `asr` cases of the public bug reports, told to a whole session: scripted VAD and recogniser, virtual time.

The data stand beside the checkout (../shared/corpus) and are not part of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from echokit_py.asr.base import Transcript
from echokit_py.config.settings import VadSettings
from echokit_py.session.outbox import Outbox
from echokit_py.session.session import Session
from firmware_protocol.events import ASR, AudioChunk, EndResponse, EndVad, ServerEvent, StartChat, Submit
from firmware_protocol.link import LinkParameters
from tests.beside import Case, cases, needs_corpus
from tests.fakes.providers import Scripted, ScriptedAsr, scripted, silence, speech
from tests.fakes.reading import take
from tests.fakes.virtual_time import InlineExecutor, run

PIECE_S = 0.032  # as fine as the VAD's frames, so that the moment of the end is known

pytestmark = needs_corpus


def asr_cases(kind: str) -> list[Case]:
    return [case for case in cases("asr") if case["input"]["kind"] == kind]


def items() -> list[Any]:
    return [
        pytest.param(item, expected, id=f"{case['id']} {item['text'].strip()!r}")
        for case in asr_cases("transcripts")
        for item, expected in zip(case["input"]["items"], case["expect"]["items"], strict=True)
    ]


@dataclass
class Recogniser(ScriptedAsr):
    """Answers with a transcript that has figures."""

    transcript: Transcript = field(default_factory=lambda: Transcript("Hello."))

    async def transcribe(self, pcm: bytes) -> Transcript:
        self.heard.append(pcm)
        return self.transcript


class Board:
    """One connection, which reads all events as they come. `audio_s`: how much of its microphone it has sent."""

    def __init__(self, made: Scripted, recogniser: Recogniser, vad: VadSettings) -> None:
        self.made, self.recogniser = made, recogniser
        self.session = Session("board", replace(made.services, asr=recogniser, vad_settings=vad))
        self.outbox = Outbox()
        self.audio_s = 0.0
        self.seen: list[tuple[float, ServerEvent]] = []

    async def read(self) -> None:
        while True:
            event = await take(self.outbox)
            if not isinstance(event, AudioChunk):
                self.seen.append((self.audio_s, event))

    async def start(self, *, streaming: bool) -> None:
        await self.session.attach(self.outbox, LinkParameters(stream_asr=streaming, reconnect=True))
        await self.session.command(self.outbox, StartChat())

    async def hear(self, kind: str, seconds: float) -> None:
        """Send audio in real time."""
        pcm = speech(seconds) if kind == "speech" else silence(seconds)
        size = int(PIECE_S * 16_000) * 2
        for start in range(0, len(pcm), size):
            await asyncio.sleep(PIECE_S)
            self.audio_s += len(pcm[start : start + size]) / 32_000
            await self.session.audio(self.outbox, pcm[start : start + size])

    def at(self, event: type[ServerEvent]) -> list[float]:
        """Where in the audio such events came."""
        return [audio_s for audio_s, seen in self.seen if type(seen) is event]


def tell(story: Callable[[Board], Coroutine[Any, Any, None]], transcript: Transcript, vad: VadSettings) -> None:
    errors: list[dict[str, Any]] = []

    async def whole(made: Scripted) -> None:
        board = Board(made, Recogniser(transcript=transcript), vad)
        reading = asyncio.create_task(board.read())
        try:
            await story(board)
        finally:
            reading.cancel()
            await board.session.close()

    with scripted(encoder=InlineExecutor()) as made:
        run(whole(made), errors.append)
    assert errors == []


@pytest.mark.parametrize("streaming", [True, False], ids=["server ends", "client ends"])
@pytest.mark.parametrize(("item", "expected"), items())
def test_a_transcript(item: Case, expected: Case, streaming: bool) -> None:
    figures = {name: item.get(name) for name in ("no_speech_prob", "avg_logprob", "compression_ratio")}
    speech_s = item.get("vad_speech_ms", 1000) / 1000
    kept = expected["action"] != "drop"

    async def story(board: Board) -> None:
        await board.start(streaming=streaming)
        await board.hear("speech", speech_s)
        await board.hear("silence", 0.7)
        if not streaming:
            await board.session.command(board.outbox, Submit())
        await board.hear("silence", 10)
        assert len(board.at(EndResponse)) == 1
        assert len(board.at(EndVad)) == streaming
        assert bool(board.made.llm.asked) is kept
        assert any(isinstance(event, ASR) for _, event in board.seen) is kept

    tell(story, Transcript(item["text"], **figures), VadSettings())


@pytest.mark.parametrize(
    ("adaptive", "text"), [(False, "What time is it?"), (True, "I would like to")], ids=["fixed", "adaptive"]
)
@pytest.mark.parametrize("case", asr_cases("vad"), ids=lambda case: str(case["id"]))
def test_a_run_of_the_detector(case: Case, adaptive: bool, text: str) -> None:
    config, expected = case["input"]["config"], case["expect"]
    vad = VadSettings(
        hangover_ms=config["end_silence_ms"],
        max_utterance_s=config["max_utterance_ms"] / 1000,
        adaptive=adaptive,
        max_hangover_ms=config["end_silence_ms"],
    )

    async def story(board: Board) -> None:
        await board.start(streaming=True)
        for kind, milliseconds in case["input"]["frames"]:
            # A minute after the limit of an utterance nothing more can come; ten would take the test a second.
            await board.hear(kind, min(milliseconds / 1000, vad.max_utterance_s + 60))
        ends = board.at(EndVad)
        assert len(ends) == len(board.at(EndResponse)) == expected["turns"]
        least, most = expected["end_ms_between"]
        assert least <= ends[0] * 1000 <= most

    tell(story, Transcript(text), vad)
