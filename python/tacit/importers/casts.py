"""Types of numbers: floats of any width and inputs of integers are read as float32, and casts in between are none.

Tacit rounds everything to integers of its own widths, so that a narrower float says nothing it needs to know.
"""

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from tacit.errors import UnsupportedError
from tacit.importers.extents import computed
from tacit.importers.selection import types
from tacit.importers.tokens import reads_tokens

NARROW = {TensorProto.FLOAT16, TensorProto.BFLOAT16}
INTEGERS = {
    TensorProto.INT8,
    TensorProto.INT16,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.UINT8,
    TensorProto.UINT16,
}
MOVING = {"Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
"""Operators that leave values and types as they are; all but the first of their inputs say how."""


def as_float32(model: onnx.ModelProto) -> None:
    """Let weights, activations and inputs that are floats be float32, and drop casts that change nothing then."""
    for kind in NARROW | ({TensorProto.DOUBLE} if computes_in_doubles(model) else set()):
        widen(model, kind)
    identify(model)


def computes_in_doubles(model: onnx.ModelProto) -> bool:
    """Whether float64 is in the model on purpose: it reads it, or casts to it."""
    inputs = any(entry.type.tensor_type.elem_type == TensorProto.DOUBLE for entry in computed(model))
    return inputs or any(target(node) == TensorProto.DOUBLE for node in model.graph.node)


def target(node: onnx.NodeProto) -> int | None:
    """The type that a Cast makes."""
    if node.op_type != "Cast" or node.domain:
        return None
    return next((int(entry.i) for entry in node.attribute if entry.name == "to"), None)


def widen(model: onnx.ModelProto, kind: int) -> None:
    """Let all that is of type `kind` be float32; nodes inside of nodes are left alone."""
    graph = model.graph
    for tensor in graph.initializer:
        widen_tensor(tensor, kind)
    for node in graph.node:
        for entry in node.attribute:
            if entry.HasField("t"):
                widen_tensor(entry.t, kind)
            elif entry.name in ("to", "dtype") and entry.i == kind:
                entry.i = TensorProto.FLOAT
    for entry in (*graph.input, *graph.output):
        tensor_type = entry.type.tensor_type
        if entry.type.HasField("tensor_type") and tensor_type.elem_type == kind:
            tensor_type.elem_type = TensorProto.FLOAT
    del graph.value_info[:]


def widen_tensor(tensor: onnx.TensorProto, kind: int) -> None:
    """Store a tensor of type `kind` as float32, in place; other tensors stay as they are."""
    if tensor.data_type == kind:
        with np.errstate(over="ignore"):
            value = numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))


def read_integers(model: onnx.ModelProto) -> None:
    """Let inputs of integers be float32, in place; tokens stay what they are.

    Raises `UnsupportedError` for an input of integers that nodes compute with before they make floats of it.
    """
    if reads_tokens(model):
        return
    for entry in computed(model):
        kind = entry.type.tensor_type.elem_type
        if kind not in INTEGERS:
            continue
        reader = integer_reader(model, entry.name)
        if reader is not None:
            what = f"input `{entry.name}` is of type {TensorProto.DataType.Name(kind)}"
            advice = "cast the input to float32 first"
            raise UnsupportedError(f"{what}, and node `{reader.name}` ({reader.op_type}) computes with it; {advice}")
        entry.type.tensor_type.elem_type = TensorProto.FLOAT
        del model.graph.value_info[:]
        identify(model)


def integer_reader(model: onnx.ModelProto, name: str) -> onnx.NodeProto | None:
    """The first node that computes with the integers of an input, without a Cast to float32 before it."""
    integers = {name}
    node: onnx.NodeProto
    for node in model.graph.node:
        if not integers.intersection(node.input) or node.op_type == "Shape" or target(node) == TensorProto.FLOAT:
            continue
        if node.op_type not in MOVING or integers.intersection(node.input[1:]):
            return node
        integers.add(node.output[0])
    return None


def identify(model: onnx.ModelProto) -> None:
    """Make an Identity of every Cast from float32 to float32, in place."""
    casts = [node for node in model.graph.node if target(node) is not None]
    kinds = types(model) if casts else {}
    for node in casts:
        if target(node) == kinds.get(node.input[0]) == TensorProto.FLOAT:
            node.op_type = "Identity"
            del node.attribute[:]
