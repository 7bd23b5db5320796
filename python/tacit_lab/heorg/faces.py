"""A network of the shape of MobileFaceNet with random weights: what the workload `face verification` costs.

MobileFaceNet (Chen and others, 2018, table 1): convolutions of 112 x 112 pixels with inverted residuals, PReLU, and an
embedding of 128 values at the end, here with batch norms folded. A pair of faces are two inputs of one session; the
score is the cosine of their embeddings, which the client computes. Inputs: float32 (N, 3, 112, 112), within -1 and 1.
"""

from typing import NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray

from tacit_lab.random_networks import Builder, Window

SIDE, EMBEDDING = 112, 128


class Stage(NamedTuple):
    """Bottlenecks in a row: how much wider they are inside, their channels, how many, and the stride of the first."""

    expansion: int
    channels: int
    repeats: int
    stride: int


STAGES = (Stage(2, 64, 5, 2), Stage(4, 128, 1, 2), Stage(2, 128, 6, 1), Stage(4, 128, 1, 2), Stage(2, 128, 2, 1))
STEM, HEAD = 64, 512


def bottleneck(graph: Builder, x: str, channels: tuple[int, int], expansion: int, stride: int) -> str:
    """Wider, by its own channel, and narrow again; added to what it read where the shape is the same."""
    given, made = channels
    wide = given * expansion
    inner = graph.sloped(graph.conv(x, (given, wide), 1), wide)
    inner = graph.sloped(graph.conv(inner, (wide, wide), Window(3, 3, stride), group=wide), wide)
    inner = graph.conv(inner, (wide, made), 1)
    return graph.add("Add", x, inner) if stride == 1 and given == made else inner


def network(seed: int = 0) -> onnx.ModelProto:
    """From faces (N, 3, 112, 112) to embeddings (N, 128)."""
    graph = Builder(seed)
    x = graph.sloped(graph.conv("x", (3, STEM), Window(3, 3, 2)), STEM)
    x, channels = graph.sloped(graph.conv(x, (STEM, STEM), 3, group=STEM), STEM), STEM
    for stage in STAGES:
        for at in range(stage.repeats):
            stride = stage.stride if at == 0 else 1
            x, channels = bottleneck(graph, x, (channels, stage.channels), stage.expansion, stride), stage.channels
    x = graph.sloped(graph.conv(x, (channels, HEAD), 1), HEAD)
    x = graph.conv(x, (HEAD, HEAD), Window(SIDE // 16, SIDE // 16, pads=(0, 0, 0, 0)), group=HEAD)
    x = graph.add("Flatten", graph.conv(x, (HEAD, EMBEDDING), 1))
    return graph.model("mobile-face-net", (3, SIDE, SIDE), x, (EMBEDDING,))


def pairs(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Random smooth pictures (2 * count, 3, 112, 112) in the place of faces: no cost depends on them."""
    coarse = np.random.default_rng(seed).uniform(-1, 1, (2 * count, 3, SIDE // 8, SIDE // 8))
    return coarse.repeat(8, axis=2).repeat(8, axis=3).astype(np.float32)


def score(embeddings: NDArray[np.float64]) -> float:
    """The cosine of the two embeddings of a pair (2, 128)."""
    first, second = embeddings
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))
