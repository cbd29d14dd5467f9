"""Our graph of Silero's network says what Silero's own says, however many frames and streams go in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from echokit_py.models.store import ModelStore
from echokit_py.vad.silero_model import CONTEXT_SAMPLES, STATE_SIZE, Floats, Heard, Piece, Samples, SileroModel
from tests.fakes import spoken

pytestmark = pytest.mark.models

FRAME = 512
NOTHING: Floats = np.zeros((2, STATE_SIZE), np.float32)


@pytest.fixture(scope="module")
def path() -> Path:
    import asyncio

    return asyncio.run(ModelStore().path("silero-vad"))


@pytest.fixture(scope="module")
def model(path: Path) -> SileroModel:
    return SileroModel(path)


@pytest.fixture(scope="module")
def audio() -> Samples:
    """Speech where there are recordings, noise that comes and goes where there are none; the context before it."""
    if spoken.RECORDINGS:
        samples = spoken.load("human_beckett.wav")[: 100 * FRAME]
    else:
        chance = np.random.default_rng(3)
        samples = (chance.normal(0, 6_000, 100 * FRAME) * np.sin(np.arange(100 * FRAME) / 5000)).astype(np.int16)
    return np.concatenate((np.zeros(CONTEXT_SAMPLES, np.int16), samples))


def part(audio: Samples, first: int, count: int, state: Floats = NOTHING) -> Piece:
    """`count` frames from frame `first` on."""
    return Piece(audio[first * FRAME : (first + count) * FRAME + CONTEXT_SAMPLES], state)


@pytest.fixture(scope="module")
def reference(path: Path, audio: Samples) -> list[Heard]:
    """What Silero's own graph says of each frame, one by one."""
    session: Any = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    state, heard = np.zeros((2, 1, STATE_SIZE), np.float32), []
    for frame in range(100):
        samples = part(audio, frame, 1).samples.astype(np.float32) / 32_768
        inputs = {"input": samples[np.newaxis], "state": state, "sr": np.array(16_000)}
        probability, state = session.run(None, inputs)
        heard.append(Heard([float(probability[0, 0])], state[:, 0]))
    return heard


def probabilities(heard: list[Heard]) -> list[float]:
    return [probability for piece in heard for probability in piece.probabilities]


def test_all_frames_in_one_run(model: SileroModel, audio: Samples, reference: list[Heard]) -> None:
    (heard,) = model.run([part(audio, 0, 100)])
    assert max(heard.probabilities) > 0.5 or not spoken.RECORDINGS
    assert heard.probabilities == pytest.approx(probabilities(reference), abs=1e-4)
    assert heard.state == pytest.approx(reference[-1].state, abs=1e-3)


def test_frame_by_frame(model: SileroModel, audio: Samples, reference: list[Heard]) -> None:
    heard, state = [], NOTHING
    for frame in range(100):
        heard += model.run([part(audio, frame, 1, state)])
        state = heard[-1].state
    assert probabilities(heard) == pytest.approx(probabilities(reference), abs=1e-4)


def test_streams_of_different_lengths_and_states(model: SileroModel, audio: Samples, reference: list[Heard]) -> None:
    spans = [(0, 16), (40, 1), (10, 32), (99, 1), (3, 7)]
    states = [NOTHING if first == 0 else reference[first - 1].state for first, _ in spans]
    pieces = [part(audio, first, count, state) for (first, count), state in zip(spans, states, strict=True)]
    for (first, count), heard in zip(spans, model.run(pieces), strict=True):
        expected = probabilities(reference[first : first + count])
        assert heard.probabilities == pytest.approx(expected, abs=1e-4)
        assert heard.state == pytest.approx(reference[first + count - 1].state, abs=1e-3)


def test_many_streams_at_once(model: SileroModel, audio: Samples, reference: list[Heard]) -> None:
    heard = model.run([part(audio, 0, 3)] * 100)
    expected = probabilities(reference[:3])
    assert all(each.probabilities == pytest.approx(expected, abs=1e-4) for each in heard)
