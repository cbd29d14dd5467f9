"""Piper on this machine: around a scripted voice how work is handed out, with the real one what is heard."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from echokit_py.audio.pcm import seconds
from echokit_py.config.settings import PiperTts
from echokit_py.errors import BackendError, ErrorKind, ModelError, Stage
from echokit_py.http import HttpClient
from echokit_py.models.store import ModelStore
from echokit_py.tts.piper import PIECE, LocalPiper, build

pytest.importorskip("piper")

CONFIG = {
    "audio": {"sample_rate": 22_050},
    "espeak": {"voice": "en-us"},
    "num_symbols": 1,
    "num_speakers": 2,
    "phoneme_id_map": {},
    "inference": {"length_scale": 1.5},
}


@dataclass
class ScriptedVoice:
    """Stands for piper.PiperVoice: makes a second of 22,050 Hz of each sentence, and waits for `go` when told to."""

    config: Any = None
    made: list[str] = field(default_factory=list)
    options: list[Any] = field(default_factory=list)
    failure: Exception | None = None
    go: threading.Event = field(default_factory=threading.Event)
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __post_init__(self) -> None:
        self.go.set()

    def load(self, *, session: object, config: Any) -> ScriptedVoice:
        self.config = config
        return self

    def synthesize(self, text: str, options: Any) -> Iterator[Any]:
        self.options.append(options)
        for sentence in text.split(".")[:-1]:
            self.begun.release()
            self.go.wait(10)
            if self.failure is not None:
                raise self.failure
            self.made.append(sentence.strip())
            yield SimpleNamespace(audio_int16_bytes=np.full(22_050, len(sentence), "<i2").tobytes())


def voice_of(path: Path, **settings: Any) -> LocalPiper:
    return build(PiperTts.model_validate({"voice": str(path), **settings}), http=HttpClient(5), models=ModelStore())


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A voice's two files; the model is no model."""
    path = tmp_path / "voice.onnx"
    path.write_bytes(b"not a model")
    path.with_name("voice.onnx.json").write_text(json.dumps(CONFIG))
    return path


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> ScriptedVoice:
    voice = ScriptedVoice()
    monkeypatch.setattr("piper.PiperVoice", voice.load)
    monkeypatch.setattr("echokit_py.tts.piper._session", lambda path: None)
    monkeypatch.setattr("os.cpu_count", lambda: 2)  # one worker
    return voice


@pytest.fixture
async def piper(scripted: ScriptedVoice, files: Path) -> AsyncIterator[LocalPiper]:
    started = voice_of(files, speed=2, volume=0.5, speaker=1)
    await started.start()
    scripted.made.clear()
    scripted.begun = threading.Semaphore(0)
    yield started
    scripted.go.set()
    await started.close()


async def speak(tts: LocalPiper, text: str) -> bytes:
    return b"".join([piece async for piece in tts.synthesize(text)])


async def test_sentences_come_in_order_and_in_pieces(scripted: ScriptedVoice, piper: LocalPiper) -> None:
    pieces = [piece async for piece in piper.synthesize("One. Two. Three.")]
    assert scripted.made == ["One", "Two", "Three"]
    assert max(map(len, pieces)) <= PIECE
    assert all(len(piece) % 2 == 0 for piece in pieces)
    assert seconds(b"".join(pieces)) == pytest.approx(3, abs=0.001)


async def test_settings_reach_the_voice(scripted: ScriptedVoice, piper: LocalPiper) -> None:
    await speak(piper, "One.")
    options = scripted.options[-1]
    assert (options.length_scale, options.volume, options.speaker_id) == (0.75, 0.5, 1)


async def test_a_closed_generator_makes_no_more_sentences(scripted: ScriptedVoice, piper: LocalPiper) -> None:
    async with aclosing(piper.synthesize("One. Two. Three.")) as pieces:
        await anext(pieces)
    await speak(piper, "Last.")
    assert scripted.made == ["One", "Last"]


async def test_a_cancelled_one_stops_after_the_sentence_in_work(scripted: ScriptedVoice, piper: LocalPiper) -> None:
    scripted.go.clear()
    running = asyncio.create_task(speak(piper, "One. Two."))
    await asyncio.to_thread(scripted.begun.acquire, timeout=10)
    waiting = asyncio.create_task(speak(piper, "Three."))
    await asyncio.sleep(0)
    for task in (running, waiting):
        task.cancel()
    await asyncio.gather(running, waiting, return_exceptions=True)
    scripted.go.set()
    await speak(piper, "Last.")
    assert scripted.made == ["One", "Last"]


