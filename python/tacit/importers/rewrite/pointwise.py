"""Functions of one element, and sums and extremes of several inputs, by those that the engine has."""

import math
from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np

from tacit.importers.rewrite.writer import Writer

SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
ROOT = -0.5
MOST_PRODUCTS = 8
"""Largest exponent of a power, which products compute."""


def attribute(w: Writer, name: str, default: float) -> float:
    """A number among the attributes."""
    return float(w.call.attributes.get(name, default))


def absolute(w: Writer) -> str:
    """Abs: `2*relu(x) - x`, which compares once."""
    return w.put("Sub", w.scale(w.put("Relu", w.x), 2.0), w.x)


def prelu(w: Writer) -> str:
    """PRelu: `slope*x + (1 - slope)*relu(x)`, with one slope, or one per channel or element."""
    slope = w.call.required(1, "slope")
    whole = (1, *w.shape)
    if slope.ndim > len(whole) or np.broadcast_shapes(slope.shape, whole) != whole:
        w.call.refuse(f"with slopes of shape {list(slope.shape)}", "give all examples the same slopes")
    if (slope == 1).all():
        return w.x
    positive = w.put("Relu", w.x)
    if (slope == 0).all():
        return positive
    rest = w.put("Mul", w.x, w.call.inputs[1])
    steep = w.put("Mul", positive, w.constant((1 - slope).astype(slope.dtype)))
    return w.put("Add", rest, steep)


def selu(w: Writer) -> str:
    """Selu: an ELU times gamma."""
    elu = w.put("Elu", w.x, alpha=attribute(w, "alpha", SELU_ALPHA))
    return w.scale(elu, attribute(w, "gamma", SELU_GAMMA))


def celu(w: Writer) -> str:
    """Celu: `alpha*elu(x / alpha)`."""
    alpha = attribute(w, "alpha", 1.0)
    if alpha <= 0:
        w.call.refuse(f"with alpha={alpha:g}", "use an alpha above 0")
    return w.scale(w.put("Elu", w.scale(w.x, 1.0 / alpha), alpha=1.0), alpha)


def thresholded_relu(w: Writer) -> str:
    """ThresholdedRelu of threshold 0, which is a ReLU."""
    alpha = attribute(w, "alpha", 1.0)
    if alpha != 0:
        w.call.refuse(f"with alpha={alpha:g}, where it jumps", "use Relu, or Clip, which have no jump")
    return w.put("Relu", w.x)


def shrink(w: Writer) -> str:
    """Shrink without a jump: `x` less `x` clipped to the interval that becomes zero."""
    bias, bound = attribute(w, "bias", 0.0), attribute(w, "lambd", 0.5)
    if bias != bound or bound <= 0:
        w.call.refuse(f"with bias={bias:g} and lambd={bound:g}, where it jumps", "let both be the same, above 0")
    return w.put("Sub", w.x, w.clip(w.x, -bound, bound))


def power(w: Writer) -> str | None:
    """Pow with a small whole exponent, by products, the square root, and the reciprocal."""
    exponent = w.call.required(1, "exponent")
    if exponent.size == 1 and exponent.item() == -ROOT:
        return w.put("Sqrt", w.x)
    if exponent.size == 1 and exponent.item() == -1:
        return w.put("Reciprocal", w.x)
    if exponent.size == 1 and math.isfinite(exponent.item()) and not float(exponent.item()).is_integer():
        return None  # part of a norm, or a table
    if exponent.size != 1 or not 1 <= exponent.item() <= MOST_PRODUCTS:
        what = f"{exponent.item():g}" if exponent.size == 1 else "that varies"
        w.call.refuse(f"with an exponent {what}", f"use a fraction, or whole exponents from 1 to {MOST_PRODUCTS}")
    if exponent.item() in (1, 2):
        return None if exponent.item() == 2 else w.x
    bits, square, result = int(exponent.item()), w.x, ""
    while bits:
        if bits & 1:
            result = w.put("Mul", result, square) if result else square
        bits >>= 1
        square = w.put("Mul", square, square) if bits else square
    return result


def total(w: Writer) -> str:
    """Sum of any number of inputs."""
    return reduce(lambda a, b: w.put("Add", a, b), w.call.inputs)


def mean(w: Writer) -> str:
    """Mean of any number of inputs."""
    return w.scale(total(w), 1.0 / len(w.call.inputs))


def extreme(w: Writer) -> str | None:
    """Max or Min of any number of inputs: `max(a, b) = b + relu(a - b)`; with one number it is a Clip.

    What is made of constants alone is left to the importer, which knows masks.
    """
    largest = w.call.operator == "Max"
    activations = [name for name in w.call.inputs if name not in w.call.constants]
    if any(name not in w.call.shapes for name in activations):
        return None
    constants = [w.call.constants[name] for name in w.call.inputs if name in w.call.constants]
    result = reduce(lambda a, b: larger(w, a, b, largest), activations)
    if constants:
        bound = reduce(np.maximum if largest else np.minimum, constants)
        if bound.size == 1:
            ends = (float(bound.item()), np.inf) if largest else (-np.inf, float(bound.item()))
            return w.clip(result, *np.clip(ends, -3.4e38, 3.4e38))
        result = larger(w, result, w.constant(bound), largest)
    return result


def larger(w: Writer, a: str, b: str, largest: bool) -> str:
    """The larger of two tensors, or the smaller."""
    if largest:
        return w.put("Add", w.put("Relu", w.put("Sub", a, b)), b)
    return w.put("Sub", a, w.put("Relu", w.put("Sub", a, b)))


POINTWISE: Mapping[str, Callable[[Writer], str | None]] = {
    "Abs": absolute,
    "Celu": celu,
    "Max": extreme,
    "Mean": mean,
    "Min": extreme,
    "PRelu": prelu,
    "Pow": power,
    "Selu": selu,
    "Shrink": shrink,
    "Sum": total,
    "ThresholdedRelu": thresholded_relu,
}
