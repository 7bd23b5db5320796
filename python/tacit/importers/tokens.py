"""Exports of transformers, which read `input_ids` and `attention_mask`, get the one input that Tacit has."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tacit.errors import UnsupportedError
from tacit.importers.fold import keep

IDS, MASK, TYPES, POSITIONS = "input_ids", "attention_mask", "token_type_ids", "position_ids"
KINDS = {TensorProto.INT64: np.int64, TensorProto.INT32: np.int32}


def inputs(model: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    """The inputs that are no constants."""
    stored = {tensor.name for tensor in model.graph.initializer}
    return {entry.name: entry for entry in model.graph.input if entry.name not in stored}


def reads_tokens(model: onnx.ModelProto) -> bool:
    """Whether the model has an input of tokens."""
    return IDS in inputs(model)


def length_of(model: onnx.ModelProto) -> int | None:
    """How many tokens an input has, where the model says it."""
    sizes = inputs(model)[IDS].type.tensor_type.shape.dim
    return int(sizes[1].dim_value) or None if len(sizes) == 2 else None


def fix_tokens(model: onnx.ModelProto, sequence: int) -> onnx.ModelProto:
    """The model, in place, with one float32 input `x` (N, 2, sequence), tokens above their mask, and its first output.

    Token types are 0. Raises `UnsupportedError` for inputs that are nothing of that.
    """
    given = inputs(model)
    for name, entry in given.items():
        kind = entry.type.tensor_type.elem_type
        if name not in (IDS, MASK, TYPES, POSITIONS) or kind not in KINDS:
            known = f"{IDS}, {MASK}, {TYPES} and {POSITIONS}"
            raise UnsupportedError(
                f"input `{name}` is not supported beside {IDS}; export the model with {known} of integers"
            )
    length = length_of(model)
    if length not in (None, sequence):
        raise UnsupportedError(f"the model reads {length} tokens and not {sequence}; export it at a dynamic length")
    graph = model.graph
    name = fresh(model, "x")
    for field in (graph.input, graph.value_info):
        del field[:]
    del graph.output[1:]
    graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 2, sequence]))
    graph.initializer.extend(constants(name, sequence))
    nodes = [node for entry in given.values() for node in provide(entry, name)]
    keep(model, [*nodes, *graph.node])
    shape = graph.output[0].type.tensor_type.shape
    for axis, size in enumerate(shape.dim):
        size.dim_param = f"output{axis}"
    return model


def constants(name: str, sequence: int) -> list[TensorProto]:
    """What the nodes of `provide` read."""
    values = {
        "first": np.int64(0),
        "second": np.int64(1),
        TYPES: np.zeros((1, sequence), np.int64),
        POSITIONS: np.arange(sequence, dtype=np.int64)[None],
    }
    return [numpy_helper.from_array(np.asarray(value), f"{name}.{role}") for role, value in values.items()]


def provide(entry: onnx.ValueInfoProto, name: str) -> list[onnx.NodeProto]:
    """Nodes that compute an input of the model from the one input `name`."""
    role, kind = entry.name, entry.type.tensor_type.elem_type
    if role in (TYPES, POSITIONS):
        return [helper.make_node("Cast", [f"{name}.{role}"], [role], name=f"{name}.{role}.cast", to=kind)]
    row = f"{name}.{role}.row"
    index = f"{name}.second" if role == MASK else f"{name}.first"
    nodes = [helper.make_node("Gather", [name, index], [row], name=row, axis=1)]
    return [*nodes, helper.make_node("Cast", [row], [role], name=f"{name}.{role}.cast", to=kind)]


def fresh(model: onnx.ModelProto, base: str) -> str:
    """`base`, lengthened until no tensor has that name."""
    taken = {name for node in model.graph.node for name in (*node.input, *node.output)}
    while base in taken:
        base += "'"
    return base
