"""Where the range of an activation ends: methods that choose it from a histogram of what calibration saw."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

Bounds = tuple[float, float]
Counts = NDArray[np.int64]
Method = Literal["minmax", "percentile", "mse", "kl"]
PERCENTILES = (50.1, 99.99999)
"""The smallest and the largest percentile that may be asked for."""
SHARES = np.arange(1, 129) / 128
"""Parts of the whole range that `mse` and `kl` choose from."""
SATURATING = ("Relu", "Clip", "MaxPool")
"""Operators whose results end where their range does; all others have room beyond what calibration saw."""


@dataclass(frozen=True)
class Clip:
    """A method, for `percentile` which one, and the bits of the integers that the others choose for.

    Ranges of tensors but the input are `margin` times as wide as what the method chooses.
    """

    method: Method = "minmax"
    percentile: float = 100.0
    bits: int = 8
    margin: float = 1.0

    def __str__(self) -> str:
        """As `parse` reads it."""
        return f"{self.method}:{self.percentile:g}" if self.method == "percentile" else self.method

    @property
    def only_saturating(self) -> bool:
        """Whether the method weighs rounding against saturation, which says nothing of tensors that never saturate."""
        return self.method in ("mse", "kl")

    def bounds(self, counts: Counts, bounds: Bounds) -> Bounds:
        """The range that the method chooses inside `bounds`, whose histogram is `counts`."""
        if self.method == "minmax":
            return bounds
        if self.method == "percentile":
            return central(counts, bounds, self.percentile)
        share = least(divergence if self.method == "kl" else squared_error, counts, bounds, self.bits)
        return bounds[0] * share, bounds[1] * share


MINMAX = Clip()


def parse(text: str) -> Clip:
    """A method as the command line names it: `minmax`, `percentile:P`, `mse` or `kl`."""
    name, _, number = text.partition(":")
    match name:
        case "percentile":
            return percentile(number)
        case "minmax" | "mse" | "kl" if not number:
            return Clip(name)
    raise MisuseError(f"`{text}` is no way to clip; take minmax, percentile:P (such as percentile:99.99), mse or kl")


def percentile(number: str | float) -> Clip:
    """The method that cuts what lies beyond a percentile."""
    least, most = PERCENTILES
    try:
        value = float(number)
    except ValueError:
        raise MisuseError(f"`{number}` is no percentile; take one such as percentile:99.99") from None
    if not least <= value <= most:
        raise MisuseError(f"percentile {value:g} must be in {least} to {most}")
    return Clip("percentile", value)


def central(counts: Counts, bounds: Bounds, percentile: float) -> Bounds:
    """The bins of a histogram over `bounds` from `100 - percentile` to `percentile`."""
    share = counts.cumsum() / counts.sum()
    edges = np.linspace(*bounds, len(counts) + 1)
    first = int(np.searchsorted(share, 1 - percentile / 100, side="right"))
    last = int(np.searchsorted(share, percentile / 100))
    return float(edges[first]), float(edges[min(last, len(counts) - 1) + 1])


def least(
    cost: Callable[[Counts, NDArray[np.float64], Bounds, int], float], counts: Counts, bounds: Bounds, bits: int
) -> float:
    """The part of the range at which `cost` is least; of several the largest."""
    edges = np.linspace(*bounds, len(counts) + 1)
    centres = (edges[:-1] + edges[1:]) / 2
    costs = [cost(counts, centres, (bounds[0] * share, bounds[1] * share), bits) for share in SHARES]
    return float(SHARES[len(SHARES) - 1 - int(np.argmin(costs[::-1]))])


def squared_error(counts: Counts, values: NDArray[np.float64], bounds: Bounds, bits: int) -> float:
    """Sum of squares of what rounding to `bits` and saturation at `bounds` change."""
    step = (bounds[1] - bounds[0]) / ((1 << bits) - 1)
    integers = np.clip(values, *bounds) - bounds[0]
    rounded = np.rint(integers / step) * step + bounds[0]
    return float((counts * (values - rounded) ** 2).sum())


def divergence(counts: Counts, values: NDArray[np.float64], bounds: Bounds, bits: int) -> float:
    """Kullback-Leibler divergence of the histogram that rounding to `bits` inside `bounds` leaves, from `counts`.

    What saturates counts at the ends; a level spreads over the bins of it that are not empty. Zeros do not count: a
    ReLU makes so many that nothing else would matter.
    """
    counts = np.where(np.abs(values) <= values[1] - values[0], 0, counts)
    inside = (values >= bounds[0]) & (values <= bounds[1])
    if inside.sum() < 2 << bits:
        return np.inf
    kept = counts[inside].astype(np.float64)
    seen = kept.copy()
    seen[0] += counts[values < bounds[0]].sum()
    seen[-1] += counts[values > bounds[1]].sum()
    levels = np.minimum((np.arange(len(kept)) * (1 << bits)) // len(kept), (1 << bits) - 1)
    filled = np.bincount(levels, weights=seen > 0, minlength=1 << bits)
    spread = np.bincount(levels, weights=kept, minlength=1 << bits) / np.maximum(filled, 1)
    left = np.where(seen > 0, spread[levels], 0)
    if not left.sum():
        return np.inf
    share, other = seen / seen.sum(), np.maximum(left / left.sum(), np.finfo(np.float64).tiny)
    used = share > 0
    return float((share[used] * np.log(share[used] / other[used])).sum())
