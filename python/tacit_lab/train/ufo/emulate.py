"""What the integers of an exported directory compute, in NumPy: the check that the export is what was trained.

Needs no PyTorch. Sums are whole numbers; between a sum and the ReLU that rounds it, values are real (float64).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit_lab.train.ufo.directory import Quantised

Real = NDArray[np.float64]
B_T = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], np.float64)
A_T = np.array([[1, 1, 1, 0], [0, 1, -1, -1]], np.float64)
SIZE = 100


class Tensor(NamedTuple):
    """Values (N, ..) in units of `scale`; `bits` of unsigned integers, 0 for what is not rounded."""

    values: Real
    scale: float
    bits: int = 0

    def real(self) -> Real:
        """The values themselves."""
        return self.values * self.scale


def tensors(model: Quantised, x: NDArray[np.float32]) -> dict[str, Tensor]:
    """Every tensor for integer inputs x (N, *shape)."""
    low, high = model.ranges[model.input_name]
    found = {model.input_name: Tensor(x.astype(np.float64), max(high, -low) / 127)}
    for node in model.nodes:
        found[node["output"]] = computed(model, node, [found[name] for name in node["inputs"]])
    return found


def logits(model: Quantised, x: NDArray[np.float32]) -> Real:
    """The logits (N, classes) of integer inputs x (N, *shape)."""
    parts = [tensors(model, x[start : start + SIZE]) for start in range(0, len(x), SIZE)]
    return np.concatenate([part[model.nodes[-1]["output"]].real() for part in parts])


def observed(model: Quantised, x: NDArray[np.float32]) -> dict[str, tuple[float, float]]:
    """Smallest and largest value of every tensor."""
    return {name: (float(t.real().min()), float(t.real().max())) for name, t in tensors(model, x).items()}


def computed(model: Quantised, node: dict[str, Any], inputs: list[Tensor]) -> Tensor:
    """What one node gives."""
    return OPERATORS[node["op"]](model, node, inputs)


def convolved(model: Quantised, node: dict[str, Any], inputs: list[Tensor]) -> Tensor:
    """QuantisedConv."""
    scale, bias = (model.arrays[node[name]].astype(np.float64)[:, None, None] for name in ("scale", "bias"))
    found = sums(inputs[0].values, model.arrays[node["weight"]], node)
    return Tensor(found * inputs[0].scale * scale + bias, 1.0)


def rectified(model: Quantised, node: dict[str, Any], inputs: list[Tensor]) -> Tensor:
    """ReLU, rounded and saturated to its bits."""
    top = (1 << node["bits"]) - 1
    unit = model.ranges[node["output"]][1] / top
    return Tensor(np.floor(inputs[0].real() / unit + 0.5).clip(0, top), unit, node["bits"])


def requantised(_: Quantised, node: dict[str, Any], inputs: list[Tensor]) -> Tensor:
    """Fewer bits, rounded half up."""
    drop = inputs[0].bits - node["bits"]
    return Tensor(np.floor(inputs[0].values / (1 << drop) + 0.5), inputs[0].scale * (1 << drop), node["bits"])


def added(_: Quantised, __: dict[str, Any], inputs: list[Tensor]) -> Tensor:
    """The sum of two tensors."""
    return Tensor(inputs[0].real() + inputs[1].real(), 1.0)


def averaged(_: Quantised, __: dict[str, Any], inputs: list[Tensor]) -> Tensor:
    """The mean of every channel."""
    return Tensor(inputs[0].real().mean(axis=(2, 3), keepdims=True), 1.0)


def reshaped(_: Quantised, node: dict[str, Any], inputs: list[Tensor]) -> Tensor:
    """Another shape."""
    return inputs[0]._replace(values=inputs[0].values.reshape(len(inputs[0].values), *node["shape"]))


def multiplied(model: Quantised, node: dict[str, Any], inputs: list[Tensor]) -> Tensor:
    """Gemm; its weights are real here."""
    weight, bias = (model.arrays[node[name]].astype(np.float64) for name in ("weight", "bias"))
    return Tensor(inputs[0].real() @ weight.T + bias, 1.0)


OPERATORS: dict[str, Callable[[Quantised, dict[str, Any], list[Tensor]], Tensor]] = {
    "QuantisedConv": convolved,
    "Relu": rectified,
    "Requantize": requantised,
    "Add": added,
    "AveragePool": averaged,
    "Reshape": reshaped,
    "Gemm": multiplied,
}


def sums(x: Real, weight: NDArray[Any], node: dict[str, Any]) -> Real:
    """Whole numbers that a convolution accumulates."""
    top, left, bottom, right = node["padding"]
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    if node["winograd"]:
        return in_places(padded, weight.astype(np.float64))
    windows = np.lib.stride_tricks.sliding_window_view(padded, tuple(node["kernel"]), axis=(2, 3))
    windows = windows[:, :, :: node["stride"][0], :: node["stride"][1]]
    found: Real = np.einsum("nchwij,ocij->nohw", windows, weight.astype(np.float64), optimize=True)
    return found


def in_places(padded: Real, weight: Real) -> Real:
    """`A^T [U (.) (B^T d B)] A` of every tile."""
    tiles = np.lib.stride_tricks.sliding_window_view(padded, (4, 4), axis=(2, 3))[:, :, ::2, ::2]
    transformed = B_T @ tiles @ B_T.T
    products = np.einsum("nchwpq,ocpq->nohwpq", transformed, weight, optimize=True)
    y = A_T @ products @ A_T.T
    n, c, height, width = y.shape[:4]
    found: Real = y.transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * height, 2 * width)
    return found
