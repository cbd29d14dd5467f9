"""Decides whether a transcript was said by somebody or made up by the recogniser. Pure; changes no words.

Whisper has learned from subtitles, so that noise and silence come out as what stands there while nobody speaks: thanks
for watching, credits, or one phrase over and over. People say the same words in earnest. So a text is dropped only with
evidence, and a known phantom needs less of it than other words:

- Tags and punctuation only: no word is left, no more is needed (`clean.py`).
- A known phantom: VAD heard less speech than its words take, or the model denies speech, or it doubts that it was
  speech and is unsure of the words as well.
- A phrase repeated: as a phantom, or the text compresses better than speech does.
- Any other text: VAD heard less speech than the words take, and the model has doubts too. Where no VAD listened,
  Whisper's own rule.

Measured with tiny.en, whose figures are the least sure of all Whispers': "Thank you.", "Bye.", "Yes." and other short
words, clean and at 10 and 0 dB SNR, have a no_speech_prob of 0.02 to 0.22 and a mean log probability above -0.8; noise,
hum, and bursts 0.61 to 0.96 and below -1.05. VAD sees 1.6 to 4 times the speech that is asked for here.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from echokit_py.asr.base import Transcript
from echokit_py.asr.clean import clean_transcript
from echokit_py.asr.phantoms import is_phantom, letters_of
from echokit_py.text.characters import is_cjk

# Whisper's own limits (openai/whisper, transcribe.py): silence is above the first and below the second, and a text that
# compresses better than the third is a loop.
NO_SPEECH = 0.6
UNSURE_LOGPROB = -1.0
LOOP_COMPRESSION = 2.4
# Above this the model says by itself that there was no speech.
SURELY_NO_SPEECH = 0.85

# Nobody says more letters in a second: hasty English and German have 20 to 25, hasty Chinese 8 characters and Japanese
# 12, which count twice.
LETTERS_PER_SECOND = 30.0
_FULL_WIDTH = 2
# A loop is a phrase that comes so many times at least, at the end of the text, and fills so much of it.
_LOOP_TIMES = 4
_LOOP_SHARE = 0.8
# What is looked at, from the end: more than the letters of Whisper's 448 tokens.
_LOOKED_AT = 2000
# By so many letters of its end a phrase is looked for, and this often.
_PROBE = 6
_CANDIDATES = 40


def heard(transcript: Transcript, speech_s: float | None = None) -> str:
    """Return what was said, "" when there is reason to think that nobody said it.

    Args:
        transcript: what the recogniser made of the utterance. Figures that it doesn't give are no evidence.
        speech_s: seconds of speech that VAD saw in the utterance (all frames of speech together; a span that holds
            pauses only makes it milder); None when no VAD listened.
    """
    text = clean_transcript(transcript.text)
    return "" if text and _made_up(text, _signs(text, transcript, speech_s)) else text


@dataclass(frozen=True, slots=True)
class _Signs:
    """What speaks against a text. `too_fast` is None when no VAD listened."""

    too_fast: bool | None  # VAD heard less speech than the words take
    doubted: bool  # the model doubts that it was speech
    denied: bool  # it is sure that it wasn't
    unsure: bool  # the words were improbable to the model itself
    compressed: bool  # the text repeats itself more than speech does


def _signs(text: str, transcript: Transcript, speech_s: float | None) -> _Signs:
    silence, certainty = transcript.no_speech_prob, transcript.avg_logprob
    return _Signs(
        too_fast=None if speech_s is None else speech_s < _least_seconds(text),
        doubted=silence is not None and silence > NO_SPEECH,
        denied=silence is not None and silence > SURELY_NO_SPEECH,
        unsure=certainty is not None and certainty < UNSURE_LOGPROB,
        compressed=max(transcript.compression_ratio or 0.0, _compression(text)) > LOOP_COMPRESSION,
    )


def _made_up(text: str, signs: _Signs) -> bool:
    suspect = bool(signs.too_fast) or signs.denied or (signs.doubted and signs.unsure)
    if is_phantom(text):
        return suspect
    if _loops(letters_of(text[-_LOOKED_AT:])):
        return suspect or signs.compressed
    if signs.too_fast is None:
        return signs.doubted and signs.unsure
    return signs.too_fast and (signs.doubted or signs.unsure)


def _least_seconds(text: str) -> float:
    """The time that saying `text` takes at the least."""
    letters = letters_of(text[-_LOOKED_AT:])
    return sum(_FULL_WIDTH if is_cjk(letter) else 1 for letter in letters) / LETTERS_PER_SECOND


def _compression(text: str) -> float:
    """How many times smaller zlib makes the text: Whisper's figure, for back ends that don't give it."""
    encoded = text[-_LOOKED_AT:].encode(errors="replace")
    return len(encoded) / len(zlib.compress(encoded))


def _loops(letters: str) -> bool:
    """Whether `letters` (no spaces) end in a phrase that is repeated and fills most of them."""
    period = _period(letters)
    if not period:
        return False
    at = len(letters) - period
    while at and letters[at - 1] == letters[at - 1 + period]:
        at -= 1
    covered = len(letters) - at
    return covered >= _LOOP_TIMES * period and covered >= _LOOP_SHARE * len(letters)


def _period(letters: str) -> int:
    """The distance at which the end of `letters` comes again and again, 0 if it doesn't."""
    for size in (_PROBE, 1):
        probe, at = letters[-size:], len(letters) - size
        for _ in range(_CANDIDATES):
            at = letters.rfind(probe, 0, at + size - 1)
            if at < 0:
                break
            period = len(letters) - size - at
            if letters.endswith(letters[-period:] * _LOOP_TIMES):
                return period
    return 0
