"""Inputs beside the range that a model was calibrated for: their values are cut to it."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.data.parts import unit_of_each
from tacit.importers.source import Part

KEYS = "keys"
"""How the core calls the encoding that tells all float32 numbers apart."""


class Bounds(NamedTuple):
    """The least and the largest input that a model tells apart from others, and its step between inputs.

    Where there are several inputs they are in the `units` of each value.
    """

    low: float
    high: float
    step: float
    units: NDArray[np.float64] | float = 1.0

    @classmethod
    def everything(cls) -> Self:
        """Give the bounds of a model that tells all numbers apart and knows missing values: no value is beyond them."""
        return cls(-np.inf, np.inf, 0.0)

    @classmethod
    def of(cls, ends: Sequence[int], scale: float, parts: Sequence[Part] = ()) -> Self:
        """From both ends in integers, and the real value of one, before the units of `parts`."""
        low, high = (float(end) * scale for end in ends)
        apart = len(parts) > 1 or any(part.units for part in parts)
        return cls(low, high, scale, unit_of_each(parts) if apart else 1.0)

    def clipped(self, x: NDArray[np.float32]) -> float:
        """Share of the values of `x` (any shape) that are cut by more than half a step, 0 to 1."""
        margin = self.step / 2
        values = x if isinstance(self.units, float) else x / self.units
        beside = (values < self.low - margin) | (values > self.high + margin)
        return float(np.mean(beside)) if x.size else 0.0
