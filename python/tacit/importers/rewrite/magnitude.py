"""Magnitudes of complex numbers, as spectra have them: `sqrt(a*a + b*b)` by comparisons, without squares.

A point is as far from zero as it reaches along its own direction, and less far along any other. With u the larger and
v the smaller of `|a|` and `|b|`, the largest of `u*cos(t) + v*sin(t)` over `DIRECTIONS` angles t up to half a right
angle is therefore nearly its length: at most `ERROR` of it away, which two angles bring to a hundredth; rounding to 8
bits takes as much from values below 0.4 of the largest. Squares would need twice the bits, of which a table of 256
entries drops most. The factors are public, so the sums are local.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from tacit.importers.rewrite.defined import COMBINATIONS, NUMBERS_SINCE
from tacit.importers.rewrite.formulas import NEAR_ZERO, origin, writer_of
from tacit.importers.rewrite.writer import Writer
from tacit.importers.unified import DOMAIN

DIRECTIONS = 2
"""Angles between 0 and half a right angle."""
NARROWEST = math.cos(math.pi / (8 * DIRECTIONS))
"""What is left of a length half way between two directions."""
ERROR = (1 - NARROWEST) / (1 + NARROWEST)
"""The largest relative error, upwards and downwards."""


def squared(w: Writer, name: str) -> str | None:
    """The tensor whose square `name` is, if it is one."""
    call = writer_of(w, name, "Mul", "Pow")
    if call is None:
        return None
    x, other = (origin(w, read) for read in call.inputs)
    exponent = w.call.constants.get(other)
    square = x == other if call.operator == "Mul" else exponent is not None and exponent.size == 1 and exponent == 2
    return x if square and x in w.call.shapes else None


def magnitude(w: Writer) -> str | None:
    """Sqrt of the sum of two squares, along some directions; anything else may be a part of a norm."""
    total = writer_of(w, w.x, "Add")
    if total is None:
        return None
    bounds = [name for name in total.inputs if name in w.call.constants]
    if bounds and w.call.constants[bounds[0]].size == 1 and 0 <= w.call.constants[bounds[0]].item() <= NEAR_ZERO:
        (rest,) = [name for name in total.inputs if name not in bounds]
        total = writer_of(w, rest, "Add")
    parts = [] if total is None else [squared(w, name) for name in total.inputs]
    if len(parts) != 2 or parts[0] is None or parts[1] is None or w.shape_of(parts[0]) != w.shape_of(parts[1]):
        return None
    count = math.prod(w.shape)
    pair = w.put("Concat", *(w.reshape(part, 1, count) for part in parts if part), axis=1)
    both = w.reshape(pair, 1, 2 * count)
    sides = largest(w, w.put("Concat", both, w.scale(both, -1.0), axis=1), 2, 2 * count)
    longer = largest(w, sides, 2, count)
    first, second = (w.slice(w.reshape(sides, 2, 1, count), 0, place, place + 1) for place in range(2))
    angles = (np.arange(DIRECTIONS) + 0.5) * math.pi / (4 * DIRECTIONS)
    # The smaller side is the sum of both less the larger one.
    reach = np.stack([np.cos(angles) - np.sin(angles), np.sin(angles), np.sin(angles)], axis=1) * 2 / (1 + NARROWEST)
    along = combined(w, [w.reshape(longer, 1, 1, count), first, second], reach)
    return w.reshape(largest(w, along, DIRECTIONS, count), *w.shape)


def largest(w: Writer, x: str, rows: int, columns: int) -> str:
    """The largest of each column of `x`, seen as rows and columns, (N, 1, 1, columns)."""
    return w.put("MaxPool", w.reshape(x, 1, rows, columns), kernel_shape=[rows, 1])


def combined(w: Writer, parts: list[str], factors: NDArray[np.float64]) -> str:
    """Sums (N, sums, 1, columns) of three tensors (N, 1, 1, columns) times factors (sums, 3)."""
    if w.opset < NUMBERS_SINCE:
        weight = w.constant(factors[:, :, None, None].astype(np.float32))
        return w.put("Conv", w.put("Concat", *parts, axis=1), weight)
    return w.put(COMBINATIONS, *parts, domain=DOMAIN, factors=factors.ravel().tolist())


MAGNITUDE: Mapping[str, Callable[[Writer], str | None]] = {"Sqrt": magnitude}
