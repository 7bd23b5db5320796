"""Operators that onnxruntime's optimiser writes in the place of several become these several again."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import helper, shape_inference

from tacit.importers.fold import without_weights
from tacit.importers.forms.graph import EXTRA, OWN, Graph, given, settings

NORM_SINCE = 17
GELU_SINCE = 20
LISTED_SINCE = 18
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "Clip": ("min", "max"),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
}
"""Activations that are fused into layers, and the names of their parameters."""
UNREAD = (1, 2)
BEFORE = "give the model before it was optimised"


class Plain(Graph):
    """A graph whose fused operators become others."""

    def __init__(self, model: onnx.ModelProto) -> None:
        super().__init__(model)
        self.sizes: dict[str, tuple[int, ...]] = {}
        self.kinds: dict[str, int] = {}
        self.inferred = -1
        self.masks: dict[str, str] = {}

    def rank(self, node: onnx.NodeProto, name: str) -> int:
        """How many axes a tensor has."""
        return len(self.shape(node, name))

    def shape(self, node: onnx.NodeProto, name: str) -> tuple[int, ...]:
        """The lengths of the axes, 0 where they are not known; a tensor of which nothing is known is refused."""
        if name in self.tensors:
            return tuple(self.tensors[name].dims)
        if name not in self.sizes and self.inferred != len(self.nodes):
            self.infer()
        if name not in self.sizes:
            self.refuse(node, f"on `{name}`, whose number of axes is not known", BEFORE)
        return self.sizes[name]

    def kind(self, name: str) -> int:
        """The type of a tensor, 0 where it is not known."""
        if name in self.tensors:
            return int(self.tensors[name].data_type)
        if self.inferred != len(self.nodes):
            self.infer()
        return self.kinds.get(name, 0)

    def last(self, node: onnx.NodeProto, name: str) -> int:
        """The length of the last axis, which must be known."""
        length = self.shape(node, name)[-1]
        if not length:
            self.refuse(node, f"on `{name}`, the length of whose last axis is not known", BEFORE)
        return length

    def infer(self) -> None:
        """Infer the shapes of what was written so far."""
        graph = self.model.graph
        light = onnx.ModelProto(ir_version=self.model.ir_version, opset_import=self.model.opset_import)
        light.graph.input.extend(graph.input)
        light.graph.initializer.extend(graph.initializer)
        light.graph.node.extend(self.nodes)
        try:
            inferred = shape_inference.infer_shapes(without_weights(light)).graph
        except shape_inference.InferenceError:
            return
        for entry in (*inferred.input, *inferred.value_info):
            self.kinds[entry.name] = entry.type.tensor_type.elem_type
            if entry.type.tensor_type.HasField("shape"):
                dimensions = entry.type.tensor_type.shape.dim
                self.sizes[entry.name] = tuple(max(size.dim_value, 0) for size in dimensions)
        self.inferred = len(self.nodes)

    def unread(self, node: onnx.NodeProto, *places: int) -> None:
        """Refuse a node of whose outputs one is wanted that only training needs."""
        if any(place < len(node.output) and node.output[place] for place in places):
            self.refuse(node, "with outputs beside its result", BEFORE)

    def swapped(self, node: onnx.NodeProto, name: str) -> str:
        """Write a tensor with its last two axes exchanged."""
        value = self.value(name)
        if value is not None:
            return self.constant(node, np.swapaxes(value, -1, -2))
        order = list(range(self.rank(node, name)))
        order[-2:] = order[:-3:-1]
        return self.put(node, "Transpose", [name], perm=order)

    def mean(self, node: onnx.NodeProto, x: str) -> str:
        """Write the mean along the last axis, which stays."""
        if self.opset < LISTED_SINCE:
            return self.put(node, "ReduceMean", [x], axes=[-1], keepdims=1)
        return self.put(node, "ReduceMean", [x, self.numbers(node, -1)], keepdims=1)


Rule = Callable[[Plain, onnx.NodeProto], None]


def adopt(model: onnx.ModelProto) -> None:
    """Let norms that onnxruntime writes into ONNX's own domain, of opsets that have none, be of its own domain."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    opset = versions.get("", versions.get("ai.onnx", 0))
    for node in model.graph.node:
        early = node.op_type == "LayerNormalization" and opset < NORM_SINCE
        if node.domain in OWN and (early or node.op_type == "SimplifiedLayerNormalization"):
            node.domain = EXTRA
            if EXTRA not in versions:
                versions[EXTRA] = 1
                model.opset_import.append(helper.make_opsetid(EXTRA, 1))


