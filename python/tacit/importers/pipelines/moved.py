"""Trees behind transformers: thresholds are moved to the numbers that clients send.

A test `f(x) <= t` of an increasing f is a test `x <= s` of x. The largest such s among all float32 numbers is found by
bisection over their order, with f computed by the transformers themselves: leaves are the library's for every finite
float32 x, as the transformers compute in float64 (or in float32, where examples are). A missing number goes where
what an imputer puts in its place goes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.schema import Feature
from tacit.importers.pipelines.columns import Derived, refuse, transformed
from tacit.importers.trees import Ensemble
from tacit.importers.trees.ensemble import LEAF

Floats = NDArray[np.float32]
HIGHEST = 0x7F7FFFFF
LOWEST = -HIGHEST
"""Places of the largest finite numbers of both signs in the order of float32 numbers, 0 being that of zero."""


def moved(
    ensemble: Ensemble, columns: Sequence[Derived], features: Sequence[Feature], kind: type, narrow: bool = True
) -> Ensemble:
    """The same ensemble for inputs `features` in place of `columns`, which transformers compute in numbers of `kind`.

    `narrow` says that its trees compare float32 numbers.

    Raises `UnsupportedError` for tests of a column that is no increasing function of one number.
    """
    if ensemble.features != len(columns):
        refuse(f"trees of {ensemble.features} columns behind {len(columns)}", "fit the pipeline as a whole")
    check_exact(ensemble, columns, narrow)
    places = {feature: at for at, feature in enumerate(features)}
    tested = [tree.feature[tree.feature != LEAF] for tree in ensemble.trees]
    limits = [tree.threshold[tree.feature != LEAF] for tree in ensemble.trees]
    own = np.concatenate([*tested, np.zeros(0, np.int64)]).astype(np.int64)
    thresholds = np.concatenate([*limits, np.zeros(0, np.float32)]).astype(np.float32)
    found, missing, filled = thresholds.copy(), np.zeros(len(own), np.bool_), np.zeros(len(own), np.bool_)
    for at in np.unique(own).tolist():
        chosen = np.flatnonzero(own == at)
        distinct, back = np.unique(thresholds[chosen], return_inverse=True)
        search = Search(columns[at], ensemble.ties_left, kind)
        found[chosen] = search.thresholds(distinct)[back]
        value = search.values(np.full(1, np.nan, np.float32))[0]
        filled[chosen] = not np.isnan(value)
        missing[chosen] = value <= thresholds[chosen] if ensemble.ties_left else value < thresholds[chosen]
    trees, start = [], 0
    for tree in ensemble.trees:
        tests = np.flatnonzero(tree.feature != LEAF)
        mine = slice(start, start + len(tests))
        start += len(tests)
        feature, threshold, left = tree.feature.copy(), tree.threshold.copy(), tree.missing_left.copy()
        feature[tests] = [places[read(columns[at])] for at in tree.feature[tests].tolist()]
        threshold[tests] = found[mine]
        left[tests] = np.where(filled[mine], missing[mine], left[tests])
        trees.append(replace(tree, feature=feature, threshold=threshold, missing_left=left))
    return replace(ensemble, features=len(features), trees=tuple(trees), columns=())


def check_exact(ensemble: Ensemble, columns: Sequence[Derived], narrow: bool) -> None:
    """Raise `UnsupportedError` for trees behind transformers that compare no float32 numbers, or categories.

    LightGBM and histogram-based boosting compare numbers of 64 bits, which a scaler makes even of float32 numbers.
    """
    changed = {at for at, column in enumerate(columns) if column.chain}
    for tree in ensemble.trees:
        own = set(tree.feature[tree.feature != LEAF].tolist()) & changed
        if own and (tree.further or not narrow):
            advice = "leave them out: its trees need no scaler and know missing values"
            refuse(f"{ensemble.name} behind a scaler or an imputer", advice)


def read(column: Derived) -> Feature:
    """The number that a column is a function of."""
    if column.feature is None:
        refuse("trees behind PCA or another step that mixes columns", "train the trees on the columns themselves")
    return column.feature


class Search:
    """Thresholds of one column, by bisection."""

    def __init__(self, column: Derived, ties_left: bool, kind: type) -> None:
        """Search for a column whose tests go left at the threshold itself where `ties_left`."""
        self.column, self.ties_left, self.kind = column, ties_left, kind
        read(column)

    def values(self, x: Floats) -> Floats:
        """The column (N,) as trees read it for numbers `x` (N,) that clients send."""
        made: NDArray[Any] = x.astype(self.kind)
        for step in self.column.chain:
            matrix: NDArray[Any] = np.zeros((len(made), step.width), self.kind)
            matrix[:, step.at] = made
            made = transformed(step.transformer, matrix)[:, step.out]
            limit = np.finfo(made.dtype).max  # the library refuses numbers beyond it
            made = np.clip(made, -limit, limit)
        with np.errstate(over="ignore"):
            return made.astype(np.float32)

    def thresholds(self, given: Floats) -> Floats:
        """For distinct thresholds (N,) of the column those of the number that clients send."""
        if not self.column.chain:
            return given
        low, high = np.full(len(given), LOWEST - 1), np.full(len(given), HIGHEST)
        while (low < high).any():
            middle = (low + high + 1) >> 1
            values = self.values(from_place(middle))
            left = values <= given if self.ties_left else values < given
            left |= np.isnan(values)  # below the numbers that a logarithm has
            low, high = np.where(left, middle, low), np.where(left, high, middle - 1)
        return from_place(low if self.ties_left else low + 1)


def from_place(places: NDArray[np.int64]) -> Floats:
    """The float32 number at each place of their order."""
    bits = np.where(places < 0, 0x80000000 | -places, places)
    return np.ascontiguousarray(bits.astype(np.uint32)).view(np.float32)