async def test_two_texts_take_turns_by_sentence(scripted: ScriptedVoice, piper: LocalPiper) -> None:
    scripted.go.clear()
    both = [asyncio.create_task(speak(piper, text)) for text in ("A one. A two. A three.", "B one.")]
    await asyncio.to_thread(scripted.begun.acquire, timeout=10)
    scripted.go.set()
    await asyncio.gather(*both)
    assert scripted.made.index("B one") < scripted.made.index("A three")


@pytest.mark.parametrize("text", ["", "no full stop"])
async def test_no_audio_is_an_error(piper: LocalPiper, text: str) -> None:
    with pytest.raises(BackendError) as caught:
        await speak(piper, text)
    assert (caught.value.stage, caught.value.kind) == (Stage.TTS, ErrorKind.BAD_ANSWER)


async def test_a_failure_is_a_backend_error(scripted: ScriptedVoice, piper: LocalPiper) -> None:
    scripted.failure = RuntimeError("no such\x07node")
    with pytest.raises(BackendError, match="failed: no such node") as caught:
        await speak(piper, "One.")
    assert (caught.value.stage, caught.value.kind) == (Stage.TTS, ErrorKind.INTERNAL)
    scripted.failure = None
    assert await speak(piper, "One.")


async def test_after_close_it_says_that_it_fails(piper: LocalPiper) -> None:
    await piper.close()
    with pytest.raises(BackendError):
        await speak(piper, "One.")


async def test_a_speaker_the_voice_does_not_have(scripted: ScriptedVoice, files: Path) -> None:
    tts = voice_of(files, speaker=2)
    with pytest.raises(ModelError, match=r"voice\.onnx has 2 speaker"):
        await tts.start()
    await tts.close()


@pytest.mark.parametrize("content", [None, "{", "[]"])
async def test_a_voice_without_its_description(files: Path, content: str | None) -> None:
    beside = files.with_name("voice.onnx.json")
    beside.unlink() if content is None else beside.write_text(content)
    tts = voice_of(files)
    with pytest.raises(ModelError, match=r"voice\.onnx\.json"):
        await tts.start()
    await tts.close()


async def test_a_file_that_is_no_voice(files: Path) -> None:
    tts = voice_of(files)
    with pytest.raises(BackendError) as caught:
        await tts.start()
    assert caught.value.kind is ErrorKind.INTERNAL
    await tts.close()


async def test_without_the_package(monkeypatch: pytest.MonkeyPatch, files: Path) -> None:
    monkeypatch.setitem(sys.modules, "piper", None)
    tts = voice_of(files)
    with pytest.raises(ModelError, match=r"pip install 'echokit-py\[local\]'"):
        await tts.start()
    await tts.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def joe() -> AsyncIterator[LocalPiper]:
    started = build(PiperTts(), http=HttpClient(5), models=ModelStore())
    await started.start()
    yield started
    await started.close()


def peak(pcm: bytes) -> int:
    return int(np.abs(np.frombuffer(pcm, "<i2").astype(np.int32)).max())


@pytest.mark.models
@pytest.mark.asyncio(loop_scope="module")
class TestJoe:
    async def test_a_sentence(self, joe: LocalPiper) -> None:
        audio = await speak(joe, "It is ten past four in Paris.")
        assert 1.2 < seconds(audio) < 3.5
        assert peak(audio) > 10_000

    async def test_several_at_once_each_get_their_own(self, joe: LocalPiper) -> None:
        texts = ["Yes.", "It is ten past four in Paris, and it will rain in the afternoon.", "Yes, it is."]
        short, long, middle = [seconds(audio) for audio in await asyncio.gather(*(speak(joe, text) for text in texts))]
        assert short < middle < long

    @pytest.mark.parametrize("text", ["", "...", "\n", "- -"])
    async def test_nothing_to_speak(self, joe: LocalPiper, text: str) -> None:
        with pytest.raises(BackendError) as caught:
            await speak(joe, text)
        assert caught.value.kind is ErrorKind.BAD_ANSWER

    async def test_speed_and_volume(self, joe: LocalPiper) -> None:
        text = "It is ten past four in Paris, and it will rain."
        tts = build(PiperTts(speed=2, volume=0.25), http=HttpClient(5), models=ModelStore())
        await tts.start()
        fast = await speak(tts, text)
        await tts.close()
        assert seconds(fast) < 0.7 * seconds(await speak(joe, text))
        assert 2_000 < peak(fast) < 10_000

    async def test_probe(self, joe: LocalPiper) -> None:
        assert await joe.probe() == "Piper en_US-joe-medium, 22050 Hz"
