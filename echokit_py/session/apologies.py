"""The short sentences that a user hears when a stage failed, with audio made beforehand for when TTS is what failed."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from importlib.resources import files

from echokit_py.audio.resample import to_mono_16k
from echokit_py.audio.wav import read_wav
from echokit_py.errors import BackendError, Stage
from echokit_py.tts.base import Tts

log = logging.getLogger(__name__)

# A voice that needs longer for one sentence is not working.
REVOICE_LIMIT_S = 30.0

# By cause; each has a WAV of the same name in `data/`, made with Piper by scripts/apologies.
SENTENCES = {
    "asr": "Sorry, I could not hear that. My speech recognition is not working. Please try again in a moment.",
    "llm": "Sorry, I can't think right now. My language model does not answer. Please try again in a moment.",
    "tts": "Sorry, my voice is not working right now. Please try again in a moment.",
    "broke_off": "Sorry, my answer broke off. Please ask me again.",
    "other": "Sorry, something went wrong. Please try again in a moment.",
}

# What the display shows meanwhile (an `Action` event): which part failed, for whoever looks after the server.
STATUS = {
    "asr": "Speech recognition failed",
    "llm": "Language model failed",
    "tts": "Speech synthesis failed",
    "broke_off": "Answer broke off",
    "other": "Something failed",
}


@dataclass(frozen=True, slots=True)
class Apology:
    """A sentence, its display status, and its audio (s16le, mono, 16 kHz)."""

    text: str
    status: str
    pcm: bytes


def cause(stage: Stage, *, spoke: bool) -> str:
    """The key of `SENTENCES` for a failure. `spoke`: some of the answer was already on its way to the user."""
    if stage is Stage.TTS:
        return "tts"
    if spoke:
        return "broke_off"
    return {Stage.ASR: "asr", Stage.LLM: "llm"}.get(stage, "other")


def load() -> dict[str, Apology]:
    """Read the packaged audio; 30 kB to 200 kB each. Blocks."""
    folder = files("echokit_py.session") / "data"
    return {
        name: Apology(text, STATUS[name], to_mono_16k(read_wav((folder / f"{name}.wav").read_bytes())))
        for name, text in SENTENCES.items()
    }


async def revoice(known: dict[str, Apology], tts: Tts) -> None:
    """Replace the packaged audio by the configured voice's, while that voice works: so it is the same voice that
    says it when it no longer does. What fails keeps the packaged audio."""
    for name, apology in list(known.items()):
        try:
            async with asyncio.timeout(REVOICE_LIMIT_S):
                pcm = b"".join([piece async for piece in tts.synthesize(apology.text)])
        except (BackendError, TimeoutError) as error:
            log.info("apologies keep their packaged voice: %s", error or "the voice took too long")
            return
        known[name] = replace(apology, pcm=pcm)
