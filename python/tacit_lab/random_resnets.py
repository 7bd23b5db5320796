"""ResNet-18 and ResNet-50 with random weights, as ONNX files for measurements of cost.

`.venv/bin/python -m tacit_lab.random_resnets [--output FOLDER] [resnet18] [resnet50]` writes
NAME-random.onnx. Shapes and operators are those of torchvision's networks (for ResNet-50 the
stride is in the 3x3 convolution) with batch normalisation folded into the convolutions: input
`input` (N, 3, 224, 224), output `logits` (N, 1000). Weights are He-initialised under a fixed
seed; the last convolution of a block is scaled down with the number of blocks, so that activations
stay of one size. The cost of a private prediction does not depend on the weights; accuracy has no meaning here.
"""

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tacit_lab.random_networks import write

CLASSES = 1000
WIDTHS = (64, 128, 256, 512)
BLOCKS = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}
EXPANSION = {"resnet18": 1, "resnet50": 4}
OPSET = 13


class Builder:
    """Nodes and weights of a graph that grows from its input."""

    def __init__(self, blocks: int) -> None:
        self.random = np.random.default_rng(0)
        self.branch_gain = 1 / np.sqrt(blocks)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, operator: str, name: str, *inputs: str, **attributes: Any) -> str:
        """Append a node; returns its output, which has the node's name."""
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def weight(self, name: str, value: NDArray[np.float64]) -> str:
        """Store a weight in float32; returns its name."""
        self.weights.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def conv(self, name: str, x: str, shape: tuple[int, int, int], stride: int = 1, gain: float = 1.0) -> str:
        """A convolution with bias of `shape` (outputs, inputs, side of the kernel), padded to keep the size."""
        outputs, inputs, side = shape
        deviation = gain * np.sqrt(2 / (inputs * side * side))
        weight = self.weight(f"{name}.weight", self.random.normal(0, deviation, (outputs, inputs, side, side)))
        bias = self.weight(f"{name}.bias", self.random.normal(0, 0.1 * gain, outputs))
        pads = [side // 2] * 4
        return self.node("Conv", name, x, weight, bias, kernel_shape=[side] * 2, strides=[stride] * 2, pads=pads)

    def relu(self, x: str) -> str:
        """A rectifier."""
        return self.node("Relu", f"{x}.relu", x)

    def shortcut(self, name: str, x: str, channels: tuple[int, int], stride: int) -> str:
        """The input of a block, brought to the shape of its output."""
        before, after = channels
        if before == after and stride == 1:
            return x
        return self.conv(f"{name}.downsample", x, (after, before, 1), stride, np.sqrt(0.5))

    def basic(self, name: str, x: str, before: int, width: int, stride: int) -> str:
        """Two 3x3 convolutions around a shortcut."""
        y = self.relu(self.conv(f"{name}.conv1", x, (width, before, 3), stride))
        y = self.conv(f"{name}.conv2", y, (width, width, 3), gain=self.branch_gain)
        return self.relu(self.node("Add", f"{name}.add", y, self.shortcut(name, x, (before, width), stride)))

    def bottleneck(self, name: str, x: str, before: int, width: int, stride: int) -> str:
        """A 3x3 convolution between two of 1x1, around a shortcut."""
        after = 4 * width
        y = self.relu(self.conv(f"{name}.conv1", x, (width, before, 1)))
        y = self.relu(self.conv(f"{name}.conv2", y, (width, width, 3), stride))
        y = self.conv(f"{name}.conv3", y, (after, width, 1), gain=self.branch_gain)
        return self.relu(self.node("Add", f"{name}.add", y, self.shortcut(name, x, (before, after), stride)))


def build(name: str) -> onnx.ModelProto:
    """The model called `name`, checked."""
    builder, expansion = Builder(sum(BLOCKS[name])), EXPANSION[name]
    block = builder.basic if expansion == 1 else builder.bottleneck
    x = builder.relu(builder.conv("conv1", "input", (64, 3, 7), 2))
    x = builder.node("MaxPool", "maxpool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, (width, count) in enumerate(zip(WIDTHS, BLOCKS[name], strict=True), 1):
        for index in range(count):
            x = block(f"layer{stage}.{index}", x, channels, width, 2 if stage > 1 and index == 0 else 1)
            channels = expansion * width
    x = builder.node("Flatten", "flatten", builder.node("GlobalAveragePool", "avgpool", x))
    weight = builder.weight("fc.weight", builder.random.normal(0, np.sqrt(1 / channels), (CLASSES, channels)))
    bias = builder.weight("fc.bias", np.zeros(CLASSES))
    builder.node("Gemm", "logits", x, weight, bias, transB=1)
    return finish(name, builder)


def finish(name: str, builder: Builder) -> onnx.ModelProto:
    """The graph with its input and output."""
    ends: tuple[tuple[str, list[Any]], ...] = (("input", ["N", 3, 224, 224]), ("logits", ["N", CLASSES]))
    inputs, outputs = ([helper.make_tensor_value_info(end, TensorProto.FLOAT, shape)] for end, shape in ends)
    graph = helper.make_graph(builder.nodes, f"{name}-random", inputs, outputs, builder.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


if __name__ == "__main__":
    write(__doc__, BLOCKS, build)
