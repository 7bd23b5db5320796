"""What importers of decision trees make: trees whose leaves are added up."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.links import Link
from tacit.errors import MisuseError, UnsupportedError

LEAF = -1
"""Stands for the feature of a leaf."""
MOST_TREES = 1 << 20
"""Most trees of an ensemble, as the core has them."""


@dataclass(frozen=True)
class Tree:
    """A decision tree by its nodes, the root first.

    `feature`, `threshold`, `missing_left`, `left` and `right` are (nodes,), `value` is (nodes, values) in units of the
    result; the feature of leaves is `LEAF`, and only their values count. A number goes left where it is below the
    threshold, a float32, or equal to it in an ensemble whose ties go left. Nodes with `further` thresholds (pairs of
    node and threshold) send a number right where an odd number of all their thresholds is not above it.
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float32]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: NDArray[np.float64]
    further: tuple[tuple[int, np.float32], ...] = ()

    def content(self) -> dict[str, Any]:
        """The tree as the core reads it; thresholds are their bits, since JSON has no infinity."""
        return {
            "feature": self.feature.tolist(),
            "threshold": bits(self.threshold),
            "missing_left": self.missing_left.tolist(),
            "left": np.maximum(self.left, 0).tolist(),
            "right": np.maximum(self.right, 0).tolist(),
            "value": self.value.ravel().tolist(),
            "further": [[node, *bits(np.asarray([threshold], np.float32))] for node, threshold in self.further],
        }


def bits(values: NDArray[np.float32]) -> list[int]:
    """The bits of numbers."""
    found: list[int] = np.ascontiguousarray(values, np.float32).view(np.uint32).tolist()
    return found


@dataclass(frozen=True)
class Ensemble:
    """Trees, and what their sums mean.

    Result k is `base[k]` and the leaf values of all trees that count for it, divided by `divisor`. Leaves have a value
    of each result, or a single one; that of tree t counts for result t mod outputs then. `labels` name the results.
    `categories` are those of each feature in the order of the codes that trees test, empty for numbers; nothing where
    none are known. Others are missing values if `unknown_is_missing`, or errors. `columns` are the names of the
    features, where they are known, and `notes` say what people should know. `link` makes estimates of results, where
    they are something else.
    """

    name: str
    features: int
    base: tuple[float, ...]
    trees: tuple[Tree, ...]
    divisor: float = 1.0
    ties_left: bool = False
    labels: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    link: Link | None = None
    categories: tuple[tuple[str | float, ...], ...] = ()
    unknown_is_missing: bool = False

    def to_json(self) -> str:
        """The ensemble as the core reads it; raises `MisuseError` for numbers that are not finite."""
        for at, tree in enumerate(self.trees):
            if not np.isfinite(tree.value).all():
                raise MisuseError(f"tree {at} has a leaf that is not finite")
        if not np.isfinite([*self.base, self.divisor]).all():
            raise MisuseError("what is added to results, or divides them, is not finite")
        content = {
            "name": self.name,
            "features": self.features,
            "outputs": len(self.base),
            "labels": list(self.labels),
            "link": None if self.link is None else self.link.content(),
            "values": self.trees[0].value.shape[1] if self.trees else 1,
            "base": list(self.base),
            "divisor": self.divisor,
            "ties_left": self.ties_left,
            "trees": [tree.content() for tree in self.trees],
        }
        return json.dumps(content)


def coded(categories: Sequence[Sequence[str | float]], columns: Sequence[str]) -> list[str]:
    """What people should know of features that are categories."""
    named = [columns[at] if columns else f"feature {at}" for at, values in enumerate(categories) if values]
    if not named:
        return []
    return [f"categories in arrays are codes, their places from 0 in the lists of training: {', '.join(named)}"]


def leaf(value: Sequence[float]) -> Tree:
    """A tree of a single leaf with `value` (values,)."""
    none = np.zeros(1, np.int64)
    values = np.asarray(value, np.float64)[None]
    return Tree(none + LEAF, np.zeros(1, np.float32), np.zeros(1, np.bool_), none, none, values)


def interleaved(groups: Sequence[Sequence[Tree]]) -> tuple[Tree, ...]:
    """Trees of a single value by the result they count for, in the order of the core: results take turns.

    Results with fewer trees than others get trees of a zero.
    """
    longest = max(len(group) for group in groups)
    if longest * len(groups) > MOST_TREES:
        raise UnsupportedError(f"{len(groups)} results of {longest} trees; at most {MOST_TREES} trees are run")
    return tuple(group[at] if at < len(group) else leaf([0.0]) for at in range(longest) for group in groups)


def below_or_equal(thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above each threshold (float64, any shape).

    For every float32 x, `x <= threshold` holds exactly where `x` is at most that number.
    """
    with np.errstate(over="ignore"):
        nearest = thresholds.astype(np.float32)
    above = nearest.astype(np.float64) > thresholds
    return np.where(above, np.nextafter(nearest, np.float32(-np.inf)), nearest).astype(np.float32)
