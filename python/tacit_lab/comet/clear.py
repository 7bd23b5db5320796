"""A source graph of an encoder in float32, one example at a time, with inverse square roots that may be approximate.

Layer norms, smooth maxima and their softmax compute with these, as in the suite comet: `sqrt(z)` is `z` times the
inverse root, and `1 / d` its square. First the exact roots show what ranges the arguments have.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.errors import UnsupportedError
from tacit.importers.source import Source

from tacit_lab.comet.starts import Bounds, Values, exact

SATURATED = 1e6
"""Fixed-point numbers do not grow for ever where an approximation diverges; nor do these."""
InverseRoot = Callable[[Values, Bounds], Values]
Operation = dict[str, Any]


@dataclass
class Clear:
    """An encoder whose inverse square roots are `root`; `bounds` has their ranges by node, filled while `learning`."""

    source: Source
    root: InverseRoot = exact
    bounds: dict[str, Bounds] = field(default_factory=dict)
    learning: bool = True

    def __post_init__(self) -> None:
        self.weights = {name: value.astype(np.float32) for name, value in self.source.weights.items()}

    def learned(self, root: InverseRoot) -> "Clear":
        """Give the encoder another root, within the ranges that were seen."""
        return Clear(self.source, root, self.bounds, learning=False)

    def __call__(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Outputs (N, outputs) of inputs (N, 2, sequence)."""
        return np.stack([self.one(example) for example in x]).astype(np.float64)

    def one(self, x: NDArray[np.float32]) -> Values:
        """Outputs of one input."""
        tensors: dict[str, Values] = {self.source.input_name: x}
        for node in self.source.nodes:
            operation = dict(node.operation)
            name = operation.pop("op")
            if name not in OPERATORS:
                raise UnsupportedError(f"node `{node.name}`: {name} has no float form here; use an encoder")
            inputs = [tensors[read] for read in node.inputs]
            tensors[node.output] = OPERATORS[name](self, node.name, inputs, operation)
        return tensors[self.source.output].ravel()

    def inverse_root(self, name: str, z: Values, kept: NDArray[np.bool_] | None = None) -> Values:
        """`1 / sqrt(z)`; what is not `kept` has no part in the range."""
        if self.learning:
            seen = z if kept is None else z[kept]
            low, high = self.bounds.get(name, (np.inf, 0.0))
            self.bounds[name] = (min(low, float(seen.min())), max(high, float(seen.max())))
        return self.root(z, self.bounds[name])


def per_channel(value: Values, rank: int) -> Values:
    """A value per channel beside a tensor of that rank."""
    return value.reshape(-1, *[1] * (rank - 1)) if value.ndim == 1 else value


def linear(run: Clear, _: str, inputs: list[Values], operation: Operation) -> Values:
    """Conv with one tap, or Gemm."""
    (x,) = inputs
    weight = run.weights[operation["weight"]]
    product = np.clip(np.tensordot(weight.reshape(weight.shape[:2]), x, 1), -SATURATED, SATURATED)
    bias = operation["bias"]
    return product if bias is None else product + per_channel(run.weights[bias], x.ndim)


def view(_run: Clear, _: str, inputs: list[Values], operation: Operation) -> Values:
    """Elements in another order."""
    steps = [np.arange(n) * stride for n, stride in zip(operation["shape"], operation["strides"], strict=True)]
    found: Values = inputs[0].ravel()[operation["start"] + sum(np.ix_(*steps))]
    return found


def smooth(run: Clear, name: str, x: Values, slope: float, smoothness: float) -> Values:
    """A smooth maximum."""
    x = np.clip(x, -SATURATED, SATURATED)
    z = ((1 - slope) * x) ** 2 + smoothness**2
    return np.asarray(((1 + slope) * x + z * run.inverse_root(name, z)) / 2, np.float32)


def relu_softmax(run: Clear, name: str, inputs: list[Values], operation: Operation) -> Values:
    """Shares of smooth ReLUs; masked scores are minus infinity."""
    (x,) = inputs
    kept = np.isfinite(x)
    active = smooth(run, f"{name}.relu", np.where(kept, x, 0), 0.0, operation["smoothness"]) * kept
    below = active.sum(axis=-1, keepdims=True) + operation["epsilon"]
    return active * run.inverse_root(f"{name}.sum", below) ** 2


def softmax(_run: Clear, _: str, inputs: list[Values], _operation: Operation) -> Values:
    """Along the last axis."""
    powers = np.exp(inputs[0] - inputs[0].max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def layer_norm(run: Clear, name: str, inputs: list[Values], operation: Operation) -> Values:
    """Along the first axis."""
    (x,) = inputs
    centred = np.clip(x - x.mean(axis=0), -SATURATED, SATURATED)
    variance = (centred**2).mean(axis=0) + operation["epsilon"]
    scale, bias = (per_channel(run.weights[operation[role]], x.ndim) for role in ("scale", "bias"))
    found: Values = centred * run.inverse_root(name, variance) * scale + bias
    return found


def gelu(_run: Clear, _: str, inputs: list[Values], _operation: Operation) -> Values:
    """`x * Phi(x)`, its tanh form."""
    (x,) = inputs
    return np.asarray(x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


Converter = Callable[[Clear, str, list[Values], Operation], Values]
OPERATORS: Mapping[str, Converter] = {
    "Add": lambda _run, _, inputs, _o: inputs[0] + inputs[1],
    "AddConstant": lambda run, _, inputs, o: inputs[0] + per_channel(run.weights[o["constant"]], inputs[0].ndim),
    "Conv": linear,
    "Embedding": lambda run, _, inputs, o: run.weights[o["weight"]][inputs[0].astype(np.int64)],
    "Gelu": gelu,
    "Gemm": linear,
    "LayerNorm": layer_norm,
    "Mask": lambda _run, _, inputs, _o: np.where(inputs[1] == 1, inputs[0], np.float32(-np.inf)),
    "MatMul": lambda _run, _, inputs, _o: inputs[0] @ inputs[1],
    "ReluSoftmax": relu_softmax,
    "Reshape": lambda _run, _, inputs, o: inputs[0].reshape(o["shape"]),
    "Smu": lambda run, name, inputs, o: smooth(run, name, inputs[0], o["slope"], o["smoothness"]),
    "Softmax": softmax,
    "Table": lambda _run, _, inputs, _o: np.tanh(inputs[0]),
    "View": view,
}
