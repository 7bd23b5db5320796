"""Models of XGBoost in JSON, as `Booster.save_model("model.json")` writes them.

The format is that of https://xgboost.readthedocs.io/en/stable/tutorials/saving_model.html and of the schema behind it.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.trees.ensemble import LEAF, Ensemble, Tree, interleaved

MOST_BYTES = 1 << 30
IDENTITY = frozenset(
    {
        "reg:squarederror",
        "reg:squaredlogerror",
        "reg:absoluteerror",
        "reg:pseudohubererror",
        "reg:quantileerror",
        "rank:pairwise",
        "rank:ndcg",
        "rank:map",
        "multi:softmax",
        "multi:softprob",
    }
)
LOGIT = frozenset({"binary:logistic", "reg:logistic"})
LOGARITHM = frozenset({"count:poisson", "reg:gamma", "reg:tweedie"})
LINKS = {
    **dict.fromkeys(LOGIT, "probabilities are 1 / (1 + exp(-score))"),
    **dict.fromkeys(LOGARITHM, "estimates are exp(score)"),
}
"""What scores mean, of objectives with a link."""


def is_xgboost(path: Path) -> bool:
    """Whether a file is meant as a model of XGBoost."""
    return path.is_file() and path.suffix == ".json"


def read(path: Path) -> Ensemble:
    """The ensemble in a file; raises `MisuseError` for a file that is none."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise MisuseError(f"{path} has more than {MOST_BYTES} bytes")
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise MisuseError(f"{path} is no readable JSON file: {error}") from error
    return of_xgboost(content, path.stem)


def of_xgboost(content: Any, name: str, rounds: int | None = None) -> Ensemble:
    """The ensemble in the JSON of a model, of its first `rounds` rounds of boosting where that is said.

    Raises `MisuseError` for what is no model of XGBoost, `UnsupportedError` for what does not run.
    """
    try:
        return converted(content, name, rounds)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise MisuseError(f"no model of XGBoost, or a damaged one ({type(error).__name__}: {error})") from error


def refuse(what: str, instead: str) -> NoReturn:
    """Raise `UnsupportedError`."""
    raise UnsupportedError(f"{what}; {instead}")


def converted(content: Any, name: str, rounds: int | None) -> Ensemble:
    """As `of_xgboost`; what is damaged raises whatever it does."""
    learner = content["learner"]
    booster, scale = unwrapped(learner["gradient_booster"])
    parameters = learner["learner_model_param"]
    objective = str(learner["objective"]["name"])
    if int(parameters.get("num_target", 1)) > 1:
        refuse("a model of several targets", "train a model for each target")
    classes = max(int(parameters.get("num_class", 0)), 1)
    features = int(parameters["num_feature"])
    model = booster["model"]
    trees = [tree(each, scale[at]) for at, each in enumerate(model["trees"])]
    groups = [int(group) for group in model["tree_info"]]
    if rounds is not None:
        last = int(model["iteration_indptr"][rounds])
        trees, groups = trees[:last], groups[:last]
    if len(trees) != len(groups) or not all(0 <= group < classes for group in groups):
        raise ValueError("trees without a class")
    by_class = [[tree for tree, own in zip(trees, groups, strict=True) if own == group] for group in range(classes)]
    base = margins(parameters["base_score"], objective, classes)
    notes = (f"results are scores: {LINKS[objective]}",) if objective in LINKS else ()
    return Ensemble(
        name=name,
        features=features,
        base=base,
        trees=interleaved(by_class),
        columns=tuple(map(str, learner.get("feature_names", ()))),
        notes=notes,
    )


def unwrapped(booster: Any) -> tuple[Any, Sequence[float]]:
    """The trees of a booster and what each is multiplied by, which is 1 but for DART."""
    kind = str(booster.get("name", "gbtree"))
    if kind == "gbtree":
        return booster, [1.0] * len(booster["model"]["trees"])
    if kind == "dart":
        return booster["gbtree"], [float(weight) for weight in booster["weight_drop"]]
    refuse(f"booster {kind}", "train it with booster=gbtree or dart")


def margins(base_score: Any, objective: str, classes: int) -> tuple[float, ...]:
    """Give what is added to the score of each class: the base score before the objective's link, in float32."""
    text = str(base_score).strip("[]")
    given = [float(part) for part in text.split(",") if part.strip()]
    if len(given) not in (1, classes):
        raise ValueError("a base score for some of the classes")
    values = given * classes if len(given) == 1 else given
    if objective in IDENTITY:
        links = values
    elif objective in LOGIT:
        links = [-math.log(1 / np.float64(np.float32(value)) - 1) for value in values]
    elif objective in LOGARITHM:
        links = [math.log(value) for value in values]
    else:
        known = ", ".join(sorted(IDENTITY | LOGIT | LOGARITHM))
        refuse(f"objective {objective}", f"use one of {known}")
    return tuple(float(np.float32(value)) for value in links)


def tree(content: Any, factor: float) -> Tree:
    """One tree, its leaves multiplied by `factor`."""
    if int(content.get("tree_param", {}).get("size_leaf_vector", 1)) > 1:
        refuse("leaves of several values", "train it with multi_strategy=one_output_per_tree")
    if any(int(kind) for kind in content.get("split_type", ())) or content.get("categories_nodes"):
        refuse("splits by categories", "encode categories as numbers, one column each")
    left = np.asarray(content["left_children"], np.int64)
    right = np.asarray(content["right_children"], np.int64)
    threshold = np.asarray(content["split_conditions"], np.float32)
    leaves = left == LEAF
    return Tree(
        feature=np.where(leaves, LEAF, np.asarray(content["split_indices"], np.int64)),
        threshold=threshold,
        missing_left=np.asarray(content["default_left"]).astype(np.bool_),
        left=left,
        right=right,
        value=np.where(leaves, threshold.astype(np.float64) * factor, 0.0)[:, None],
    )
