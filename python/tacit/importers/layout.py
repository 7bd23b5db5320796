"""Tensors of a model that are not where the model has them: transpositions and shapes cost nothing until someone reads.

A tensor is `Stored`: its elements lie at `places` of a tensor of the source graph. Rearranging
moves places only; a View is written when an operator reads an order that is stored nowhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.importers.call import Shape
from tacit.importers.source import MOST_AXES

Places = NDArray[np.int64]
"""Axes of a tensor without its batch that the engine has."""


@dataclass(frozen=True)
class Stored:
    """The model's tensor `tensor`, its batch of one included: element i is element `places[i]` of `name`.

    `exclusive` says that nothing else reads what is stored there.
    """

    name: str
    places: Places
    tensor: str
    exclusive: bool = False

    def whole(self, size: int) -> bool:
        """Whether it has every one of the `size` stored elements, once."""
        present = np.zeros(size, bool)
        present[self.places.ravel()] = True
        return self.places.size == size and bool(present.all())


@dataclass(frozen=True)
class Masked:
    """A function of the mask: of each element, `off` if the bit at `places` of the input is 0, `on` if it is 1."""

    places: Places
    off: NDArray[np.generic]
    on: NDArray[np.generic]


def in_order(shape: Sequence[int]) -> Places:
    """The places of a tensor that is stored as it is."""
    return np.arange(np.prod(shape), dtype=np.int64).reshape(shape)


def without_batch(shape: Shape) -> Shape:
    """At least one axis, at most `MOST_AXES`; leading axes of length 1 go, the outermost are merged."""
    kept = list(shape)
    while len(kept) > 1 and kept[0] == 1:
        kept.pop(0)
    while len(kept) > MOST_AXES:
        kept[:2] = [kept[0] * kept[1]]
    return tuple(kept) or (1,)


def channels_first(places: Places) -> Places:
    """Last axis first, the others as rows: (channels, rows, 1), or (channels,) of a single row."""
    channels = places.shape[-1]
    moved = np.moveaxis(places, -1, 0).reshape(channels, -1)
    return moved[:, 0] if moved.shape[1] == 1 else moved[..., None]


def from_channels_first(shape: Shape) -> Places:
    """The places of a tensor of `shape` that is stored with its last axis first."""
    stored = in_order((shape[-1], *shape[:-1]))
    return np.moveaxis(stored, 0, -1)


def strides_of(places: Places) -> list[int] | None:
    """Distances of neighbours by axis; None when they are not the same everywhere."""
    start = places.flat[0]
    strides = [int(np.take(places, 1, axis).flat[0] - start) if n > 1 else 0 for axis, n in enumerate(places.shape)]
    steps = (np.arange(n) * stride for n, stride in zip(places.shape, strides, strict=True))
    expected = start + sum(np.ix_(*steps)) if places.ndim else places
    return strides if min(strides, default=0) >= 0 and (places == expected).all() else None


def split_axes(flat: Places, most: int = MOST_AXES) -> list[int] | None:
    """Lengths of at most `most` axes along which places of a vector are evenly spaced; None if there are none."""
    lengths: list[int] = []
    while len(flat) > 1:
        if len(lengths) == most:
            return None
        uneven = np.flatnonzero(np.diff(flat) != flat[1] - flat[0])
        longest = int(uneven[0]) + 1 if len(uneven) else len(flat)
        step = np.arange(longest) * (flat[1] - flat[0])
        for length in range(longest, 0, -1):
            blocks = flat.reshape(-1, length) if len(flat) % length == 0 else None
            if blocks is not None and (blocks == blocks[:, :1] + step[:length]).all():
                break
        if length == 1:
            return None
        lengths.insert(0, length)
        flat = flat.reshape(-1, length)[:, 0]
    return lengths or [1]


def channel_axis(places: Places, shape: Shape) -> int | None:
    """The axis of a model's tensor, batch left out, that is the first axis of what is stored in `shape`.

    A tensor whose first axis is not the batch has none.
    """
    if places.shape[:1] > (1,):
        return None
    index = places // max(1, int(np.prod(shape[1:])))
    for axis in range(1, places.ndim):
        if places.shape[axis] == shape[0]:
            along = np.arange(shape[0]).reshape([-1 if other == axis else 1 for other in range(places.ndim)])
            if (index == along).all():
                return axis - 1
    return None
