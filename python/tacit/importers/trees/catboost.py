"""Models of CatBoost as JSON, as `save_model("model.json", format="json")` writes them.

Symmetric trees test one feature a level: bit i of a leaf's number is the outcome of split i. Other trees are nodes that
lie in each other. The format is that of catboost/libs/model/model_export/json_model_helpers.cpp.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from tacit.data.links import Link
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.trees.cuts import Cuts, equal_to, first_above
from tacit.importers.trees.ensemble import Ensemble, Tree
from tacit.importers.trees.grower import Grower

MOST_DEPTH = 16
"""Most levels of a symmetric tree, which is what CatBoost trains."""
MOST_NODES = 1 << 22
MOST_RESULTS = 1 << 12
MOST_FEATURES = 1 << 16
MISSING_RIGHT = {"AsIs": False, "AsFalse": False, "AsTrue": True}
LINKS: Mapping[str, str | None] = {
    "Logloss": "sigmoid",
    "CrossEntropy": "sigmoid",
    "MultiClass": "softmax",
    "MultiClassOneVsAll": "sigmoid",
    "MultiLogloss": "sigmoid",
    "MultiCrossEntropy": "sigmoid",
    "Poisson": "exp",
    "Tweedie": "exp",
}
"""The links of losses; scores of others are estimates."""
CLASSES = frozenset({"MultiClass", "MultiClassOneVsAll"})


@dataclass(frozen=True)
class Features:
    """Where features stand in a row (`numeric`, `category`), where NaN goes, and the categories by their hashes."""

    numeric: Mapping[int, int]
    missing_right: Mapping[int, bool]
    category: Mapping[int, int]
    codes: Mapping[int, Mapping[int, int]]
    count: int
    columns: tuple[str, ...]


def is_catboost(content: Any) -> bool:
    """Whether JSON is meant as a model of CatBoost."""
    return isinstance(content, dict) and "features_info" in content


def of_catboost(content: Any, name: str) -> Ensemble:
    """The ensemble in the JSON of a model.

    Raises `MisuseError` for what is no model of CatBoost, `UnsupportedError` for what does not run.
    """
    try:
        return converted(content, name)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise MisuseError(f"no model of CatBoost, or a damaged one ({type(error).__name__}: {error})") from error


def refuse(what: str, instead: str) -> NoReturn:
    """Raise `UnsupportedError`."""
    raise UnsupportedError(f"{what}; {instead}")


def converted(content: Any, name: str) -> Ensemble:
    """As `of_catboost`; what is damaged raises whatever it does."""
    features = described(content["features_info"])
    scale, bias = content["scale_and_bias"]
    base = [float(value) for value in (bias if isinstance(bias, list) else [bias])]
    if not 1 <= len(base) <= MOST_RESULTS:
        raise ValueError(f"{len(base)} results")
    grown = content.get("oblivious_trees", content.get("trees"))
    grow = symmetric if "oblivious_trees" in content else nested
    trees = tuple(grow(each, features, len(base), float(scale)) for each in grown)
    information = content.get("model_info", {})
    loss = loss_of(information)
    function = LINKS.get(loss)
    link = None if function is None else Link(function)
    return Ensemble(
        name=name,
        features=features.count,
        base=tuple(base),
        trees=trees,
        labels=labels(information, len(base)) if loss in CLASSES else (),
        columns=features.columns,
        notes=(
            *(() if link is None else (f"results are scores: {link.words}",)),
            *notes(features, content["features_info"]),
        ),
        link=link,
    )


def loss_of(information: Any) -> str:
    """The name of the loss, empty where the file does not say it."""
    given = information.get("params", {})
    given = json.loads(given) if isinstance(given, str) else given
    return str(given.get("loss_function", {}).get("type", ""))


def labels(information: Any, results: int) -> tuple[str, ...]:
    """The names of the classes, where there is one for each result."""
    given = information.get("class_params", {})
    given = json.loads(given) if isinstance(given, str) else given
    names = tuple(map(str, given.get("class_names", ())))
    return names if len(names) == results else ()


def described(information: Any) -> Features:
    """The features that trees test; those that text and embeddings would give are refused."""
    for kind in ("text_features", "embedding_features"):
        if information.get(kind):
            refuse(f"a model with {kind.replace('_', ' ')}", "compute numbers of them before the model")
    if information.get("ctrs"):
        refuse("statistics of categories (CTR)", "train it with one_hot_max_size above the number of categories")
    numeric = information.get("float_features") or []
    category = information.get("categorical_features") or []
    places: dict[int, str] = {}
    for each in [*numeric, *category]:
        places[int(each["flat_feature_index"])] = str(each.get("feature_id") or "")
    count = max(places, default=-1) + 1
    if not 1 <= count <= MOST_FEATURES or min(places) < 0:
        raise ValueError(f"features at places {min(places, default=0)} to {count - 1}")
    treated = {int(each["feature_index"]): str(each.get("nan_value_treatment", "AsIs")) for each in numeric}
    names = tuple(places.get(at, "") for at in range(count))
    return Features(
        numeric={int(each["feature_index"]): int(each["flat_feature_index"]) for each in numeric},
        missing_right={index: MISSING_RIGHT[treatment] for index, treatment in treated.items()},
        category={int(each["feature_index"]): int(each["flat_feature_index"]) for each in category},
        codes={
            int(each["feature_index"]): {int(value): code for code, value in enumerate(sorted(each.get("values", ())))}
            for each in category
        },
        count=count,
        columns=names if all(names) and len(set(names)) == count else (),
    )


def notes(features: Features, information: Any) -> list[str]:
    """What clients give in place of categories."""
    found = []
    for each in information.get("categorical_features") or []:
        if features.codes[int(each["feature_index"])]:
            at, values = int(each["flat_feature_index"]), sorted(each["values"])
            found.append(
                f"feature {at} is a category: clients give the place of its hash in {values}, from 0, "
                "and anything else for a category that is not there"
            )
    return found


def split(content: Any, features: Features) -> tuple[int, Cuts]:
    """The feature that a split tests, and how; what holds goes right."""
    kind = str(content.get("split_type", "FloatFeature"))
    if kind == "FloatFeature":
        index = int(content["float_feature_index"])
        # Borders are float32 numbers, whatever digits the file has.
        with np.errstate(over="ignore"):
            border = float(np.float32(content["border"]))
        if math.isnan(border):
            raise ValueError("a border that is no number")
        cut = first_above(border)
        missing_left = not features.missing_right[index]
        return features.numeric[index], Cuts(() if cut is None else (cut,), True, missing_left)
    if kind == "OneHotFeature":
        index = int(content["cat_feature_index"])
        code = features.codes[index].get(int(content["value"]))
        values = [] if code is None else [float(code)]
        return features.category[index], equal_to(values, missing_left=True, inside_left=False)
    refuse(f"a split of kind {kind}", "train it with one_hot_max_size above the number of categories")


def symmetric(content: Any, features: Features, results: int, scale: float) -> Tree:
    """A tree with one split a level: split i is asked at all nodes of a level, the last one at the root."""
    splits = [split(each, features) for each in content.get("splits") or ()]
    depth = len(splits)
    values = np.asarray(content["leaf_values"], np.float64)
    if depth > MOST_DEPTH or values.shape != (results << depth,):
        raise ValueError(f"{values.size} values of leaves for {depth} splits and {results} results")
    tests = (1 << depth) - 1
    grower = Grower(tests + 1 + tests, results)
    for node in range(tests):
        level = (node + 1).bit_length() - 1
        grower.test(node, *splits[depth - 1 - level], children=(2 * node + 1, 2 * node + 2))
    # Leaves stand from left to right, which is the order of their numbers.
    grower.value[tests:] = scale * values.reshape(1 << depth, results)
    return grower.tree()


def nested(content: Any, features: Features, results: int, scale: float) -> Tree:
    """A tree of any shape, whose nodes lie in each other."""
    nodes: list[Any] = [content]
    children: dict[int, tuple[int, int]] = {}
    for at, node in enumerate(nodes):
        if "split" in node:
            children[at] = (len(nodes), len(nodes) + 1)
            nodes += [node["left"], node["right"]]
            if len(nodes) > MOST_NODES:
                raise ValueError(f"more than {MOST_NODES} nodes")
    grower = Grower(len(nodes), results)
    for at, node in enumerate(nodes):
        if at in children:
            grower.test(at, *split(node["split"], features), children=children[at])
        else:
            grower.leaf(at, [scale * value for value in listed(node["value"], results)])
    return grower.tree()


def listed(value: Any, results: int) -> Sequence[float]:
    """The values of a leaf, a number of each result."""
    values = [float(each) for each in (value if isinstance(value, list) else [value])]
    if len(values) != results:
        raise ValueError(f"a leaf of {len(values)} values for {results} results")
    return values
