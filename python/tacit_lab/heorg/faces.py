"""A network of the shape of MobileFaceNet with random weights: what the workload `face verification` costs.

MobileFaceNet (Chen and others, 2018, table 1): convolutions of 112 x 112 pixels with inverted residuals, PReLU, and an
embedding of 128 values at the end, here with batch norms folded. A pair of faces are two inputs of one session; the
score is the cosine of their embeddings, which the client computes. Inputs: float32 (N, 3, 112, 112), within -1 and 1.
"""

from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

SIDE, EMBEDDING, LEAK = 112, 128, 0.25


class Stage(NamedTuple):
    """Bottlenecks in a row: how much wider they are inside, their channels, how many, and the stride of the first."""

    expansion: int
    channels: int
    repeats: int
    stride: int


STAGES = (Stage(2, 64, 5, 2), Stage(4, 128, 1, 2), Stage(2, 128, 6, 1), Stage(4, 128, 1, 2), Stage(2, 128, 2, 1))
STEM, HEAD = 64, 512


class Builder:
    """Nodes and constants; every method reads a tensor by name and gives that of its result."""

    def __init__(self, seed: int) -> None:
        """An empty graph, whose weights follow from `seed`."""
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[np.float32]) -> str:
        """Store weights."""
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def add(self, operator: str, *read: str, **attributes: Any) -> str:
        """One node."""
        name = f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(read), [name], name=name, **attributes))
        return name

    def conv(self, x: str, shape: tuple[int, int, int], stride: int = 1, group: int = 1, pad: int | None = None) -> str:
        """A convolution from and to so many channels with a square kernel, which keeps sizes but for the stride."""
        given, made, kernel = shape
        fan = given // group * kernel * kernel
        weight = self.random.standard_normal((made, given // group, kernel, kernel)) * np.sqrt(2 / fan)
        names = [f"conv{len(self.nodes)}.weight", f"conv{len(self.nodes)}.bias"]
        bias = 0.1 * self.random.standard_normal(made)
        parts = [self.constant(name, part.astype(np.float32)) for name, part in zip(names, (weight, bias), strict=True)]
        pads = [kernel // 2 if pad is None else pad] * 4
        return self.add("Conv", x, *parts, group=group, strides=[stride] * 2, pads=pads, kernel_shape=[kernel] * 2)

    def activated(self, x: str, channels: int) -> str:
        """PReLU with a slope for each channel."""
        slopes = (LEAK * self.random.uniform(0.5, 1.5, (channels, 1, 1))).astype(np.float32)
        return self.add("PRelu", x, self.constant(f"prelu{len(self.nodes)}.slope", slopes))

    def bottleneck(self, x: str, given: int, made: int, expansion: int, stride: int) -> str:
        """Wider, by its own channel, and narrow again; added to what it read where the shape is the same."""
        wide = given * expansion
        inner = self.activated(self.conv(x, (given, wide, 1)), wide)
        inner = self.activated(self.conv(inner, (wide, wide, 3), stride, group=wide), wide)
        inner = self.conv(inner, (wide, made, 1))
        return self.add("Add", x, inner) if stride == 1 and given == made else inner


def network(seed: int = 0) -> onnx.ModelProto:
    """From faces (N, 3, 112, 112) to embeddings (N, 128)."""
    graph = Builder(seed)
    x = graph.activated(graph.conv("x", (3, STEM, 3), 2), STEM)
    x, channels = graph.activated(graph.conv(x, (STEM, STEM, 3), group=STEM), STEM), STEM
    for stage in STAGES:
        for at in range(stage.repeats):
            x = graph.bottleneck(x, channels, stage.channels, stage.expansion, stage.stride if at == 0 else 1)
            channels = stage.channels
    x = graph.activated(graph.conv(x, (channels, HEAD, 1)), HEAD)
    x = graph.conv(x, (HEAD, HEAD, SIDE // 16), group=HEAD, pad=0)
    x = graph.add("Flatten", graph.conv(x, (HEAD, EMBEDDING, 1)))
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, SIDE, SIDE])
    made = helper.make_tensor_value_info(x, TensorProto.FLOAT, ["N", EMBEDDING])
    built = helper.make_graph(graph.nodes, "mobile-face-net", [given], [made], graph.constants)
    return helper.make_model(built, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)


def pairs(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Random smooth pictures (2 * count, 3, 112, 112) in the place of faces: no cost depends on them."""
    coarse = np.random.default_rng(seed).uniform(-1, 1, (2 * count, 3, SIDE // 8, SIDE // 8))
    return coarse.repeat(8, axis=2).repeat(8, axis=3).astype(np.float32)


def score(embeddings: NDArray[np.float64]) -> float:
    """The cosine of the two embeddings of a pair (2, 128)."""
    first, second = embeddings
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))
