"""The apologies: packaged audio for each cause, in the configuration's language, and its voice where that works."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from echokit_py.audio.pcm import seconds
from echokit_py.config.settings import Settings
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.session import apologies
from echokit_py.session.apologies import SENTENCES, choose, language_of, load, revoice
from echokit_py.session.apology_texts import WORDINGS
from tests.fakes import virtual_time
from tests.fakes.providers import ScriptedTts, speech

LANGUAGES = ("en", "zh", "de", "fr", "es", "it", "pt", "ja", "ko", "ru", "nl")


def test_every_cause_has_its_audio() -> None:
    known = load()
    assert known.keys() == SENTENCES.keys()
    assert all(2 < seconds(apology.pcm) < 8 for apology in known.values())


ALL_STAGES = {Stage.VAD: "other", Stage.ASR: "asr", Stage.LLM: "llm", Stage.TTS: "tts", Stage.TOOL: "tool"}


@pytest.mark.parametrize("stage", Stage)
def test_the_failed_stage_is_said_and_shown(stage: Stage) -> None:
    known, error = load(), BackendError(stage, ErrorKind.TIMEOUT, "no")
    assert choose(known, error, spoke=False) is known[ALL_STAGES[stage]]


@pytest.mark.parametrize("stage", Stage)
def test_of_an_answer_that_broke_off_the_stage_is_shown(stage: Stage) -> None:
    known, error = load(), BackendError(stage, ErrorKind.TIMEOUT, "no")
    found = choose(known, error, spoke=True)
    assert found is not None
    shown = "broke_off" if stage is Stage.VAD else ALL_STAGES[stage]
    assert found.status == known[shown].status
    said = "tts" if stage is Stage.TTS else "broke_off"
    assert (found.text, found.pcm) == (known[said].text, known[said].pcm)


@pytest.mark.parametrize("spoke", [True, False])
def test_a_fault_of_the_server_is_no_stages(spoke: bool) -> None:
    known, error = load(), BackendError(Stage.TOOL, ErrorKind.INTERNAL, "a fault of this server")
    assert choose(known, error, spoke=spoke) is known["broke_off" if spoke else "other"]
    assert choose({}, error, spoke=spoke) is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_cause(language: str) -> None:
    known, english = load(language), load()
    assert known.keys() == SENTENCES.keys()
    for name, apology in known.items():
        assert apology.pcm == english[name].pcm
        assert 4 < len(apology.text) < 90  # some 6 s
        assert 1 < len(apology.status) <= 32
        assert (apology.text == english[name].text) is (language == "en")
    assert len({apology.status for apology in known.values()}) == len(known)


def test_no_language_is_without_a_test() -> None:
    assert set(WORDINGS) == set(LANGUAGES)


def configuration(asr: dict[str, Any], tts: dict[str, Any]) -> Settings:
    llm = {"platform": "openai_chat", "url": "http://127.0.0.1/v1"}
    return Settings.model_validate({"asr": asr, "tts": tts, "llm": llm})


OPENAI_TTS = {"platform": "openai"}
WHISPER = {"platform": "faster_whisper"}


@pytest.mark.parametrize(
    ("asr", "tts", "language"),
    [
        (WHISPER, {"platform": "piper"}, "en"),
        (WHISPER, OPENAI_TTS, "en"),
        ({**WHISPER, "lang": "zh-CN"}, OPENAI_TTS, "zh"),
        ({**WHISPER, "lang": "auto"}, OPENAI_TTS, "en"),
        ({**WHISPER, "lang": "pl"}, OPENAI_TTS, "en"),
        ({**WHISPER, "lang": "de"}, {"platform": "piper", "voice": "fr_FR-siwis-medium"}, "fr"),
        ({**WHISPER, "lang": "de"}, {"platform": "piper", "voice": "/voices/it_IT-paola-medium.onnx"}, "it"),
        ({**WHISPER, "lang": "de"}, {"platform": "piper", "voice": "/voices/mine.onnx"}, "de"),
        ({"platform": "openai", "url": "http://127.0.0.1/asr", "lang": "ja"}, OPENAI_TTS, "ja"),
        ({"platform": "mine", "lang": "ko"}, OPENAI_TTS, "ko"),
        ({**WHISPER, "lang": "de"}, {"platform": "mine", "language_code": "nl"}, "nl"),
        ({**WHISPER, "lang": "de"}, {"platform": "mine", "lang": "pt_BR"}, "pt"),
    ],
)
def test_the_language_of_a_configuration(asr: dict[str, Any], tts: dict[str, Any], language: str) -> None:
    assert language_of(configuration(asr, tts)) == language


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_configured_voice_says_them(language: str) -> None:
    known, voice = load(language), ScriptedTts()
    await revoice(known, voice)
    assert voice.spoken == [wording.text for wording in WORDINGS[language].values()]
    assert all(apology.pcm == speech(0.1 * len(apology.text)) for apology in known.values())


def revoiced(voice: ScriptedTts, language: str = "en") -> tuple[dict[str, apologies.Apology], float]:
    """What the voice makes of the apologies, and how long it takes in virtual time."""
    known = load(language)
    problems: list[Any] = []

    async def work() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await revoice(known, voice)
        return loop.time() - began

    took = virtual_time.run(work(), problems.append)
    assert problems == []
    return known, took


def test_a_voice_that_does_not_work_changes_nothing() -> None:
    voice = ScriptedTts(error=BackendError(Stage.TTS, ErrorKind.SERVER, "no"))
    known, took = revoiced(voice)
    assert known == load()
    assert len(voice.spoken) == 3 * len(known)
    assert took == pytest.approx(330, abs=1)


def test_a_voice_that_hangs_is_given_ten_seconds_a_sentence() -> None:
    voice = ScriptedTts(gate=asyncio.Event())
    known, took = revoiced(voice)
    assert known == load()
    assert took == pytest.approx(330 + 3 * 10 * len(known), abs=1)
    assert voice.running == 0


@pytest.mark.parametrize("voice", [ScriptedTts(empty=True), ScriptedTts(seconds_per_character=0.5)])
def test_no_audio_and_audio_without_end_are_not_taken(voice: ScriptedTts) -> None:
    known, _ = revoiced(voice)
    assert known == load()


def test_what_failed_is_tried_again_and_what_worked_is_not() -> None:
    voice = ScriptedTts(error=BackendError(Stage.TTS, ErrorKind.CONNECT, "no"))
    bad = WORDINGS["de"]["llm"].text
    voice.fails = lambda text: text == bad and voice.spoken.count(bad) == 1
    known, took = revoiced(voice, "de")
    assert all(apology.pcm == speech(0.1 * len(apology.text)) for apology in known.values())
    assert len(voice.spoken) == len(known) + 1
    assert took == pytest.approx(30, abs=1)
