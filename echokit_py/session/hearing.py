"""Recognises an utterance: the request, its time-out, and whether somebody really said what came. Shows nothing."""

from __future__ import annotations

from echokit_py.asr.sanity import heard
from echokit_py.errors import Stage
from echokit_py.session.journal import Mark, TurnRecord
from echokit_py.session.services import Services
from echokit_py.session.watchdog import within


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
    return heard(transcript, speech_s)
