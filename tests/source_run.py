"""A source graph in numpy, batch left out: what each operator means, in the plainest words."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.importers.layout import MOST_AXES
from tacit.importers.source import Source

ERF = np.vectorize(math.erf, otypes=[np.float64])
Tensor = NDArray[Any]


def evaluate(source: Source, x: Tensor) -> dict[str, Tensor]:
    """Every tensor of the graph for one input `x`."""
    assert x.shape == source.input_shape
    tensors: dict[str, Tensor] = {source.input_name: x.astype(np.float64)}
    for node in source.nodes:
        operation = dict(node.operation)
        inputs = [tensors[name] for name in node.inputs]
        assert node.output not in tensors, f"{node.output} is written twice"
        tensors[node.output] = OPERATORS[operation.pop("op")](inputs, operation, source.weights)
        assert tensors[node.output].ndim <= MOST_AXES
    return tensors


def channels(value: Tensor, rank: int) -> Tensor:
    return value.reshape(-1, *[1] * (rank - 1)) if value.ndim == 1 else value


def windows(x: Tensor, operation: Mapping[str, Any], beside: float = 0.0) -> Tensor:
    """The elements that a kernel covers at every position: (channels, height, width, kernel height, kernel width)."""
    assert x.ndim == 3
    (height, width), (top, left, bottom, right) = operation["kernel"], operation["padding"]
    down, across = operation.get("dilation", [1, 1])
    wide = np.pad(x, ((0, 0), (top, bottom), (left, right)), constant_values=beside)
    reach = (height - 1) * down + 1, (width - 1) * across + 1
    seen = np.lib.stride_tricks.sliding_window_view(wide, reach, axis=(1, 2))
    return seen[:, :: operation["stride"][0], :: operation["stride"][1], ::down, ::across]


def conv(inputs: list[Tensor], operation: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Tensor:
    weight, groups = weights[operation["weight"]].astype(np.float64), operation["groups"]
    seen = windows(inputs[0], operation)
    parts = seen.reshape(groups, -1, *seen.shape[1:])
    kernels = weight.reshape(groups, -1, *weight.shape[1:])
    product = np.einsum("gchwij,gocij->gohw", parts, kernels).reshape(len(weight), *seen.shape[1:3])
    bias = operation["bias"]
    return product if bias is None else product + channels(weights[bias], 3)


def average_pool(inputs: list[Tensor], operation: Mapping[str, Any], _: Mapping[str, Tensor]) -> Tensor:
    assert operation["count_include_pad"] or not any(operation["padding"])
    return windows(inputs[0], operation).mean(axis=(3, 4))


def gemm(inputs: list[Tensor], operation: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Tensor:
    (x,) = inputs
    assert x.ndim == 1
    product = weights[operation["weight"]].astype(np.float64) @ x
    bias = operation["bias"]
    return product if bias is None else product + weights[bias]


def view(inputs: list[Tensor], operation: Mapping[str, Any], _: Mapping[str, Tensor]) -> Tensor:
    flat, shape = inputs[0].ravel(), operation["shape"]
    assert 1 <= len(shape) <= 3
    steps = [np.arange(n) * stride for n, stride in zip(shape, operation["strides"], strict=True)]
    return flat[operation["start"] + sum(np.ix_(*steps))]


def embedding(inputs: list[Tensor], operation: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Tensor:
    (ids,) = inputs
    assert ids.ndim == 1
    return weights[operation["weight"]][ids.astype(np.int64)].astype(np.float64)


def matmul(inputs: list[Tensor], _: Mapping[str, Any], __: Mapping[str, Tensor]) -> Tensor:
    first, second = inputs
    assert first.ndim == second.ndim
    assert first.ndim in (2, 3)
    assert first.shape[:-2] == second.shape[:-2]
    return first @ second


def softmax(inputs: list[Tensor], _: Mapping[str, Any], __: Mapping[str, Tensor]) -> Tensor:
    (x,) = inputs
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def smu(x: Tensor, slope: float, smoothness: float) -> Tensor:
    return ((1 + slope) * x + np.sqrt(((1 - slope) * x) ** 2 + smoothness**2)) / 2


def relu_softmax(inputs: list[Tensor], operation: Mapping[str, Any], _: Mapping[str, Tensor]) -> Tensor:
    (x,) = inputs
    kept = np.where(np.isneginf(x), 0, smu(np.where(np.isneginf(x), 0, x), 0, operation["smoothness"]))
    return kept / (kept.sum(axis=-1, keepdims=True) + operation["epsilon"])


def layer_norm(inputs: list[Tensor], operation: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Tensor:
    (x,) = inputs
    centred = x if operation.get("rms") else x - x.mean(axis=0)
    normal = centred / np.sqrt((centred**2).mean(axis=0) + operation["epsilon"])
    if "scale" not in operation:
        return normal
    scale, bias = (channels(weights[operation[role]], x.ndim) for role in ("scale", "bias"))
    return normal * scale + bias


def mask(inputs: list[Tensor], _: Mapping[str, Any], __: Mapping[str, Tensor]) -> Tensor:
    scores, kept = inputs
    assert scores.shape == kept.shape
    return np.where(kept == 1, scores, -np.inf)


def table(inputs: list[Tensor], operation: Mapping[str, Any], _: Mapping[str, Tensor]) -> Tensor:
    functions = {
        **{"Exp": np.exp, "Log": np.log, "Tanh": np.tanh, "Sigmoid": lambda x: 1 / (1 + np.exp(-x))},
        "Silu": lambda x: x / (1 + np.exp(-x)),
    }
    return functions[operation["function"]](inputs[0])


def batch_normalization(inputs: list[Tensor], operation: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Tensor:
    (x,) = inputs
    scale, bias, mean, variance = (
        channels(weights[operation[role]], x.ndim) for role in ("scale", "bias", "mean", "variance")
    )
    return scale * (x - mean) / np.sqrt(variance + operation["epsilon"]) + bias


OPERATORS: Mapping[str, Callable[[list[Tensor], Mapping[str, Any], Mapping[str, Tensor]], Tensor]] = {
    "Add": lambda inputs, _, __: inputs[0] + inputs[1],
    "AddConstant": lambda inputs, o, weights: inputs[0] + channels(weights[o["constant"]], inputs[0].ndim),
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalization,
    "Combinations": lambda inputs, o, _: np.concatenate(np.einsum("sk,k...->s...", o["factors"], inputs)),
    "Concat": lambda inputs, _, __: np.concatenate(inputs),
    "Conv": conv,
    "Embedding": embedding,
    "Gate": lambda inputs, _, __: inputs[0] * inputs[1],
    "Gelu": lambda inputs, _, __: inputs[0] * 0.5 * (1 + ERF(inputs[0] / math.sqrt(2))),
    "Gemm": gemm,
    "Identity": lambda inputs, _, __: inputs[0],
    "LayerNorm": layer_norm,
    "Mask": mask,
    "MatMul": matmul,
    "MaxPool": lambda inputs, o, _: windows(inputs[0], o, -np.inf).max(axis=(3, 4)),
    "Multiply": lambda inputs, _, __: inputs[0] * inputs[1],
    "ReluSoftmax": relu_softmax,
    "Pad": lambda inputs, o, _: np.pad(inputs[0], list(zip(o["before"], o["after"], strict=True))),
    "Relu": lambda inputs, o, _: np.clip(inputs[0], 0, o["maximum"]),
    "Reshape": lambda inputs, o, _: inputs[0].reshape(o["shape"]),
    "Scale": lambda inputs, o, _: inputs[0] * o["factor"],
    "Smu": lambda inputs, o, _: smu(inputs[0], o["slope"], o["smoothness"]),
    "Softmax": softmax,
    "Table": table,
    "View": view,
}
