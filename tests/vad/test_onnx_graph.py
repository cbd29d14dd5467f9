"""Models written by hand: onnxruntime reads them and computes what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from echokit_py.vad.onnx_graph import Node, add_outputs, encode_model


def run(model: bytes, outputs: list[str], **inputs: Any) -> list[Any]:
    found: list[Any] = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(outputs, inputs)
    return found


def doubled() -> bytes:
    """y = (x + 0.5) doubled along axis 1; 300 numbers in the constant, so that a length takes two bytes."""
    nodes = [Node("Add", ["x", "half"], ["sum"]), Node("Concat", ["sum", "sum"], ["y"], {"axis": 1})]
    constants = {"half": np.full((1, 300), 0.5, np.float32)}
    return encode_model(nodes, constants, {"x": np.float32}, ["y"])


def test_nodes_constants_and_attributes() -> None:
    x = np.arange(600, dtype=np.float32).reshape(2, 300)
    (y,) = run(doubled(), ["y"], x=x)
    assert np.array_equal(y, np.concatenate((x + 0.5, x + 0.5), axis=1))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_whole_numbers(kind: type[np.generic]) -> None:
    big = np.array([2**31 - 1, -5], kind)
    model = encode_model([Node("Add", ["x", "big"], ["y"])], {"big": big}, {"x": kind}, ["y"])
    assert run(model, ["y"], x=np.array([0, 1], kind))[0].tolist() == [2**31 - 1, -4]


def test_what_is_on_the_way_and_what_is_constant_can_be_given_out() -> None:
    x = np.zeros((1, 300), np.float32)
    total, half = run(add_outputs(doubled(), ["sum", "half"]), ["sum", "half"], x=x)
    assert np.array_equal(total, half)
    assert half[0, 0] == 0.5
