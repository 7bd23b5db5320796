"""Orders of elements that no single view of three axes shows, as views one after another."""

import math
from typing import NamedTuple

import numpy as np

from tacit.importers.call import Shape
from tacit.importers.layout import Places, split_axes, strides_of
from tacit.importers.source import MOST_AXES

MOST_LENGTHS = 12
"""Evenly spaced axes that an order of elements may have."""


class Shown(NamedTuple):
    """A view: its shape, the first element that it shows, and distances by axis."""

    shape: Shape
    start: int
    strides: list[int]


def views(places: Places, total: int) -> list[Shown] | None:
    """Views that give the elements at `places` of a tensor of `total` elements, in their shape or another one.

    None where no views do.
    """
    strides = strides_of(places) if places.ndim <= MOST_AXES else None
    if strides is not None:
        return [Shown(tuple(places.shape), int(places.flat[0]), strides)]
    lengths = split_axes(places.ravel(), MOST_LENGTHS)
    strides = None if lengths is None else strides_of(places.reshape(lengths))
    if lengths is None or strides is None:
        return None
    if len(lengths) <= MOST_AXES:
        return [Shown(tuple(lengths), int(places.flat[0]), strides)]
    return reordered(lengths, strides, total) if not places.flat[0] else None


def reordered(lengths: list[int], strides: list[int], total: int) -> list[Shown] | None:
    """Views that bring all elements into another order, axis by axis, and then repeat them along axes of stride 0."""
    moving = [axis for axis, stride in enumerate(strides) if stride]
    have = sorted(moving, key=lambda axis: -strides[axis])
    expected = total
    for axis in have:
        expected //= lengths[axis]
        if strides[axis] != expected:
            return None
    found = []
    for axis in reversed(moving):
        place = have.index(axis)
        before, after = (math.prod(lengths[k] for k in part) for part in (have[:place], have[place + 1 :]))
        if before > 1:
            found.append(Shown((lengths[axis], before, after), 0, [after, lengths[axis] * after, 1]))
        have = [axis, *have[:place], *have[place + 1 :]]
    shown = [length if stride else 1 for length, stride in zip(lengths, strides, strict=True)]
    for axis, stride in enumerate(strides):
        if not stride:
            before, after = math.prod(shown[:axis]), math.prod(shown[axis + 1 :])
            shown[axis] = lengths[axis]
            found.append(Shown((before, lengths[axis], after), 0, [after, 0, 1]))
    return found if expected == 1 else None


def is_shown(places: Places, total: int) -> bool:
    """Whether views give the elements at `places` of a tensor of `total` elements."""
    return bool(np.array_equal(places.ravel(), np.arange(total))) or views(places, total) is not None
