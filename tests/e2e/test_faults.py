"""Each back end fails in each way: the running program brings the board back to Listening; the next turn is right.

All faults happen at the same time, each to a board of its own: what a fake is asked for says whose turn it is, by the
loudness of the question at first, and by the number of a room in its words after that.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from aiohttp import web

from echokit_py.audio.wav import Wav
from echokit_py.device.board import Outcome
from echokit_py.device.client import Board
from echokit_py.device.turn import Turn
from firmware_protocol.events import Action, EndResponse, EndVad
from tests.e2e.conftest import Voices
from tests.fakes.chat_server import Answer, ChatServer, call, say
from tests.fakes.faults import Fault, replacement, send
from tests.fakes.speech_server import SpeechServer, Transcription
from tests.mcp_servers.scripted import ScriptedMcp
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

QUESTION = "What time is it"
ANSWER = ("It is noon in room {}.", "Enjoy your lunch in room {}.")

# Short, so that the tests are; each stage may fail by its own limit, the whole turn by the last.
CONFIG = """
[timeouts]
connect_s = 2
first_byte_s = 3
between_bytes_s = 3
turn_s = 15

[asr]
platform = "openai"
url = "{asr}"
api_key = "key"
model = "whisper-1"

[tts]
platform = "openai"
url = "{tts}"
api_key = "key"
model = "tts-1"
voice = "alloy"

