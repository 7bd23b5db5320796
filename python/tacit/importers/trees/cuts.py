"""Tests of one number, of any kind, as the core has them: numbers at which the side changes.

Whatever a library asks of a number (below a threshold, equal to it, in a set of categories, near zero), its answer
is the same between some numbers at which it changes. A test with the cuts c_1 < c_2 < .. gives a number x the side of
those below c_1 where an even number of cuts is at most x, and the other side where an odd number is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

LOWEST = np.float32(-np.inf)
MOST_CUTS = 4096
"""Most cuts of one test: a larger set of categories is refused."""


@dataclass(frozen=True)
class Cuts:
    """Where a number goes: to the left below the first of `cuts`, or right unless `low_left`; NaN as `missing_left`."""

    cuts: tuple[np.float32, ...]
    low_left: bool
    missing_left: bool

    @property
    def core(self) -> tuple[tuple[np.float32, ...], bool, bool]:
        """Thresholds, at least one, whether NaN takes the side of even numbers, and whether both sides are swapped.

        Without cuts all numbers take one side: they are not below minus infinity.
        """
        cuts, low_left = (self.cuts, self.low_left) if self.cuts else ((LOWEST,), not self.low_left)
        return cuts, self.missing_left == low_left, not low_left


def after(value: np.float32) -> np.float32:
    """The float32 that follows."""
    return np.float32(np.nextafter(value, np.float32(np.inf)))


def first_not_below(value: float) -> np.float32:
    """The least float32 that is at least `value` (float64); infinity if there is none."""
    with np.errstate(over="ignore"):
        nearest = np.float32(value)
    return after(nearest) if float(nearest) < value else nearest


def first_above(value: float) -> np.float32 | None:
    """The least float32 that is greater than `value` (float64), None if there is none."""
    if value == np.inf:
        return None
    with np.errstate(over="ignore"):
        nearest = np.float32(value)
    return nearest if float(nearest) > value else after(nearest)


def below(value: float, missing_left: bool) -> Cuts:
    """Numbers below `value` go left."""
    return Cuts((first_not_below(value),), True, missing_left)


def at_most(value: float, missing_left: bool) -> Cuts:
    """Numbers that are at most `value` go left."""
    cut = first_above(value)
    return Cuts(() if cut is None else (cut,), True, missing_left)


def within(ranges: Iterable[tuple[float, float]], missing_left: bool, inside_left: bool = True) -> Cuts:
    """Numbers in some of the disjoint `ranges` go left, or right unless `inside_left`.

    Ranges are from a float64 that is inside to one that is not; one from infinity to infinity is infinity itself.
    """
    cuts: list[np.float32] = []
    for start, end in sorted(ranges):
        first, last = first_not_below(start), first_not_below(end)
        if first >= last:
            cuts += [first] if start == end == np.inf else []
            continue
        # What one range ends with and the next begins with changes nothing.
        if cuts and cuts[-1] == first:
            cuts.pop()
        else:
            cuts.append(first)
        cuts.append(last)
    low_inside = bool(cuts and cuts[0] == LOWEST)
    return Cuts(tuple(cuts[1:] if low_inside else cuts), low_inside == inside_left, missing_left)


def equal_to(values: Iterable[float], missing_left: bool, inside_left: bool = True) -> Cuts:
    """Numbers that equal one of `values` (float64) go left, or right unless `inside_left`."""
    with np.errstate(over="ignore"):
        known = {float(value) for value in values if float(np.float32(value)) == value}
    return within(((value, float(after(np.float32(value)))) for value in known), missing_left, inside_left)


def categories(codes: Sequence[int], missing_left: bool, inside_left: bool, zero_from: float = 0.0) -> Cuts:
    """Numbers whose integer part is one of `codes`, none of them negative, go left, or right unless `inside_left`.

    Category 0 begins at `zero_from`, a number between -1 and 0.
    """
    ranges = ((float(code) if code else zero_from, float(code + 1)) for code in codes)
    return within(ranges, missing_left, inside_left)
