"""The microphone's side of an utterance: what is kept of it, and that large frames are taken in steps."""

from __future__ import annotations

import pytest

from echokit_py.config.settings import VadSettings
from echokit_py.session.ear import STEP_BYTES, Ear
from echokit_py.session.turns import Input
from tests.fakes.providers import SECOND, ScriptedVad, silence, speech


class CountingVad(ScriptedVad):
    """Notes the sizes of what it was fed."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def stream(self) -> CountingStream:  # type: ignore[override]
        return CountingStream(self)


class CountingStream:
    def __init__(self, vad: CountingVad) -> None:
        self._sizes, self._stream = vad.sizes, ScriptedVad().stream()

    async def feed(self, pcm: bytes) -> list[float]:
        self._sizes.append(len(pcm))
        return await self._stream.feed(pcm)


async def test_a_large_frame_is_taken_in_steps_up_to_the_end_of_speech() -> None:
    vad = CountingVad()
    ear = Ear(vad, VadSettings(), endpointing=True)
    assert await ear.feed(speech(1.5) + silence(30)) is Input.SPEECH_ENDED
    assert set(vad.sizes) == {STEP_BYTES}
    assert ear.seconds < 4  # what came after the end is not even looked at


async def test_odd_lengths_and_the_last_seconds() -> None:
    ear = Ear(ScriptedVad(), VadSettings(), endpointing=False)
    for part in (silence(1), speech(1)[:777], speech(1)[777:], b"", b"\1"):
        assert await ear.feed(part) is None
    assert ear.spoke
    assert ear.last_speech_s == pytest.approx(2, abs=0.04)
    assert len(ear.utterance()) == pytest.approx(1.3 * SECOND, abs=0.04 * SECOND)
    assert ear.utterance(0.5) == ear.utterance()[-SECOND // 2 :]
    assert ear.utterance(100) == ear.utterance()


async def test_nothing_said_is_nothing_kept() -> None:
    ear = Ear(ScriptedVad(), VadSettings(), endpointing=True)
    assert await ear.feed(silence(7)) is None
    assert ear.utterance() == b""
    assert await ear.feed(silence(2)) is Input.NOTHING_SAID


async def test_an_utterance_is_bounded_though_vad_never_ends_it() -> None:
    ear = Ear(ScriptedVad(), VadSettings(max_utterance_s=1), endpointing=False)
    for _ in range(5):
        await ear.feed(speech(10))
    assert ear.seconds <= 11