[llm]
platform = "openai_chat"
url = "{llm}"
api_key = "key"
model = "gpt"
history = 5
"""
TOOLS = """
[[llm.mcp_server]]
name = "{name}"
server = "{url}"
timeout_sec = 3
"""

# The whole turn's limit, the apology and the machine's slowness.
LIMIT_S = 60.0
# Boards that talk at the same time.
AT_ONCE = 8

# What leaves a whole answer, only later.
HARMLESS = {Fault.SLOW}
# By the protocols themselves an answer may end here: a WAV without its last byte, SSE without the blank line after
# [DONE], JSON is the only one of the three that can't.
WHOLE_ENOUGH = {("tts", Fault.CUT_LAST), ("llm", Fault.CUT_LAST)}
# A whole answer in which only the second sentence fails to be spoken.
SENTENCE = "second sentence"

# (stage, fault); where one stands is the number of its room.
CASES: list[tuple[str, Fault | None]] = [
    *((stage, fault) for stage in ("asr", "llm", "tts", "tool") for fault in Fault),
    *((SENTENCE, fault) for fault in (Fault.STATUS_500, Fault.HANG, Fault.GARBAGE, Fault.CUT_MIDDLE)),
    ("none", None),
]
HEALTHY = len(CASES) - 1
LOUDNESS, STEP = 9000, 250  # the peak of room 0's question, and what each further room adds

_room: ContextVar[int] = ContextVar("room", default=HEALTHY)  # whose request is being answered


def room_in(text: str) -> int:
    """The room that a text speaks of."""
    found = re.findall(r"room (\d+)", text)
    return int(found[-1]) if found else HEALTHY


class Speech(SpeechServer):
    """Recognition and a voice that fail for some rooms. `faults`: by stage and room."""

    def __init__(self) -> None:
        self.faults: dict[tuple[str, int], Fault] = {}
        super().__init__(texts=self._hear, key="key")

    @property
    def asr_fault(self) -> Fault | None:
        return self.faults.get(("asr", _room.get()))

    @asr_fault.setter
    def asr_fault(self, fault: Fault | None) -> None:
        assert fault is None

    @property
    def tts_fault(self) -> Fault | None:
        return self.faults.get(("tts", _room.get()))

    @tts_fault.setter
    def tts_fault(self, fault: Fault | None) -> None:
        assert fault is None

    @staticmethod
    def _hear(wav: Wav) -> str:
        return f"{QUESTION} in room {_loudness(wav.pcm)}?"

    async def _read_form(self, request: web.Request) -> Transcription | web.Response:
        taken = await super()._read_form(request)
        if isinstance(taken, Transcription):
            _room.set(_loudness(taken.wav.pcm))
        return taken

    def _wrong_speech(self, body: Any) -> web.Response | None:
        room, second = room_in(body["input"]), body["input"].startswith(ANSWER[1][:5])
        _room.set(room if second or CASES[room][0] != SENTENCE else HEALTHY)
        return super()._wrong_speech(body)


def loud(pcm: bytes, room: int) -> bytes:
    """A question as it is asked in a room."""
    samples = np.frombuffer(pcm, "<i2").astype(np.float64)
    scaled: bytes = (samples * ((LOUDNESS + STEP * room) / np.abs(samples).max())).round().astype("<i2").tobytes()
    return scaled


def _loudness(pcm: bytes) -> int:
    return round((int(np.abs(np.frombuffer(pcm, "<i2").astype(np.int32)).max()) - LOUDNESS) / STEP)


class FaultyMcp(ScriptedMcp):
    """An MCP server with one tool, which runs into `fault` when it is called."""

    def __init__(self, name: str) -> None:
        super().__init__({"name": name, "protocol": "2025-06-18", "tools": [name]})
        self.fault: Fault | None = None

    async def _post(self, request: web.Request) -> web.StreamResponse:
        if self.fault is None or (await request.json()).get("method") != "tools/call":
            return await super()._post(request)
        if answer := await replacement(request, self.fault, "application/json", self._closing):
            return answer
        whole = await super()._post(request)
        assert isinstance(whole, web.Response)
        assert isinstance(whole.body, bytes)
        return await send(
            request, [whole.body], content_type="application/json", fault=self.fault, closing=self._closing
        )


@dataclass
class Program:
    """The running server and its fake back ends."""

    server: ServerProcess
    speech: Speech
    chat: ChatServer
    tools: dict[int, FaultyMcp]
    results: dict[int, list[str]] = field(default_factory=dict)  # what tools answered, by room
    broken: set[int] = field(default_factory=set)  # rooms without a model

    def __post_init__(self) -> None:
        self.chat.answers = [self._think]

    def break_down(self, room: int) -> None:
        """Let the room's fault happen from now on."""
        stage, fault = CASES[room]
        if stage == "tool":
            self.tools[room].fault = fault
        elif fault is not None and stage != "llm":
            self.speech.faults["tts" if stage == SENTENCE else stage, room] = fault
        elif fault is not None:
            self.broken.add(room)

    def mend(self, room: int) -> None:
        """All is well again in the room."""
        self.broken.discard(room)
        for stage in ("asr", "tts"):
            self.speech.faults.pop((stage, room), None)
        if room in self.tools:
            self.tools[room].fault = None

    def _think(self, body: dict[str, Any]) -> Answer | Fault:
        last = body["messages"][-1]
        room = room_in(next(each["content"] for each in reversed(body["messages"]) if each["role"] == "user"))
        if room in self.broken and (fault := CASES[room][1]):
            return fault
        if last["role"] == "tool":
            self.results.setdefault(room, []).append(last["content"])
        elif room in self.tools:
            return call((f"call-{len(self.results.get(room, []))}-{room}", self.tools[room].name, "{}"))
        return say(" ".join(ANSWER).format(room, room))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def program(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Program]:
    async with AsyncExitStack() as stack:
        speech = Speech()
        await stack.enter_async_context(speech)
        chat = await stack.enter_async_context(ChatServer())
        tools = {
            room: await stack.enter_async_context(FaultyMcp(f"look_{fault}"))
            for room, (stage, fault) in enumerate(CASES)
            if stage == "tool"
        }
        config = tmp_path_factory.mktemp("faults") / "config.toml"
        text = CONFIG.format(asr=speech.asr_url, tts=speech.tts_url, llm=chat.url)
        config.write_text(text + "".join(TOOLS.format(name=tool.name, url=tool.url) for tool in tools.values()))
        async with ServerProcess(config) as server:
            for tool in tools.values():
                await tool._until(lambda tool=tool: "tools/list" in tool.methods)
            yield Program(server, speech, chat, tools)
            log = "\n".join(server.log)
            assert "Traceback" not in log, log[: log.index("Traceback") + 4000][-4500:]
            assert "fault of this server" not in log
        assert chat.faults == []
        assert [tool.violations for tool in tools.values() if tool.violations] == []


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def question(voices: Voices) -> bytes:
    return await voices.say(f"{QUESTION}?")


