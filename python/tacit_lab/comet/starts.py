"""First guesses of inverse square roots, and Newton's iteration from them, on float numbers.

`y' = y (3 - z y^2) / 2` doubles the right digits of y near `1 / sqrt(z)` and diverges where `z y^2 >= 3`. The affine
start is ours, local on uniform shares; the others are those of Comet (2405.17485), 3.2 and 3.3.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float32]
Bounds = tuple[float, float]
BRANCH = 64.0
"""Most that a branch of the affine start spans."""
MAGIC = 0x5F3759DF
MANTISSA = 1 << 23
FLOOD = 8192.0
SHARES_OF_EQUAL_SIZE = -1.0
"""Their exponent beside that of their sum."""
LARGEST = 1e6
"""Where an iteration that diverges is stopped."""


@dataclass(frozen=True)
class Root:
    """How inverse square roots are computed: a start, and so many iterations of Newton.

    Where the largest relative `error` of the start is known, each iteration has a constant in place of 3 that makes the
    errors left smallest.
    """

    start: Callable[[Values, Bounds], Values]
    iterations: int
    error: Callable[[Bounds], float] | None = None

    def __call__(self, z: Values, bounds: Bounds) -> Values:
        """The inverse root of each z; calibration saw values within `bounds`, and z is clipped to them."""
        kept = np.clip(z, *bounds)
        y = self.start(kept, bounds)
        for constant in self.constants(bounds):
            y = np.clip(y * (constant - kept * y * y) / 2, -LARGEST, LARGEST, dtype=np.float32)
        return y

    def constants(self, bounds: Bounds) -> list[float]:
        """One for each iteration."""
        if self.error is None:
            return [3.0] * self.iterations
        found, error = [], self.error(bounds)
        for _ in range(self.iterations):
            constant, error = balanced(error)
            found.append(constant)
        return found


def balanced(error: float) -> tuple[float, float]:
    """The constant in place of 3 with which errors up to `error` become smallest, and what is left of them."""

    def most(constant: float) -> float:
        return float((constant / 3) ** 1.5 - 1)

    def least(constant: float) -> float:
        ends = (1 + error, 1 - error)
        return min(end * (constant - end * end) / 2 - 1 for end in ends)

    low, high = 3.0, 4.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if most(middle) < -least(middle) else (low, middle)
    return low, max(most(low), -least(low))


def exact(z: Values, _bounds: Bounds) -> Values:
    """What all of them are near to."""
    return np.asarray(1 / np.sqrt(z), np.float32)


def line(ratio: float) -> tuple[float, float]:
    """The a and b of the `a - b z` whose relative error as `1 / sqrt(z)` on [1, ratio] is least."""
    total = ratio + math.sqrt(ratio) + 1
    ends, middle = total - 1, 2 * total / 3 * math.sqrt(total / 3)
    b = 2 / (ends + middle)
    return b * total, b


def branches(bounds: Bounds) -> int:
    """Into how many branches the range is split, each of which spans at most `BRANCH`."""
    low, high = bounds
    return max(1, math.ceil(math.log(max(high / low, 1.0)) / math.log(BRANCH) - 1e-9))


def affine(z: Values, bounds: Bounds) -> Values:
    """A line on each branch; which one a value is in takes a comparison per branch."""
    low, high = bounds
    count = branches(bounds)
    ratio = max(high / low, 1.0) ** (1 / count)
    index = np.clip(np.floor(np.log(z / low) / max(math.log(ratio), 1e-12)), 0, count - 1)
    begin = low * ratio**index
    a, b = line(ratio)
    return np.asarray((a - b * z / begin) / np.sqrt(begin), np.float32)


def line_error(bounds: Bounds) -> float:
    """The largest relative error of `affine`."""
    low, high = bounds
    a, b = line(max(high / low, 1.0) ** (1 / branches(bounds)))
    return abs(a - b - 1)


def doubled(first: Values, second: Values, exponent: float) -> Values:
    """The double approximation of two shares (equation 10): their bits as integers stand for their logarithms.

    `exponent` is what the common exponent of the shares is above that of typical values.
    """
    bits = [np.abs(share, dtype=np.float32).view(np.int32).astype(np.int64) for share in (first, second)]
    total = MAGIC - (bits[0] + bits[1]) // 4 + round(exponent * MANTISSA / 2)
    found: Values = np.clip(total, 1, 0x7F7FFFFF).astype(np.int32).view(np.float32)
    return found


def flooding(seed: int) -> Callable[[Values, Bounds], Values]:
    """The published start: shares flooded with 8192, compensated by the exponent of the geometric mean of the range."""
    random = np.random.default_rng(seed)

    def start(z: Values, bounds: Bounds) -> Values:
        share = FLOOD + random.random(z.shape, np.float32) * math.sqrt(bounds[0] * bounds[1])
        typical = math.log2(bounds[0] * bounds[1]) / 2
        return doubled(share, z - share, math.log2(FLOOD) - typical)

    return start


def unflooded(seed: int) -> Callable[[Values, Bounds], Values]:
    """The double approximation of shares that are merely random numbers of the size of the values."""
    random = np.random.default_rng(seed)

    def start(z: Values, bounds: Bounds) -> Values:
        share = random.random(z.shape, np.float32) * bounds[1]
        return doubled(share, z - share, SHARES_OF_EQUAL_SIZE)

    return start
