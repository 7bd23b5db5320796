"""QuantizeLinear and DequantizeLinear around operators of floats, and operators that move integers about."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tacit.importers.forms.codes import Codes, Reals, dequantised
from tacit.importers.forms.graph import given, settings

MOVING = {
    *("DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "Identity", "MaxPool", "Reshape", "Slice"),
    *("SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
}
"""Operators that choose among the integers that their first input has."""
SHAPES = {"Shape", "Size"}
CHANNEL_AXIS = 1


def quantize(graph: Reals, node: onnx.NodeProto) -> None:
    """QuantizeLinear of an activation, whose range is noted; where it cuts off what is below zero, a ReLU does."""
    x, output = graph.real(node.input[0]), node.output[0]
    kind = int(settings(node).get("output_dtype", 0))
    form = graph.form(node, node.input[1], given(node, 2), kind)
    if x in graph.tensors:
        integers = rounded(graph.array(graph.tensors[x]), form, int(settings(node).get("axis", CHANNEL_AXIS)))
        graph.tensors[output] = numpy_helper.from_array(integers, output)
        graph.model.graph.initializer.append(graph.tensors[output])
        graph.fixed.add(output)
        return
    if x in graph.fixed:
        graph.keep(node)
        return
    if settings(node).get("block_size", 0):
        graph.refuse(node, "of an activation in blocks", "quantise activations per tensor")
    ends = form.bounds()
    if graph.needs_cut(x, form) and x not in graph.entries and ends is not None:
        graph.least[graph.clip(node, x, *ends, output)] = 0.0
        graph.became(output, output, form)
        graph.bounds[output] = ends
        return
    graph.put(node, "Identity", [x], output)
    graph.became(output, x, form)
    if ends is not None:
        graph.quantised.setdefault(x, []).append(ends)


def rounded(value: NDArray[np.float64], form: Codes, axis: int) -> NDArray[np.int32]:
    """The integers that stand for constant numbers, with one scale or one for each place of an axis."""
    assert form.scale is not None
    assert form.zero is not None
    shape = [1] * value.ndim
    if form.scale.size > 1:
        shape[axis] = -1
    scale, zero = (part.reshape(shape if part.size > 1 else ()) for part in (form.scale, form.zero))
    return np.asarray(np.clip(np.round(value / scale) + zero, *form.limits)).astype(np.int32)


def dynamic(graph: Reals, node: onnx.NodeProto) -> None:
    """DynamicQuantizeLinear, whose scale the model computes: nothing is known of the range."""
    x = graph.real(node.input[0])
    graph.put(node, "Identity", [x], node.output[0])
    graph.codes[node.output[0]] = Codes(x, symbol=node.output[1])
    graph.alias[node.output[0]] = x
    graph.factors[node.output[1]] = (node.output[1], np.ones(1))


def dequantize(graph: Reals, node: onnx.NodeProto) -> None:
    """DequantizeLinear: of a constant its numbers, of an activation the floats that were rounded."""
    name, output = node.input[0], node.output[0]
    known, tensor = graph.codes.get(name), graph.tensors.get(name)
    if known is not None and known.symbol:
        if node.input[1] != known.symbol:
            graph.refuse(node, "with the scale of another tensor", "export the model before it was quantised")
        x = known.real
    elif tensor is not None:
        given_settings = settings(node)
        form = graph.form(node, node.input[1], given(node, 2), tensor.data_type)
        assert form.scale is not None
        assert form.zero is not None
        axis, block = int(given_settings.get("axis", CHANNEL_AXIS)), int(given_settings.get("block_size", 0))
        graph.weights += len(tensor.dims) > 1
        x = graph.floats(node, dequantised(graph.array(tensor), form.scale, form.zero, axis, block))
        graph.fixed.add(x)
    elif name in graph.fixed:
        graph.keep(node)
        return
    elif name in graph.chosen:
        chosen = graph.chosen[name]
        form = graph.form(node, node.input[1], given(node, 2))
        table = graph.meaning(node, chosen.input[0], form)
        graph.weights += 1
        x = graph.put(node, "Gather", [table, graph.real(chosen.input[1])], **settings(chosen))
    else:
        x = graph.meaning(node, name, graph.form(node, node.input[1], given(node, 2), graph.kind(name)))
    graph.put(node, "Identity", [x], output)
    graph.alias[output] = x


def move(graph: Reals, node: onnx.NodeProto) -> None:
    """An operator that moves integers about moves the floats that they stand for."""
    known = graph.codes[node.input[0]]
    if known.scale is not None and known.scale.size > 1:
        graph.refuse(node, "on integers with a scale for each channel", "quantise activations per tensor")
    graph.keep(node)
    for output in node.output:
        if output:
            graph.became(output, output, known)


def choose(graph: Reals, node: onnx.NodeProto) -> None:
    """Gather from a table of integers, which are read as numbers where they are scaled."""
    graph.chosen[node.output[0]] = node


def pad(graph: Reals, node: onnx.NodeProto) -> None:
    """Pad of integers: the number that is put around has a meaning of its own."""
    known = graph.codes[node.input[0]]
    stated = settings(node).get("value", 0.0) if graph.opset < 11 else 0.0
    value = graph.required(node, 2, "value") if given(node, 2) else np.array(stated)
    if known.scale is None or known.zero is None or known.scale.size > 1:
        graph.refuse(node, "on integers with a scale that varies", "export the model before it was quantised")
    meaning = float((value.astype(np.float64).item() - known.zero.item()) * known.scale.item())
    if graph.opset < 11:
        node.attribute.extend([helper.make_attribute("value", meaning)] if "value" not in settings(node) else [])
        for entry in node.attribute:
            if entry.name == "value":
                entry.f = meaning
    else:
        node.input[:] = [*node.input[:2], graph.floats(node, meaning), *node.input[3:]]
    graph.keep(node)
    graph.became(node.output[0], node.output[0], known)


def concat(graph: Reals, node: onnx.NodeProto) -> None:
    """Concat of integers that all have the same scale."""
    forms = [graph.codes[name] for name in node.input if name in graph.codes]
    if not forms[0].symbol and all(form.like(forms[0]) for form in forms):
        parts = [graph.meaning(node, name, forms[0]) for name in node.input]
        graph.put(node, "Concat", parts, node.output[0], **settings(node))
        graph.became(node.output[0], node.output[0], forms[0])
        return
    graph.refuse(node, "of integers of several scales", "export the model before it was quantised")


def cast(graph: Reals, node: onnx.NodeProto) -> None:
    """Cast of integers to floats, which gives the integers themselves."""
    if settings(node)["to"] != TensorProto.FLOAT:
        graph.refuse(node, "of quantised integers to another type", "export the model before it was quantised")
    x = graph.integers(node, node.input[0])
    graph.put(node, "Identity", [x], node.output[0])


MOVES: Mapping[str, Callable[[Reals, onnx.NodeProto], None]] = {
    **dict.fromkeys(MOVING, move),
    "Cast": cast,
    "Concat": concat,
    "Pad": pad,
}
"""What becomes of operators that read integers."""
LINEAR: Mapping[str, Callable[[Reals, onnx.NodeProto], None]] = {
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic,
    "QuantizeLinear": quantize,
}
