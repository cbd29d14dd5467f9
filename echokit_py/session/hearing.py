"""Recognises an utterance: the request, its time-out, and whether somebody really said what came. Shows nothing."""

from __future__ import annotations

from dataclasses import replace

from echokit_py.asr.sanity import heard
from echokit_py.errors import Stage
from echokit_py.session.journal import Mark, TurnRecord
from echokit_py.session.services import Services
from echokit_py.session.watchdog import within

# Characters: five minutes of fast speech, the longest utterance, are 6,000. A board has no room for whatever may come.
TEXT_LIMIT = 8_000


async def recognise(pcm: bytes, speech_s: float | None, services: Services, record: TurnRecord | None = None) -> str:
    """The words of an utterance, "" when nothing was understood. Raises BackendError (ASR).

    Args:
        pcm: s16le, mono, 16 kHz.
        speech_s: seconds of speech that VAD found in it, None when that is not known.
        record: where the moments are noted.
    """
    if record is not None:
        record.mark(Mark.ASR_REQUEST)
    transcript = await within(services.asr.transcribe(pcm), Stage.ASR, services.timeouts.first_byte_s)
    if record is not None:
        record.mark(Mark.ASR_DONE)
    return heard(replace(transcript, text=transcript.text[:TEXT_LIMIT]), speech_s)
