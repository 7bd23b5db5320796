"""Records fitted pipelines of scikit-learn as JSON, with what the library says of some rows, for tests without it.

Run it where scikit-learn, SciPy and pandas are installed: python scripts/record_tables.py. It writes tests/data/tables.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, mean_absolute_error, r2_score, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "tables"
KEPT = {
    "ColumnTransformer": ["transformers_", "transformer_weights", "feature_names_in_"],
    "GaussianNB": ["theta_", "var_", "class_prior_", "classes_"],
    "LinearRegression": ["coef_", "intercept_"],
    "LogisticRegression": ["coef_", "intercept_", "classes_"],
    "MinMaxScaler": ["data_min_", "data_max_", "scale_", "min_", "clip"],
    "OneHotEncoder": ["categories_", "drop_idx_", "handle_unknown"],
    "OrdinalEncoder": ["categories_", "handle_unknown", "unknown_value"],
    "Pipeline": ["steps"],
    "RandomForestClassifier": ["estimators_", "n_outputs_", "n_features_in_", "classes_"],
    "DecisionTreeClassifier": ["tree_"],
    "SVC": ["kernel", "support_vectors_", "intercept_", "dual_coef_", "classes_", "_gamma", "coef0", "degree"],
    "SimpleImputer": ["statistics_", "missing_values"],
    "StandardScaler": ["mean_", "scale_", "with_mean", "with_std"],
    "Tree": ["children_left", "children_right", "feature", "threshold", "value", "missing_go_to_left"],
}
"""Attributes that importers read, by class."""


def content(value: Any) -> Any:
    """A value as JSON: arrays and estimators are objects with one key."""
    if isinstance(value, np.ndarray):
        return {"array": content(value.tolist()), "dtype": "object" if value.dtype.kind in "OU" else str(value.dtype)}
    if isinstance(value, list | tuple):
        return [content(each) for each in value]
    if isinstance(value, float) and np.isnan(value):
        return {"nan": True}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    name = type(value).__name__
    return {"class": name, "has": {each: content(getattr(value, each)) for each in KEPT[name]}}


def table(count: int, random: np.random.Generator) -> pd.DataFrame:
    """Rows of a credit table that was made up."""
    rows = pd.DataFrame(
        {
            "age": random.integers(18, 80, count).astype(float),
            "income": np.round(random.lognormal(8, 0.6, count), 2),
            "debt": np.round(random.normal(0, 300, count), 1),
            "city": random.choice(["Rome", "Oslo", "Lima"], count),
            "owner": random.choice(["yes", "no"], count),
        }
    )
    rows.loc[random.random(count) < 0.1, "income"] = np.nan
    return rows.astype({"income": np.float32, "debt": np.float32}).astype({"income": float, "debt": float})


def prepared(scaler: Any, encoder: Any) -> ColumnTransformer:
    """Imputer and scaler for numbers, an encoder for categories."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), scaler)
    return ColumnTransformer([("numbers", numbers, ["age", "income", "debt"]), ("names", encoder, ["city", "owner"])])


def scores(model: Pipeline, rows: pd.DataFrame) -> Any:
    """What the library says before a link."""
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    if hasattr(model[-1], "theta_"):
        likely = model.predict_log_proba(rows)
        return likely[:, 1] - likely[:, 0]
    return model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows)


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    rows, few = table(500, random), table(60, random)
    sums = rows.age / 40 + rows.income.fillna(3000) / 3000 - rows.debt / 300 + (rows.city == "Oslo")
    answers = np.where(sums > 2.7, "good", "bad")
    onehot = OneHotEncoder(handle_unknown="ignore")
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    models = {
        "logistic": (make_pipeline(prepared(StandardScaler(), onehot), LogisticRegression()), answers),
        "linear": (make_pipeline(prepared(MinMaxScaler(), onehot), LinearRegression()), sums.to_numpy()),
        "forest": (
            make_pipeline(prepared(StandardScaler(), ordinal), RandomForestClassifier(6, max_depth=5, random_state=0)),
            answers,
        ),
        "bayes": (make_pipeline(prepared(StandardScaler(), onehot), GaussianNB(var_smoothing=0.1)), answers),
        "kernel": (make_pipeline(prepared(StandardScaler(), onehot), SVC(gamma=0.1)), answers),
    }
    for name, (model, wanted) in models.items():
        model.fit(rows, wanted)
        given = {each: content(few[each].tolist()) for each in few}
        typical = {each: content(rows[each].tolist()) for each in rows}
        said = {
            "model": content(model),
            "examples": typical,
            "rows": given,
            "scores": content(scores(model, few).tolist()),
        }
        said["predicted"] = content(np.asarray(model.predict(few)).tolist())
        (FOLDER / f"{name}.json").write_text(json.dumps(said) + "\n")
    record_metrics(random)


def record_metrics(random: np.random.Generator) -> None:
    """Scores with ties, and what the library measures of them."""
    margins = np.round(random.normal(0, 2, 300), 1)
    labels = (random.random(300) < 1 / (1 + np.exp(-margins))).astype(int)
    likely = 1 / (1 + np.exp(-margins))
    three = np.round(random.normal(0, 1, (200, 3)), 2)
    softmax = np.exp(three) / np.exp(three).sum(axis=1, keepdims=True)
    classes = random.integers(0, 3, 200)
    wanted, found = random.normal(3, 2, 100), random.normal(3, 2, 100)
    kept = {
        "margins": margins.tolist(),
        "labels": labels.tolist(),
        "auc": roc_auc_score(labels, margins),
        "ks": float(ks_2samp(margins[labels == 1], margins[labels == 0]).statistic),
        "log_loss": log_loss(labels, likely),
        "three": three.tolist(),
        "classes": classes.tolist(),
        "three_log_loss": log_loss(classes, softmax),
        "found": found.tolist(),
        "wanted": wanted.tolist(),
        "mae": mean_absolute_error(wanted, found),
        "r2": r2_score(wanted, found),
        "rmse": float(np.sqrt(((wanted - found) ** 2).mean())),
    }
    (FOLDER / "metrics.json").write_text(json.dumps(kept) + "\n")


if __name__ == "__main__":
    main()
