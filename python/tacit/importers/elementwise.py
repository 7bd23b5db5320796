"""Converters of operators that work element by element: sums, products, activations."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.importers.call import Call, Operation, spread
from tacit.importers.rearrange import broadcast
from tacit.importers.source import MOST_AXES, Node

# Beyond this a bound is none.
UNBOUNDED = 3e38


def operands(call: Call) -> tuple[list[str], NDArray[Any] | None]:
    """The activations among two inputs, and the constant if one is."""
    constant = [name in call.constants for name in call.inputs]
    if not any(constant):
        return list(call.inputs), None
    place = constant.index(True)
    name = call.inputs[1 - place]
    if call.output_shape != call.shapes[name]:
        call.refuse("of a constant larger than the activation", "use a constant that broadcasts to one example")
    return [name], call.required(place, "operand")


def add(call: Call) -> Operation | list[Node]:
    """Addition of two activations, or of a constant to an activation."""
    names, constant = operands(call)
    if constant is not None:
        return plus(call, constant, "addend")
    nodes, read = broadcast(call, names)
    return [*nodes, call.last(read, {"op": "Add"})]


def plus(call: Call, constant: NDArray[Any], role: str) -> Operation:
    """A constant added: one value per channel where that is enough."""
    shape = call.output_shape
    value = spread(call, constant, shape)
    channel = value.reshape(shape[0], -1)
    if (channel == channel[:, :1]).all():
        value = channel[:, 0]
    return {"op": "AddConstant", "constant": call.store(role, np.ascontiguousarray(value))}


def subtract(call: Call) -> Operation | list[Node]:
    """Subtraction; what is subtracted is negated first."""
    names, constant = operands(call)
    if constant is None:
        nodes, [first, second] = broadcast(call, names)
        negated = call.step("negated", [second], scale(-1.0))
        return [*nodes, negated, call.last([first, negated.output], {"op": "Add"})]
    if call.inputs[1] in call.constants:
        return plus(call, -constant, "subtrahend")
    negated = call.step("negated", names, scale(-1.0))
    return [negated, call.last([negated.output], plus(call, constant, "minuend"))]


def scale(factor: float) -> Operation:
    """A public factor."""
    return {"op": "Scale", "factor": factor}


def multiply(call: Call) -> Operation | list[Node]:
    """Product of two activations, or of an activation and a constant."""
    names, constant = operands(call)
    if constant is not None:
        return times(call, constant)
    if gated := gate(call, names):
        return [call.last(gated, {"op": "Gate"})]
    nodes, read = broadcast(call, names)
    return [*nodes, call.last(read, {"op": "Multiply"})]


def gate(call: Call, names: list[str]) -> list[str] | None:
    """The values and the factors of their channels, if one of two activations has one factor per channel."""
    channels, *rest = shape = call.output_shape
    factor = (channels, *[1] * len(rest))
    for one, other in (names, names[::-1]):
        if math.prod(rest) > 1 and call.shapes[one] == shape and call.shapes[other] == factor:
            return [one, other]
    return None


def divide(call: Call) -> Operation | list[Node]:
    """Division by a constant."""
    constant = call.required(1, "divisor")
    if not constant.all():
        call.refuse("by zero", "use a divisor that is not zero")
    return times(call, (1.0 / constant.astype(np.float64)).astype(constant.dtype))


def times(call: Call, constant: NDArray[Any]) -> Operation | list[Node]:
    """One public factor, or one secret factor per channel, position or element."""
    shape = call.output_shape
    value = spread(call, constant, shape)
    channel = value.reshape(shape[0], -1)
    if (value == value.flat[0]).all() and value.flat[0] != 0:
        return scale(float(value.flat[0]))
    even = bool((channel == channel[:, :1]).all())
    if even and len(shape) != MOST_AXES - 1:
        return factors(call, channel[:, 0])
    [name] = [name for name in call.inputs if name and name not in call.constants]
    rows, columns = channel.shape
    if not even and (channel == channel[:1]).all():
        turned = {"op": "View", "shape": [columns, rows, 1], "start": 0, "strides": [1, columns, 0]}
        nodes = [call.step("turned", [name], turned)]
        nodes.append(call.step("product", [nodes[-1].output], factors(call, channel[0])))
        back = {"op": "View", "shape": [rows, columns, 1], "start": 0, "strides": [1, rows, 0]}
        nodes.append(call.step("back", [nodes[-1].output], back))
    else:
        flat = [rows, columns, 1] if even else [value.size, 1, 1]
        nodes = [call.step("flat", [name], {"op": "Reshape", "shape": flat})]
        values = channel[:, 0] if even else value.ravel()
        nodes.append(call.step("product", [nodes[-1].output], factors(call, values)))
    return [*nodes, call.last([nodes[-1].output], {"op": "Reshape", "shape": list(shape)})]


def factors(call: Call, values: NDArray[Any]) -> Operation:
    """A secret factor per channel."""
    factor = np.ascontiguousarray(values)
    zero, one = np.zeros_like(factor), np.ones_like(factor)
    roles = {"scale": factor, "bias": zero, "mean": zero, "variance": one}
    stored = {role: call.store(role, values) for role, values in roles.items()}
    return {"op": "BatchNormalization", **stored, "epsilon": 0.0}


def power(call: Call) -> Operation | list[Node]:
    """The square; powers with a fraction as exponent, of what is not negative, looked up in a table."""
    exponent = call.required(1, "exponent")
    name = call.activation(0)
    if exponent.size == 1 and not float(exponent.item()).is_integer() and math.isfinite(exponent.item()):
        return {"op": "Table", "function": "Power", "alpha": float(exponent.item())}
    if exponent.size != 1 or exponent.item() != 2:
        call.refuse("with an exponent other than 2", "use products")
    return [call.last([name, name], {"op": "Multiply"})]


def negative(_: Call) -> Operation:
    """Neg."""
    return scale(-1.0)


def relu(_: Call) -> Operation:
    """Relu."""
    return {"op": "Relu", "maximum": None}


def clip(call: Call) -> Operation:
    """Clip; bounds are attributes before opset 11 and inputs since. From 0 up it is a ReLU, such as ReLU6."""
    low, high = call.constant(1, "minimum"), call.constant(2, "maximum")
    minimum = float(call.attributes.get("min", -math.inf) if low is None else low.item())
    maximum = float(call.attributes.get("max", math.inf) if high is None else high.item())
    if not minimum < maximum:
        call.refuse(f"to [{minimum:g}, {maximum:g}]", "give a minimum below the maximum")
    below = minimum if minimum > -UNBOUNDED else None
    above = maximum if maximum < UNBOUNDED else None
    if below == 0:
        return {"op": "Relu", "maximum": above}
    if below is None and above is None:
        return {"op": "Identity"}
    return {"op": "Clip", "minimum": below, "maximum": above}


def leaky_relu(call: Call) -> list[Node]:
    """`slope*x + (1 - slope)*relu(x)`."""
    slope = float(call.attributes.get("alpha", 0.01))
    name = call.activation(0)
    if slope == 0:
        return [call.last([name], relu(call))]
    positive = call.step("positive", [name], relu(call))
    rest = call.step("rest", [name], scale(slope))
    if slope == 1:
        return [call.last([name], {"op": "Identity"})]
    steep = call.step("steep", [positive.output], scale(1.0 - slope))
    return [positive, rest, steep, call.last([rest.output, steep.output], {"op": "Add"})]


def hard_sigmoid(call: Call) -> list[Node]:
    """`min(max(alpha*x + beta, 0), 1)`, without a table."""
    alpha, beta = float(call.attributes.get("alpha", 0.2)), float(call.attributes.get("beta", 0.5))
    if alpha == 0:
        call.refuse("with alpha=0", "remove it: its result is a constant")
    scaled = call.step("scaled", [call.activation(0)], scale(alpha))
    moved = call.step("moved", [scaled.output], plus(call, np.array([beta], np.float32), "beta"))
    return [scaled, moved, call.last([moved.output], {"op": "Relu", "maximum": 1.0})]


FOLDED = {
    "Cos",
    "Elu",
    "Erf",
    "Exp",
    "Gelu",
    "HardSwish",
    "Mish",
    "Sigmoid",
    "Silu",
    "Sin",
    "Softplus",
    "Softsign",
    "Tanh",
}
"""Functions that need not be clipped and looked up where their argument can be folded."""


def table(function: str, **defaults: float) -> Callable[[Call], Operation]:
    """A converter to a table of `function`, whose parameters are attributes."""

    def convert(call: Call) -> Operation:
        parameters = {name: float(call.attributes.get(name, default)) for name, default in defaults.items()}
        return {"op": "Table", "function": function, **parameters}

    way = "of a folded argument, or " if function in FOLDED else ""
    convert.__doc__ = f"{function}, {way}looked up in a table of at most 256 values."
    return convert


ELEMENTWISE: Mapping[str, Callable[[Call], Any]] = {
    "Add": add,
    "Ceil": table("Ceil"),
    "Clip": clip,
    "Cos": table("Cos"),
    "Div": divide,
    "Elu": table("Elu", alpha=1.0),
    "Erf": table("Erf"),
    "Exp": table("Exp"),
    "Floor": table("Floor"),
    "HardSigmoid": hard_sigmoid,
    "HardSwish": table("HardSwish"),
    "LeakyRelu": leaky_relu,
    "Log": table("Log"),
    "Mish": table("Mish"),
    "Mul": multiply,
    "Neg": negative,
    "Pow": power,
    "Reciprocal": table("Reciprocal"),
    "Relu": relu,
    "Round": table("Round"),
    "Sigmoid": table("Sigmoid"),
    "Sign": table("Sign"),
    "Silu": table("Silu", alpha=1.0),
    "Sin": table("Sin"),
    "Softplus": table("Softplus"),
    "Softsign": table("Softsign"),
    "Sqrt": table("Sqrt"),
    "Sub": subtract,
    "Tanh": table("Tanh"),
}
