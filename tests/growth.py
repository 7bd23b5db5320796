"""A random network that grows, and the rectifier that keeps its precision."""

from typing import Any

import numpy as np
from networks import Network

OPSET = 15
LARGEST_SIDE = 12
MOST_CHANNELS = 8
MOST_VALUES = 600
RUNS = (1, 2)
"""Most linear layers in a row, by the seed: precision has limits, and wide activations get few."""


class Growth:
    """A network that grows; `shape` is that of its last tensor, batch excluded."""

    def __init__(self, seed: int):
        self.seed = seed
        self.random = np.random.default_rng(seed)
        self.shape = (self.upto(4), self.upto(LARGEST_SIDE), self.upto(LARGEST_SIDE))
        self.network = Network(("N", *self.shape), seed, OPSET)
        self.run = RUNS[seed % len(RUNS)]
        self.linear = 0
        self.earlier: list[tuple[str, tuple[int, ...]]] = []

    def upto(self, most: int, least: int = 1) -> int:
        """A number from `least` to `most`."""
        return int(self.random.integers(least, most + 1))

    def maybe(self, probability: float = 0.5) -> bool:
        return bool(self.random.random() < probability)

    def pick(self, choices: Any) -> Any:
        """One of a sequence."""
        return choices[self.upto(len(choices)) - 1]

    def constant(self, value: Any) -> str:
        """A new constant: float32 unless it holds integers."""
        array = np.asarray(value)
        array = array if array.dtype.kind == "i" else array.astype(np.float32)
        return self.network.constant(f"c{len(self.network.constants)}", array)

    @property
    def image(self) -> bool:
        return len(self.shape) == 3

    @property
    def last(self) -> str:
        return self.network.last

    def add(self, operator: str, *others: str, shape: tuple[int, ...] | None = None, **attributes: Any) -> None:
        """Append an operator on the last tensor (unless `inputs` are given) whose result has `shape`."""
        self.earlier.append((self.last, self.shape))
        self.network.add(operator, *others, **attributes)
        self.shape = self.shape if shape is None else shape

    def linear_layer(self) -> None:
        """Make room for one: a rectifier, when enough of them are in a row."""
        if self.linear >= self.run:
            relu(self)
        self.linear += 1


def relu(growth: Growth) -> None:
    """A rectifier."""
    growth.add("Relu")
    growth.linear = 0
