"""Models of XGBoost in JSON or UBJSON, as `Booster.save_model("model.json")` writes them.

The format is that of https://xgboost.readthedocs.io/en/stable/tutorials/saving_model.html and of the schema behind it.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.data.links import Link
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.trees.cuts import categories
from tacit.importers.trees.ensemble import LEAF, Ensemble, Tree, coded, interleaved
from tacit.importers.trees.grower import Grower

MOST_RESULTS = 1 << 16
LOGISTIC = frozenset({"binary:logistic", "reg:logistic"})
LOGARITHM = frozenset({"count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"})
OBJECTIVES: Mapping[str, str | None] = {
    "reg:squarederror": None,
    "reg:squaredlogerror": None,
    "reg:absoluteerror": None,
    "reg:pseudohubererror": None,
    "reg:quantileerror": None,
    "reg:expectileerror": None,
    "rank:pairwise": None,
    "rank:ndcg": None,
    "rank:map": None,
    "binary:logitraw": None,
    "binary:logistic": "sigmoid",
    "reg:logistic": "sigmoid",
    "binary:hinge": "step",
    "multi:softmax": "softmax",
    "multi:softprob": "softmax",
    **dict.fromkeys(LOGARITHM, "exp"),
}
"""The links of objectives."""
OUT_OF_RANGE = 1 << 24
"""Codes of categories end here, since larger floats skip some."""


def is_xgboost(content: Any) -> bool:
    """Whether an object is meant as a model of XGBoost."""
    return isinstance(content, dict) and "learner" in content


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
    if objective not in OBJECTIVES:
        refuse(f"objective {objective}", f"use one of {', '.join(sorted(OBJECTIVES))}")
    results = max(int(parameters.get("num_class", 0)), int(parameters.get("num_target", 1)), 1)
    if results > MOST_RESULTS:
        raise ValueError(f"{results} results")
    model = booster["model"]
    groups = [int(group) for group in model["tree_info"]]
    notes = []
    if rounds is None:
        rounds = best(learner)
        notes += (
            [] if rounds is None else [f"training stopped early: the first {rounds} rounds run, as in the estimator"]
        )
    last = len(groups) if rounds is None else int(model["iteration_indptr"][rounds])
    if not 0 <= last <= len(groups) or len(model["trees"]) != len(groups) or len(scale) != len(groups):
        raise ValueError("trees without a class or a weight")
    if not all(0 <= group < results for group in groups):
        raise ValueError("trees of classes that there are not")
    vector = any(vector_length(each) > 1 for each in model["trees"][:last])
    trees = [tree(each, scale[at], results if vector else 1) for at, each in enumerate(model["trees"][:last])]
    by_class = [[tree for tree, own in zip(trees, groups, strict=False) if own == group] for group in range(results)]
    columns = tuple(map(str, learner.get("feature_names", ())))
    categories = listed(model.get("cats", {}).get("enc", ()), int(parameters["num_feature"]))
    notes += coded(categories, columns)
    function = OBJECTIVES[objective]
    link = None if function is None else Link(function)
    notes += [] if link is None else [f"results are scores: {link.words}"]
    return Ensemble(
        name=name,
        features=int(parameters["num_feature"]),
        base=margins(parameters["base_score"], objective, results),
        trees=tuple(trees) if vector else interleaved(by_class),
        columns=columns,
        notes=tuple(notes),
        link=link,
        categories=categories,
    )


def listed(encoders: Any, features: int) -> tuple[tuple[str | float, ...], ...]:
    """The categories of each feature that a data frame had: texts by their bytes and offsets, or numbers.

    XGBoost 3.2 cuts texts off that are no ASCII, since it counts their characters; none are known then.
    """
    found: list[tuple[str | float, ...]] = []
    for each in encoders:
        values = np.asarray(each.get("values", ()))
        if "offsets" in each:
            text = values.astype(np.uint8).tobytes()
            ends = np.asarray(each["offsets"], np.int64).tolist()
            if not text.isascii():
                return ()
            found.append(tuple(text[start:end].decode() for start, end in pairwise(ends)))
        else:
            found.append(tuple(map(float, values.tolist())))
    return tuple(found) if len(found) == features and any(found) else ()


def best(learner: Any) -> int | None:
    """The rounds of an estimator that stopped early: it predicts with the best ones, unlike a booster."""
    attributes = learner.get("attributes", {})
    if "best_iteration" not in attributes or "scikit_learn" not in attributes:
        return None
    return int(attributes["best_iteration"]) + 1


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
    if objective in LOGISTIC:
        values = [-math.log(1 / np.float64(np.float32(value)) - 1) for value in values]
    elif objective in LOGARITHM:
        values = [math.log(value) for value in values]
    return tuple(float(np.float32(value)) for value in values)


def vector_length(content: Any) -> int:
    """The number of values of a leaf."""
    return int(content.get("tree_param", {}).get("size_leaf_vector", 1))


def tree(content: Any, factor: float, values: int) -> Tree:
    """One tree, its leaves of so many values multiplied by `factor`."""
    left = np.asarray(content["left_children"], np.int64)
    right = np.asarray(content["right_children"], np.int64)
    threshold = np.asarray(content["split_conditions"], np.float32)
    missing_left = np.asarray(content["default_left"]).astype(np.bool_)
    leaves = left == LEAF
    feature = np.where(leaves, LEAF, np.asarray(content["split_indices"], np.int64))
    made = Tree(
        feature=feature,
        threshold=threshold,
        missing_left=missing_left,
        left=left,
        right=right,
        value=leaf_values(content, leaves, right, values) * factor,
    )
    sets = categories_of(content)
    if len(leaves) != len(right) or len(leaves) != len(missing_left) or len(leaves) != len(feature):
        raise ValueError("lists of different lengths")
    kinds = np.asarray(content.get("split_type", np.zeros(len(left))), np.int64)
    if set(np.flatnonzero(kinds * ~leaves)) - sets.keys():
        raise ValueError("a split by categories without categories")
    return made if not sets else with_sets(made, sets)


def leaf_values(content: Any, leaves: NDArray[np.bool_], right: NDArray[np.int64], values: int) -> NDArray[np.float64]:
    """The values (nodes, values) of leaves; a leaf of several has its place in place of a right child."""
    if values == 1:
        found = np.asarray(content["split_conditions"], np.float32).astype(np.float64)
        return np.where(leaves, found, 0.0)[:, None]
    if vector_length(content) != values:
        raise ValueError(f"leaves of {vector_length(content)} values for {values} results")
    name = "leaf_weights" if "leaf_weights" in content else "base_weights"
    table = np.asarray(content[name], np.float32).astype(np.float64).reshape(-1, values)
    places = np.flatnonzero(leaves)
    chosen = right[places] if name == "leaf_weights" else places
    if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(table)):
        raise ValueError("leaves without values")
    spread = np.zeros((len(leaves), values))
    spread[places] = table[chosen]
    return spread


def categories_of(content: Any) -> dict[int, list[int]]:
    """The categories that go right, by the nodes that split by them."""
    nodes = np.asarray(content.get("categories_nodes", ()), np.int64).tolist()
    starts = np.asarray(content.get("categories_segments", ()), np.int64).tolist()
    sizes = np.asarray(content.get("categories_sizes", ()), np.int64).tolist()
    codes = np.asarray(content.get("categories", ()), np.int64)
    found = {}
    for node, start, size in zip(nodes, starts, sizes, strict=True):
        chosen = codes[start : start + size] if start >= 0 and size >= 0 else codes[:0]
        if len(chosen) != size or (size and not (chosen.min() >= 0 and chosen.max() < OUT_OF_RANGE)):
            raise ValueError("a set of categories that there is not")
        found[node] = sorted(set(chosen.tolist()))
    return found


def with_sets(made: Tree, sets: Mapping[int, list[int]]) -> Tree:
    """A tree some of whose nodes split by categories: those in the set go right, all other numbers left."""
    grower = Grower(len(made.feature), made.value.shape[1])
    grower.feature, grower.threshold, grower.value = made.feature.copy(), made.threshold.copy(), made.value
    grower.missing_left, grower.children = made.missing_left.copy(), np.stack([made.left, made.right])
    for node, codes in sets.items():
        if not 0 <= node < len(made.feature) or made.feature[node] < 0:
            raise ValueError(f"node {node} splits by categories and is none")
        cuts = categories(codes, bool(made.missing_left[node]), inside_left=False)
        children = (int(made.left[node]), int(made.right[node]))
        grower.test(node, int(made.feature[node]), cuts, children)
    return grower.tree()
