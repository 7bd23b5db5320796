"""Fitted estimators of scikit-learn, XGBoost, LightGBM and CatBoost as ensembles, without an import of these."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.links import Link
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.trees.catboost import of_catboost
from tacit.importers.trees.combined import bagged, boosted_by_votes, voted
from tacit.importers.trees.ensemble import LEAF, Ensemble, Tree, below_or_equal, interleaved
from tacit.importers.trees.histogram import histogram_boosted
from tacit.importers.trees.isolation import isolated
from tacit.importers.trees.lightgbm import of_lightgbm
from tacit.importers.trees.xgboost import of_xgboost

LINKS = {"exponential": Link("sigmoid", 2.0)}
"""Links of losses of gradient boosting beside the logistic one."""
CONSTANTS = {("sklearn", "DummyClassifier"), ("sklearn", "DummyRegressor")}
"""Estimators that say the same of all inputs."""


def kinds(estimator: Any) -> list[tuple[str, str]]:
    """Package and name of the class of an object, and of those it is made of."""
    return [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(estimator).__mro__]


def is_ensemble(estimator: Any) -> bool:
    """Whether an object is an estimator made of decision trees."""
    return any(kind in ESTIMATORS for kind in kinds(estimator))


def of_estimator(estimator: Any) -> Ensemble:
    """The ensemble of a fitted estimator.

    Raises `MisuseError` for one that is not fitted, `UnsupportedError` for what does not run.
    """
    found = next(ESTIMATORS[kind] for kind in kinds(estimator) if kind in ESTIMATORS)
    try:
        return found(estimator)
    except AttributeError as error:
        raise MisuseError(f"{type(estimator).__name__} is not fitted ({error}); call fit first") from error


def tree(fitted: Any, value: NDArray[np.float64]) -> Tree:
    """The tree of scikit-learn's `tree_`, with `value` (nodes, values)."""
    left = np.asarray(fitted.children_left, np.int64)
    missing = getattr(fitted, "missing_go_to_left", np.zeros(len(left)))
    return Tree(
        feature=np.where(left == LEAF, LEAF, np.asarray(fitted.feature, np.int64)),
        threshold=below_or_equal(np.asarray(fitted.threshold, np.float64)),
        missing_left=np.asarray(missing).astype(np.bool_),
        left=left,
        right=np.asarray(fitted.children_right, np.int64),
        value=np.where((left == LEAF)[:, None], value, 0.0),
    )


def columns(estimator: Any) -> tuple[str, ...]:
    """The names of the columns that an estimator was fitted with."""
    return tuple(map(str, getattr(estimator, "feature_names_in_", ())))


def averaged(estimator: Any) -> Ensemble:
    """A decision tree or a forest: the mean of the trees' probabilities or values."""
    trees = [each.tree_ for each in getattr(estimator, "estimators_", [estimator])]
    name = type(estimator).__name__
    if int(estimator.n_outputs_) > 1:
        raise UnsupportedError(f"{name} of several targets; fit one for each target")
    classes = tuple(map(str, getattr(estimator, "classes_", ())))
    values = [np.asarray(each.value, np.float64)[:, 0, :] for each in trees]
    if classes:
        values = [value / np.maximum(value.sum(axis=1, keepdims=True), np.finfo(float).tiny) for value in values]
    made = tuple(tree(each, value) for each, value in zip(trees, values, strict=True))
    return Ensemble(
        name=name,
        features=int(estimator.n_features_in_),
        base=(0.0,) * values[0].shape[1],
        trees=made,
        divisor=float(len(trees)),
        ties_left=True,
        labels=classes,
        columns=columns(estimator),
        notes=("results are probabilities of classes",) if classes else (),
    )


def boosted(estimator: Any) -> Ensemble:
    """Gradient boosting: what it begins with, and the trees by their learning rate; scores before a link."""
    rate, stages = float(estimator.learning_rate), estimator.estimators_
    grown = [[each.tree_ for each in stages[:, result]] for result in range(stages.shape[1])]
    groups = [[tree(each, rate * np.asarray(each.value, np.float64)[:, 0, :]) for each in group] for group in grown]
    classes = tuple(map(str, getattr(estimator, "classes_", ())))
    link = LINKS.get(str(estimator.loss), Link("softmax" if len(groups) > 1 else "sigmoid")) if classes else None
    scores = "" if link is None else f": {link.words}"
    return Ensemble(
        name=type(estimator).__name__,
        features=int(estimator.n_features_in_),
        base=beginning(estimator, rate),
        trees=interleaved(groups),
        ties_left=True,
        labels=classes if len(classes) == len(groups) else (),
        columns=columns(estimator),
        notes=(f"results are scores, as of decision_function{scores}",) if classes else (),
        link=link,
    )


