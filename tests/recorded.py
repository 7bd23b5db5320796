"""Estimators of scikit-learn from files of `scripts/record_tables.py`, with the arithmetic of their transformers."""

import json
from pathlib import Path
from typing import Any

import numpy as np

TABLES = Path(__file__).parent / "data" / "tables"


class Recorded:
    """An object with the attributes that were recorded."""

    def __init__(self, has):
        self.__dict__.update(has)

    def predict(self, x):
        raise NotImplementedError("the file has the library's results")


def standard(scaler, x):
    return (x - scaler.mean_) / scaler.scale_


def min_max(scaler, x):
    return x * scaler.scale_ + scaler.min_


def imputed(imputer, x):
    return np.where(np.isnan(x), imputer.statistics_.astype(x.dtype), x)


def one_hot(encoder, x):
    columns = [x[:, [at]] == categories[None] for at, categories in enumerate(encoder.categories_)]
    return np.concatenate(columns, axis=1).astype(float)


def ordinal(encoder, x):
    lists = [categories.tolist() for categories in encoder.categories_]
    return np.array([[known.index(value) for known, value in zip(lists, row, strict=True)] for row in x], float)


TRANSFORMS = {
    "MinMaxScaler": min_max,
    "OneHotEncoder": one_hot,
    "OrdinalEncoder": ordinal,
    "SimpleImputer": imputed,
    "StandardScaler": standard,
}
BASES = {
    "LinearRegression": ["LinearModel"],
    "LogisticRegression": ["LinearClassifierMixin"],
    "RandomForestClassifier": ["ForestClassifier"],
    "SVC": ["BaseLibSVM"],
}


def kind(name, above=Recorded):
    """A class of a name, as if scikit-learn had it."""
    has: dict[str, Any] = {"__module__": "sklearn.recorded"}
    if name in TRANSFORMS:
        has["transform"] = TRANSFORMS[name]
    return type(name, (above,), has)


def rebuilt(content):
    """A value that was written as JSON."""
    if isinstance(content, list):
        return [rebuilt(each) for each in content]
    if not isinstance(content, dict):
        return content
    if "nan" in content:
        return float("nan")
    if "array" in content:
        return np.array(rebuilt(content["array"]), content["dtype"])
    if "class" not in content:
        return {name: rebuilt(value) for name, value in content.items()}
    above = Recorded
    for base in BASES.get(content["class"], []):
        above = kind(base, above)
    return kind(content["class"], above)({name: rebuilt(value) for name, value in content["has"].items()})


def read(name):
    """A file: its model, and what was recorded beside it."""
    content = json.loads((TABLES / f"{name}.json").read_text())
    return {key: rebuilt(value) for key, value in content.items()}
