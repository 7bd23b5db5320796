"""Shapes of the linear layers of published networks, without weights: what operation counts need.

CIFAR-10 variants for inputs of 3x32x32: the usual adaptations, whose strides and pools leave
feature maps of 32, 16, 8 and 4 pixels a side (2 for AlexNet and VGG before their classifier).
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

CLASSES = 10
VGG16 = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)
STAGES = (64, 128, 256, 512)


class Layer(NamedTuple):
    """A convolution with square maps and kernels, or (`side` 1, `kernel` 1) a matrix product."""

    name: str
    inputs: int
    outputs: int
    side: int = 1
    kernel: int = 1
    stride: int = 1

    def conv(self) -> dict[str, Any]:
        """Geometry as the core reads it; padding keeps the side, up to the stride."""
        padding = (self.kernel - 1) // 2
        return {
            "in_channels": self.inputs,
            "in_height": self.side,
            "in_width": self.side,
            "out_channels": self.outputs,
            "kernel": [self.kernel] * 2,
            "stride": [self.stride] * 2,
            "padding": [padding] * 4,
            "dilation": [1, 1],
            "groups": 1,
        }


def mlp() -> Iterator[Layer]:
    """The perceptron 784-128-128-10 (SecureML)."""
    widths = (784, 128, 128, CLASSES)
    for index, (inputs, outputs) in enumerate(pairwise(widths)):
        yield Layer(f"fc{index + 1}", inputs, outputs)


def alexnet() -> Iterator[Layer]:
    """AlexNet (Krizhevsky, Sutskever, Hinton, 2012)."""
    yield Layer("conv1", 3, 64, 32, 3, 2)
    yield Layer("conv2", 64, 192, 8, 3)
    yield Layer("conv3", 192, 384, 4, 3)
    yield Layer("conv4", 384, 256, 4, 3)
    yield Layer("conv5", 256, 256, 4, 3)
    yield Layer("fc1", 256 * 4, 4096)
    yield Layer("fc2", 4096, 4096)
    yield Layer("fc3", 4096, CLASSES)


def vgg16() -> Iterator[Layer]:
    """VGG-16 (Simonyan, Zisserman, 2014) with one fully connected layer."""
    inputs, side, index = 3, 32, 1
    for outputs in VGG16:
        if outputs == 0:
            side //= 2
            continue
        yield Layer(f"conv{index}", inputs, outputs, side, 3)
        inputs, index = outputs, index + 1
    yield Layer("fc", inputs, CLASSES)


def resnet(blocks: tuple[int, int, int, int], bottleneck: bool) -> Iterator[Layer]:
    """ResNet (He and others, 2016): `blocks` blocks of each stage, two layers or three."""
    yield Layer("conv1", 3, STAGES[0], 32, 3)
    inputs, side = STAGES[0], 32
    for stage, (count, width) in enumerate(zip(blocks, STAGES, strict=True), 1):
        outputs = 4 * width if bottleneck else width
        for block in range(count):
            stride = 2 if block == 0 and stage > 1 else 1
            name = f"layer{stage}.{block}"
            if block == 0 and (stride > 1 or inputs != outputs):
                yield Layer(f"{name}.shortcut", inputs, outputs, side, 1, stride)
            if bottleneck:
                yield Layer(f"{name}.conv1", inputs, width, side, 1)
                yield Layer(f"{name}.conv2", width, width, side, 3, stride)
                side //= stride
                yield Layer(f"{name}.conv3", width, outputs, side, 1)
            else:
                yield Layer(f"{name}.conv1", inputs, width, side, 3, stride)
                side //= stride
                yield Layer(f"{name}.conv2", width, width, side, 3)
            inputs = outputs
    yield Layer("fc", inputs, CLASSES)


ARCHITECTURES: dict[str, Callable[[], Iterator[Layer]]] = {
    "mlp": mlp,
    "alexnet": alexnet,
    "vgg16": vgg16,
    "resnet18": lambda: resnet((2, 2, 2, 2), False),
    "resnet50": lambda: resnet((3, 4, 6, 3), True),
    "resnet101": lambda: resnet((3, 4, 23, 3), True),
    "resnet152": lambda: resnet((3, 8, 36, 3), True),
}
