"""The real program with the packaged models, one server for all end-to-end tests; nothing but this machine is used."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from echokit_py.asr.base import Asr
from echokit_py.asr.faster_whisper import build as build_asr
from echokit_py.audio.resample import to_mono_16k
from echokit_py.audio.wav import read_wav
from echokit_py.config.settings import FasterWhisperAsr, PiperTts
from echokit_py.http import HttpClient
from echokit_py.models.store import ModelStore
from echokit_py.tts.base import Tts
from echokit_py.tts.piper import build as build_tts
from tests.beside import AUDIO
from tests.server_process import ServerProcess
from tests.words import errors

CONFIG = """
[asr]
platform = "faster_whisper"

[tts]
platform = "piper"

[llm]
platform = "llama_cpp"
model = "smollm2-135m"
history = 2
sys_prompts = [{ role = "system", content = "You are a helpful assistant. Answer in one short sentence." }]

[llm.extra]
max_tokens = 16
temperature = 0

# What is tested here is that the answers are right, on a machine that may be busy with other things.
[timeouts]
first_byte_s = 120
between_bytes_s = 60
turn_s = 300
"""


def load_recording(name: str) -> bytes:
    """A spoken sentence as s16le mono 16 kHz."""
    return to_mono_16k(read_wav((AUDIO / name).read_bytes()))


@dataclass(frozen=True)
class Voices:
    """A recogniser and a voice in the test's own process."""

    asr: Asr
    tts: Tts

    async def say(self, text: str) -> bytes:
        """Speak a sentence, with half a second of quiet at both ends as on a recording.

        The voice says it a little differently each time, and now and then in a way that the recogniser mishears, with
        no server in between. That would tell nothing of the server, so it is said again.
        """
        quiet = bytes(16_000)
        for _ in range(10):
            audio = quiet + b"".join([piece async for piece in self.tts.synthesize(text)]) + quiet
            if errors(text, (await self.asr.transcribe(audio)).text) == 0:
                return audio
        raise AssertionError(f"the recogniser never understands {text!r} as this voice says it")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    config = tmp_path_factory.mktemp("e2e") / "config.toml"
    config.write_text(CONFIG)
    async with ServerProcess(config) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def patient_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    config = tmp_path_factory.mktemp("patient") / "config.toml"
    config.write_text(CONFIG + "\n[asr.vad]\nhangover_ms = 1200\nadaptive = false\nspeculate = false\n")
    async with ServerProcess(config) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def voices() -> AsyncIterator[Voices]:
    http, models = HttpClient(connect_s=5), ModelStore()
    found = Voices(
        build_asr(FasterWhisperAsr(), http=http, models=models), build_tts(PiperTts(), http=http, models=models)
    )
    await found.asr.start()
    await found.tts.start()
    yield found
    await found.asr.close()
    await found.tts.close()
    await http.close()
