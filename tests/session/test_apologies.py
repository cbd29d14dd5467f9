"""The apologies: packaged audio for each cause, and the configured voice where it works."""

from __future__ import annotations

import asyncio

import pytest

from echokit_py.audio.pcm import seconds
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.session import apologies
from echokit_py.session.apologies import SENTENCES, cause, load, revoice
from tests.fakes.providers import ScriptedTts, speech


def test_every_cause_has_its_audio() -> None:
    known = load()
    assert known.keys() == SENTENCES.keys()
    assert all(2 < seconds(apology.pcm) < 12 for apology in known.values())
    for stage in Stage:
        for spoke in (True, False):
            assert cause(stage, spoke=spoke) in known


async def test_the_configured_voice_says_them() -> None:
    known, voice = load(), ScriptedTts()
    await revoice(known, voice)
    assert all(apology.pcm == speech(0.1 * len(apology.text)) for apology in known.values())


@pytest.mark.parametrize("hangs", [True, False])
async def test_a_voice_that_does_not_work_changes_nothing(hangs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apologies, "REVOICE_LIMIT_S", 0.01)
    voice = ScriptedTts()
    if hangs:
        voice.gate = asyncio.Event()
    else:
        voice.error = BackendError(Stage.TTS, ErrorKind.SERVER, "no")
    known = load()
    await revoice(known, voice)
    assert known == load()
