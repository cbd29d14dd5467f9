"""Cuts a recording into the frames that the board's microphone sends, and says when each is due. Sends nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from echokit_py.audio.pcm import BYTES_PER_SECOND

# The firmware keeps the last 16 frames of 32 ms from before its VAD triggers, and sends them first.
PREROLL_FRAME_BYTES = 1024
PREROLL_FRAMES = 16
PREROLL_BYTES = PREROLL_FRAMES * PREROLL_FRAME_BYTES
# Then 8192 samples at a time: 512 ms.
FRAME_BYTES = 16_384
# Without pacing this much silence follows at once: more than the default end-of-speech rules wait for (0.7 s).
UNPACED_SILENCE_BYTES = 64_000
# Quieter than this part of the recording's peak (−26 dB) is no speech: room noise stays below, the ends of words don't.
_SILENCE = 0.05


@dataclass(frozen=True, slots=True)
class MicrophoneFrame:
    """One binary message.

    Attributes:
        data: s16le, mono, 16 kHz.
        due_s: seconds after StartChat when the microphone has recorded it.
        ends_speech: it holds the last sample of the recording that isn't silence.
        paced: it takes its time to record, so that the watchdog counts it.
    """

    data: bytes
    due_s: float
    ends_speech: bool
    paced: bool


def microphone(pcm: bytes, *, endless: bool, realtime: bool) -> Iterator[MicrophoneFrame]:
    """Yield the frames of a recording (`pcm`: s16le, mono, 16 kHz), whose first 512 ms are from before the trigger.

    `endless`: silence follows for ever, as from a board; else the last frame ends where the recording does.
    `realtime`: each frame is due when a microphone would have recorded it. Otherwise the recording and two seconds of
    silence are due at once, and only the silence after them takes its time.
    """
    unpaced = PREROLL_BYTES if realtime else max(PREROLL_BYTES, len(pcm) + UNPACED_SILENCE_BYTES)
    speech_end = last_speech_byte(pcm)
    start = 0
    while endless or start < len(pcm):
        size = PREROLL_FRAME_BYTES if start < PREROLL_BYTES else FRAME_BYTES
        data = pcm[start : start + size]
        if endless:
            data = data.ljust(size, b"\0")
        end = start + len(data)
        due_s = max(0, end - unpaced) / BYTES_PER_SECOND
        yield MicrophoneFrame(data, due_s, start <= speech_end < end, realtime or end > unpaced)
        start = end


def last_speech_byte(pcm: bytes) -> int:
    """The place of the last sample louder than silence (in pure silence: of the last one); -1 in an empty recording."""
    samples = np.abs(np.frombuffer(pcm[: len(pcm) & ~1], "<i2").astype(np.int32))
    if not len(samples):
        return -1
    loud = np.flatnonzero(samples > samples.max() * _SILENCE)
    return 2 * int(loud[-1] if len(loud) else len(samples) - 1)