def board_of(program: Program, name: str) -> Board:
    return Board(program.server.url, device_id=name, realtime=False, limit_s=LIMIT_S)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def turns(program: Program, question: bytes) -> AsyncIterator[list[tuple[Turn, Turn]]]:
    """Of each case the turn with the fault and the next one."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def ask(room: int) -> tuple[Turn, Turn]:
        pcm = loud(question, room)
        async with slots, board_of(program, f"room-{room}") as board:
            program.break_down(room)
            try:
                broken = await board.say(pcm)
            finally:
                program.mend(room)
            return broken, await board.say(pcm)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(room)) for room in range(len(CASES))]
    yield [task.result() for task in tasks]


def check_right(turn: Turn, room: int) -> None:
    """The turn went as it should."""
    assert turn.outcome is Outcome.ANSWERED, turn.detail
    assert turn.asr == f"{QUESTION} in room {room}?"
    assert turn.answer == tuple(sentence.format(room) for sentence in ANSWER)
    assert [event for _, event in turn.events].count(EndResponse()) == 1


def check_told(turn: Turn) -> None:
    """The board is back at Listening, and the user was told: on the display and by voice."""
    assert turn.outcome is Outcome.ANSWERED, turn.detail
    events = [event for _, event in turn.events]
    assert events.count(EndVad()) == events.count(EndResponse()) == 1
    assert any(isinstance(event, Action) for event in events), events
    assert turn.answer
    assert turn.answer[-1].startswith("Sorry, ")
    assert turn.audio


def cases(*stages: str) -> list[Any]:
    """The cases of some stages, for a test each."""
    return [pytest.param(room, id=f"{stage}-{fault}") for room, (stage, fault) in enumerate(CASES) if stage in stages]


@pytest.mark.parametrize("room", cases("asr", "llm", "tts", "none"))
async def test_a_fault(turns: list[tuple[Turn, Turn]], room: int) -> None:
    (broken, after), (stage, fault) = turns[room], CASES[room]
    if fault in HARMLESS or fault is None:
        assert broken.outcome is Outcome.ANSWERED
        assert not any(isinstance(event, Action) for _, event in broken.events)
    elif (stage, fault) not in WHOLE_ENOUGH:
        check_told(broken)
    check_right(after, room)


@pytest.mark.parametrize("room", cases("tool"))
async def test_a_tools_fault(program: Program, turns: list[tuple[Turn, Turn]], room: int) -> None:
    """The model is told, and has the last word."""
    (broken, after), (_, fault) = turns[room], CASES[room]
    check_right(broken, room)
    check_right(after, room)
    first, second = program.results[room]
    name = program.tools[room].name
    assert second == f"{name} ran {name}"
    assert first == second if fault in HARMLESS else first.startswith("Error")


@pytest.mark.parametrize("room", cases(SENTENCE))
async def test_a_sentence_that_can_not_be_spoken_is_shown(turns: list[tuple[Turn, Turn]], room: int) -> None:
    broken, after = turns[room]
    check_right(broken, room)
    assert len(broken.audio) > 32_000  # the first sentence, and time to read the second
    check_right(after, room)


@pytest.mark.parametrize("back_end", ["speech", "chat"])
async def test_a_back_end_that_is_killed(program: Program, question: bytes, back_end: str) -> None:
    pcm = loud(question, HEALTHY)
    async with board_of(program, f"kill-{back_end}") as board:
        check_right(await board.say(pcm), HEALTHY)
        killed: SpeechServer | ChatServer = getattr(program, back_end)
        await killed.kill()
        try:
            check_told(await board.say(pcm))
        finally:
            await killed.revive()
        check_right(await board.say(pcm), HEALTHY)


async def test_eight_boards_while_everything_fails(program: Program, question: bytes) -> None:
    pcm = loud(question, HEALTHY)

    async def ask(number: int) -> None:
        async with board_of(program, f"many-{number}") as board:
            check_told(await board.say(pcm))
            ready.release()
            await healed.wait()
            check_right(await board.say(pcm), HEALTHY)

    ready, healed = asyncio.Semaphore(0), asyncio.Event()
    program.chat.fault = Fault.HANG
    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(ask(number))
        for _ in range(8):
            await ready.acquire()
        program.chat.fault = None
        healed.set()


async def test_nothing_secret_is_logged(program: Program) -> None:
    assert not [line for line in program.server.log if "key" in line.split(": ", 2)[-1]]
    assert not [line for line in program.server.log if QUESTION in line or "noon" in line]
