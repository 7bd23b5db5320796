"""Trees that are made node by node, each with a test of any kind."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.errors import UnsupportedError
from tacit.importers.trees.cuts import MOST_CUTS, Cuts
from tacit.importers.trees.ensemble import LEAF, Tree


@dataclass
class Grower:
    """A tree of `nodes` nodes, which are leaves of zeros until something else is said; leaves have `values` values."""

    nodes: int
    values: int = 1
    further: list[tuple[int, np.float32]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.feature = np.full(self.nodes, LEAF, np.int64)
        self.threshold = np.zeros(self.nodes, np.float32)
        self.missing_left = np.zeros(self.nodes, np.bool_)
        self.children = np.zeros((2, self.nodes), np.int64)
        self.value = np.zeros((self.nodes, self.values))

    def test(self, node: int, feature: int, cuts: Cuts, children: Sequence[int]) -> None:
        """Let a node test a feature, with its children on the left and on the right."""
        if len(cuts.cuts) > MOST_CUTS:
            what = f"a test of {len(cuts.cuts)} runs of categories, at most {MOST_CUTS}"
            raise UnsupportedError(f"{what}; merge rare categories before training")
        if feature < 0:
            raise ValueError(f"node {node} tests feature {feature}")
        thresholds, even, swapped = cuts.core
        self.feature[node] = feature
        self.threshold[node] = thresholds[0]
        self.missing_left[node] = even
        self.children[:, node] = children[::-1] if swapped else children
        self.further += [(node, threshold) for threshold in thresholds[1:]]

    def leaf(self, node: int, value: Sequence[float] | float) -> None:
        """Let a node be a leaf of a value, or of one of each result."""
        self.value[node] = value

    def tree(self) -> Tree:
        """The tree, for an ensemble whose ties go right."""
        left, right = self.children
        return Tree(self.feature, self.threshold, self.missing_left, left, right, self.value, tuple(self.further))
