"""What small models are made of: constants, and one operator with what it reads."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from networks import Network

IMAGE, ROW = ("N", 4, 6, 6), ("N", 4, 9)


def ints(network: Network, *values: int) -> str:
    """A constant list of integers."""
    return network.constant(f"ints{len(network.constants)}", np.array(values, np.int64))


def floats(network: Network, value: Any) -> str:
    """A constant of floats."""
    return network.constant(f"floats{len(network.constants)}", np.asarray(value, np.float32))


def one(operator: str, shape: Sequence[int | str] = IMAGE, opset: int = 18, **attributes: Any) -> Callable[[], Network]:
    """The operator alone."""
    return lambda: Network(shape, opset=opset).add(operator, **attributes)


def two(operator: str, shape: Sequence[int | str] = IMAGE, **attributes: Any) -> Callable[[], Network]:
    """The operator on two activations."""

    def build() -> Network:
        network = Network(shape, opset=18).add("Tanh", name="a").add("Relu", inputs=["x"], name="b")
        return network.add(operator, inputs=["a.out", "b.out"], **attributes)

    return build


def three(operator: str) -> Callable[[], Network]:
    """The operator on three activations."""

    def build() -> Network:
        network = Network(opset=18).add("Tanh", name="a").add("Relu", inputs=["x"], name="b")
        return network.add(operator, inputs=["a.out", "b.out", "x"])

    return build


def with_constants(
    operator: str,
    *values: Any,
    shape: Sequence[int | str] = IMAGE,
    opset: int = 18,
    first: bool = False,
    **attributes: Any,
) -> Callable[[], Network]:
    """The operator with constants after the activation, or before it if `first`; None is an absent one."""

    def build() -> Network:
        network = Network(shape, opset=opset)
        names = [
            "" if value is None else network.constant(f"c{k}", np.asarray(value)) for k, value in enumerate(values)
        ]
        return network.add(operator, inputs=[*names, "x"] if first else ["x", *names], **attributes)

    return build


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    """Random weights of a sensible size."""
    return Network(seed=seed).normal(*shape)


def constants(count: int) -> list[np.ndarray]:
    """Scale, bias, mean and variance of a norm."""
    random = np.random.default_rng(1)
    return [random.uniform(0.5, 1.5, count).astype(np.float32) for _ in range(4)]
