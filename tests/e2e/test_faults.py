"""Each back end fails in each way: the running program brings the board back to Listening; the next turn is right."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from echokit_py.device.board import Outcome
from echokit_py.device.client import Board
from echokit_py.device.turn import Turn
from firmware_protocol.events import Action, EndResponse, EndVad
from tests.e2e.conftest import Voices
from tests.fakes.chat_server import ChatServer, say
from tests.fakes.faults import Fault
from tests.fakes.speech_server import SpeechServer
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

QUESTION = "What time is it?"
ANSWER = ("It is noon, so it is time for lunch.", "Enjoy your meal.")

# Short, so that the tests are; each stage may fail by its own limit, the whole turn by the last.
CONFIG = """
[timeouts]
connect_s = 1
first_byte_s = 1.5
between_bytes_s = 1.5
turn_s = 8

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

# The whole turn's limit, the apology and the machine's slowness.
LIMIT_S = 40.0

# What leaves a whole answer, only later.
HARMLESS = {Fault.SLOW}
# By the protocols themselves an answer may end here: a WAV without its last byte, SSE without the blank line after
# [DONE], JSON is the only one of the three that can't.
WHOLE_ENOUGH = {("tts", Fault.CUT_LAST), ("llm", Fault.CUT_LAST)}


@dataclass(frozen=True)
class Program:
    """The running server and its fake back ends."""

    server: ServerProcess
    speech: SpeechServer
    chat: ChatServer

    def break_down(self, stage: str, fault: Fault | None) -> None:
        """Let a stage fail, or work again."""
        if stage == "asr":
            self.speech.asr_fault = fault
        elif stage == "tts":
            self.speech.tts_fault = fault
        else:
            self.chat.fault = fault


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def program(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Program]:
    async with SpeechServer(texts=[QUESTION], key="key") as speech, ChatServer(say(" ".join(ANSWER))) as chat:
        config = tmp_path_factory.mktemp("faults") / "config.toml"
        config.write_text(CONFIG.format(asr=speech.asr_url, tts=speech.tts_url, llm=chat.url))
        async with ServerProcess(config) as server:
            yield Program(server, speech, chat)
            assert not [line for line in server.log if "Traceback" in line or "fault of this server" in line]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def question(voices: Voices) -> bytes:
    return await voices.say(QUESTION)


def check_right(turn: Turn) -> None:
    """The turn went as it should."""
    assert turn.outcome is Outcome.ANSWERED, turn.detail
    assert turn.asr == QUESTION
    assert turn.answer == ANSWER
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


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("stage", ["asr", "llm", "tts"])
async def test_a_fault(program: Program, question: bytes, stage: str, fault: Fault) -> None:
    device = f"{stage}-{fault}"
    async with Board(program.server.url, device_id=device, realtime=False, limit_s=LIMIT_S) as board:
        program.break_down(stage, fault)
        try:
            turn = await board.say(question)
        finally:
            program.break_down(stage, None)
        if fault in HARMLESS:
            assert turn.outcome is Outcome.ANSWERED
            assert not any(isinstance(event, Action) for _, event in turn.events)
        elif (stage, fault) not in WHOLE_ENOUGH:
            check_told(turn)
        check_right(await board.say(question))


@pytest.mark.parametrize("back_end", ["speech", "chat"])
async def test_a_back_end_that_is_killed(program: Program, question: bytes, back_end: str) -> None:
    async with Board(program.server.url, device_id=f"kill-{back_end}", realtime=False, limit_s=LIMIT_S) as board:
        check_right(await board.say(question))
        killed: SpeechServer | ChatServer = getattr(program, back_end)
        await killed.kill()
        try:
            check_told(await board.say(question))
        finally:
            await killed.revive()
        check_right(await board.say(question))
    assert program.chat.faults == []


async def test_eight_boards_while_everything_fails(program: Program, question: bytes) -> None:
    async def ask(number: int) -> None:
        board = Board(program.server.url, device_id=f"many-{number}", realtime=False, limit_s=LIMIT_S)
        async with board:
            check_told(await board.say(question))
            ready.release()
            await healed.wait()
            check_right(await board.say(question))

    ready, healed = asyncio.Semaphore(0), asyncio.Event()
    program.break_down("llm", Fault.HANG)
    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(ask(number))
        for _ in range(8):
            await ready.acquire()
        program.break_down("llm", None)
        healed.set()


async def test_nothing_secret_is_logged(program: Program) -> None:
    assert not [line for line in program.server.log if "key" in line.split(": ", 2)[-1]]
    assert not [line for line in program.server.log if QUESTION in line or ANSWER[0] in line]
