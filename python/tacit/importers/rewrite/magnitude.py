"""Magnitudes of complex numbers, as spectra have them: `sqrt(a*a + b*b)` by comparisons, without squares.

A point is as far from zero as it reaches along its own direction, and less far along any other. The largest of
`|a|*cos(t) + |b|*sin(t)` over `DIRECTIONS` angles t is therefore nearly its length: at most `ERROR` of it away, less
than what rounding to 8 bits takes. Squares would need twice the bits, of which a table of 256 entries drops most.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from tacit.importers.rewrite.formulas import NEAR_ZERO, origin, writer_of
from tacit.importers.rewrite.writer import Writer

DIRECTIONS = 8
"""Angles between 0 and a right angle."""
NARROWEST = math.cos(math.pi / (4 * DIRECTIONS))
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
    """Sqrt of the sum of two squares, in eight directions; anything else may be a part of a norm."""
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
    both = w.put("Concat", *(w.reshape(part, 1, 1, count) for part in parts if part), axis=1)
    sides = w.put("Sub", w.scale(w.put("Relu", both), 2.0), both)
    angles = (np.arange(DIRECTIONS) + 0.5) * math.pi / (2 * DIRECTIONS)
    reach = np.stack([np.cos(angles), np.sin(angles)], axis=1) * 2 / (1 + NARROWEST)
    along = w.put("Conv", sides, w.constant(reach[:, :, None, None].astype(np.float32)))
    longest = w.put("MaxPool", w.reshape(along, 1, DIRECTIONS, count), kernel_shape=[DIRECTIONS, 1])
    return w.reshape(longest, *w.shape)


MAGNITUDE: Mapping[str, Callable[[Writer], str | None]] = {"Sqrt": magnitude}
