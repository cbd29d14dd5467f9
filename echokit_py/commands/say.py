"""Speech for the simulated board's `--say`: the packaged Piper voice."""

from __future__ import annotations

from echokit_py.config.settings import PiperTts
from echokit_py.http import HttpClient
from echokit_py.models.store import ModelStore
from echokit_py.tts.piper import build


async def say(text: str) -> bytes:
    """Speak `text`; return s16le mono 16 kHz audio. Raises ModelError or BackendError."""
    http = HttpClient(connect_s=5)
    voice = build(PiperTts(), http=http, models=ModelStore())
    try:
        await voice.start()
        return b"".join([piece async for piece in voice.synthesize(text)])
    finally:
        await voice.close()
        await http.close()