def activated(graph: Plain, node: onnx.NodeProto, x: str, parameters: list[float]) -> None:
    """Write the activation that is fused into a node, if there is one, as its output."""
    operator = settings(node).get("activation", "")
    if not operator:
        graph.put(node, "Identity", [x], node.output[0])
        return
    if operator not in PARAMETERS:
        graph.refuse(node, f"with the activation {operator}", BEFORE)
    if operator == "Clip":
        low, high = [*parameters, *(-3.4e38, 3.4e38)[len(parameters) :]]
        graph.clip(node, x, low, high, node.output[0])
        return
    named = dict(zip(PARAMETERS[operator], parameters, strict=False))
    graph.put(node, operator, [x], node.output[0], **named)


def fused_conv(graph: Plain, node: onnx.NodeProto) -> None:
    """A convolution, an addition where there is one, and an activation."""
    geometry = settings(node, "activation", "activation_params")
    x = graph.put(node, "Conv", [name for name in node.input[:3] if name], **geometry)
    if given(node, 3):
        x = graph.put(node, "Add", [x, node.input[3]])
    activated(graph, node, x, [float(value) for value in settings(node).get("activation_params", [])])


def channels_last_conv(graph: Plain, node: onnx.NodeProto) -> None:
    """A convolution whose input and output have their channels last."""
    geometry = settings(node, "activation", "activation_params")
    turned = graph.put(node, "Transpose", [node.input[0]], perm=[0, 3, 1, 2])
    x = graph.put(node, "Conv", [turned, *(name for name in node.input[1:3] if name)], **geometry)
    x = graph.put(node, "Transpose", [x], perm=[0, 2, 3, 1])
    if given(node, 3):
        x = graph.put(node, "Add", [x, node.input[3]])
    activated(graph, node, x, [float(value) for value in settings(node).get("activation_params", [])])


def fused_matmul(graph: Plain, node: onnx.NodeProto) -> None:
    """A product of matrices that may be transposed, times a number."""
    attributes = settings(node)
    if attributes.get("transBatchA", 0) or attributes.get("transBatchB", 0):
        graph.refuse(node, "with transBatchA or transBatchB", BEFORE)
    a, b = node.input[:2]
    a = graph.swapped(node, a) if attributes.get("transA", 0) else a
    b = graph.swapped(node, b) if attributes.get("transB", 0) else b
    scaled(graph, node, "MatMul", [a, b], float(attributes.get("alpha", 1.0)))


def scaled(graph: Plain, node: onnx.NodeProto, operator: str, inputs: list[str], factor: float) -> None:
    """Write an operator times a number as the output of a node."""
    if factor == 1:
        graph.put(node, operator, inputs, node.output[0])
    else:
        graph.put(node, "Mul", [graph.put(node, operator, inputs), graph.floats(node, factor)], node.output[0])


def fused_gemm(graph: Plain, node: onnx.NodeProto) -> None:
    """A fully connected layer and an activation."""
    roles = ("activation_alpha", "activation_beta", "activation_gamma")
    x = graph.put(node, "Gemm", list(node.input), **settings(node, "activation", *roles))
    activated(graph, node, x, [float(settings(node)[role]) for role in roles if role in settings(node)])


def gelu(graph: Plain, node: onnx.NodeProto) -> None:
    """GELU, of a sum with a bias where there is one; its approximation by a hyperbolic tangent is taken for it."""
    x = graph.put(node, "Add", list(node.input)) if given(node, 1) else node.input[0]
    if graph.opset >= GELU_SINCE:
        graph.put(node, "Gelu", [x], node.output[0])
        return
    inner = graph.put(node, "Erf", [scaled_by(graph, node, x, math.sqrt(0.5))])
    product = graph.put(node, "Mul", [x, graph.put(node, "Add", [inner, graph.floats(node, 1.0)])])
    graph.put(node, "Mul", [product, graph.floats(node, 0.5)], node.output[0])


def scaled_by(graph: Plain, node: onnx.NodeProto, x: str, factor: float) -> str:
    """Write `x` times a number."""
    return graph.put(node, "Mul", [x, graph.floats(node, factor)])


def quick_gelu(graph: Plain, node: onnx.NodeProto) -> None:
    """`x * sigmoid(alpha * x)`."""
    x, alpha = node.input[0], float(settings(node).get("alpha", 1.702))
    gate = graph.put(node, "Sigmoid", [x if alpha == 1 else scaled_by(graph, node, x, alpha)])
    graph.put(node, "Mul", [x, gate], node.output[0])


