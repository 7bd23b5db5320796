"""Operators on integers: QLinear..., QGemm, ConvInteger, MatMulInteger and others, as operators on floats."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tacit.importers.forms.codes import Codes, Reals, Sum, dequantised
from tacit.importers.forms.graph import EXTRA, given, settings

Rule = Callable[[Reals, onnx.NodeProto], None]
LAST = -1
SINGLE = 13
"""The opset since which a softmax is along one axis."""
LISTED = 18
"""The opset since which a mean has its axes as an input."""


Places = tuple[int, int, int]
"""Which inputs are the weight, its scale and its zero point."""


def weight(graph: Reals, node: onnx.NodeProto, places: Places, axis: int) -> NDArray[np.float32]:
    """The numbers of a constant weight."""
    place, scale, zero = places
    value, factor = graph.required(node, place, "weight"), graph.required(node, scale, "scale of the weight")
    offset = graph.required(node, zero, "zero point of the weight") if given(node, zero) else np.zeros(1)
    graph.weights += 1
    return dequantised(value.astype(float), factor.astype(float), offset.astype(float), axis)


def qlinear_conv(graph: Reals, node: onnx.NodeProto) -> None:
    """A convolution of integers, and its result rounded."""
    if settings(node).get("channels_last", 0):
        graph.refuse(node, "with channels last", "export the model with channels first")
    x = graph.operand(node, 0, 1, 2)
    inputs = [x, graph.floats(node, weight(graph, node, (3, 4, 5), 0))]
    if given(node, 8):
        factor = graph.required(node, 1, "scale").astype(float) * graph.required(node, 4, "scale").astype(float).ravel()
        inputs.append(graph.floats(node, graph.required(node, 8, "bias") * factor))
    form = graph.form(node, node.input[6], node.input[7])
    graph.finish(node, form, "Conv", inputs, **settings(node, "channels_last"))


def qlinear_matmul(graph: Reals, node: onnx.NodeProto) -> None:
    """A product of matrices of integers, and its result rounded."""
    a = graph.operand(node, 0, 1, 2)
    constant = node.input[3] in graph.tensors
    b = graph.floats(node, weight(graph, node, (3, 4, 5), LAST)) if constant else graph.operand(node, 3, 4, 5)
    graph.finish(node, graph.form(node, node.input[6], node.input[7]), "MatMul", [a, b])


def qgemm(graph: Reals, node: onnx.NodeProto) -> None:
    """A fully connected layer of integers, whose result is rounded or a float."""
    attributes = settings(node)
    a, axis = graph.operand(node, 0, 1, 2), 0 if attributes.get("transB", 0) else 1
    inputs = [a, graph.floats(node, weight(graph, node, (3, 4, 5), axis))]
    if given(node, 6):
        factor = graph.required(node, 1, "scale").astype(float) * graph.required(node, 4, "scale").astype(float).ravel()
        bias = graph.required(node, 6, "bias") * factor * float(attributes.get("alpha", 1.0))
        inputs.append(graph.floats(node, bias))
    if given(node, 7):
        graph.finish(node, graph.form(node, node.input[7], given(node, 8)), "Gemm", inputs, **attributes)
    else:
        graph.put(node, "Gemm", inputs, node.output[0], **attributes)


def binary(operator: str) -> Rule:
    """A rule for an operator of two tensors of integers."""

    def rule(graph: Reals, node: onnx.NodeProto) -> None:
        inputs = [graph.operand(node, 0, 1, 2), graph.operand(node, 3, 4, 5)]
        graph.finish(node, graph.form(node, node.input[6], given(node, 7)), operator, inputs)

    rule.__doc__ = f"{operator} of integers, and its result rounded."
    return rule


def unary(operator: str, *left_out: str) -> Rule:
    """A rule for an operator of one tensor of integers."""

    def rule(graph: Reals, node: onnx.NodeProto) -> None:
        if settings(node).get("channels_last", 0):
            graph.refuse(node, "with channels last", "export the model with channels first")
        x, form = graph.operand(node, 0, 1, 2), graph.form(node, node.input[3], given(node, 4))
        graph.finish(node, form, operator, [x], **settings(node, "channels_last", *left_out))

    rule.__doc__ = f"{operator} of integers, and its result rounded."
    return rule


def qlinear_softmax(graph: Reals, node: onnx.NodeProto) -> None:
    """Softmax of integers, and its result rounded."""
    attributes = settings(node)
    if int(attributes.get("axis", LAST)) != LAST and (int(attributes["opset"]) < SINGLE) != (graph.opset < SINGLE):
        graph.refuse(node, f"of opset {attributes['opset']} in a model of another", "export the float model")
    unary("Softmax", "opset")(graph, node)


def qlinear_reduce_mean(graph: Reals, node: onnx.NodeProto) -> None:
    """ReduceMean of integers, and its result rounded."""
    attributes, form = settings(node), graph.form(node, node.input[3], given(node, 4))
    inputs, axes = [graph.operand(node, 0, 1, 2)], attributes.pop("axes", None)
    if axes is not None and graph.opset >= LISTED:
        inputs.append(graph.numbers(node, *axes))
    elif axes is not None:
        attributes["axes"] = axes
    graph.finish(node, form, "ReduceMean", inputs, **attributes)


def qlinear_concat(graph: Reals, node: onnx.NodeProto) -> None:
    """A concatenation of integers of several scales, and its result rounded."""
    parts = [graph.operand(node, place, place + 1, place + 2) for place in range(2, len(node.input), 3)]
    graph.finish(node, graph.form(node, node.input[0], node.input[1]), "Concat", parts, **settings(node))


def integer_product(graph: Reals, node: onnx.NodeProto) -> None:
    """A product or convolution of integers by a constant, as the layer of floats that it is before it is scaled."""
    operator = node.op_type.removesuffix("Integer")
    axis = LAST if operator == "MatMul" else 0
    known = graph.codes.get(node.input[0])
    offset = graph.required(node, 3, "zero point of the weight") if given(node, 3) else np.zeros(1)
    value = graph.required(node, 1, "weight").astype(float)
    factors = dequantised(value, np.ones(1), offset.astype(float), axis)
    graph.weights += 1
    if known is not None and known.symbol:
        x = known.real
        graph.sums[node.output[0]] = Sum(node, x, factors, known.symbol)
    else:
        x, factor = integers(graph, node, known)
        factors = (factors / factor).astype(np.float32)
    graph.put(node, operator, [x, graph.floats(node, factors)], node.output[0], **settings(node))
    graph.accumulated.add(node.output[0])


def integers(graph: Reals, node: onnx.NodeProto, known: Codes | None) -> tuple[str, float]:
    """A tensor that is the integers at the first input, less their zero point, times a factor; and the factor."""
    zero = graph.required(node, 2, "zero point") if given(node, 2) else np.zeros(1)
    if zero.size != 1:
        graph.refuse(node, "with a zero point for each row", "quantise activations per tensor")
    plain = Codes("", np.ones(1), zero.astype(float).ravel())
    if known is not None and known.scale is not None and known.scale.size == 1 and known.zero == plain.zero:
        return known.real, known.scale.item()
    return graph.meaning(node, node.input[0], plain), 1.0


def sum_cast(graph: Reals, node: onnx.NodeProto) -> None:
    """Cast of a sum of products to floats, which it is already."""
    graph.put(node, "Identity", [node.input[0]], node.output[0])
    if node.input[0] in graph.sums:
        graph.sums[node.output[0]] = graph.sums[node.input[0]]


def scale_product(graph: Reals, node: onnx.NodeProto) -> bool:
    """Follow products of computed scales by constants, and take them into the weights of sums; tells whether it was."""
    for name, other in (tuple(node.input), tuple(reversed(node.input))):
        value = graph.value(graph.real(other))
        if name in graph.factors and value is not None:
            symbol, factor = graph.factors[name]
            graph.factors[node.output[0]] = (symbol, factor * value.astype(float))
            return True
        if name in graph.sums and other in graph.factors:
            found, (symbol, factor) = graph.sums[name], graph.factors[other]
            if found.symbol != symbol:
                graph.refuse(
                    node, "of a sum by the scale of another tensor", "export the model before it was quantised"
                )
            scaled(graph, node, found, factor)
            return True
    return False


def scaled(graph: Reals, node: onnx.NodeProto, found: Sum, factor: NDArray[np.float64]) -> None:
    """Write the layer with its weights scaled."""
    operator = found.node.op_type.removesuffix("Integer")
    shape = [1] * found.factors.ndim
    axis = LAST if operator == "MatMul" else 0
    if factor.size > 1 and factor.size != found.factors.shape[axis]:
        graph.refuse(node, f"by scales of shape {list(factor.shape)}", "quantise weights per tensor or per channel")
    shape[axis] = -1 if factor.size > 1 else 1
    weights = graph.floats(node, found.factors * factor.reshape(shape))
    graph.put(node, operator, [found.x, weights], node.output[0], **settings(found.node))


def dynamic_matmul(graph: Reals, node: onnx.NodeProto) -> None:
    """A product of floats, which it rounds, by constant integers."""
    to_float(graph, node, graph.real(node.input[0]), weight(graph, node, (1, 2, 3), LAST), 4)


def matmul_to_float(graph: Reals, node: onnx.NodeProto) -> None:
    """A product of integers by constant integers, scaled to floats."""
    known = graph.codes.get(node.input[0])
    if known is not None and known.symbol:
        if known.symbol != node.input[2]:
            graph.refuse(node, "with the scale of another tensor", "export the model before it was quantised")
        x = known.real
    else:
        x = graph.operand(node, 0, 2, 4)
    to_float(graph, node, x, weight(graph, node, (1, 3, 5), LAST), 6)


def to_float(graph: Reals, node: onnx.NodeProto, x: str, factors: NDArray[np.float32], bias: int) -> None:
    """Write `x` times constant factors, plus a bias where there is one."""
    weights = graph.floats(node, factors)
    if not given(node, bias):
        graph.put(node, "MatMul", [x, weights], node.output[0])
        return
    product = graph.put(node, "MatMul", [x, weights])
    graph.put(node, "Add", [product, graph.real(node.input[bias])], node.output[0])


def quantised_attention(graph: Reals, node: onnx.NodeProto) -> None:
    """Attention whose projection is a product of integers by constant integers."""
    known = graph.codes.get(node.input[0])
    if given(node, 8):
        graph.refuse(node, "with states of earlier tokens", "export the model without a cache")
    x = known.real if known is not None and known.symbol == node.input[3] else graph.operand(node, 0, 3, 6)
    factors = graph.floats(node, weight(graph, node, (1, 4, 7), LAST))
    inputs = [x, factors, graph.real(node.input[2]), given(node, 5)]
    graph.put(node, "Attention", inputs, node.output[0], domain=EXTRA, **settings(node))


def matmul_bits(graph: Reals, node: onnx.NodeProto) -> None:
    """A product of floats by constants of few bits, in blocks with a scale each."""
    attributes: Mapping[str, Any] = settings(node)
    outputs, inputs, bits = (int(attributes[name]) for name in ("N", "K", "bits"))
    size = int(attributes["block_size"])
    if bits not in (4, 8) or given(node, 4):
        graph.refuse(node, f"with {bits} bits" if bits not in (4, 8) else "with g_idx", "export the float model")
    blocks = -(-inputs // size)
    codes = unpacked(graph.required(node, 1, "weight").reshape(outputs, -1), bits, blocks * size)
    scale = graph.required(node, 2, "scales").astype(np.float64).reshape(outputs, blocks)
    zero = np.full((outputs, blocks), float(1 << (bits - 1)))
    if given(node, 3):
        stored = graph.required(node, 3, "zero_points")
        packed = stored.dtype == np.uint8
        zero = unpacked(stored.reshape(outputs, -1), bits, blocks) if packed else stored.reshape(outputs, blocks)
    factors = dequantised(codes, scale, zero.astype(np.float64), 1, size)[:, :inputs].T
    graph.weights += 1
    to_float(graph, node, graph.real(node.input[0]), factors, 5)


def unpacked(rows: NDArray[Any], bits: int, count: int) -> NDArray[np.float64]:
    """The first numbers of each row of bytes, the low bits first."""
    if bits == 4:
        rows = np.stack([rows & 15, rows >> 4], axis=-1).reshape(len(rows), -1)
    return rows[:, :count].astype(np.float64)


INTEGERS: Mapping[str, Rule] = {
    "ConvInteger": integer_product,
    "DynamicQuantizeMatMul": dynamic_matmul,
    "MatMulInteger": integer_product,
    "MatMulIntegerToFloat": matmul_to_float,
    "MatMulNBits": matmul_bits,
    "QAttention": quantised_attention,
    "QGemm": qgemm,
    "QLinearAdd": binary("Add"),
    "QLinearAveragePool": unary("AveragePool"),
    "QLinearConcat": qlinear_concat,
    "QLinearConv": qlinear_conv,
    "QLinearGlobalAveragePool": unary("GlobalAveragePool"),
    "QLinearLeakyRelu": unary("LeakyRelu"),
    "QLinearMatMul": qlinear_matmul,
    "QLinearMul": binary("Mul"),
    "QLinearReduceMean": qlinear_reduce_mean,
    "QLinearSigmoid": unary("Sigmoid"),
    "QLinearSoftmax": qlinear_softmax,
}
