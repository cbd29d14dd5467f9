"""What comes of a transcript before it is shown and asked about."""

from __future__ import annotations

import pytest

from echokit_py.session.hearing import TEXT_LIMIT, recognise
from tests.fakes.providers import scripted, speech


@pytest.mark.parametrize("length", [TEXT_LIMIT, 100_000])
async def test_a_transcript_is_no_longer_than_somebody_can_speak(length: int) -> None:
    with scripted() as made:
        made.asr.text = " ".join(map(str, range(length)))[:length]
        text = await recognise(speech(1), None, made.services)
    assert text == made.asr.text[:TEXT_LIMIT].strip()
