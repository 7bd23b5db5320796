"""Sums, means and extremes over any axes but the batch."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tacit.importers.rearrange import axis_of, integers
from tacit.importers.rewrite.pointwise import absolute
from tacit.importers.rewrite.writer import Writer


def axes(w: Writer) -> list[int]:
    """The axes that are reduced, in order; the batch is refused."""
    given = integers(w.call, "axes", 1)
    if not given:
        w.call.refuse("over all axes, of which the batch is one", "name the axes")
    return sorted(axis_of(w.call, axis, len(w.shape)) for axis in given)


def neighbours(places: Sequence[int]) -> list[list[int]]:
    """Axes in groups of neighbours."""
    groups: list[list[int]] = []
    for axis in places:
        if groups and groups[-1][-1] == axis - 1:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def averaged(w: Writer, x: str, places: Sequence[int]) -> str:
    """The mean over axes, in the shape of the node's output."""
    for group in neighbours(places):
        x = w.mean(x, *group)
    return w.reshape(x, *w.call.output_shape)


def unreduced(w: Writer) -> bool:
    """Whether the node leaves everything as it is, as one without axes may say."""
    return bool(w.call.attributes.get("noop_with_empty_axes", 0)) and not integers(w.call, "axes", 1)


def reduce_mean(w: Writer) -> str | None:
    """ReduceMean over axes that are no neighbours."""
    if unreduced(w):
        return w.x
    places = integers(w.call, "axes", 1)
    return averaged(w, w.x, axes(w)) if places and len(neighbours(axes(w))) > 1 else None


def reduce_sum(w: Writer) -> str:
    """ReduceSum: the mean times the number of elements."""
    return w.x if unreduced(w) else summed(w, w.x)


def summed(w: Writer, x: str) -> str:
    """The sum of `x` over the axes of the node."""
    places = axes(w)
    return w.scale(averaged(w, x, places), float(math.prod(w.shape[axis] for axis in places)))


def reduce_l1(w: Writer) -> str:
    """ReduceL1: the sum of magnitudes."""
    return absolute(w) if unreduced(w) else summed(w, absolute(w))


def reduce_sum_square(w: Writer) -> str:
    """ReduceSumSquare: the sum of squares."""
    square = w.put("Mul", w.x, w.x)
    return square if unreduced(w) else summed(w, square)


def reduce_l2(w: Writer) -> str:
    """ReduceL2: the root of the sum of squares."""
    return w.put("Sqrt", summed(w, w.put("Mul", w.x, w.x)))


def reduce_extreme(w: Writer) -> str:
    """ReduceMax or ReduceMin: pools over each group of neighbouring axes; the smallest is the largest negated."""
    if unreduced(w):
        return w.x
    negated = w.call.operator == "ReduceMin"
    x, shape = (w.put("Neg", w.x) if negated else w.x), list(w.shape)
    for group in neighbours(axes(w)):
        first, last = group[0], group[-1]
        parts = (shape[:first], shape[first : last + 1], shape[last + 1 :])
        outer, count, inner = (math.prod(part) for part in parts)
        if count > 1:
            x = w.put("MaxPool", w.reshape(x, outer, count, inner), kernel_shape=[count, 1])
        shape[first : last + 1] = [1] * len(group)
    x = w.reshape(x, *w.call.output_shape)
    return w.put("Neg", x) if negated else x


def cumulative(w: Writer) -> str:
    """CumSum along an axis: a product with a triangle of ones."""
    axis = axis_of(w.call, int(w.call.required(1, "axis").item()), len(w.shape))
    matrix = np.tri(w.shape[axis], k=-int(bool(w.call.attributes.get("exclusive", 0))), dtype=np.float32)
    return w.along(w.x, w.shape, axis, matrix.T if w.call.attributes.get("reverse", 0) else matrix)


REDUCTIONS: Mapping[str, Callable[[Writer], str | None]] = {
    "CumSum": cumulative,
    "ReduceL1": reduce_l1,
    "ReduceMax": reduce_extreme,
    "ReduceMean": reduce_mean,
    "ReduceMin": reduce_extreme,
    "ReduceSum": reduce_sum,
    "ReduceSumSquare": reduce_sum_square,
}
