"""The short sentences that a user hears when a stage failed, with audio made beforehand for when TTS is what failed.

The words stand in `apology_texts.py`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, cast

from echokit_py.audio.pcm import BYTES_PER_SECOND
from echokit_py.audio.resample import to_mono_16k
from echokit_py.audio.wav import read_wav
from echokit_py.config.language import language_code, spoken_language
from echokit_py.config.settings import PiperTts, Settings, TtsSettings
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.session.apology_texts import WORDINGS
from echokit_py.tts.base import Tts

log = logging.getLogger(__name__)

# A voice that needs longer for one sentence is not working.
REVOICE_LIMIT_S = 10.0
# A speech service that is started together with this server is there soon; a key that is wrong stays wrong.
RETRIES_S = (30.0, 300.0)
# What is longer is no such sentence; 640 kB each.
_LONGEST = 20 * BYTES_PER_SECOND

# By cause; each has a WAV of the same name in `data/`, made with Piper by scripts/apologies.
SENTENCES = {name: wording.text for name, wording in WORDINGS["en"].items()}
# What the display shows meanwhile (an `Action` event).
STATUS = {name: wording.status for name, wording in WORDINGS["en"].items()}

_CAUSES = {Stage.ASR: "asr", Stage.LLM: "llm", Stage.TTS: "tts", Stage.TOOL: "tool"}

# "zh_CN-huayan-medium", also at the end of a path.
_PIPER_VOICE = re.compile(r"(?:^|[/\\])([a-z]{2,3})_[A-Z]{2}-[^/\\]*$")


@dataclass(frozen=True, slots=True)
class Apology:
    """A sentence, its display status, and its audio (s16le, mono, 16 kHz)."""

    text: str
    status: str
    pcm: bytes


def choose(known: Mapping[str, Apology], error: BackendError, *, spoke: bool) -> Apology | None:
    """What is said of a failure, None when there is nothing; its status always names the stage, if there is one.

    `spoke`: some of the answer was already on its way to the user.
    """
    failed = known.get(_cause(error))
    broke_off = known.get("broke_off")
    if not spoke or error.stage is Stage.TTS or broke_off is None:
        return failed
    return broke_off if failed is None or failed is known.get("other") else replace(broke_off, status=failed.status)


def _cause(error: BackendError) -> str:
    if error.kind is ErrorKind.INTERNAL and error.stage is Stage.TOOL:
        return "other"  # a fault of this server (`boundary.py`): tools' own are told to the model
    return _CAUSES.get(error.stage, "other")


def language_of(settings: Settings) -> str:
    """The language of the configuration, if we have it: that of the voice, else of the recogniser, else "en"."""
    found = (language_code(_of_voice(settings.tts)), spoken_language(settings.asr))
    return next((code for code in found if code in WORDINGS), "en")


def load(language: str = "en") -> dict[str, Apology]:
    """The apologies in a language that we have, with the packaged English audio; 30 kB to 200 kB each. Blocks.

    In another language than English the words are read on the display until `revoice` has made their audio.
    """
    folder = files("echokit_py.session") / "data"
    return {
        name: Apology(wording.text, wording.status, to_mono_16k(read_wav((folder / f"{name}.wav").read_bytes())))
        for name, wording in WORDINGS[language].items()
    }


async def revoice(known: dict[str, Apology], tts: Tts) -> None:
    """Replace the packaged audio by the configured voice's, while that voice works: so it is the same voice that
    says it when it no longer does. What fails keeps the packaged audio, and is tried again twice, minutes later."""
    left = await _voiced(known, list(known), tts)
    for pause in RETRIES_S:
        if left:
            await asyncio.sleep(pause)
            left = await _voiced(known, left, tts)


async def _voiced(known: dict[str, Apology], names: list[str], tts: Tts) -> list[str]:
    """Speak those of `names`; return the ones that failed."""
    failed: list[str] = []
    reason: Exception | None = None
    for name in names:
        try:
            known[name] = replace(known[name], pcm=await _spoken(known[name].text, tts))
        except BackendError as error:
            failed.append(name)
            reason = error
    if failed:
        log.info("%d of %d apologies keep their packaged voice: %s", len(failed), len(known), reason)
    return failed


async def _spoken(text: str, tts: Tts) -> bytes:
    """The audio of `text` in bounded time and length. Raises BackendError."""
    pcm = bytearray()
    try:
        async with asyncio.timeout(REVOICE_LIMIT_S), aclosing(cast(Any, tts.synthesize(text))) as pieces:
            async for piece in pieces:
                pcm += piece
                if len(pcm) > _LONGEST:
                    raise BackendError(Stage.TTS, ErrorKind.BAD_ANSWER, "the voice does not stop")
    except TimeoutError:
        raise BackendError(Stage.TTS, ErrorKind.TIMEOUT, f"the voice took longer than {REVOICE_LIMIT_S:g} s") from None
    if not pcm:
        raise BackendError(Stage.TTS, ErrorKind.BAD_ANSWER, "the voice made no audio")
    return bytes(pcm)


def _of_voice(tts: TtsSettings) -> str:
    if isinstance(tts, PiperTts):
        found = _PIPER_VOICE.search(tts.voice)
        return found[1] if found else ""
    extra = tts.model_extra or {}
    return str(extra.get("language_code") or extra.get("lang") or extra.get("language") or "")