def layer_norm(graph: Plain, node: onnx.NodeProto) -> None:
    """A layer norm over the last axis."""
    graph.unread(node, *UNREAD)
    axis = int(settings(node).get("axis", -1))
    if axis not in (-1, graph.rank(node, node.input[0]) - 1 if axis >= 0 else -1):
        graph.refuse(node, f"over the axes from {axis} on", "export the model at opset 17 or later")
    normalised(graph, node, node.input[0], given(node, 1), given(node, 2))


def normalised(graph: Plain, node: onnx.NodeProto, x: str, scale: str, bias: str) -> None:
    """Write a layer norm of `x` over the last axis as the output of a node."""
    epsilon = float(settings(node).get("epsilon", EPSILON.get(node.op_type, 1e-5)))
    if graph.opset >= NORM_SINCE:
        graph.put(node, "LayerNormalization", [x, scale, *([bias] if bias else [])], node.output[0], epsilon=epsilon)
        return
    centred = graph.put(node, "Sub", [x, graph.mean(node, x)])
    variance = graph.mean(node, graph.put(node, "Mul", [centred, centred]))
    divided(graph, node, (centred, variance, epsilon), scale, bias)


def divided(graph: Plain, node: onnx.NodeProto, quotient: tuple[str, str, float], scale: str, bias: str) -> None:
    """Write a tensor over the root of a mean square as the output of a node, times and plus constants."""
    x, square, epsilon = quotient
    root = graph.put(node, "Sqrt", [graph.put(node, "Add", [square, graph.floats(node, epsilon)])])
    done = graph.put(node, "Div", [x, root])
    if bias:
        graph.put(node, "Add", [graph.put(node, "Mul", [done, scale]), bias], node.output[0])
    else:
        graph.put(node, "Mul", [done, scale], node.output[0])


def simplified_norm(graph: Plain, node: onnx.NodeProto) -> None:
    """A norm by the root of the mean square along the last axis."""
    graph.unread(node, *UNREAD)
    axis = int(settings(node).get("axis", -1))
    if axis not in (-1, graph.rank(node, node.input[0]) - 1 if axis >= 0 else -1):
        graph.refuse(node, f"over the axes from {axis} on", "normalise over the last axis")
    root_mean_square(graph, node, node.input[0], given(node, 1))


def root_mean_square(graph: Plain, node: onnx.NodeProto, x: str, scale: str) -> None:
    """Write a norm of `x` by its root mean square as the output of a node."""
    epsilon = float(settings(node).get("epsilon", EPSILON.get(node.op_type, 1e-5)))
    square = graph.mean(node, graph.put(node, "Mul", [x, x]))
    divided(graph, node, (x, square, epsilon), scale, "")


def summed(graph: Plain, node: onnx.NodeProto, bias: str) -> str:
    """Write the sum of the two inputs of a node and a bias, which may be its fourth output."""
    graph.unread(node, *UNREAD)
    x = graph.put(node, "Add", [node.input[0], bias]) if bias else node.input[0]
    total = node.output[3] if len(node.output) > 3 else ""
    return graph.put(node, "Add", [x, node.input[1]], total)


def skip_norm(graph: Plain, node: onnx.NodeProto) -> None:
    """A layer norm of a sum."""
    normalised(graph, node, summed(graph, node, given(node, 4)), node.input[2], given(node, 3))


def skip_simplified_norm(graph: Plain, node: onnx.NodeProto) -> None:
    """A norm by the root mean square of a sum."""
    root_mean_square(graph, node, summed(graph, node, given(node, 3)), node.input[2])


EPSILON = {"EmbedLayerNormalization": 1e-12, "SkipLayerNormalization": 1e-12, "SkipSimplifiedLayerNormalization": 1e-12}
"""What is added below the root where a node says nothing, if it is not 1e-5."""
FUSED: Mapping[str, Rule] = {
    "BiasGelu": gelu,
    "FastGelu": gelu,
    "FusedConv": fused_conv,
    "FusedGemm": fused_gemm,
    "FusedMatMul": fused_matmul,
    "Gelu": gelu,
    "LayerNormalization": layer_norm,
    "NhwcConv": channels_last_conv,
    "NhwcFusedConv": channels_last_conv,
    "QuickGelu": quick_gelu,
    "SimplifiedLayerNormalization": simplified_norm,
    "SkipLayerNormalization": skip_norm,
    "SkipSimplifiedLayerNormalization": skip_simplified_norm,
    "TransposeMatMul": fused_matmul,
}
