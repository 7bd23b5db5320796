"""Models of integers, as quantisers write them, are read back as the models of floats that they round.

Integers that stand for numbers (QuantizeLinear, QLinearConv, DynamicQuantizeLinear, ...) become those numbers. What
is rounded in between is not, since Tacit rounds by itself; but scale and zero point tell the range of a tensor, which
calibration gets, and where they cut off what is below zero a quantiser may have left out a ReLU, which is put back.
"""

from collections.abc import Callable, Mapping

import onnx
from onnx import TensorProto

from tacit.importers.fold import keep
from tacit.importers.forms.codes import Reals
from tacit.importers.forms.graph import EXTRA, OWN
from tacit.importers.forms.integers import INTEGERS, scale_product, sum_cast
from tacit.importers.forms.linear import LINEAR, MOVES, SHAPES, choose
from tacit.importers.guard import guarded
from tacit.importers.source import Remarks

QUANTISED: Mapping[str, Callable[[Reals, onnx.NodeProto], None]] = {**INTEGERS, **LINEAR}


def dequantise(model: onnx.ModelProto, remarks: Remarks) -> None:
    """Read a quantised model as floats, in place; what scales say of the ranges of tensors is added to `remarks`.

    Raises `UnsupportedError` naming the node for integers that are no rounded numbers.
    """
    if not any(is_quantised(node) for node in model.graph.node):
        return
    graph = Reals(model)
    others = {entry.name for entry in model.graph.output}
    others |= {name for node in model.graph.node for name in node.input if node.op_type not in LINEAR}
    for node in model.graph.node:
        with guarded(node.name, node.op_type):
            convert(graph, node)
    share(graph, others)
    outputs(graph, remarks.notes)
    keep(model, graph.nodes)
    del model.graph.value_info[:]
    remarks.bounds.update(graph.bounds)
    if graph.weights:
        layers = "1 quantised layer" if graph.weights == 1 else f"{graph.weights} quantised layers"
        known = "; their scales bound the activations" if graph.bounds else ""
        remarks.notes.append(f"read {layers} as float{known}")


def is_quantised(node: onnx.NodeProto) -> bool:
    """Whether a node makes integers of numbers, computes with them, or makes numbers of them."""
    return node.op_type in QUANTISED and node.domain in (*OWN, EXTRA)


def convert(graph: Reals, node: onnx.NodeProto) -> None:
    """Write one node anew."""
    read = set(node.input)
    if is_quantised(node):
        QUANTISED[node.op_type](graph, node)
    elif node.op_type == "Gather" and integral(graph, node.input[0]) and node.input[1] not in graph.fixed:
        choose(graph, node)
    elif node.op_type == "Mul" and scale_product(graph, node):
        return
    elif node.op_type == "Cast" and node.input[0] in graph.accumulated:
        sum_cast(graph, node)
    elif read & (graph.sums.keys() | graph.factors.keys() | graph.chosen.keys() | graph.accumulated):
        graph.refuse(node, "computes with sums of integers before they are scaled", "export the float model")
    elif read & graph.codes.keys() and node.op_type not in SHAPES:
        move = MOVES.get(node.op_type) if node.op_type in ("Cast", "Concat") or node.input[0] in graph.codes else None
        if move is None:
            graph.refuse(node, "computes with quantised integers", "export the model before it was quantised")
        move(graph, node)
    else:
        if node.op_type == "Identity" and graph.real(node.input[0]) in graph.tensors:
            graph.alias[node.output[0]] = graph.real(node.input[0])
        graph.keep(node)


def integral(graph: Reals, name: str) -> bool:
    """Whether it is a constant of integers of few bits."""
    return name in graph.tensors and graph.tensors[name].data_type in (TensorProto.INT8, TensorProto.UINT8)


def share(graph: Reals, others: set[str]) -> None:
    """Give tensors that nothing but quantisers read the range that these say, the widest if there are several."""
    for name, found in graph.quantised.items():
        if name not in others:
            graph.bounds.setdefault(name, (min(low for low, _ in found), max(high for _, high in found)))


def outputs(graph: Reals, notes: list[str]) -> None:
    """Let results of integers be the numbers that they stand for."""
    for entry in graph.model.graph.output:
        if entry.name in graph.codes and entry.type.tensor_type.elem_type != TensorProto.FLOAT:
            entry.type.tensor_type.elem_type = TensorProto.FLOAT
            notes.append(f"`{entry.name}` is given as numbers and not as the integers that stand for them")
