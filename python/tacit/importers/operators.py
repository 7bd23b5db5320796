"""One converter per ONNX operator: a `Call` in, a source operation (or several nodes) and its weights out.

A converter sees plain Python attributes and numpy constants, never ONNX classes, and refuses
what it cannot express by naming the node, the operator and what to do instead. Layers stand
here; `elementwise.py` and `rearrange.py` have the rest.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tacit.importers.call import IMAGE, Call, Operation, spread
from tacit.importers.elementwise import ELEMENTWISE
from tacit.importers.rearrange import REARRANGING, transposed
from tacit.importers.source import Node


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


def matmul(call: Call) -> Operation | list[Node]:
    """MatMul of an activation by a constant matrix; rows of a matrix are positions of a 1x1 convolution."""
    if call.inputs[0] in call.constants or call.inputs[1] not in call.constants:
        call.refuse("of anything but an activation by a constant", "use a fully connected layer (Gemm)")
    weight = call.required(1, "weight")
    if weight.ndim != 2:
        call.refuse("by a constant that is no matrix", "use a fully connected layer (Gemm)")
    shape = call.shapes[call.inputs[0]]
    if len(shape) == 1:
        return {"op": "Gemm", "weight": call.store("weight", weight.T), "bias": None}
    rows, inner, outer = int(np.prod(shape[:-1])), shape[-1], weight.shape[1]
    kernel = call.store("weight", weight.T.reshape(outer, inner, 1, 1))
    geometry = {"kernel": [1, 1], "stride": [1, 1], "padding": [0] * 4, "dilation": [1, 1], "groups": 1}
    columns = call.step("columns", [call.inputs[0]], transposed(rows, inner))
    image = call.step("image", [columns.output], {"op": "Reshape", "shape": [inner, rows, 1]})
    product = call.step("product", [image.output], {"op": "Conv", **geometry, "weight": kernel, "bias": None})
    back = call.step("rows", [product.output], transposed(outer, rows))
    last = call.last([back.output], {"op": "Reshape", "shape": list(call.output_shape)})
    return [columns, image, product, back, last]


def batch_normalization(call: Call) -> Operation:
    """BatchNormalization in its inference form."""
    if call.attributes.get("training_mode", 0) or not call.attributes.get("spatial", 1):
        call.refuse("in training mode", "export the model in evaluation mode (`model.eval()`)")
    roles = ("scale", "bias", "mean", "variance")
    stored: Operation = {role: call.store(role, call.required(i + 1, role)) for i, role in enumerate(roles)}
    return {"op": "BatchNormalization", **stored, "epsilon": float(call.attributes.get("epsilon", 1e-5))}


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


def identity(_: Call) -> Operation:
    """Identity."""
    return {"op": "Identity"}


def dropout(call: Call) -> Operation:
    """Dropout, which does nothing at inference."""
    training = call.constant(2, "training mode")
    if training is not None and training.item():
        call.refuse("in training mode", "export the model in evaluation mode (`model.eval()`)")
    return {"op": "Identity"}


def combinations(call: Call) -> Operation:
    """Sums of all inputs times public factors, side by side along the first axis."""
    count = len(call.inputs)
    factors = [float(factor) for factor in call.attributes["factors"]]
    return {"op": "Combinations", "factors": [factors[k : k + count] for k in range(0, len(factors), count)]}


CONVERTERS: Mapping[str, Callable[[Call], Operation | list[Node]]] = {
    **REARRANGING,
    **ELEMENTWISE,
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalization,
    "Combinations": combinations,
    "Conv": convolution,
    "Dropout": dropout,
    "Gemm": gemm,
    "GlobalAveragePool": global_average_pool,
    "Identity": identity,
    "MatMul": matmul,
    "MaxPool": max_pool,
}
