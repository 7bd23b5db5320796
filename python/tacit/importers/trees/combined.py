"""Estimators of scikit-learn that are made of other ensembles: bagging, voting, and boosting by votes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.links import Link
from tacit.errors import UnsupportedError
from tacit.importers.trees.ensemble import LEAF, Ensemble, Tree

Member = tuple[Ensemble, float, NDArray[np.int64] | None]
"""An ensemble, its weight, and the features of rows that it reads, None for all."""
Reader = Callable[[Any], Ensemble]


def bagged(estimator: Any, read: Reader) -> Ensemble:
    """Bagging: the mean of estimators, each of which may read some of the features."""
    features = estimator.estimators_features_
    members = []
    for each, chosen in zip(estimator.estimators_, features, strict=True):
        classes = np.asarray(getattr(each, "classes_", ()), np.int64)
        own = wider(read(each), classes, len(getattr(estimator, "classes_", ())))
        members.append((own, 1.0 / len(features), np.asarray(chosen, np.int64)))
    return mean(estimator, members)


def voted(estimator: Any, read: Reader) -> Ensemble:
    """Voting: the weighted mean of what estimators say; of classifiers their probabilities."""
    name = type(estimator).__name__
    if getattr(estimator, "voting", "soft") != "soft":
        raise UnsupportedError(f"{name} of labels; use voting=soft")
    given = estimator.weights
    weights = np.ones(len(estimator.estimators_)) if given is None else np.asarray(given, np.float64)
    if given is not None and len(given) != len(estimator.estimators_):
        raise UnsupportedError(f"{name} with estimators that were dropped; leave them out and fit it again")
    weights = weights / weights.sum()
    members: list[Member] = [
        (read(each), float(weight), None) for each, weight in zip(estimator.estimators_, weights, strict=True)
    ]
    return mean(estimator, members)


def boosted_by_votes(estimator: Any, read: Reader) -> Ensemble:
    """AdaBoost: each tree votes for a class by its weight; the scores are those of `decision_function`."""
    classes = tuple(map(str, estimator.classes_))
    weights = np.asarray(estimator.estimator_weights_, np.float64)
    if len(classes) < 2:
        raise UnsupportedError(f"{type(estimator).__name__} of a single class; there is nothing to tell apart")
    trees: list[Tree] = []
    for each, weight in zip(estimator.estimators_, weights / weights.sum(), strict=False):
        member = read(each)
        if len(member.trees) != 1 or not member.labels:
            raise UnsupportedError(f"{type(estimator).__name__} of {type(each).__name__}; use decision trees")
        places = np.searchsorted(np.asarray(estimator.classes_), np.asarray(each.classes_))
        votes = places[member.trees[0].value.argmax(axis=1)]
        scores = np.where(votes[:, None] == np.arange(len(classes)), weight, -weight / (len(classes) - 1))
        value = scores if len(classes) > 2 else (scores[:, 1:] - scores[:, :1])
        trees.append(replace(member.trees[0], value=value))
    several = len(classes) > 2
    link = Link("softmax", 1.0 / (len(classes) - 1)) if several else Link("sigmoid")
    return Ensemble(
        name=type(estimator).__name__,
        features=int(estimator.n_features_in_),
        base=(0.0,) * (len(classes) if several else 1),
        trees=tuple(trees),
        ties_left=True,
        labels=classes if several else (),
        columns=tuple(map(str, getattr(estimator, "feature_names_in_", ()))),
        notes=(f"results are scores, as of decision_function: {link.words}",),
        link=link,
    )


def wider(ensemble: Ensemble, classes: NDArray[np.int64], count: int) -> Ensemble:
    """An ensemble that was trained on some of `count` classes, with zeros for the others."""
    if len(classes) in (0, count):
        return ensemble
    base = np.zeros(count)
    base[classes] = ensemble.base
    trees = []
    for tree in ensemble.trees:
        value = np.zeros((len(tree.value), count))
        value[:, classes] = tree.value
        trees.append(replace(tree, value=value))
    return replace(ensemble, base=tuple(base.tolist()), trees=tuple(trees))


def mean(estimator: Any, members: Sequence[Member]) -> Ensemble:
    """The weighted sum of ensembles, whose results have to be of one kind and none a score before a link."""
    name = type(estimator).__name__
    first = members[0][0]
    for member, _, _ in members:
        if member.link is not None or member.notes != first.notes or member.ties_left != first.ties_left:
            advice = "use decision trees, forests, or regressors without a link"
            raise UnsupportedError(f"{name} of {member.name}, whose results are scores or of another kind; {advice}")
    outputs = len(first.base)
    trees: list[Tree] = []
    base = np.zeros(outputs)
    for member, weight, features in members:
        base += np.asarray(member.base) * weight / member.divisor
        for tree in member.trees:
            if tree.value.shape[1] != outputs:
                raise UnsupportedError(f"{name} of {member.name} with several scores; use decision trees or forests")
            tested = tree.feature
            if features is not None:
                tested = np.where(tested == LEAF, LEAF, features[np.maximum(tested, 0)])
            trees.append(replace(tree, feature=tested, value=tree.value * (weight / member.divisor)))
    classes = tuple(map(str, getattr(estimator, "classes_", ())))
    return Ensemble(
        name=name,
        features=int(estimator.n_features_in_),
        base=tuple(base.tolist()),
        trees=tuple(trees),
        ties_left=first.ties_left,
        labels=classes,
        columns=tuple(map(str, getattr(estimator, "feature_names_in_", ()))),
        notes=first.notes,
    )
