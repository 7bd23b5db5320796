"""Trains small models of tree libraries and records what the libraries say of hard rows, for tests/data/trees.

It needs xgboost, lightgbm, catboost, scikit-learn, skl2onnx, onnxmltools and onnxruntime, which tests do without:

    python -m venv build/venv-trees
    build/venv-trees/bin/pip install xgboost lightgbm catboost scikit-learn skl2onnx onnxmltools onnxruntime
    build/venv-trees/bin/python scripts/tree_models.py

Each model is a file of its library, with NAME.expected.json beside it: `rows` (N, features) by the bits of their
float32 numbers, and `margins` (N, results) and `estimates` of the library. Rows have the values at which trees split,
their neighbours, zeros, infinities, unknown categories, and NaN in a tenth of all places.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from frozen_objects import METHODS, freeze

FOLDER = Path(__file__).parents[1] / "tests" / "data" / "trees"
ROWS = 90
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Recorded:
    """A model: how it is written, what it says of rows (N, features), and the numbers at which it splits."""

    write: Callable[[Path], None]
    margins: Callable[[NDArray[np.float32]], Floats]
    estimates: Callable[[NDArray[np.float32]], Floats] | None
    splits: NDArray[np.float64]
    ending: str
    infinities: bool = True


def table(categories: int = 0, missing: bool = True, zeros: bool = False) -> tuple[NDArray[np.float32], Floats]:
    """Features (300, 5), the last of which may be a category, and a target of all of them."""
    rng = np.random.default_rng(categories + 7 * missing + 70 * zeros)
    x = np.round(rng.normal(size=(300, 5)), 1).astype(np.float32)
    target = x[:, 0] * x[:, 1] + np.abs(x[:, 2]) + 0.1 * rng.normal(size=300)
    if categories:
        x[:, 4] = rng.integers(0, categories, 300)
        target = target + 2.0 * (x[:, 4] % 3 == 1)
    if zeros:
        x[rng.random(x.shape) < 0.3] = 0.0
    if missing:
        x[rng.random(x.shape) < 0.1] = np.nan
    return x, target.astype(np.float64)


def hard_rows(splits: Floats, x: NDArray[np.float32], infinities: bool) -> NDArray[np.float32]:
    """Rows of training, then rows of numbers at which trees split, their neighbours, and NaN in a tenth of places."""
    rng = np.random.default_rng(3)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = splits.astype(np.float32)
        up, down = np.float32(np.inf), np.float32(-np.inf)
        near = [narrow, np.nextafter(narrow, up), np.nextafter(narrow, down)]
    special = [0.0, -0.0, 1e-45, -1e-45, 1e-35, -1e-35, 1.1e-35, 3e38, -3e38, -1.0, -0.5, 0.5, 1.0, 3.0, 3.5, 40.0, 1e9]
    special += [np.inf, -np.inf] if infinities else []
    values = np.concatenate([*near, np.asarray(special, np.float32)])
    values = values[np.isfinite(values) | infinities]
    hard = rng.choice(values, (ROWS - 20, x.shape[1])).astype(np.float32)
    hard[rng.random(hard.shape) < 0.1] = np.nan
    return np.concatenate([x[:20], hard])


def column(values: Any) -> Floats:
    """Results as (N, results)."""
    found = np.asarray(values, np.float64)
    return found.reshape(len(found), -1)


def walk_numbers(content: Any, names: frozenset[str]) -> Iterator[float]:
    """All numbers that stand under some names in JSON."""
    if isinstance(content, dict):
        for name, value in content.items():
            if name in names:
                yield from np.ravel(value).tolist()
            else:
                yield from walk_numbers(value, names)
    elif isinstance(content, list):
        for value in content:
            yield from walk_numbers(value, names)


def xgboost_models() -> Iterator[tuple[str, Recorded, NDArray[np.float32]]]:
    """Every kind of objective, categories, vector leaves, DART, and both formats."""
    import xgboost

    def model(
        name: str, settings: dict[str, Any], y: Any, categories: int = 0, ending: str = "json", **more: Any
    ) -> Any:
        x, target = table(categories)
        kinds = ["q"] * 4 + (["c"] if categories else ["q"])

        def data(rows: NDArray[np.float32], **labels: Any) -> Any:
            return xgboost.DMatrix(rows, feature_types=kinds, enable_categorical=True, **labels)

        labels = y(target)
        given = labels if isinstance(labels, dict) else {"label": labels}
        trained = xgboost.train({"nthread": 1, "max_depth": 3, **settings}, data(x, **given), 5)
        content = json.loads(bytes(trained.save_raw("json")))
        splits = np.asarray([*walk_numbers(content, frozenset({"split_conditions"}))], np.float64)

        def margins(rows: NDArray[np.float32]) -> Floats:
            return column(trained.predict(data(rows), output_margin=True))

        def estimates(rows: NDArray[np.float32]) -> Floats:
            return column(trained.predict(data(rows)))

        shown = None if more.get("labels") else estimates
        return name, Recorded(trained.save_model, margins, shown, splits, ending, False), x

    def binary(y: Floats) -> Floats:
        return (y > 1).astype(float)

    yield model("xgboost-logistic", {"objective": "binary:logistic"}, binary)
    yield model("xgboost-ubj", {"objective": "reg:squarederror"}, lambda y: y, ending="ubj")
    yield model("xgboost-onehot", {"objective": "binary:logistic", "max_cat_to_onehot": 20}, binary, 6)
    yield model("xgboost-sets", {"objective": "reg:squarederror", "max_cat_to_onehot": 1}, lambda y: y, 14)
    yield model("xgboost-sets-ubj", {"objective": "count:poisson"}, lambda y: np.abs(np.round(y)), 9, ending="ubj")
    vector = {"multi_strategy": "multi_output_tree", "tree_method": "hist"}
    yield model("xgboost-vector", vector, lambda y: np.stack([y, -y, y * y], 1))
    yield model("xgboost-targets", {"objective": "reg:squarederror"}, lambda y: np.stack([y, y * y], 1))
    yield model("xgboost-dart", {"booster": "dart", "rate_drop": 0.3, "objective": "binary:logitraw"}, binary)
    classes = {"objective": "multi:softprob", "num_class": 3}
    yield model("xgboost-softmax", classes, lambda y: np.digitize(y, [0.5, 1.5]))
    yield model("xgboost-hinge", {"objective": "binary:hinge"}, binary)
    yield model("xgboost-cox", {"objective": "survival:cox"}, lambda y: np.abs(y) + 0.1)
    bounds = {"objective": "survival:aft"}
    yield model(
        "xgboost-aft", bounds, lambda y: {"label_lower_bound": np.abs(y) + 0.1, "label_upper_bound": np.abs(y) + 1}
    )
    quantiles = {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.5, 0.9]}
    yield model("xgboost-quantile", quantiles, lambda y: y)
    yield model("xgboost-ranking", {"objective": "rank:ndcg"}, lambda y: {"label": binary(y), "group": [30] * 10})
    yield model("xgboost-gamma", {"objective": "reg:gamma"}, lambda y: np.abs(y) + 0.1)


def lightgbm_models() -> Iterator[tuple[str, Recorded, NDArray[np.float32]]]:
    """Missing values of all kinds, categories, averages, and all kinds of links."""
    import lightgbm

    def model(name: str, settings: dict[str, Any], y: Any, categories: int = 0, **shape: Any) -> Any:
        x, target = table(categories, **shape)
        labels = y(target)
        group = {"group": [30] * 10} if settings["objective"] == "lambdarank" else {}
        chosen = [4] if categories else []
        data = lightgbm.Dataset(x, labels, categorical_feature=chosen, **group)
        usual = {"num_leaves": 7, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5, "min_data_per_group": 3}
        trained = lightgbm.train({**usual, "cat_smooth": 1.0, "max_cat_to_onehot": 2, **settings}, data, 5)
        splits = np.asarray([*walk_numbers(trained.dump_model(), frozenset({"threshold"}))])
        numbers = np.asarray([float(each) for each in splits if "||" not in str(each)])

        def margins(rows: NDArray[np.float32]) -> Floats:
            # Raw scores of forests are sums; the forest's prediction is their mean.
            return column(trained.predict(rows, raw_score=settings.get("boosting") != "rf"))

        def estimates(rows: NDArray[np.float32]) -> Floats:
            return column(trained.predict(rows))

        return name, Recorded(trained.save_model, margins, estimates, numbers, "txt"), x

    def binary(y: Floats) -> Floats:
        return (y > 1).astype(float)

    yield model("lightgbm-binary", {"objective": "binary", "sigmoid": 0.7}, binary, 12)
    yield model("lightgbm-complete", {"objective": "regression"}, lambda y: y, missing=False)
    zeros = {"objective": "regression", "zero_as_missing": True}
    yield model("lightgbm-zero-missing", zeros, lambda y: y, zeros=True)
    yield model("lightgbm-no-missing", {"objective": "huber", "use_missing": False}, lambda y: y, 5)
    forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7, "objective": "regression"}
    yield model("lightgbm-forest", forest, lambda y: y)
    classes = {"objective": "multiclass", "num_class": 3}
    yield model("lightgbm-multiclass", classes, lambda y: np.digitize(y, [0.5, 1.5]))
    yield model("lightgbm-one-vs-all", {**classes, "objective": "multiclassova"}, lambda y: np.digitize(y, [0.5, 1.5]))
    yield model("lightgbm-ranking", {"objective": "lambdarank"}, binary)
    yield model("lightgbm-tweedie", {"objective": "tweedie"}, np.abs)
    yield model("lightgbm-quantile", {"objective": "quantile", "alpha": 0.8}, lambda y: y)
    yield model("lightgbm-sqrt", {"objective": "regression", "reg_sqrt": True}, lambda y: y * 9)
    yield model("lightgbm-cross-entropy", {"objective": "cross_entropy_lambda"}, lambda y: np.clip(np.abs(y) / 4, 0, 1))


def catboost_models() -> Iterator[tuple[str, Recorded, NDArray[np.float32]]]:
    """Symmetric trees and others, and NaN on both sides."""
    import catboost

    def model(name: str, loss: str, y: Any, **settings: Any) -> Any:
        x, target = table()
        usual = {"iterations": 6, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
        trained = catboost.CatBoost({**usual, "loss_function": loss, **settings}).fit(x, y(target))

        def write(path: Path) -> None:
            trained.save_model(str(path), format="json")
            content = json.loads(path.read_text())
            kept = {name: value for name, value in content["model_info"].items() if name in ("params", "class_params")}
            content["model_info"] = kept
            path.write_text(json.dumps(content))

        def margins(rows: NDArray[np.float32]) -> Floats:
            return column(trained.predict(rows, prediction_type="RawFormulaVal"))

        def estimates(rows: NDArray[np.float32]) -> Floats:
            kind = {"Logloss": "Probability", "MultiClass": "Probability", "Poisson": "Exponent"}.get(loss)
            if kind is None:
                return margins(rows)
            return column(trained.predict(rows, prediction_type=kind))[:, (1 if loss == "Logloss" else 0) :]

        splits = np.concatenate([np.asarray(each, np.float64) for each in trained.get_borders().values()])
        return name, Recorded(write, margins, estimates, splits, "json"), x

    def binary(y: Floats) -> Floats:
        return (y > 1).astype(int)

    yield model("catboost-binary", "Logloss", binary)
    yield model("catboost-regression", "RMSE", lambda y: y + 5, nan_mode="Max")
    yield model("catboost-multiclass", "MultiClass", lambda y: np.digitize(y, [0.5, 1.5]))
    yield model("catboost-depthwise", "RMSE", lambda y: y, grow_policy="Depthwise")
    yield model("catboost-lossguide", "MultiClass", lambda y: np.digitize(y, [0.5, 1.5]), grow_policy="Lossguide")
    yield model("catboost-poisson", "Poisson", lambda y: np.abs(np.round(y)))


def onnx_models() -> Iterator[tuple[str, Recorded, NDArray[np.float32]]]:
    """What exporters write of estimators, as onnxruntime runs it."""
    import lightgbm
    import onnx
    import onnxmltools
    import onnxruntime
    import skl2onnx
    import xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType
    from sklearn import ensemble

    x, target = table(missing=False)
    holes, _ = table()
    two, three = (target > 1).astype(int), np.digitize(target, [0.5, 1.5])

    def recorded(name: str, content: onnx.ModelProto, two_scores: bool) -> Any:
        runs = onnxruntime.InferenceSession(content.SerializeToString())
        last = [entry.name for entry in content.graph.output][-1]

        def estimates(rows: NDArray[np.float32]) -> Floats:
            found = column(runs.run([last], {runs.get_inputs()[0].name: rows})[0])
            return found[:, 1:] if two_scores else found

        splits = [
            entry.floats for node in content.graph.node for entry in node.attribute if entry.name == "nodes_values"
        ]
        numbers = np.concatenate([np.asarray(each, np.float64) for each in splits])
        # Scores before a last function are not what onnxruntime gives.
        return name, Recorded(lambda path: onnx.save(content, path), estimates, estimates, numbers, "onnx"), holes

    def sklearn(estimator: Any, y: Any) -> onnx.ModelProto:
        options = {id(estimator): {"zipmap": False}} if hasattr(estimator, "predict_proba") else None
        return skl2onnx.to_onnx(estimator.fit(x, y), x[:1], target_opset={"": 17, "ai.onnx.ml": 3}, options=options)

    usual = {"n_estimators": 5, "max_depth": 4, "random_state": 0}
    yield recorded("onnx-forest", sklearn(ensemble.RandomForestClassifier(**usual), three), False)
    yield recorded("onnx-forest-regressor", sklearn(ensemble.RandomForestRegressor(**usual), target), False)
    yield recorded("onnx-boosting", sklearn(ensemble.GradientBoostingClassifier(**usual), two), True)
    yield recorded("onnx-boosting-classes", sklearn(ensemble.GradientBoostingClassifier(**usual), three), False)
    kinds = [("x", FloatTensorType([None, 5]))]
    boosted = xgboost.XGBRegressor(n_estimators=5, max_depth=3, n_jobs=1).fit(holes, target)
    yield recorded("onnx-xgboost", onnxmltools.convert_xgboost(boosted, initial_types=kinds, target_opset=15), False)
    leaves = lightgbm.LGBMClassifier(n_estimators=5, num_leaves=7, verbose=-1, n_jobs=1).fit(holes, two)
    converted = onnxmltools.convert_lightgbm(leaves, initial_types=kinds, zipmap=False, target_opset=15)
    yield recorded("onnx-lightgbm", converted, True)


def sklearn_models() -> Iterator[tuple[str, Recorded, NDArray[np.float32]]]:
    """Estimators, frozen as the attributes that importers read."""
    from sklearn import ensemble, tree

    x, target = table(missing=False)
    holes, more = table(9)
    two, three = (target > 1).astype(int), np.digitize(target, [0.5, 1.5])

    def model(name: str, estimator: Any, says: str, shown: str | None = None, rows: Any = None, **last: Any) -> Any:
        x_own = x if rows is None else rows
        zeros = np.zeros((1, x_own.shape[1]), np.float32)

        def write(path: Path) -> None:
            content = freeze(estimator)
            if hasattr(estimator, "init_"):
                # Gradient boosting says what it begins with by its results.
                scores = getattr(estimator, "decision_function", estimator.predict)(zeros)
                role = "decision_function" if hasattr(estimator, "decision_function") else "predict"
                content[METHODS] = {role: freeze(np.asarray(scores))}
                stages = content["attributes"]["estimators_"]["objects"]
                for stage, own in zip(stages, estimator.estimators_.ravel(), strict=True):
                    stage["attributes"]["tree_"][METHODS] = {"predict": freeze(own.tree_.predict(zeros))}
            path.write_text(json.dumps(content))

        def margins(found: NDArray[np.float32]) -> Floats:
            return column(getattr(estimator, says)(found))

        def estimates(found: NDArray[np.float32]) -> Floats:
            return column(getattr(estimator, shown or says)(found))[:, last.get("first", 0) :]

        splits = np.linspace(-2, 2, 81)
        return name, Recorded(write, margins, estimates, splits, "json", False), x_own

    usual = {"n_estimators": 6, "max_depth": 3, "random_state": 0}
    yield model("sklearn-forest", ensemble.RandomForestClassifier(**usual).fit(x, three), "predict_proba")
    yield model("sklearn-extra", ensemble.ExtraTreesRegressor(**usual).fit(x, target), "predict")
    boosted = ensemble.GradientBoostingClassifier(**usual).fit(x, two)
    yield model("sklearn-boosting", boosted, "decision_function", "predict_proba", first=1)
    stumps = ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=2), n_estimators=6).fit(x, three)
    yield model("sklearn-votes", stumps, "decision_function", "predict_proba")
    settings = {"max_iter": 6, "max_depth": 3, "categorical_features": [4], "random_state": 0}
    histograms = ensemble.HistGradientBoostingClassifier(**settings).fit(holes, np.digitize(more, [0.5, 1.5]))
    yield model("sklearn-histograms", histograms, "decision_function", "predict_proba", holes)
    bagged = ensemble.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=3), n_estimators=5, max_features=3)
    yield model("sklearn-bagging", bagged.fit(x, target), "predict")
    parts = [("a", ensemble.RandomForestClassifier(**usual)), ("b", tree.DecisionTreeClassifier(max_depth=3))]
    voting = ensemble.VotingClassifier(parts, voting="soft", weights=[1, 3]).fit(x, three)
    yield model("sklearn-voting", voting, "predict_proba")
    forest = ensemble.IsolationForest(n_estimators=12, max_samples=64, max_features=3, random_state=0).fit(x)
    yield model("sklearn-isolation", forest, "score_samples")


LIBRARIES = {
    "sklearn": sklearn_models,
    "xgboost": xgboost_models,
    "lightgbm": lightgbm_models,
    "catboost": catboost_models,
    "onnx": onnx_models,
}


def record(name: str, model: Recorded, x: NDArray[np.float32], folder: Path) -> None:
    """Write a model and what its library says of hard rows."""
    model.write(folder / f"{name}.{model.ending}")
    rows = hard_rows(model.splits, x, model.infinities)
    if name.startswith("sklearn") and not np.isnan(x).any():
        # These estimators refuse NaN, and numbers whose sum overflows.
        rows = np.clip(np.nan_to_num(rows, nan=0.5), np.float32(-1e30), np.float32(1e30))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        margins = model.margins(rows)
        estimates = None if model.estimates is None else model.estimates(rows)
    content = {
        "model": f"{name}.{model.ending}",
        "rows": rows.view(np.uint32).tolist(),
        "margins": margins.tolist(),
        "estimates": None if estimates is None else estimates.tolist(),
    }
    (folder / f"{name}.expected.json").write_text(json.dumps(content) + "\n")
    print(f"{name}: {margins.shape[1]} results")


def main() -> None:
    """Write all models, or those of some libraries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*")
    parser.add_argument("--output", type=Path, default=FOLDER)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    for library in given.libraries or LIBRARIES:
        for name, model, x in LIBRARIES[library]():
            record(name, model, x, given.output)


if __name__ == "__main__":
    main()
