"""The local language model's process is killed: the user is told, it comes back by itself, and the next turn works."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import psutil
import pytest

from echokit_py.device.board import Outcome
from echokit_py.device.client import Board
from firmware_protocol.events import Action
from tests.e2e.conftest import CONFIG, Voices
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="session")]


async def test_the_model_is_killed(server: ServerProcess, voices: Voices) -> None:
    question = await voices.say("Tell me something about the ocean.")
    async with Board(server.url, device_id="killer", realtime=False) as board:
        assert (await board.say(question)).outcome is Outcome.ANSWERED
        (child,) = psutil.Process(server.pid).children(recursive=True)
        child.kill()
        told = await board.say(question)
        assert told.outcome is Outcome.ANSWERED, told.detail
        back_in_time = not any(isinstance(event, Action) for _, event in told.events)
        assert back_in_time or Action("Language model failed") in [event for _, event in told.events]
        await server.logged("llama.cpp serves again")
        turn = await board.say(question)
    assert turn.outcome is Outcome.ANSWERED, turn.detail
    assert not any(isinstance(event, Action) for _, event in turn.events)


async def test_no_child_outlives_the_server(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(CONFIG)
    async with ServerProcess(config) as server:
        children = psutil.Process(server.pid).children(recursive=True)
        assert children
        await server.stop(signal.SIGKILL)
        _, alive = await asyncio.to_thread(psutil.wait_procs, children, timeout=20)
        assert alive == []
