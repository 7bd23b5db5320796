"""Random functions of one value, and sums, products and maxima with constants and other activations."""

from collections.abc import Callable

import numpy as np
from any_growth import AnyGrowth

PLAIN = {
    **dict.fromkeys(("Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Softplus", "Softsign", "Exp", "Sin", "Cos"), 1),
    **dict.fromkeys(("Erf", "Selu", "Elu", "HardSigmoid", "LeakyRelu"), 9),
    "Celu": 12,
    "HardSwish": 14,
    "Mish": 18,
}
"""Functions and their first opset here."""


def function(growth: AnyGrowth) -> None:
    """A function of one value with its defaults or other parameters."""
    name = growth.pick([name for name, opset in PLAIN.items() if opset <= growth.opset])
    attributes = {}
    if name in ("Elu", "Celu", "LeakyRelu") and growth.maybe():
        attributes["alpha"] = growth.pick([0.1, 0.5, 1.5])
    if name == "HardSigmoid" and growth.maybe():
        attributes |= {"alpha": growth.pick([0.1, 0.3]), "beta": growth.pick([0.4, 0.6])}
    if name in ("Exp", "Sin", "Cos"):
        growth.add("Tanh")
    growth.add(name, **attributes)


def clip(growth: AnyGrowth) -> None:
    """Both bounds, or one."""
    low, high = growth.pick([(0.0, 6.0), (0.0, 0.5), (-0.5, 0.7), (None, 0.4), (-0.3, None)])
    if growth.opset < 11:
        given = {"min": low, "max": high}
        growth.add("Clip", **{name: value for name, value in given.items() if value is not None})
        return
    names = ["" if value is None else growth.constant(value) for value in (low, high)]
    growth.add("Clip", *(names if names[1] else names[:1]))


def behind_a_square(growth: AnyGrowth) -> None:
    """A function with a pole or an edge at zero, of a square and a number."""
    growth.add("Mul", inputs=[growth.last, growth.last])
    growth.add("Add", growth.constant(growth.pick([0.3, 1.0])))
    growth.add(growth.pick(["Sqrt", "Log", "Reciprocal"]))


def power(growth: AnyGrowth) -> None:
    """A small power."""
    growth.add("Pow", growth.constant(float(growth.pick([2, 2, 3]))))


def gate(growth: AnyGrowth) -> None:
    """What exporters write for SiLU, Mish and GELU."""
    origin = growth.last
    kind = growth.pick(["silu", "mish", "gelu"])
    if kind == "gelu":
        growth.add("Div", growth.constant(np.float32(np.sqrt(2))))
        growth.add("Erf")
        growth.add("Add", growth.constant(1.0))
        growth.add("Mul", inputs=[origin, growth.last])
        growth.add("Mul", growth.constant(0.5))
        return
    for name in {"silu": ["Sigmoid"], "mish": ["Softplus", "Tanh"]}[kind]:
        growth.add(name)
    growth.add("Mul", inputs=[origin, growth.last])


def broadcast_constant(growth: AnyGrowth) -> np.ndarray:
    """A constant of a shape that is stretched to the tensor's."""
    kept = growth.upto(growth.rank, 0)
    shape = [size if growth.maybe(0.6) else 1 for size in growth.shape[growth.rank - kept :]]
    if kept == growth.rank and growth.maybe(0.2):
        shape = [1, *shape]
    return growth.floats(*shape)


def with_constant(growth: AnyGrowth) -> None:
    """A sum, difference, product, quotient, maximum or minimum with a constant, on either side."""
    kinds = ["Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu"]
    kind, value = growth.pick(kinds), broadcast_constant(growth)
    if kind == "Div":
        value = np.sign(value + 1e-9) * (0.5 + np.abs(value))
    name = growth.constant(value)
    if kind in ("Div", "PRelu") or growth.maybe(0.7):
        growth.add(kind, name)
    else:
        growth.add(kind, inputs=[name, growth.last])


def with_other(growth: AnyGrowth) -> None:
    """A sum, difference, product, maximum, minimum or mean with other activations."""
    name, shape = growth.other()
    kind = growth.pick(["Add", "Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean"])
    names = [growth.last, name] if growth.maybe() else [name, growth.last]
    if kind in ("Sum", "Mean", "Max", "Min") and growth.maybe(0.3):
        names.append(growth.other()[0])
    growth.add(kind, inputs=names, shape=shape)


def with_stretched(growth: AnyGrowth) -> None:
    """A sum or product with an activation that is stretched along some axes, as in squeeze-and-excite."""
    if growth.rank < 2:
        return
    origin, shape = growth.last, growth.shape
    first = growth.upto(growth.rank)
    axes = list(range(first, growth.upto(growth.rank, first) + 1))
    small = tuple(1 if axis + 1 in axes else size for axis, size in enumerate(shape))
    growth.axes("ReduceMean", axes, small, keepdims=1)
    if growth.maybe():
        growth.add("Sigmoid")
    names = [origin, growth.last] if growth.maybe() else [growth.last, origin]
    growth.add(growth.pick(["Add", "Sub", "Mul", "Mul", "Max"]), inputs=names, shape=shape)


Kind = Callable[[AnyGrowth], None]
FUNCTIONS: dict[str, Kind] = {
    "function": function,
    "clip bounds": clip,
    "behind a square": behind_a_square,
    "power": power,
    "gate": gate,
    "with constant": with_constant,
    "with other": with_other,
    "with stretched": with_stretched,
}
