"""Isolation forests of scikit-learn: the mean length of an input's paths.

A leaf counts the tests on the way to it and c(n), the mean length of paths in a tree of the n training samples that
reached it (Liu, Ting and Zhou, Isolation Forest, ICDM 2008, section 4.1). As scikit-learn does, both are taken from the
trees in float64.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.links import Link
from tacit.importers.trees.ensemble import LEAF, Ensemble, Tree, below_or_equal

Floats = NDArray[np.float64]


def isolated(estimator: Any) -> Ensemble:
    """The forest: results are mean path lengths in tests, the link makes `score_samples` of them."""
    trees = zip(estimator.estimators_, estimator.estimators_features_, strict=True)
    made = tuple(tree(each.tree_, np.asarray(features, np.int64)) for each, features in trees)
    length = float(mean_length(np.asarray([float(estimator._max_samples)]))[0])
    link = Link("isolation", 1.0 / length if length else 1.0)
    return Ensemble(
        name=type(estimator).__name__,
        features=int(estimator.n_features_in_),
        base=(0.0,),
        trees=made,
        divisor=float(len(made)),
        ties_left=True,
        columns=tuple(map(str, getattr(estimator, "feature_names_in_", ()))),
        notes=(
            f"results are scores, the mean lengths of paths: {link.words}; an input is an outlier where score_samples "
            f"is below {float(estimator.offset_):.9g}",
        ),
        link=link,
    )


def mean_length(samples: Floats) -> Floats:
    """The mean length of paths in a tree of so many samples."""
    many = np.maximum(samples, 3.0)
    long = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    return np.where(samples <= 1, 0.0, np.where(samples == 2, 1.0, long))


def tree(fitted: Any, features: NDArray[np.int64]) -> Tree:
    """One tree, grown on some of the features."""
    left = np.asarray(fitted.children_left, np.int64)
    right = np.asarray(fitted.children_right, np.int64)
    depth = np.zeros(len(left))
    for node in np.flatnonzero(left != LEAF):
        # Children stand behind their parents.
        depth[[left[node], right[node]]] = depth[node] + 1
    length = depth + mean_length(np.asarray(fitted.n_node_samples, np.float64))
    tested = np.asarray(fitted.feature, np.int64)
    return Tree(
        feature=np.where(left == LEAF, LEAF, features[np.where(left == LEAF, 0, tested)]),
        threshold=below_or_equal(np.asarray(fitted.threshold, np.float64)),
        missing_left=np.asarray(getattr(fitted, "missing_go_to_left", np.zeros(len(left)))).astype(np.bool_),
        left=left,
        right=right,
        value=np.where(left == LEAF, length, 0.0)[:, None],
    )
