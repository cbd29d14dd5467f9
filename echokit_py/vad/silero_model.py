"""Runs Silero's network over many frames of many streams in one onnxruntime call. Knows no threads, devices or queues.

Silero's own graph takes one frame a stream and a run, and spends most of a run on convolutions over four positions,
which onnxruntime computes stream by stream. But only its last layer, an LSTM, looks back: all before it can be computed
for any number of frames at once, as products of matrices. So the same weights are put into a graph of another shape:

    windows → spectrum → magnitude → four layers → LSTM over each stream's frames → probability of each frame

The numbers are those of Silero's graph but for rounding (a test compares them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from echokit_py.vad.base import FRAME_SAMPLES
from echokit_py.vad.onnx_graph import Node, add_outputs, encode_model

Floats = NDArray[np.float32]
Samples = NDArray[np.int16]

# What a frame is seen with: the samples before it, and those mirrored at its end (`OnnxWrapper` in silero-vad's
# utils_vad.py; the padding of its STFT).
CONTEXT_SAMPLES = 64
MIRRORED_SAMPLES = 64
STATE_SIZE = 128
_WINDOW, _HOP, _POSITIONS = 256, 128, 4
_BINS = 129

_BASIS = "model.stft.forward_basis_buffer"
_LAYERS = [f"model.encoder.{number}.reparam_conv" for number in range(4)]
_LSTM = [f"model.decoder.rnn.{part}" for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
_LAST = "model.decoder.decoder.2"
_WEIGHTS = [_BASIS, *(f"{layer}.{part}" for layer in [*_LAYERS, _LAST] for part in ("weight", "bias")), *_LSTM]


@dataclass(frozen=True, slots=True)
class Piece:
    """Audio of one stream. `samples`: int16, the CONTEXT_SAMPLES before and then whole frames, one at least.
    `state`: float32, (2, STATE_SIZE), what the stream's last piece gave back; zeros at the beginning."""

    samples: Samples
    state: Floats


@dataclass(frozen=True, slots=True)
class Heard:
    """The speech probability (0..1) of each frame of a piece, and the stream's new state."""

    probabilities: list[float]
    state: Floats


