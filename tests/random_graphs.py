"""Small random networks under a seed, of every kind of operator that is supported.

A `Growth` is a network with the shape of its last tensor; a kind is a function that appends an
operator or a few to one, or leaves it alone where none fits. `KINDS` are supported, `REWRITTEN`
too, by other operators, and `REFUSED` are valid ONNX that the importer must refuse by name.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from growth import LARGEST_SIDE, MOST_CHANNELS, Growth, relu


def reach(growth: Growth, dilated: bool = True) -> tuple[dict[str, Any], tuple[int, int]] | None:
    """Attributes of a window that fits the image, and the size of what it gives."""
    attributes: dict[str, list[int]] = {"kernel_shape": [], "strides": [], "dilations": []}
    before, after, sizes = [], [], []
    for length in growth.shape[1:]:
        kernel, stride, dilation = growth.upto(5), growth.upto(3), growth.upto(2) if dilated else 1
        top, bottom = growth.upto(kernel - 1, 0), growth.upto(kernel - 1, 0)
        span = (kernel - 1) * dilation + 1
        if length + top + bottom < span:
            return None
        for name, value in zip(attributes, (kernel, stride, dilation), strict=True):
            attributes[name].append(value)
        before.append(top)
        after.append(bottom)
        sizes.append((length + top + bottom - span) // stride + 1)
    if max(sizes) > LARGEST_SIDE:
        return None
    if not dilated:
        del attributes["dilations"]
    return {**attributes, "pads": before + after}, (sizes[0], sizes[1])


def conv(growth: Growth) -> None:
    """A convolution of any kernel, stride, padding, dilation, groups."""
    window = reach(growth) if growth.image else None
    if window is None:
        return
    attributes, size = window
    channels = growth.shape[0]
    groups = growth.pick([n for n in range(1, channels + 1) if channels % n == 0])
    outputs = groups * growth.upto(max(1, MOST_CHANNELS // groups))
    weight = growth.network.normal(outputs, channels // groups, *attributes["kernel_shape"])
    inputs = [growth.constant(weight)]
    if growth.maybe():
        inputs.append(growth.constant(growth.random.normal(0, 0.3, outputs)))
    growth.linear_layer()
    growth.add("Conv", *inputs, shape=(outputs, *size), group=groups, **attributes)


def depthwise(growth: Growth) -> None:
    """A convolution of each channel by itself."""
    window = reach(growth) if growth.image else None
    if window is None:
        return
    attributes, size = window
    channels = growth.shape[0]
    weight = growth.network.normal(channels, 1, *attributes["kernel_shape"])
    growth.linear_layer()
    growth.add("Conv", growth.constant(weight), shape=(channels, *size), group=channels, **attributes)


def same_conv(growth: Growth, outputs: int) -> None:
    """A 3x3 convolution that keeps the size."""
    weight = growth.network.normal(outputs, growth.shape[0], 3, 3)
    growth.add("Conv", growth.constant(weight), shape=(outputs, *growth.shape[1:]), pads=[1, 1, 1, 1])


def gemm(growth: Growth) -> None:
    """A fully connected layer."""
    if len(growth.shape) != 1:
        return
    growth.linear_layer()
    outputs = growth.upto(12, 2)
    weight, bias = growth.network.normal(outputs, growth.shape[0]), growth.random.normal(0, 0.3, outputs)
    if growth.maybe():
        growth.add("Gemm", growth.constant(weight), growth.constant(bias), shape=(outputs,), transB=1)
    else:
        growth.add("MatMul", growth.constant(weight.T), shape=(outputs,))


def clip(growth: Growth) -> None:
    """ReLU6, or of another bound, right after a layer with weights."""
    if growth.network.nodes and growth.network.nodes[-1].op_type in {"Conv", "Gemm", "MatMul"}:
        clip_anywhere(growth)
        growth.earlier.pop()


def clip_anywhere(growth: Growth) -> None:
    """ReLU6, or of another bound."""
    growth.add("Clip", growth.constant(0.0), growth.constant(growth.pick([6.0, 1.0, 0.5])))
    growth.linear = 0


def max_pool(growth: Growth) -> None:
    """Maxima of windows."""
    window = reach(growth, dilated=False) if growth.image else None
    if window is not None:
        growth.add("MaxPool", shape=(growth.shape[0], *window[1]), **window[0])


def average_pool(growth: Growth) -> None:
    """Means of windows, of which padding is part."""
    mean_of_windows(growth, 1)


def average_pool_border(growth: Growth) -> None:
    """Means of windows, of fewer values at the border."""
    mean_of_windows(growth, 0)


def mean_of_windows(growth: Growth, counted: int) -> None:
    """Means of windows, with padding counted or not."""
    window = reach(growth, dilated=False) if growth.image else None
    if window is not None:
        growth.linear_layer()
        growth.add("AveragePool", shape=(growth.shape[0], *window[1]), count_include_pad=counted, **window[0])


def global_average_pool(growth: Growth) -> None:
    """Means of channels."""
    if growth.image:
        growth.linear_layer()
        growth.add("GlobalAveragePool", shape=(growth.shape[0], 1, 1))


def batch_normalization(growth: Growth) -> None:
    """A scale and an offset per channel."""
    if not growth.image:
        return
    count = growth.shape[0]
    scale, variance = growth.random.uniform(0.5, 1.5, (2, count))
    bias, mean = growth.random.normal(0, 0.3, (2, count))
    growth.linear_layer()
    growth.add("BatchNormalization", *map(growth.constant, (scale, bias, mean, variance)))


def residual(growth: Growth) -> None:
    """The sum of a tensor and a convolution of it, or of an earlier one of its shape."""
    if not growth.image:
        return
    alike = [name for name, shape in growth.earlier if shape == growth.shape]
    growth.linear_layer()
    if alike and growth.maybe():
        growth.add("Add", inputs=[growth.last, growth.pick(alike)])
        return
    origin = growth.last
    same_conv(growth, growth.shape[0])
    growth.linear_layer()
    growth.add("Add", inputs=[growth.last, origin])


def add_constant(growth: Growth) -> None:
    """A constant per channel."""
    growth.linear_layer()
    growth.add(
        "Add", growth.constant(growth.random.normal(0, 0.5, (growth.shape[0], 1, 1) if growth.image else growth.shape))
    )


def add_image(growth: Growth) -> None:
    """A constant for each value."""
    growth.linear_layer()
    growth.add("Add", growth.constant(growth.random.normal(0, 0.5, growth.shape)))


def flatten(growth: Growth) -> None:
    """One axis, by Flatten or Reshape."""
    if not growth.image or growth.maybe(0.6):
        return
    shape = (int(np.prod(growth.shape)),)
    if growth.maybe():
        growth.add("Flatten", shape=shape)
    else:
        growth.add("Reshape", growth.constant(np.array([growth.pick([0, -1]), shape[0]])), shape=shape)


def reshape(growth: Growth) -> None:
    """Another shape of an image."""
    if growth.image:
        channels, height, width = growth.shape
        growth.add("Reshape", growth.constant(np.array([0, channels, width, -1])), shape=(channels, width, height))


def concat(growth: Growth) -> None:
    """A tensor and two convolutions of it, side by side."""
    if not growth.image or growth.shape[0] > MOST_CHANNELS:
        return
    growth.linear_layer()
    origin, shape = growth.last, growth.shape
    parts, channels = [origin], shape[0]
    for _ in range(growth.upto(2)):
        growth.network.last, growth.shape = origin, shape
        same_conv(growth, growth.upto(3))
        if growth.maybe():
            relu(growth)
        parts.append(growth.last)
        channels += growth.shape[0]
    order = growth.random.permutation(len(parts))
    growth.add("Concat", inputs=[parts[index] for index in order], axis=1, shape=(channels, *shape[1:]))


def slice_axis(growth: Growth) -> None:
    """Part of one axis."""
    axis = growth.upto(len(growth.shape))
    length = growth.shape[axis - 1]
    start = growth.upto(length - 1, 0)
    end = growth.upto(length, start + 1)
    shape = tuple(end - start if index == axis - 1 else size for index, size in enumerate(growth.shape))
    growth.add("Slice", *(growth.constant(np.array([value])) for value in (start, end, axis)), shape=shape)


def split(growth: Growth) -> None:
    """Two parts of the channels, exchanged."""
    if not growth.image or growth.shape[0] < 2:
        return
    first = growth.upto(growth.shape[0] - 1)
    sizes = growth.constant(np.array([first, growth.shape[0] - first]))
    other = f"second{len(growth.network.nodes)}"
    growth.add("Split", sizes, axis=1, outputs=[other])
    growth.add("Concat", inputs=[other, growth.last], axis=1)


def pad(growth: Growth) -> None:
    """Zeros around an image; the rectifier keeps onnxruntime from merging them into a pool, where it then fails."""
    if not growth.image or max(growth.shape[1:]) > LARGEST_SIDE - 2:
        return
    top, left, bottom, right = (growth.upto(2, 0) for _ in range(4))
    channels, height, width = growth.shape
    pads = growth.constant(np.array([0, 0, top, left, 0, 0, bottom, right]))
    growth.add("Pad", pads, shape=(channels, height + top + bottom, width + left + right))
    relu(growth)


def transpose(growth: Growth) -> None:
    """Another order of the axes."""
    if growth.image:
        order = growth.random.permutation(3)
        growth.add(
            "Transpose", perm=[0, *(int(axis) + 1 for axis in order)], shape=tuple(growth.shape[i] for i in order)
        )


def mul_constant(growth: Growth) -> None:
    """A factor per channel."""
    shape = (growth.shape[0], 1, 1) if growth.image else growth.shape
    growth.linear_layer()
    growth.add("Mul", growth.constant(growth.random.uniform(-1.5, 1.5, shape)))


def mul(growth: Growth) -> None:
    """The product of a tensor and a convolution of it."""
    if growth.image:
        growth.linear_layer()
        other = growth.last
        same_conv(growth, growth.shape[0])
        growth.add("Mul", inputs=[growth.last, other])
        growth.linear = 0


def square(growth: Growth) -> None:
    """The product of a tensor with itself."""
    growth.add("Mul", inputs=[growth.last, growth.last])
    growth.linear = 0


def leaky_relu(growth: Growth) -> None:
    """A leaky rectifier."""
    growth.add("LeakyRelu", alpha=growth.pick([0.01, 0.1, 0.2]))
    growth.linear = 0


def unary(operator: str) -> Callable[[Growth], None]:
    """A function of one value."""

    def append(growth: Growth) -> None:
        growth.add(operator)
        growth.linear = 0

    return append


def reduce_mean(growth: Growth) -> None:
    """Means of channels."""
    if growth.image:
        kept = growth.upto(1, 0)
        shape = (growth.shape[0], 1, 1) if kept else growth.shape[:1]
        growth.linear_layer()
        growth.add("ReduceMean", axes=[2, 3], keepdims=kept, shape=shape)


def matmul_rows(growth: Growth) -> None:
    """A matrix times each row of an image."""
    if growth.image:
        growth.linear_layer()
        outputs = growth.upto(8)
        weight = growth.network.normal(outputs, growth.shape[2]).T
        growth.add("MatMul", growth.constant(weight), shape=(*growth.shape[:2], outputs))


Kind = Callable[[Growth], None]
KINDS: dict[str, Kind] = {
    "conv": conv,
    "depthwise": depthwise,
    "gemm": gemm,
    "relu": relu,
    "clip": clip,
    "max_pool": max_pool,
    "average_pool": average_pool,
    "global_average_pool": global_average_pool,
    "batch_normalization": batch_normalization,
    "residual": residual,
    "add_constant": add_constant,
    "flatten": flatten,
    "reshape": reshape,
    "add_image": add_image,
    "clip_anywhere": clip_anywhere,
    "concat": concat,
    "slice": slice_axis,
    "split": split,
    "pad": pad,
    "transpose": transpose,
    "mul_constant": mul_constant,
    "mul": mul,
    "square": square,
    "leaky_relu": leaky_relu,
    "sigmoid": unary("Sigmoid"),
    "tanh": unary("Tanh"),
    "hard_swish": unary("HardSwish"),
    "reduce_mean": reduce_mean,
    "matmul_rows": matmul_rows,
}
REWRITTEN: dict[str, Kind] = {"average_pool_border": average_pool_border}
REFUSED: dict[str, Kind] = {"atan": unary("Atan")}


def grow(seed: int, kinds: dict[str, Kind] = KINDS) -> Growth:
    """A network of three to eight operators, at least one of them with weights."""
    growth = Growth(seed)
    wanted = growth.upto(8, 3)
    for _ in range(10 * wanted):
        if len(growth.network.nodes) >= wanted:
            break
        growth.pick(list(kinds.values()))(growth)
    if growth.image:
        growth.add("Flatten", shape=(int(np.prod(growth.shape)),))
    if growth.shape[0] > 1 or growth.maybe():
        gemm(growth)
    return growth
