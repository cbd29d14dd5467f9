"""`serve` as a process: how it starts, fails and ends."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import aiohttp
import pytest

from echokit_py.commands.serve import serve
from echokit_py.config.load import parse
from tests.commands.test_cli import MINIMAL
from tests.server_process import ServerProcess


def write(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text)
    return path


@pytest.mark.models
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_starts_and_ends_in_order(tmp_path: Path, number: signal.Signals) -> None:
    async with ServerProcess(write(tmp_path, MINIMAL)) as server:
        async with aiohttp.ClientSession() as http, http.get(f"{server.base}/health") as answer:
            assert answer.status == 200
        # The voice is down: the apologies keep their packaged audio, which is said once and harms nothing.
        await server.logged("apologies keep their packaged voice")
        assert await server.stop(number) == 0
    assert not [line for line in server.log if "Traceback" in line]


async def test_an_address_in_use_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = parse(MINIMAL, "config.toml").settings
        settings = settings.model_copy(update={"addr": f"127.0.0.1:{taken.getsockname()[1]}"})
        assert await serve(settings) == 1
    assert f"can't listen on {settings.addr}: Address already in use" in caplog.text


async def test_a_model_that_is_missing_ends_the_server(caplog: pytest.LogCaptureFixture) -> None:
    text = MINIMAL.replace('"openai"\nurl = "http://127.0.0.1:1/asr"', '"faster_whisper"\nmodel = "no-such-model"')
    settings = parse(text, "config.toml").settings.model_copy(update={"addr": "127.0.0.1:0"})
    assert await serve(settings) == 1
    assert "the server can't start: " in caplog.text
    assert "no-such-model" in caplog.text


async def test_a_provider_with_a_fault_ends_the_server(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("echokit_py.commands.serve.start", fail)
    settings = parse(MINIMAL, "config.toml").settings.model_copy(update={"addr": "127.0.0.1:0"})
    assert await serve(settings) == 1
    assert "a fault of this server while its models were loaded" in caplog.text
