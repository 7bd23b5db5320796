"""Exports of transformers, which read `input_ids` and `attention_mask`, get the one input that Tacit has."""

from collections.abc import Mapping

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
    """The model, changed in place, with one float32 input `x` (N, 2, sequence) and its first output.

    The input has tokens above and their mask below; token types are 0. Raises `UnsupportedError` for other inputs.
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
    fix_positions(graph, sequence)
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


def fix_positions(graph: onnx.GraphProto, sequence: int) -> None:
    """Let positions that are counted over all tokens but padding be those of a text without padding, in place.

    Padding comes last, and nothing but itself reads what is computed of it.
    """
    writers = {name: node for node in graph.node for name in node.output}
    for product in [node for node in graph.node if node.op_type == "Mul"]:
        for count, real in (product.input, reversed(product.input)):
            counted = writers.get(origin(count, writers))
            if counted is None or counted.op_type != "CumSum" or not tells_padding(real, writers):
                continue
            if tells_padding(counted.input[0], writers):
                kind = next(entry.i for entry in writers[real].attribute if entry.name == "to")
                values = np.arange(1, sequence + 1)[None].astype(helper.tensor_dtype_to_np_dtype(kind))
                graph.initializer.append(numpy_helper.from_array(values, product.output[0]))
                graph.node.remove(product)
                break


def tells_padding(name: str, writers: Mapping[str, onnx.NodeProto]) -> bool:
    """Whether a tensor of numbers is 1 for tokens that are not a certain one, and 0 for that."""
    inverse = writers.get(origin(name, writers))
    equal = writers.get(inverse.input[0]) if inverse is not None and inverse.op_type == "Not" else None
    if equal is None or equal.op_type != "Equal" or name not in writers or writers[name].op_type != "Cast":
        return False
    return any(origin(read, writers) == IDS for read in equal.input)


def origin(name: str, writers: Mapping[str, onnx.NodeProto]) -> str:
    """The tensor that is cast to another type, perhaps more than once, until it is `name`."""
    while name != IDS and name in writers and writers[name].op_type in ("Cast", "Identity"):
        name = writers[name].input[0]
    return name


def fresh(model: onnx.ModelProto, base: str) -> str:
    """`base`, lengthened until no tensor has that name."""
    taken = {name for node in model.graph.node for name in (*node.input, *node.output)}
    while base in taken:
        base += "'"
    return base
