"""Fitted estimators without their library: the attributes that importers read, as JSON, and objects that have them.

`scripts/tree_models.py` freezes estimators, and tests thaw them, so that importers of objects are tested where
scikit-learn is not installed.
"""

from typing import Any

import numpy as np

METHODS = "methods"
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "BaseForest": ("estimators_", "n_outputs_", "n_features_in_", "classes_"),
    "BaseDecisionTree": ("tree_", "n_outputs_", "n_features_in_", "classes_"),
    "Tree": (
        "children_left",
        "children_right",
        "feature",
        "threshold",
        "value",
        "missing_go_to_left",
        "n_node_samples",
    ),
    "BaseGradientBoosting": ("estimators_", "learning_rate", "loss", "init_", "n_features_in_", "classes_"),
    "BaseHistGradientBoosting": (
        *("_loss", "_baseline_prediction", "_predictors", "n_features_in_", "classes_"),
        *("is_categorical_", "_preprocessor"),
    ),
    "BaseLoss": ("link",),
    "TreePredictor": ("nodes", "raw_left_cat_bitsets"),
    "ColumnTransformer": ("named_transformers_",),
    "OrdinalEncoder": ("categories_",),
    "BaseBagging": ("estimators_", "estimators_features_", "n_features_in_", "classes_"),
    "IsolationForest": ("_max_samples", "offset_"),
    "AdaBoostClassifier": ("estimators_", "estimator_weights_", "n_features_in_", "classes_"),
    "_BaseVoting": ("estimators_", "weights", "voting", "n_features_in_", "classes_"),
}
"""What importers read, by the names of classes; others are objects without attributes."""


def freeze(value: Any) -> Any:
    """A value as JSON: estimators by their classes and attributes, arrays by their type and numbers."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return frozen_array(value)
    if isinstance(value, list | tuple):
        return [freeze(each) for each in value]
    if isinstance(value, dict):
        return {"mapping": {name: freeze(each) for name, each in value.items()}}
    kinds = [kind for kind in type(value).__mro__ if kind is not object]
    names = [name for kind in kinds for name in ATTRIBUTES.get(kind.__name__, ())]
    found = {name: freeze(getattr(value, name)) for name in names if hasattr(value, name)}
    return {"class": [[kind.__module__, kind.__name__] for kind in kinds], "attributes": found}


def frozen_array(value: Any) -> dict[str, Any]:
    """An array of numbers, of records of numbers, or of objects."""
    if value.dtype == object:
        return {"objects": [freeze(each) for each in value.ravel()], "shape": list(value.shape)}
    if value.dtype.names:
        return {"array": [list(row) for row in value.tolist()], "dtype": value.dtype.descr}
    return {"array": value.tolist(), "dtype": value.dtype.str}


def thaw(content: Any) -> Any:
    """The value of JSON that `freeze` made; what it says of `methods` are functions that give one value."""
    if isinstance(content, list):
        return [thaw(each) for each in content]
    if not isinstance(content, dict):
        return content
    if "array" in content or "objects" in content:
        return thawed_array(content)
    if "mapping" in content:
        return {name: thaw(each) for name, each in content["mapping"].items()}
    kind: type = object
    for module, name in reversed(content["class"]):
        kind = type(name, (kind,), {"__module__": module})
    made = kind()
    for name, each in content["attributes"].items():
        setattr(made, name, thaw(each))
    for name, each in content.get(METHODS, {}).items():
        setattr(made, name, constant(thaw(each)))
    return made


def thawed_array(content: Any) -> Any:
    """The array that `frozen_array` made JSON of."""
    if "objects" in content:
        found = np.empty(len(content["objects"]), object)
        found[:] = [thaw(each) for each in content["objects"]]
        return found.reshape(content["shape"])
    if isinstance(content["dtype"], list):
        fields = [(name, *rest) for name, *rest in content["dtype"]]
        return np.asarray([tuple(row) for row in content["array"]], fields)
    return np.asarray(content["array"], content["dtype"])


def constant(value: Any) -> Any:
    """A function that gives a value."""
    return lambda *_: value
