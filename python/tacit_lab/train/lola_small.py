"""Train LoLa-Small on MNIST and write it to the assets of the package.

Convolution 5x5 with 5 maps and stride 2 (zeros below and on the right), square, fully connected
845-10: 8,590 parameters (LoLa, arXiv 1812.10659, section 5). Input: float32 (N, 1, 28, 28), pixel / 256.
NumPy only: the gradients of three layers are a few lines.

    python -m tacit_lab.train.lola_small --data ../shared/data/mnist/mnist.npz
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[np.float32]
ASSET = Path(__file__).resolve().parents[2] / "tacit" / "assets" / "lola_small.onnx"
MAPS, KERNEL, STRIDE, SIDE = 5, 5, 2, 13
BATCH, AVERAGED = 128, 0.999


class Weights(NamedTuple):
    """Kernels (25, maps), their biases (maps,), matrix (845, 10), its biases (10,)."""

    kernel: Array
    kernel_bias: Array
    matrix: Array
    bias: Array


def windows(images: NDArray[np.uint8]) -> Array:
    """What the kernel reads (N, 169, 25), of images (N, 28, 28)."""
    padded = np.pad(images.astype(np.float32) / 256, ((0, 0), (0, 1), (0, 1)))
    reach = STRIDE * SIDE
    taps = [padded[:, i : i + reach : STRIDE, j : j + reach : STRIDE] for i in range(KERNEL) for j in range(KERNEL)]
    return np.stack(taps, axis=-1).reshape(len(images), SIDE * SIDE, KERNEL * KERNEL).astype(np.float32)


def forward(weights: Weights, x: Array) -> tuple[Array, Array, Array]:
    """Convolution (N, 169, maps), its square as the matrix reads it (N, 845), and logits (N, 10)."""
    sums: Array = x @ weights.kernel + weights.kernel_bias
    squares: Array = np.square(sums).transpose(0, 2, 1).reshape(len(x), -1)
    return sums, squares, squares @ weights.matrix + weights.bias


def gradients(weights: Weights, x: Array, y: NDArray[np.int64]) -> Weights:
    """The gradients of the mean cross-entropy."""
    sums, squares, logits = forward(weights, x)
    likely = np.exp(logits - logits.max(axis=1, keepdims=True))
    error = likely / likely.sum(axis=1, keepdims=True)
    error[np.arange(len(y)), y] -= 1
    error = (error / len(y)).astype(np.float32)
    back = (error @ weights.matrix.T).reshape(len(x), MAPS, -1).transpose(0, 2, 1) * 2 * sums
    flat = back.reshape(-1, MAPS)
    kernel = x.reshape(-1, KERNEL * KERNEL).T @ flat
    return Weights(kernel, flat.sum(axis=0), squares.T @ error, error.sum(axis=0))


def shifted(images: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """All images moved by the same 0 or 1 pixels along both axes."""
    down, across = rng.integers(-1, 2, size=2)
    return np.roll(images, (int(down), int(across)), axis=(1, 2))


def train(images: NDArray[np.uint8], y: NDArray[np.int64], epochs: int) -> Weights:
    """Adam with a falling rate; the average of the weights over the last steps."""
    rng = np.random.default_rng(1)
    kernel = rng.normal(0, 0.2, (KERNEL * KERNEL, MAPS)).astype(np.float32)
    matrix = rng.normal(0, 0.03, (MAPS * SIDE * SIDE, 10)).astype(np.float32)
    weights = Weights(kernel, np.zeros(MAPS, np.float32), matrix, np.zeros(10, np.float32))
    first, second, average = ([np.zeros_like(w) for w in weights] for _ in range(3))
    steps, step = epochs * (len(y) // BATCH), 0
    for _ in range(epochs):
        order = rng.permutation(len(y))
        for start in range(0, len(y) // BATCH * BATCH, BATCH):
            chosen = order[start : start + BATCH]
            slopes = gradients(weights, windows(shifted(images[chosen], rng)), y[chosen])
            step += 1
            rate = 3e-3 * (1 - step / (steps + 1))
            first = [0.9 * m + 0.1 * g for m, g in zip(first, slopes, strict=True)]
            second = [0.999 * v + 0.001 * g * g for v, g in zip(second, slopes, strict=True)]
            scaled = [
                rate * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
                for m, v in zip(first, second, strict=True)
            ]
            weights = Weights(*(w - change - rate * 0.002 * w for w, change in zip(weights, scaled, strict=True)))
            average = [AVERAGED * a + (1 - AVERAGED) * w for a, w in zip(average, weights, strict=True)]
    return Weights(*(a.astype(np.float32) / (1 - AVERAGED**step) for a in average))


def accuracy(weights: Weights, images: NDArray[np.uint8], y: NDArray[np.int64]) -> float:
    """Share of images whose largest logit is the label."""
    parts = np.array_split(np.arange(len(y)), 20)
    hits = sum(int((forward(weights, windows(images[p]))[2].argmax(axis=1) == y[p]).sum()) for p in parts)
    return hits / len(y)


def save(weights: Weights, path: Path) -> None:
    """Write the network as ONNX, opset 13."""
    kernel = np.ascontiguousarray(weights.kernel.T.reshape(MAPS, 1, KERNEL, KERNEL))
    arrays = {"kernel": kernel, "kernel_bias": weights.kernel_bias, "matrix": weights.matrix, "bias": weights.bias}
    nodes = [
        helper.make_node(
            "Conv", ["input", "kernel", "kernel_bias"], ["conv"], "conv", strides=[STRIDE] * 2, pads=[0, 0, 1, 1]
        ),
        helper.make_node("Mul", ["conv", "conv"], ["square"], "square"),
        helper.make_node("Flatten", ["square"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "matrix", "bias"], ["logits"], "dense"),
    ]
    shapes: dict[str, list[str | int | None]] = {"input": ["N", 1, 28, 28], "logits": ["N", 10]}
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items())
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "lola-small", [given], [made], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def main() -> None:
    """Train, print the accuracy on the test images, write the network."""
    parser = argparse.ArgumentParser(description="Train LoLa-Small.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--output", type=Path, default=ASSET)
    chosen = parser.parse_args()
    with np.load(chosen.data) as archive:
        x_train, y_train, x_test, y_test = (archive[name] for name in ("x_train", "y_train", "x_test", "y_test"))
    weights = train(x_train, y_train.astype(np.int64), chosen.epochs)
    print(f"{accuracy(weights, x_test, y_test):.2%} of {len(y_test)} test images")
    save(weights, chosen.output)


if __name__ == "__main__":
    main()
