"""EfficientNet-B0 and MobileNetV3-small with random weights, as ONNX files for measurements of cost.

`.venv/bin/python -m tacit_lab.random_mobilenets [--output FOLDER] [efficientnet-b0] [mobilenetv3-small]` writes
NAME-random.onnx. Shapes and operators are those of torchvision's networks (Tan and Le, ICML 2019; Howard et al., ICCV
2019): input `x` (N, 3, 224, 224) of about normal numbers, output logits (N, 1000). Weights are He-initialised under a
fixed seed. Batch normalisation has the statistics of a batch of normal numbers, as a trained network has those of its
data, and is folded into the convolutions: how wide the smooth functions between them are, and so what they cost,
depends on it. Accuracy has no meaning here.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper

from tacit_lab.random_networks import Builder, Window, write

CLASSES, SIDE, BATCH, SEED = 1000, 224, 4, 0
EPSILON = 1e-3
"""What batch normalisation adds to variances."""

Statistics = Mapping[str, NDArray[np.float32]]
"""Means and variances of the channels of convolutions, by the names of their outputs."""


class Block(NamedTuple):
    """An inverted residual: channels given, between and made, the kernel, the stride, and what else it has."""

    given: int
    wide: int
    made: int
    kernel: int
    stride: int
    activation: str
    squeezed: int | None
    """Channels of squeeze-and-excite between its two layers; None: it has none."""


class Network(Builder):
    """A graph whose convolutions are normalised: by the batch it is run on, or by the statistics of an earlier one."""

    def __init__(self, statistics: Statistics | None = None) -> None:
        """An empty graph; without statistics it is one that tells them."""
        super().__init__(SEED)
        self.statistics = statistics
        self.told: list[str] = []

    def scalar(self, value: float) -> str:
        """A number."""
        return self.constant(f"number{len(self.nodes)}", np.array(value, np.float32))

    def normal(self, x: str, channels: tuple[int, int], window: Window, group: int = 1) -> str:
        """A convolution without bias, then batch normalisation."""
        given, made = channels
        shape = (made, given // group, window.high, window.wide)
        weight = (self.random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)
        strides, pads, size = [window.stride] * 2, [window.high // 2] * 4, [window.high, window.wide]
        name = f"normal{len(self.told) // 2}"
        bias = np.zeros(made, np.float32)
        if self.statistics is not None:
            mean, variance = (self.statistics[f"{name}.{which}"].reshape(made) for which in ("mean", "variance"))
            factor = 1 / np.sqrt(variance + EPSILON)
            weight, bias = weight * factor[:, None, None, None], -mean * factor
        names = self.constant(f"{name}.weight", weight), self.constant(f"{name}.bias", bias)
        y = self.add("Conv", x, *names, group=group, strides=strides, pads=pads, kernel_shape=size)
        self.told += [f"{name}.mean", f"{name}.variance"]
        return y if self.statistics is not None else self.normalised(y, name)

    def normalised(self, y: str, name: str) -> str:
        """Mean 0 and variance 1 in each channel of this batch."""
        for which in ("mean", "variance"):
            moved = y if which == "mean" else self.add("Mul", y, y)
            node = helper.make_node("ReduceMean", [moved], [f"{name}.{which}"], axes=[0, 2, 3])
            self.nodes.append(node)
            y = self.add("Sub", y, f"{name}.mean") if which == "mean" else y
        deviation = self.add("Sqrt", self.add("Add", f"{name}.variance", self.scalar(EPSILON)))
        return self.add("Div", y, deviation)

    def activated(self, x: str, kind: str) -> str:
        """An activation: `relu`, `silu` or `hardswish`."""
        if kind == "relu":
            return self.add("Relu", x)
        gate = self.add("Sigmoid", x) if kind == "silu" else self.hard(x)
        return self.add("Mul", x, gate)

    def hard(self, x: str) -> str:
        """The sigmoid made of three lines."""
        return self.add("HardSigmoid", x, alpha=1 / 6, beta=0.5)

    def excited(self, x: str, channels: int, squeezed: int, inner: str) -> str:
        """Squeeze-and-excite: channels times a factor each, of their means."""
        y = self.conv(self.add("GlobalAveragePool", x), (channels, squeezed), 1)
        y = self.conv(self.activated(y, inner), (squeezed, channels), 1)
        return self.add("Mul", x, self.add("Sigmoid", y) if inner == "silu" else self.hard(y))

    def block(self, x: str, block: Block) -> str:
        """An inverted residual."""
        y, wide, activation = x, block.wide, block.activation
        if block.given != wide:
            y = self.activated(self.normal(y, (block.given, wide), Window(1, 1)), activation)
        window = Window(block.kernel, block.kernel, block.stride)
        y = self.activated(self.normal(y, (wide, wide), window, wide), activation)
        if block.squeezed is not None:
            y = self.excited(y, wide, block.squeezed, "silu" if activation == "silu" else "relu")
        y = self.normal(y, (wide, block.made), Window(1, 1))
        return self.add("Add", y, x) if block.stride == 1 and block.given == block.made else y


def efficientnet(network: Network) -> str:
    """EfficientNet-B0, to its logits."""
    x = network.activated(network.normal("x", (3, 32), Window(3, 3, 2)), "silu")
    given = 32
    for expansion, made, count, kernel, stride in (
        (1, 16, 1, 3, 1),
        (6, 24, 2, 3, 2),
        (6, 40, 2, 5, 2),
        (6, 80, 3, 3, 2),
        (6, 112, 3, 5, 1),
        (6, 192, 4, 5, 2),
        (6, 320, 1, 3, 1),
    ):
        for index in range(count):
            first = stride if index == 0 else 1
            x = network.block(x, Block(given, given * expansion, made, kernel, first, "silu", max(1, given // 4)))
            given = made
    x = network.activated(network.normal(x, (given, 1280), Window(1, 1)), "silu")
    pooled = network.add("Flatten", network.add("GlobalAveragePool", x))
    return network.dense(pooled, 1280, CLASSES)


def mobilenet(network: Network) -> str:
    """MobileNetV3-small, to its logits."""
    x = network.activated(network.normal("x", (3, 16), Window(3, 3, 2)), "hardswish")
    given = 16
    for wide, made, kernel, stride, activation, squeezed in (
        (16, 16, 3, 2, "relu", 8),
        (72, 24, 3, 2, "relu", None),
        (88, 24, 3, 1, "relu", None),
        (96, 40, 5, 2, "hardswish", 24),
        (240, 40, 5, 1, "hardswish", 64),
        (240, 40, 5, 1, "hardswish", 64),
        (120, 48, 5, 1, "hardswish", 32),
        (144, 48, 5, 1, "hardswish", 40),
        (288, 96, 5, 2, "hardswish", 72),
        (576, 96, 5, 1, "hardswish", 144),
        (576, 96, 5, 1, "hardswish", 144),
    ):
        x = network.block(x, Block(given, wide, made, kernel, stride, activation, squeezed))
        given = made
    x = network.activated(network.normal(x, (given, 576), Window(1, 1)), "hardswish")
    pooled = network.add("Flatten", network.add("GlobalAveragePool", x))
    return network.dense(network.activated(network.dense(pooled, 576, 1024), "hardswish"), 1024, CLASSES)


NETWORKS: dict[str, Callable[[Network], str]] = {"efficientnet-b0": efficientnet, "mobilenetv3-small": mobilenet}


def statistics(name: str) -> Statistics:
    """Means and variances of all channels of the network called `name`, for a batch of normal numbers."""
    network = Network()
    model = network.model(name, (3, SIDE, SIDE), NETWORKS[name](network), (CLASSES,))
    told = [helper.make_tensor_value_info(tensor, TensorProto.FLOAT, None) for tensor in network.told]
    model.graph.output.extend(told)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(SEED).standard_normal((BATCH, 3, SIDE, SIDE)).astype(np.float32)
    return dict(zip(network.told, session.run(network.told, {"x": x}), strict=True))


def build(name: str) -> onnx.ModelProto:
    """The model called `name`, checked."""
    network = Network(statistics(name))
    model = network.model(f"{name}-random", (3, SIDE, SIDE), NETWORKS[name](network), (CLASSES,))
    onnx.checker.check_model(model, full_check=True)
    return model


if __name__ == "__main__":
    write(__doc__, NETWORKS, build)
