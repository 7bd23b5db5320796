"""Inputs beside the range that a model was calibrated for: their values are cut to it."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray


class Bounds(NamedTuple):
    """The least and the largest input that a model tells apart from others, and its step between inputs."""

    low: float
    high: float
    step: float

    @classmethod
    def of(cls, ends: Sequence[int], scale: float) -> Self:
        """From both ends in integers, and the real value of one."""
        low, high = (float(end) * scale for end in ends)
        return cls(low, high, scale)

    def clipped(self, x: NDArray[np.float32]) -> float:
        """Share of the values of `x` (any shape) that are cut by more than half a step, 0 to 1."""
        margin = self.step / 2
        return float(np.mean((x < self.low - margin) | (x > self.high + margin))) if x.size else 0.0
