"""Random ensembles of decision trees of given sizes, for costs: private sessions cost the same whatever trees hold."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tacit.importers.trees.ensemble import LEAF, Ensemble, Tree

SEED = 37


class Forest(NamedTuple):
    """Sizes of an ensemble: trees, tests of all of them, features, and the greatest depth.

    Trees are `full` where each has all tests that its depth has room for; others grow at random leaves.
    """

    trees: int
    tests: int
    features: int
    depth: int
    full: bool = False


def grow(forest: Forest, name: str) -> Ensemble:
    """An ensemble of that size with random tests and leaves, always the same one."""
    rng = np.random.default_rng(SEED)
    trees = tuple(tree(rng, count, forest) for count in tests_of_trees(rng, forest))
    return Ensemble(name, forest.features, (0.0,), trees)


def tests_of_trees(rng: np.random.Generator, forest: Forest) -> Iterator[int]:
    """How many tests each tree has; together they are those of the forest."""
    if forest.full:
        return iter([(1 << forest.depth) - 1] * forest.trees)
    share = np.full(forest.trees, 1 / forest.trees)
    return map(int, rng.multinomial(forest.tests - forest.trees, share) + 1)


def tree(rng: np.random.Generator, tests: int, forest: Forest) -> Tree:
    """A tree with so many tests; a leaf that is drawn at random becomes the next test."""
    nodes = 2 * tests + 1
    left, right = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    feature, depths = np.full(nodes, LEAF), np.zeros(nodes, np.int64)
    leaves, draws = [0], rng.random(tests)
    for number in range(tests):
        at = 0 if forest.full else int(draws[number] * len(leaves))
        node = leaves.pop(at)
        first = 2 * number + 1
        left[node], right[node], feature[node] = first, first + 1, rng.integers(forest.features)
        depths[first : first + 2] = depths[node] + 1
        if depths[first] < forest.depth:
            leaves += [first, first + 1]
    values: NDArray[np.float64] = np.where(feature == LEAF, rng.normal(0, 0.1, nodes), 0.0)
    thresholds = rng.normal(size=nodes).astype(np.float32)
    return Tree(feature, thresholds, rng.random(nodes) < 0.5, left, right, values[:, None])
