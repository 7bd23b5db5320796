"""The network of the workload `ml-inference` for MNIST: fully connected 784-128, ReLU, 128-64, ReLU, 64-10.

Weights are trained here with NumPy with Adam as in the harness, in larger batches and for fewer epochs; pixels have the
training set's mean and deviation taken out. Input: float32 (N, 784).
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[np.float32]
WIDTHS = (784, 128, 64, 10)
MEAN, DEVIATION = 0.1307, 0.3081
SEED, EPOCHS, BATCH, RATE = 42, 5, 256, 3e-3


def inputs(images: NDArray[np.uint8]) -> Array:
    """Images (N, 28, 28) as the network reads them, (N, 784)."""
    return ((images.reshape(len(images), -1).astype(np.float32) / 255 - MEAN) / DEVIATION).astype(np.float32)


def start(rng: np.random.Generator) -> list[Array]:
    """Matrices and biases in turn, uniform as fully connected layers of PyTorch begin."""
    parts: list[Array] = []
    for given, made in pairwise(WIDTHS):
        bound = 1 / np.sqrt(given)
        parts += [rng.uniform(-bound, bound, shape).astype(np.float32) for shape in ((given, made), (made,))]
    return parts


def forward(parts: list[Array], x: Array) -> list[Array]:
    """What each layer reads, and the logits (N, 10) last."""
    states = [x]
    for layer in range(len(WIDTHS) - 1):
        sums = states[-1] @ parts[2 * layer] + parts[2 * layer + 1]
        states.append(np.maximum(sums, 0) if layer < len(WIDTHS) - 2 else sums)
    return states


def gradients(parts: list[Array], x: Array, y: NDArray[np.int64]) -> list[Array]:
    """The gradients of the mean cross-entropy by each of the parts."""
    states = forward(parts, x)
    chances = np.exp(states[-1] - states[-1].max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    chances[np.arange(len(y)), y] -= 1
    slope, found = chances / len(y), []
    for layer in reversed(range(len(WIDTHS) - 1)):
        found += [slope.sum(axis=0), states[layer].T @ slope]
        slope = (slope @ parts[2 * layer].T) * (states[layer] > 0)
    return found[::-1]


def train(x: Array, y: NDArray[np.int64]) -> list[Array]:
    """Weights after some epochs of Adam (Kingma and Ba, 2015) over inputs (N, 784) and labels (N,)."""
    rng = np.random.default_rng(SEED)
    parts, step = start(rng), 0
    first, second = ([np.zeros_like(part) for part in parts] for _ in range(2))
    for _ in range(EPOCHS):
        order = rng.permutation(len(y))
        for chosen in np.split(order, range(BATCH, len(order), BATCH)):
            step += 1
            for at, slope in enumerate(gradients(parts, x[chosen], y[chosen])):
                first[at] += 0.1 * (slope - first[at])
                second[at] += 0.001 * (slope * slope - second[at])
                moved = first[at] / (1 - 0.9**step) / (np.sqrt(second[at] / (1 - 0.999**step)) + 1e-8)
                parts[at] = (parts[at] - RATE * moved).astype(np.float32)
    return parts


def save(parts: list[Array], path: Path) -> None:
    """Write the network as ONNX."""
    nodes, constants, last = [], [], "x"
    for layer in range(len(WIDTHS) - 1):
        names = [f"fc{layer + 1}.{what}" for what in ("weight", "bias")]
        constants += [numpy_helper.from_array(parts[2 * layer + at], name) for at, name in enumerate(names)]
        nodes.append(helper.make_node("Gemm", [last, *names], [f"fc{layer + 1}"], f"fc{layer + 1}"))
        last = f"fc{layer + 1}"
        if layer < len(WIDTHS) - 2:
            nodes.append(helper.make_node("Relu", [last], [f"relu{layer + 1}"], f"relu{layer + 1}"))
            last = f"relu{layer + 1}"
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", WIDTHS[0]])
    made = helper.make_tensor_value_info(last, TensorProto.FLOAT, ["N", WIDTHS[-1]])
    graph = helper.make_graph(nodes, "ml-inference", [given], [made], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
