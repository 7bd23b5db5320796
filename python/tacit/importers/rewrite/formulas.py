"""Norms without a mean that an exporter wrote as arithmetic: quotients by a root of a mean or sum of squares."""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tacit.importers.call import Call
from tacit.importers.rearrange import integers
from tacit.importers.rewrite.norms import root_mean_square
from tacit.importers.rewrite.writer import Writer

TRANSPARENT = ("Cast", "Clip", "Expand", "Identity", "Max")
"""Operators between a length and what is divided by it, which keep it from zero or give it a shape."""
NEAR_ZERO = 1e-4
"""A bound below which a length makes no difference."""


class Length(NamedTuple):
    """The root of the mean square of `x` along its last axis, or of the sum, with something below the root."""

    x: str
    epsilon: float
    mean: bool


def origin(w: Writer, name: str) -> str:
    """The tensor that `name` shows without a change of its values."""
    while (call := w.written(name)) is not None and call.operator in ("Cast", "Identity"):
        name = call.inputs[0]
    return name


def writer_of(w: Writer, name: str, *operators: str) -> Call | None:
    """The node that writes a tensor, if it is one of `operators`."""
    call = w.written(origin(w, name))
    return call if call is not None and call.operator in operators else None


def small(w: Writer, call: Call) -> bool:
    """Whether all constants of a node are bounds near zero or, of an Expand, shapes."""
    bounds = [w.call.constants[name] for name in call.inputs[1:] if name in w.call.constants]
    return call.operator == "Expand" or all(bound.size == 1 and 0 <= bound.item() <= NEAR_ZERO for bound in bounds[:1])


def root(w: Writer, name: str) -> Length | None:
    """The length that `name` is, if it is one."""
    while (call := w.written(name)) is not None and call.operator in TRANSPARENT and small(w, call):
        name = call.inputs[0]
    if call is None:
        return None
    if call.operator == "ReduceL2" and along_last(w, call):
        return Length(origin(w, call.inputs[0]), 0.0, False)
    return radicand(w, call.inputs[0]) if call.operator == "Sqrt" else None


def radicand(w: Writer, name: str) -> Length | None:
    """The length whose square `name` is, if it is one."""
    epsilon, total = 0.0, writer_of(w, name, "Add")
    if total is not None:
        constants = [other for other in total.inputs if other in w.call.constants]
        if len(constants) != 1 or w.call.constants[constants[0]].size != 1:
            return None
        epsilon = float(w.call.constants[constants[0]].item())
        (name,) = [other for other in total.inputs if other != constants[0]]
    reduced = writer_of(w, name, "ReduceMean", "ReduceSum")
    if reduced is None or not along_last(w, reduced):
        return None
    square = writer_of(w, reduced.inputs[0], "Mul", "Pow")
    if square is None:
        return None
    x, other = (origin(w, each) for each in square.inputs)
    doubled = w.call.constants.get(other)
    squares = x == other if square.operator == "Mul" else doubled is not None and doubled.size == 1 and doubled == 2
    return Length(x, epsilon, reduced.operator == "ReduceMean") if squares else None


def along_last(w: Writer, call: Call) -> bool:
    """Whether a reduction is along the last axis alone, which it keeps."""
    if call.inputs[0] not in w.sizes or not call.attributes.get("keepdims", 1):
        return False
    axes, last = integers(call, "axes", 1), len(w.sizes[call.inputs[0]]) - 1
    return axes is not None and len(axes) == 1 and axes[0] in (-1, last) and last > 0


def inverse(w: Writer, name: str) -> Length | None:
    """The length whose inverse `name` is, if it is one."""
    call = writer_of(w, name, "Reciprocal", "Div", "Pow")
    if call is None:
        return None
    if call.operator == "Reciprocal":
        return root(w, call.inputs[0])
    if call.operator == "Pow":
        exponent = w.call.constants.get(call.inputs[1])
        return radicand(w, call.inputs[0]) if exponent is not None and (exponent == -0.5).all() else None
    above = w.call.constants.get(call.inputs[0])
    return root(w, call.inputs[1]) if above is not None and (above == 1).all() else None


def centred(w: Writer, name: str) -> bool:
    """Whether the mean was taken off a tensor: then it is a layer norm that is written."""
    difference = writer_of(w, name, "Sub")
    return difference is not None and writer_of(w, difference.inputs[1], "ReduceMean") is not None


def quotient(w: Writer) -> str | None:
    """Div of a tensor by its own length, or Mul by the inverse."""
    first, second = w.call.inputs
    if w.call.operator == "Div":
        found = [(first, root(w, second))]
    else:
        found = [(first, inverse(w, second)), (second, inverse(w, first))]
    for x, length in found:
        if length is None or origin(w, x) != length.x or x not in w.sizes or centred(w, x):
            continue
        size = w.sizes[x]
        epsilon = length.epsilon if length.mean else length.epsilon / size[-1]
        if size[:1] == (1,):
            rows = w.reshape(root_mean_square(w, x, size[1:], len(size) - 2, epsilon), *size[1:])
        else:
            whole = root_mean_square(w, w.fronted(x), size, len(size) - 1, epsilon)
            rows = w.put("Reshape", whole, w.numbers(*size))
        return rows if length.mean else w.scale(rows, 1 / math.sqrt(size[-1]))
    return None


def kept(_: Writer) -> str | None:
    """ReduceL2, which stays where no quotient takes it in, and is refused then."""
    return None


def widened(w: Writer) -> str | None:
    """A sum or product that is larger than any activation in it: the first one is repeated before."""
    size, names = w.sizes.get(w.call.outputs[0]), [name for name in w.call.inputs if name not in w.call.constants]
    sizes = [w.sizes.get(name) for name in names]
    if size is None or None in sizes or size in sizes:
        return None
    wide = w.put("Expand", names[0], w.numbers(*size))
    return w.put(w.call.operator, *(wide if name == names[0] else name for name in w.call.inputs))


def product(w: Writer) -> str | None:
    """Mul or Div: a quotient by a length, or one of a constant that is larger than the activation."""
    return quotient(w) or widened(w)


FORMULAS: Mapping[str, Callable[[Writer], str | None]] = {
    "Add": widened,
    "Div": product,
    "Mul": product,
    "ReduceL2": kept,
    "Sub": widened,
}