def beginning(estimator: Any, rate: float) -> tuple[float, ...]:
    """What gradient boosting begins with, which has to be the same for all inputs."""
    first = estimator.init_
    if first != "zero" and not CONSTANTS & set(kinds(first)):
        raise UnsupportedError(f"{type(estimator).__name__} that begins with {first}; leave init as it is by default")
    x = np.zeros((1, int(estimator.n_features_in_)), np.float32)
    scores = estimator.decision_function if hasattr(estimator, "decision_function") else estimator.predict
    results = np.asarray(scores(x), np.float64).reshape(-1)
    added = [sum(float(each.tree_.predict(x)[0, 0]) for each in group) for group in estimator.estimators_.T]
    return tuple(float(result - rate * own) for result, own in zip(results, added, strict=True))


def of_booster(estimator: Any) -> Ensemble:
    """A booster of XGBoost, or a model with one, which stops at its best iteration as its predictions do."""
    booster = estimator.get_booster() if hasattr(estimator, "get_booster") else estimator
    missing = getattr(estimator, "missing", np.nan) if booster is not estimator else np.nan
    if missing is not None and not np.isnan(missing):
        name = type(estimator).__name__
        raise UnsupportedError(f"{name} with missing={missing}; train it with NaN in place of that number")
    best = None
    if booster is not estimator:
        try:
            best = int(estimator.best_iteration) + 1
        except AttributeError:
            best = None
    content = json.loads(bytes(booster.save_raw("json")))
    return of_xgboost(content, type(estimator).__name__, best)


def of_member(estimator: Any) -> Ensemble:
    """The ensemble of an estimator that is part of another one, which must be made of trees as well."""
    if not is_ensemble(estimator):
        raise UnsupportedError(f"{type(estimator).__name__} as a part; use estimators that are made of decision trees")
    return of_estimator(estimator)


def refused(what: str, instead: str) -> "Reader":
    """The reader of an estimator that is made of trees and does not run."""

    def refuse(estimator: Any) -> Ensemble:
        raise UnsupportedError(f"{type(estimator).__name__} gives {what}, which is not run; {instead}")

    return refuse


def of_lightgbm_model(estimator: Any) -> Ensemble:
    """A booster of LightGBM, or a model with one, up to its best iteration as its predictions are."""
    booster = getattr(estimator, "booster_", estimator)
    made = of_lightgbm(str(booster.model_to_string()), type(estimator).__name__)
    classes = tuple(map(str, getattr(estimator, "classes_", ())))
    return replace(made, labels=classes) if len(classes) == len(made.base) else made


def of_catboost_model(estimator: Any) -> Ensemble:
    """A model of CatBoost, by the JSON that it writes."""
    if not estimator.is_fitted():
        raise MisuseError(f"{type(estimator).__name__} is not fitted; call fit first")
    with TemporaryDirectory(prefix="tacit-") as folder:
        path = Path(folder, "model.json")
        estimator.save_model(str(path), format="json")
        return of_catboost(json.loads(path.read_bytes()), type(estimator).__name__)


Reader = Callable[[Any], Ensemble]
ESTIMATORS: Mapping[tuple[str, str], Reader] = {
    ("sklearn", "DecisionTreeClassifier"): averaged,
    ("sklearn", "DecisionTreeRegressor"): averaged,
    ("sklearn", "ForestClassifier"): averaged,
    ("sklearn", "ForestRegressor"): averaged,
    ("sklearn", "GradientBoostingClassifier"): boosted,
    ("sklearn", "GradientBoostingRegressor"): boosted,
    ("sklearn", "HistGradientBoostingClassifier"): histogram_boosted,
    ("sklearn", "HistGradientBoostingRegressor"): histogram_boosted,
    ("sklearn", "IsolationForest"): isolated,
    ("sklearn", "AdaBoostClassifier"): lambda estimator: boosted_by_votes(estimator, of_member),
    ("sklearn", "BaggingClassifier"): lambda estimator: bagged(estimator, of_member),
    ("sklearn", "BaggingRegressor"): lambda estimator: bagged(estimator, of_member),
    ("sklearn", "VotingClassifier"): lambda estimator: voted(estimator, of_member),
    ("sklearn", "VotingRegressor"): lambda estimator: voted(estimator, of_member),
    ("sklearn", "AdaBoostRegressor"): refused("the median of its trees", "use gradient boosting"),
    ("sklearn", "RandomTreesEmbedding"): refused("the numbers of its leaves", "use a forest"),
    ("lightgbm", "Booster"): of_lightgbm_model,
    ("lightgbm", "LGBMModel"): of_lightgbm_model,
    ("catboost", "CatBoost"): of_catboost_model,
    ("xgboost", "Booster"): of_booster,
    ("xgboost", "XGBModel"): of_booster,
}
"""Readers by package and name of a class; subclasses are read alike."""
