"""One converter per ONNX operator: a `Call` in, a source operation and its weights out.

A converter sees plain Python attributes and numpy constants, never ONNX classes, and refuses
what it cannot express by naming the node, the operator and what to do instead.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.errors import UnsupportedError

Shape = tuple[int, ...]


@dataclass
class Call:
    """One node: its attributes, the constants among its inputs, and shapes without the batch."""

    name: str
    operator: str
    inputs: Sequence[str]
    attributes: Mapping[str, Any]
    shapes: Mapping[str, Shape]
    constants: Mapping[str, NDArray[Any]]
    output_shape: Shape
    weights: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    def refuse(self, what: str, instead: str) -> NoReturn:
        """Raise `UnsupportedError` naming this node."""
        error = UnsupportedError(f"node `{self.name}`: {self.operator} {what}; {instead}")
        error.node = self.name
        raise error

    def constant(self, index: int, role: str) -> NDArray[Any] | None:
        """The constant at input `index`, None when the input is absent; computed ones are refused."""
        name = self.inputs[index] if index < len(self.inputs) else ""
        if not name:
            return None
        if name not in self.constants:
            self.refuse(f"with a computed {role}", f"make {role} `{name}` a constant of the model")
        return self.constants[name]

    def required(self, index: int, role: str) -> NDArray[Any]:
        """Like `constant`, but absent is refused too."""
        value = self.constant(index, role)
        if value is None:
            self.refuse(f"without a {role}", f"give it a constant {role}")
        return value

    def store(self, role: str, value: NDArray[Any]) -> str:
        """Keep a weight as contiguous float32 and return its name."""
        if value.dtype != np.float32:
            self.refuse(f"with a {role} of type {value.dtype}", "export the model in float32")
        if not np.isfinite(value).all():
            self.refuse(f"with a {role} that is not finite", "train or export the model again")
        name = f"{self.name}.{role}"
        self.weights[name] = np.ascontiguousarray(value)
        return name

    def input_shape(self, rank: int, meaning: str) -> Shape:
        """Shape of the first input; any rank but `rank` (batch excluded) is refused."""
        shape = self.shapes[self.inputs[0]]
        if len(shape) != rank:
            self.refuse(f"on a tensor of shape {list(shape)} per example", f"it must be {meaning}")
        return shape


Operation = dict[str, Any]
IMAGE = (3, "an image: (batch, channels, height, width)")


def convolution(call: Call) -> Operation:
    """Conv with two spatial dimensions, any groups, strides, dilations and padding."""
    weight = call.required(1, "weight")
    _, height, width = call.input_shape(*IMAGE)
    if weight.ndim != 4:
        call.refuse("with other than two spatial dimensions", "reshape it to a 2-D convolution")
    kernel = list(weight.shape[2:])
    dilation = [int(d) for d in call.attributes.get("dilations", [1, 1])]
    stride = [int(s) for s in call.attributes.get("strides", [1, 1])]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    bias = call.constant(2, "bias")
    return {
        "op": "Conv",
        "kernel": kernel,
        "stride": stride,
        "padding": padding(call, (height, width), reach, stride),
        "dilation": dilation,
        "groups": int(call.attributes.get("group", 1)),
        "weight": call.store("weight", weight),
        "bias": None if bias is None else call.store("bias", bias),
    }


def padding(call: Call, size: Sequence[int], reach: Sequence[int], stride: Sequence[int]) -> list[int]:
    """Padding as top, left, bottom, right, from `pads` or `auto_pad`."""
    mode = call.attributes.get("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return [int(p) for p in call.attributes.get("pads", [0, 0, 0, 0])]
    if mode == "VALID":
        return [0, 0, 0, 0]
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        call.refuse(f"with auto_pad={mode}", "give explicit `pads`")
    before, after = [], []
    for length, span, step in zip(size, reach, stride, strict=True):
        total = max((math.ceil(length / step) - 1) * step + span - length, 0)
        less, more = total // 2, total - total // 2
        before.append(less if mode == "SAME_UPPER" else more)
        after.append(more if mode == "SAME_UPPER" else less)
    return [*before, *after]


def gemm(call: Call) -> Operation:
    """Gemm of an activation by a constant: a fully connected layer; alpha and beta are folded."""
    call.input_shape(1, "flat: (batch, features)")
    if call.attributes.get("transA", 0):
        call.refuse("with transA=1", "transpose the weight (transB) instead of the activation")
    weight = call.required(1, "weight")
    weight = weight if call.attributes.get("transB", 0) else weight.T
    weight = weight * np.asarray(call.attributes.get("alpha", 1.0), weight.dtype)
    bias = call.constant(2, "bias")
    stored = None
    if bias is not None:
        scaled = bias * np.asarray(call.attributes.get("beta", 1.0), bias.dtype)
        stored = call.store("bias", spread(call, scaled, (weight.shape[0],)))
    return {"op": "Gemm", "weight": call.store("weight", weight), "bias": stored}


def matmul(call: Call) -> Operation:
    """MatMul of an activation by a constant matrix."""
    if call.inputs[0] in call.constants or call.inputs[1] not in call.constants:
        call.refuse("of anything but an activation by a constant", "use a fully connected layer (Gemm)")
    call.input_shape(1, "flat: (batch, features)")
    weight = call.required(1, "weight")
    if weight.ndim != 2:
        call.refuse("by a constant that is no matrix", "use a fully connected layer (Gemm)")
    return {"op": "Gemm", "weight": call.store("weight", weight.T), "bias": None}


def spread(call: Call, value: NDArray[Any], shape: Shape) -> NDArray[Any]:
    """`value` broadcast to (1, *shape), batch dropped."""
    try:
        return np.broadcast_to(value, (1, *shape)).reshape(shape)
    except ValueError:
        call.refuse(
            f"of a constant of shape {list(value.shape)} to {list(shape)} per example",
            "use a constant that broadcasts to one example",
        )


def add(call: Call) -> Operation:
    """Addition of two activations of one shape, or of a constant to an activation."""
    constant = [name in call.constants for name in call.inputs]
    if not any(constant):
        if call.shapes[call.inputs[0]] != call.shapes[call.inputs[1]]:
            call.refuse("that broadcasts one activation", "add activations of equal shapes")
        return {"op": "Add"}
    value = call.required(constant.index(True), "addend")
    shape = call.output_shape
    if shape != call.shapes[call.inputs[constant.index(False)]]:
        call.refuse("of a constant larger than the activation", "use a constant that broadcasts to one example")
    value = spread(call, value, shape)
    channel = value.reshape(shape[0], -1)
    if (channel == channel[:, :1]).all():
        value = channel[:, 0]
    return {"op": "AddConstant", "constant": call.store("addend", value)}


def batch_normalization(call: Call) -> Operation:
    """BatchNormalization in its inference form."""
    if call.attributes.get("training_mode", 0) or not call.attributes.get("spatial", 1):
        call.refuse("in training mode", "export the model in evaluation mode (`model.eval()`)")
    roles = ("scale", "bias", "mean", "variance")
    stored: Operation = {role: call.store(role, call.required(i + 1, role)) for i, role in enumerate(roles)}
    return {"op": "BatchNormalization", **stored, "epsilon": float(call.attributes.get("epsilon", 1e-5))}


def relu(_: Call) -> Operation:
    """Relu."""
    return {"op": "Relu", "maximum": None}


def clip(call: Call) -> Operation:
    """Clip from 0 up, such as ReLU6; bounds are attributes before opset 11 and inputs since."""
    low, high = call.constant(1, "minimum"), call.constant(2, "maximum")
    minimum = float(call.attributes.get("min", -math.inf) if low is None else low.item())
    maximum = float(call.attributes.get("max", math.inf) if high is None else high.item())
    if minimum != 0 or not maximum > 0:
        call.refuse(f"to [{minimum:g}, {maximum:g}]", "only clipping to [0, m] is supported: use Relu or ReLU6")
    return {"op": "Relu", "maximum": maximum if maximum < 3e38 else None}


def window(call: Call) -> Operation:
    """Kernel, stride and padding of a pool."""
    _, height, width = call.input_shape(*IMAGE)
    kernel = [int(k) for k in call.attributes["kernel_shape"]]
    stride = [int(s) for s in call.attributes.get("strides", [1, 1])]
    if any(d != 1 for d in call.attributes.get("dilations", [])):
        call.refuse("with dilations", "use a pool without dilations")
    if call.attributes.get("storage_order", 0):
        call.refuse("with storage_order=1", "use storage_order=0")
    pads = padding(call, (height, width), kernel, stride)
    if call.attributes.get("ceil_mode", 0):
        exact = tuple((n + pads[i] + pads[i + 2] - kernel[i]) // stride[i] + 1 for i, n in enumerate((height, width)))
        if exact != call.output_shape[1:]:
            call.refuse("with ceil_mode=1", "use ceil_mode=0 (or an input size the stride divides)")
    return {"kernel": kernel, "stride": stride, "padding": pads}


def max_pool(call: Call) -> Operation:
    """MaxPool."""
    return {"op": "MaxPool", **window(call)}


def average_pool(call: Call) -> Operation:
    """AveragePool."""
    counted = bool(call.attributes.get("count_include_pad", 0))
    return {"op": "AveragePool", **window(call), "count_include_pad": counted}


def global_average_pool(call: Call) -> Operation:
    """GlobalAveragePool: an average pool as large as the image."""
    _, height, width = call.input_shape(*IMAGE)
    return {
        "op": "AveragePool",
        "kernel": [height, width],
        "stride": [1, 1],
        "padding": [0, 0, 0, 0],
        "count_include_pad": True,
    }


def flatten(call: Call) -> Operation:
    """Flatten of everything but the batch."""
    rank = len(call.shapes[call.inputs[0]]) + 1
    axis = int(call.attributes.get("axis", 1))
    if axis % rank != 1:
        call.refuse(f"with axis={axis}", "use axis=1, which keeps the batch apart")
    return {"op": "Reshape", "shape": list(call.output_shape)}


def reshape(call: Call) -> Operation:
    """Reshape to a constant shape that keeps the batch apart."""
    call.required(1, "shape")
    return {"op": "Reshape", "shape": list(call.output_shape)}


def identity(_: Call) -> Operation:
    """Identity."""
    return {"op": "Identity"}


def dropout(call: Call) -> Operation:
    """Dropout, which does nothing at inference."""
    training = call.constant(2, "training mode")
    if training is not None and training.item():
        call.refuse("in training mode", "export the model in evaluation mode (`model.eval()`)")
    return {"op": "Identity"}


CONVERTERS: Mapping[str, Callable[[Call], Operation]] = {
    "Add": add,
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalization,
    "Clip": clip,
    "Conv": convolution,
    "Dropout": dropout,
    "Flatten": flatten,
    "Gemm": gemm,
    "GlobalAveragePool": global_average_pool,
    "Identity": identity,
    "MatMul": matmul,
    "MaxPool": max_pool,
    "Relu": relu,
    "Reshape": reshape,
}
