"""Writes an ONNX model from nodes and constants, and adds outputs to one. Runs none, and reads none.

ONNX files are Protocol Buffers; the few messages that a small graph needs are written here field by field (numbers from
onnx.proto of github.com/onnx/onnx), which spares a dependency on the onnx package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# ModelProto
_IR_VERSION, _GRAPH, _OPSET_IMPORT = 1, 7, 8
# GraphProto
_NODE, _GRAPH_NAME, _INITIALIZER, _INPUT, _OUTPUT = 1, 2, 5, 11, 12
# NodeProto
_NODE_INPUT, _NODE_OUTPUT, _OP_TYPE, _ATTRIBUTE = 1, 2, 4, 5
# AttributeProto; its type says which field holds the value
_ATTRIBUTE_NAME, _INT, _ATTRIBUTE_TYPE, _TYPE_INT = 1, 3, 20, 2
# TensorProto
_DIMS, _DATA_TYPE, _TENSOR_NAME, _RAW_DATA = 1, 2, 8, 9
# ValueInfoProto, TypeProto, TypeProto.Tensor, OperatorSetIdProto
_VALUE_NAME, _VALUE_TYPE, _TENSOR_TYPE, _ELEM_TYPE, _OPSET_VERSION = 1, 2, 1, 1, 2

_ELEMENTS = {np.dtype(np.float32): 1, np.dtype(np.int32): 6, np.dtype(np.int64): 7}
# The versions that Silero's own file has: whatever runs that runs this.
_VERSION, _OPSET = 8, 15

_VARINT, _BYTES = 0, 2


@dataclass(frozen=True, slots=True)
class Node:
    """One operator: its ONNX name, the names of what goes in and comes out, and its attributes."""

    operator: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, int] = field(default_factory=dict)


def encode_model(
    nodes: Iterable[Node],
    constants: Mapping[str, NDArray[Any]],
    inputs: Mapping[str, type[np.generic]],
    outputs: Iterable[str],
) -> bytes:
    """Return the file of a model of these nodes, in the order in which they are computed.

    Constants and inputs are float32, int32 or int64; the shapes of inputs are left open.
    """
    graph = [_field(_NODE, _node(node)) for node in nodes]
    graph.append(_text(_GRAPH_NAME, "graph"))
    graph += [_field(_INITIALIZER, _tensor(name, array)) for name, array in constants.items()]
    graph += [_field(_INPUT, _value(name, np.dtype(kind))) for name, kind in inputs.items()]
    graph += [_field(_OUTPUT, _text(_VALUE_NAME, name)) for name in outputs]
    opset = _field(_OPSET_IMPORT, _number(_OPSET_VERSION, _OPSET))
    return _number(_IR_VERSION, _VERSION) + _field(_GRAPH, b"".join(graph)) + opset


def add_outputs(model: bytes, names: Iterable[str]) -> bytes:
    """Return the file of a model with more outputs: names of constants, or of values on the way.

    A message that comes a second time is merged into the first, its lists appended: so says the encoding.
    """
    return model + _field(_GRAPH, b"".join(_field(_OUTPUT, _text(_VALUE_NAME, name)) for name in names))


def _node(node: Node) -> bytes:
    names = [_text(_NODE_INPUT, name) for name in node.inputs] + [_text(_NODE_OUTPUT, name) for name in node.outputs]
    attributes = [_field(_ATTRIBUTE, _attribute(name, value)) for name, value in node.attributes.items()]
    return b"".join([*names, _text(_OP_TYPE, node.operator), *attributes])


def _attribute(name: str, value: int) -> bytes:
    return _text(_ATTRIBUTE_NAME, name) + _number(_INT, value) + _number(_ATTRIBUTE_TYPE, _TYPE_INT)


def _tensor(name: str, array: NDArray[Any]) -> bytes:
    dims = b"".join(_number(_DIMS, size) for size in array.shape)
    return dims + _number(_DATA_TYPE, _ELEMENTS[array.dtype]) + _text(_TENSOR_NAME, name) + _raw(array)


def _raw(array: NDArray[Any]) -> bytes:
    return _field(_RAW_DATA, array.astype(array.dtype.newbyteorder("<")).tobytes())


def _value(name: str, kind: np.dtype[Any]) -> bytes:
    tensor = _field(_TENSOR_TYPE, _number(_ELEM_TYPE, _ELEMENTS[kind]))
    return _text(_VALUE_NAME, name) + _field(_VALUE_TYPE, tensor)


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the top bit says that more come. For numbers from 0 on."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
