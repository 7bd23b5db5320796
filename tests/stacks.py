"""Small models on volumes, on windows or heads without a batch, and with constants larger than activations."""

from collections.abc import Callable
from typing import Any

import numpy as np
from networks import Network
from pieces import constants, floats, ints, weights

VOLUME, LENGTHS = ("N", 8, 5, 4), (2, 4, 5, 4)
"""An image, and the volume that it is taken for."""


def volume(operator: str, *values: Any, opset: int = 18, **attributes: Any) -> Callable[[], Network]:
    """The operator on a volume."""

    def build() -> Network:
        network = Network(VOLUME, opset=opset)
        network.add("Reshape", ints(network, -1, *LENGTHS))
        return network.add(operator, *(floats(network, value) for value in values), **attributes)

    return build


def windows(*values: Any, operator: str, opset: int = 18, **attributes: Any) -> Callable[[], Network]:
    """The operator on four windows, which lie where the batch would; then they are put together again."""

    def build() -> Network:
        network = Network((1, 3, 4, 4), opset=opset)
        network.add("Reshape", ints(network, 1, 3, 2, 2, 2, 2)).add("Transpose", perm=[0, 2, 4, 1, 3, 5])
        network.add("Reshape", ints(network, 4, 3, 2, 2))
        names = [network.constant(f"v{index}", np.asarray(value)) for index, value in enumerate(values)]
        network.add(operator, *names, **attributes)
        return network.add("Reshape", ints(network, 1, -1)).add("Relu")

    return build


def joined_windows() -> Network:
    """Windows beside their negative, along the axis where the batch would be."""
    network = Network((1, 6, 4), opset=18)
    network.add("Reshape", ints(network, 3, 2, 4)).add("Neg", name="negative")
    network.add("Concat", inputs=["reshape0.out", "negative.out"], axis=0)
    return network.add("Reshape", ints(network, 1, -1))


def unit_windows() -> Network:
    """Vectors of length 1 in windows, as for scores by cosines."""
    network = Network((1, 6, 8), opset=17)
    network.add("Reshape", ints(network, 3, 2, 8), name="windows").add("ReduceL2", axes=[-1], keepdims=1)
    network.add("Clip", floats(network, 1e-12)).add("Expand", ints(network, 3, 2, 8))
    network.add("Div", inputs=["windows.out", network.last])
    return network.add("Reshape", ints(network, 1, -1))


def wide(operator: str, *shape: int, first: bool = False) -> Callable[[], Network]:
    """A number of each example with a constant that is larger."""

    def build() -> Network:
        network = Network(("N", 5, 1), opset=17)
        value = floats(network, weights(*shape))
        return network.add(operator, inputs=[value, "x"] if first else ["x", value])

    return build


def matrices(*shape: int, first: bool = False, heads: int = 3) -> Callable[[], Network]:
    """An activation times a constant matrix per head."""

    def build() -> Network:
        network = Network(("N", heads, 4, 5), opset=17)
        value = floats(network, weights(*shape))
        return network.add("MatMul", inputs=[value, "x"] if first else ["x", value])

    return build


def joined_volumes() -> Network:
    """Volumes one after another."""
    network = Network(VOLUME, opset=18)
    network.add("Reshape", ints(network, -1, *LENGTHS)).add("Neg", name="negative")
    return network.add("Concat", inputs=["reshape0.out", "negative.out"], axis=2)


STACKS: dict[str, Callable[[], Network]] = {
    "conv 3-D": volume("Conv", weights(3, 2, 3, 2, 3), weights(3, 4)[:, 0], pads=[1, 0, 1, 0, 1, 1]),
    "conv 3-D, strides": volume("Conv", weights(3, 2, 2, 3, 3), strides=[2, 2, 1], pads=[1, 1, 1, 1, 1, 1]),
    "conv 3-D, wide stride": volume("Conv", weights(3, 2, 1, 2, 2), strides=[1, 3, 2]),
    "conv 3-D, grouped and dilated": volume("Conv", weights(4, 1, 2, 2, 2), group=2, dilations=[2, 2, 1]),
    "conv 3-D, auto_pad": volume("Conv", weights(3, 2, 3, 3, 2), auto_pad="SAME_UPPER", strides=[1, 2, 1]),
    "transposed conv 3-D": volume("ConvTranspose", weights(2, 3, 2, 2, 2), weights(3, 4)[:, 0], strides=[2, 2, 2]),
    "transposed conv 3-D, padded": volume(
        "ConvTranspose", weights(2, 3, 3, 3, 3), strides=[2, 2, 1], pads=[1] * 6, output_padding=[1, 1, 0]
    ),
    "transposed conv 3-D, dilated": volume("ConvTranspose", weights(2, 1, 2, 2, 3), group=2, dilations=[2, 1, 1]),
    "max pool 3-D": volume("MaxPool", kernel_shape=[2, 3, 2], strides=[2, 1, 2], pads=[0, 1, 0, 0, 1, 0]),
    "average pool 3-D": volume("AveragePool", kernel_shape=[2, 2, 2], strides=[2, 2, 2]),
    "average pool 3-D, padding not counted": volume("AveragePool", kernel_shape=[3, 3, 3], pads=[1] * 6),
    "global average pool 3-D": volume("GlobalAveragePool"),
    "batch norm 3-D": volume("BatchNormalization", *constants(2)),
    "joined volumes": joined_volumes,
    "softmax of windows": windows(operator="Softmax", axis=1),
    "mean of windows": windows(np.array([2, 3]), operator="ReduceMean"),
    "mean of windows, distant axes": windows(np.array([1, 3]), operator="ReduceMean"),
    "largest of windows": windows(np.array([1]), operator="ReduceMax"),
    "layer norm of windows": windows(*(np.ones((2, 2), np.float32),) * 2, operator="LayerNormalization", axis=2),
    "padded windows": windows(np.array([0, 0, 1, 0, 0, 0, 0, 1]), operator="Pad"),
    "conv of windows": windows(weights(2, 3, 2, 2), operator="Conv"),
    "max pool of windows": windows(operator="MaxPool", kernel_shape=[2, 1]),
    "batch norm of windows": windows(*constants(3), operator="BatchNormalization"),
    "running sums of windows": windows(np.array(1), operator="CumSum"),
    "joined windows": joined_windows,
    "half flattened": lambda: Network((1, 3, 4, 4)).add("Relu").add("Flatten", axis=2),
    "channels in front": lambda: Network((1, 3, 4, 4)).add("Transpose", perm=[1, 0, 2, 3]).add("Relu"),
    "unit length in windows": unit_windows,
    "wide product": wide("Mul", 1, 5, 3),
    "wide sum": wide("Add", 5, 3),
    "wide difference": wide("Sub", 1, 5, 3, first=True),
    "wide axes": wide("Mul", 2, 1, 1, 3),
    "a matrix per head": matrices(3, 5, 2),
    "a matrix per head first": matrices(1, 3, 2, 4, first=True),
    "one matrix for all heads": matrices(1, 1, 5, 2),
    "matrices for one head": matrices(3, 5, 2, heads=1),
    "local response": lambda: Network(("N", 6, 3, 3), opset=17).add("LRN", size=3, alpha=0.5, beta=0.75, bias=1.5),
}
