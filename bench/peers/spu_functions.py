"""What SPU computes, in JAX: operators and networks, written as a careful user of SPU would.

Plain `jax.nn.gelu` and `softmax` cost SPU two to three times what the forms here do.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Array = Any
GELU_END = 3.0
"""From here on GELU is taken to be ReLU; they differ by 0.004."""
GELU_TERMS = 6
SQUARINGS = 5
"""e^d of a softmax is (1 + d/32)^32: one more squaring would be nearer and cost a product of every value."""


def gelu_polynomial() -> list[float]:
    """Coefficients, constant first, of ReLU(a) - GELU(a) for 0 <= a <= `GELU_END`, of least squares."""
    nodes = GELU_END * (1 - np.cos(np.pi * (np.arange(400) + 0.5) / 400)) / 2
    tails = [node * (1 - math.erf(node / math.sqrt(2))) / 2 for node in nodes]
    return [float(term) for term in np.polynomial.polynomial.polyfit(nodes, tails, GELU_TERMS)]


def gelu(x: Array) -> Array:
    """ReLU minus a polynomial of |x| near zero: two comparisons and three products."""
    c = gelu_polynomial()
    positive = jnp.maximum(x, 0)
    a = 2 * positive - x
    square = a * a
    cube = square * a
    low = c[0] + c[1] * a + c[2] * square + c[3] * cube
    high = c[4] * a + c[5] * square + c[6] * cube
    return positive - jnp.where(a < GELU_END, low + cube * high, 0)


def softmax(x: Array) -> Array:
    """Softmax over the last axis, with one reciprocal a row."""
    d = x - jnp.max(x, axis=-1, keepdims=True)
    power = jnp.maximum(1 + d / 2**SQUARINGS, 0)
    for _ in range(SQUARINGS):
        power = power * power
    return power * (1 / jnp.sum(power, axis=-1, keepdims=True))


def layer_norm(x: Array, weight: Array | None, bias: Array | None, epsilon: float) -> Array:
    """Layer norm over the last axis."""
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    normal = centred * jax.lax.rsqrt(variance + epsilon)
    return normal if weight is None or bias is None else normal * weight + bias


def convolve(x: Array, kernel: Array, strides: Sequence[int], pads: Sequence[int]) -> Array:
    """Of channels first."""
    half = len(pads) // 2
    around = list(zip(pads[:half], pads[half:], strict=True))
    return jax.lax.conv_general_dilated(x, kernel, strides, around, dimension_numbers=("NCHW", "OIHW", "NCHW"))


def max_pool(x: Array, window: Sequence[int], strides: Sequence[int]) -> Array:
    """Without padding, channels first."""
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, *window), (1, 1, *strides), "VALID")


class Node(NamedTuple):
    """An operator of ONNX at work."""

    inputs: list[Array]
    attributes: dict[str, Any]
    shape: list[int]


def conv(node: Node) -> Array:
    """Convolution with its bias."""
    x, kernel, *bias = node.inputs
    strides, pads = node.attributes.get("strides", [1, 1]), node.attributes.get("pads", [0, 0, 0, 0])
    y = convolve(x, kernel, strides, pads)
    return y + bias[0].reshape(1, -1, 1, 1) if bias else y


def dense(node: Node) -> Array:
    """Gemm of a weight stored transposed or not."""
    x, weight, bias = node.inputs
    return x @ (weight.T if node.attributes.get("transB") else weight) + bias


def normalised(node: Node) -> Array:
    """Layer norm with its weight and bias."""
    x, weight, bias = node.inputs
    return layer_norm(x, weight, bias, node.attributes["epsilon"])


def reshaped(node: Node) -> Array:
    """Reshape; 0 keeps an axis."""
    x = node.inputs[0]
    return x.reshape([old if new == 0 else new for new, old in zip(node.shape, [*x.shape, 1, 1, 1], strict=False)])


OPERATORS: dict[str, Callable[[Node], Array]] = {
    "Conv": conv,
    "Gemm": dense,
    "Relu": lambda node: jnp.maximum(node.inputs[0], 0),
    "MaxPool": lambda node: max_pool(node.inputs[0], node.attributes["kernel_shape"], node.attributes["strides"]),
    "GlobalAveragePool": lambda node: jnp.mean(node.inputs[0], axis=(2, 3), keepdims=True),
    "Flatten": lambda node: node.inputs[0].reshape(node.inputs[0].shape[0], -1),
    "Reshape": reshaped,
    "Transpose": lambda node: jnp.transpose(node.inputs[0], node.attributes["perm"]),
    "MatMul": lambda node: node.inputs[0] @ node.inputs[1],
    "Add": lambda node: node.inputs[0] + node.inputs[1],
    "Mul": lambda node: node.inputs[0] * node.inputs[1],
    "Softmax": lambda node: softmax(node.inputs[0]),
    "Gelu": lambda node: gelu(node.inputs[0]),
    "LayerNormalization": normalised,
}


def network(path: Path) -> tuple[Callable[..., Array], dict[str, Any]]:
    """A network of `exported.py` as a function of the input and its weights, and these; scalars are public."""
    with np.load(path, allow_pickle=False) as archive:
        graph = json.loads(str(archive["graph"]))
        stored = {name.removeprefix("weight:"): archive[name] for name in archive.files if name != "graph"}
    secret = {name: value for name, value in stored.items() if value.ndim}
    public = {name: float(value) for name, value in stored.items() if not value.ndim}
    nodes = pools_first(graph["nodes"])

    def run(x: Array, weights: Mapping[str, Array]) -> Array:
        values = {graph["ends"][0]: x, **public, **weights}
        for node in nodes:
            inputs = [values[name] for name in node["inputs"] if name not in graph["integers"]]
            shape = [size for name in node["inputs"] for size in graph["integers"].get(name, [])]
            values[node["output"]] = OPERATORS[node["operator"]](Node(inputs, node["attributes"], shape))
        return values[graph["ends"][1]]

    return run, secret


def pools_first(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same function with a max pool before the ReLU that it follows: fewer ReLUs."""
    ordered = [dict(node) for node in nodes]
    for relu, pool in pairwise(ordered):
        if (relu["operator"], pool["operator"]) == ("Relu", "MaxPool") and pool["inputs"] == [relu["output"]]:
            kept = {key: relu[key] for key in ("operator", "attributes")}
            relu.update({key: pool[key] for key in kept})
            pool.update(kept)
    return ordered


def single(name: str) -> Callable[..., Array]:
    """An operator by name, of one input or of an input and a weight."""
    operators: dict[str, Callable[..., Array]] = {
        "relu": lambda x: jnp.maximum(x, 0),
        "conv": lambda x, kernel: convolve(x, kernel, (1, 1), (1, 1, 1, 1)),
        "matmul": lambda x, weight: x @ weight,
        "gelu": gelu,
        "softmax": softmax,
        "layernorm": lambda x: layer_norm(x, None, None, 1e-5),
        "maxpool": lambda x: max_pool(x, (2, 2), (2, 2)),
        "argmax": lambda x: jnp.argmax(x, axis=-1),
    }
    return operators[name]


def exact(name: str) -> Callable[..., Array]:
    """The same operator without approximations of ours."""
    better: dict[str, Callable[..., Array]] = {
        "gelu": partial(jax.nn.gelu, approximate=False),
        "softmax": jax.nn.softmax,
    }
    return better.get(name, single(name))