class SileroModel:
    """The loaded network. Raises what onnxruntime does, when the file is not such a model."""

    def __init__(self, path: Path) -> None:
        self._session = _session(encode_model(_NODES, _matrices(_read_weights(path)), _INPUTS, _OUTPUTS))

    def run(self, pieces: Sequence[Piece]) -> list[Heard]:
        """Run pieces of different streams, one at least; return what was heard in each, in order."""
        counts = np.array([(len(piece.samples) - CONTEXT_SAMPLES) // FRAME_SAMPLES for piece in pieces])
        # Row by row the places of each stream's frames; a short one repeats its last, which the LSTM doesn't look at.
        steps = np.minimum(np.arange(counts.max())[:, np.newaxis], counts - 1)
        states = np.stack([piece.state for piece in pieces], axis=1)
        inputs = {
            "windows": _windows([_frames(piece.samples) for piece in pieces]),
            "order": steps + (np.cumsum(counts) - counts),
            "lengths": counts.astype(np.int32),
            "hidden": states[:1],
            "cell": states[1:],
        }
        probabilities, hidden, cell = self._session.run(_OUTPUTS, inputs)
        return [
            Heard(probabilities[:count, place].tolist(), np.stack((hidden[0, place], cell[0, place])))
            for place, count in enumerate(counts)
        ]


def _frames(samples: Samples) -> Samples:
    """(frames, CONTEXT_SAMPLES + FRAME_SAMPLES): each frame with the samples before it."""
    return sliding_window_view(samples, CONTEXT_SAMPLES + FRAME_SAMPLES)[::FRAME_SAMPLES]


def _windows(frames: list[Samples]) -> Floats:
    """(4 x frames, 256): the windows of the spectrum, every 128 samples of a frame with its mirrored end."""
    joined: Floats = np.concatenate(frames, dtype=np.float32)
    padded = np.concatenate((joined, joined[:, -2 : -2 - MIRRORED_SAMPLES : -1]), axis=1)
    return sliding_window_view(padded, _WINDOW, axis=1)[:, ::_HOP].reshape(-1, _WINDOW)


def _session(model: bytes) -> Any:
    import onnxruntime  # takes 100 ms, which commands without VAD need not pay

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # a tick is short: other cores are ASR's
    options.log_severity_level = 3  # else it warns of what it leaves out of a graph
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _read_weights(path: Path) -> dict[str, Floats]:
    """The weights by their names in Silero's graph, which is made to give them out in a run over nothing."""
    session = _session(add_outputs(path.read_bytes(), _WEIGHTS))
    nothing = np.zeros((1, CONTEXT_SAMPLES + FRAME_SAMPLES), np.float32)
    state = np.zeros((2, 1, STATE_SIZE), np.float32)
    found = session.run(_WEIGHTS, {"input": nothing, "state": state, "sr": np.array(16_000, np.int64)})
    return dict(zip(_WEIGHTS, found, strict=True))


def _matrices(weights: Mapping[str, Floats]) -> dict[str, NDArray[Any]]:
    """The constants of our graph."""
    first, second, third, fourth = (weights[f"{layer}.weight"] for layer in _LAYERS)
    found: dict[str, NDArray[Any]] = {
        # Silero's takes samples in -1..1, ours as they come.
        "basis": weights[_BASIS][:, 0].T / np.float32(32_768),
        "row": np.array([-1, _POSITIONS * _BINS], np.int64),
        # The strides halve the positions: 4, 4, 2, 1, 1.
        "layer0": _dense(first, 4, 1),
        "layer1": _dense(second, 4, 2),
        "layer2": _dense(third, 2, 2),
        "layer3": _dense(fourth, 1, 1),
        "last": weights[f"{_LAST}.weight"][0],
        "last_bias": weights[f"{_LAST}.bias"],
        "squeezed": np.array([1, 3], np.int64),
    }
    for number, (layer, repeats) in enumerate(zip(_LAYERS, (4, 2, 1, 1), strict=True)):
        found[f"bias{number}"] = np.tile(weights[f"{layer}.bias"], repeats)
    inputs, recurrent, input_bias, recurrent_bias = (_gates(weights[name]) for name in _LSTM)
    found |= {"inputs": inputs[np.newaxis], "recurrent": recurrent[np.newaxis]}
    return found | {"lstm_bias": np.concatenate((input_bias, recurrent_bias))[np.newaxis]}


def _dense(kernel: Floats, positions: int, stride: int) -> Floats:
    """A convolution of width 3 with zeros on both sides, over `positions` positions, as one matrix.

    `kernel`: (channels out, channels in, 3). Rows are (position, channel in), columns (position out, channel out).
    """
    out, channels, width = kernel.shape
    matrix = np.zeros((positions, channels, len(range(0, positions, stride)), out), np.float32)
    for place, centre in enumerate(range(0, positions, stride)):
        for tap in range(width):
            if 0 <= centre + tap - 1 < positions:
                matrix[centre + tap - 1, :, place] = kernel[:, :, tap].T
    return matrix.reshape(positions * channels, -1)


def _gates(rows: Floats) -> Floats:
    """PyTorch's order of an LSTM's gates (input, forget, cell, output) in ONNX's (input, output, forget, cell)."""
    in_gate, forget_gate, cell, out_gate = np.split(rows, 4)
    return np.concatenate((in_gate, out_gate, forget_gate, cell))


_INPUTS: dict[str, type[np.generic]] = {
    "windows": np.float32,
    "order": np.int64,
    "lengths": np.int32,
    "hidden": np.float32,
    "cell": np.float32,
}
_OUTPUTS = ["probabilities", "hidden_out", "cell_out"]

_NODES = [
    Node("MatMul", ["windows", "basis"], ["spectrum"]),
    Node("Split", ["spectrum"], ["real", "imaginary"], {"axis": 1}),
    Node("Mul", ["real", "real"], ["real_square"]),
    Node("Mul", ["imaginary", "imaginary"], ["imaginary_square"]),
    Node("Add", ["real_square", "imaginary_square"], ["power"]),
    Node("Sqrt", ["power"], ["magnitude"]),
    Node("Reshape", ["magnitude", "row"], ["features0"]),
    *(
        node
        for number in range(4)
        for node in (
            Node("Gemm", [f"features{number}", f"layer{number}", f"bias{number}"], [f"sum{number}"]),
            Node("Relu", [f"sum{number}"], [f"features{number + 1}"]),
        )
    ),
    Node("Gather", ["features4", "order"], ["sequence"], {"axis": 0}),
    Node(
        "LSTM",
        ["sequence", "inputs", "recurrent", "lstm_bias", "lengths", "hidden", "cell"],
        ["output", "hidden_out", "cell_out"],
        {"hidden_size": STATE_SIZE},
    ),
    Node("Relu", ["output"], ["positive"]),
    Node("MatMul", ["positive", "last"], ["weighed"]),
    Node("Add", ["weighed", "last_bias"], ["biased"]),
    Node("Sigmoid", ["biased"], ["sigmoid"]),
    Node("Squeeze", ["sigmoid", "squeezed"], ["probabilities"]),
]
