"""The microphone's side of an utterance: what is kept of it, and that large frames are taken in steps."""

from __future__ import annotations

import pytest

from echokit_py.config.settings import VadSettings
from echokit_py.session.ear import LEAD_S, STEP_BYTES, TAIL_S, Ear
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


async def heard(*parts: bytes) -> Ear:
    ear = Ear(ScriptedVad(), VadSettings(), endpointing=True)
    for part in parts:
        assert await ear.feed(part) is None
    return ear


async def test_a_pause_and_speech_that_resumes() -> None:
    ear = await heard(speech(1.024))
    assert not ear.paused
    await ear.feed(silence(0.3))
    assert ear.paused
    mark = ear.speech_mark
    assert await ear.feed(silence(0.1)) is None
    assert ear.speech_mark == mark
    await ear.feed(speech(0.2))
    assert not ear.paused
    assert ear.speech_mark != mark
    assert ear.speech_s == pytest.approx(1.224, abs=0.07)


async def test_speech_that_resumes_within_one_message_is_seen() -> None:
    ear = await heard(speech(1.024), silence(0.3))
    mark = ear.speech_mark
    await ear.feed(speech(0.2) + silence(0.3))
    assert ear.paused
    assert ear.speech_mark != mark


async def test_another_hangover() -> None:
    ear = await heard(speech(1.024), silence(0.384))
    assert ear.set_hangover(1) is None
    assert await ear.feed(silence(0.5)) is None
    assert ear.set_hangover(0.95) is None
    assert ear.set_hangover(0.8) is Input.SPEECH_ENDED
    assert ear.paused
    assert await ear.feed(silence(0.1)) is Input.SPEECH_ENDED
    assert not ear.paused


async def test_without_a_pause_there_is_no_hangover_to_set() -> None:
    ear = await heard(speech(1.024))
    assert ear.set_hangover(0) is None
    assert await ear.feed(silence(0.4)) is None  # the usual one


async def test_a_client_that_submits_has_no_pauses() -> None:
    ear = Ear(ScriptedVad(), VadSettings(), endpointing=False)
    await ear.feed(speech(1.024) + silence(5))
    assert not ear.paused
    assert ear.set_hangover(0) is None
    assert ear.speech_s == pytest.approx(1.024, abs=0.04)


async def test_long_silence_after_the_last_word_is_not_kept() -> None:
    ear = Ear(ScriptedVad(), VadSettings(), endpointing=False)
    await ear.feed(silence(1) + speech(1.024) + silence(5))
    assert len(ear.utterance()) == pytest.approx((LEAD_S + 1.024 + TAIL_S) * SECOND, abs=0.07 * SECOND)


class Late(ScriptedVad):
    """Says of its streams that they are late."""

    def stream(self) -> LateStream:  # type: ignore[override]
        return LateStream()


class LateStream:
    release_s = 0.1

    def __init__(self) -> None:
        self.feed = ScriptedVad().stream().feed


async def test_a_detector_that_is_late_is_known_to_be() -> None:
    parts = speech(1.024), silence(0.416)
    assert (await heard(*parts)).paused
    ear = Ear(Late(), VadSettings(), endpointing=True)
    assert [await ear.feed(part) for part in parts] == [None, Input.SPEECH_ENDED]
