"""Estimators in Python as ensembles, against the estimators themselves where their libraries are installed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tacit import MisuseError, Model, UnsupportedError
from tacit import compile as compile_object
from tacit.importers.trees import of_estimator, read
from test_tree_models import tolerance
from test_trees import hard_rows, simulated

Rows = NDArray[np.float32]
REASON = "scikit-learn is not installed"
# Libraries add up rows of numbers near the largest float32 to see whether they are finite.
pytestmark = pytest.mark.filterwarnings("ignore")


def table(missing: bool = False, categories: bool = False) -> tuple[Rows, NDArray[np.float64]]:
    """Features (300, 5), the last of which may be categories 1, 2, 4, 8, .., and a target."""
    rng = np.random.default_rng(5 + missing + 2 * categories)
    x = np.round(rng.normal(size=(300, 5)), 1).astype(np.float32)
    target = x[:, 0] * x[:, 1] + np.abs(x[:, 2])
    if categories:
        x[:, 4] = 2.0 ** rng.integers(0, 9, 300)
        target = target + 2 * (np.log2(x[:, 4]) % 3 == 1)
    if missing:
        x[rng.random(x.shape) < 0.1] = np.nan
    return x, target.astype(np.float64)


def rows_at(splits: NDArray[np.float64], x: Rows, missing: bool) -> Rows:
    """Rows of training and hard ones, without NaN where an estimator refuses it, and without infinities."""
    with np.errstate(over="ignore", invalid="ignore"):
        hard = hard_rows(np.random.default_rng(2), splits.astype(np.float32), x.shape[1])
    hard = np.clip(hard, np.float32(-3e38), np.float32(3e38))
    hard[np.random.default_rng(4).random(hard.shape) < 0.1 * missing] = np.nan
    return np.concatenate([x, hard])


def splits_of(estimator: Any) -> NDArray[np.float64]:
    """The thresholds of all trees inside an estimator."""
    if hasattr(estimator, "tree_"):
        return np.asarray(estimator.tree_.threshold, np.float64)
    if hasattr(estimator, "_predictors"):
        return np.concatenate([tree.nodes["num_threshold"] for stage in estimator._predictors for tree in stage])
    return np.concatenate([splits_of(each) for each in np.ravel(np.asarray(estimator.estimators_, object))])


def check(estimator: Any, rows: Rows, want: Any, estimates: Any = None) -> Model:
    """Compile an estimator, and compare results and estimates with what it says."""
    model = compile_object(estimator)
    wanted = np.asarray(want, np.float64).reshape(len(rows), -1)
    scores = simulated(model, rows)
    ensemble = read(estimator) if isinstance(estimator, Path) else of_estimator(estimator)
    bound = tolerance(model, len(ensemble.trees), wanted)
    assert np.abs(scores - wanted).max() < bound
    if estimates is not None:
        found = model.estimates(model.simulate(rows))
        assert found is not None
        assert np.abs(found - np.asarray(estimates, np.float64).reshape(found.shape)).max() < 20 * bound
    return model


def voters(ensemble: Any, tree: Any) -> dict[str, Callable[[], Any]]:
    """Estimators that are made of others."""
    return {
        "bagging": lambda: ensemble.BaggingClassifier(
            tree.DecisionTreeClassifier(max_depth=4), n_estimators=7, max_features=3, random_state=0
        ),
        "voting": lambda: ensemble.VotingClassifier(
            [("a", ensemble.RandomForestClassifier(4, max_depth=3)), ("b", tree.DecisionTreeClassifier(max_depth=4))],
            voting="soft",
            weights=[1, 3],
        ),
        "extra": lambda: ensemble.ExtraTreesClassifier(9, max_depth=4, random_state=1),
    }


@pytest.mark.parametrize("name", ["bagging", "voting", "extra"])
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers_of_classifiers(name: str, classes: int) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble", reason=REASON)
    tree = pytest.importorskip("sklearn.tree", reason=REASON)
    x, target = table()
    y = np.digitize(target, [0.5, 1.5][: classes - 1])
    estimator = voters(ensemble, tree)[name]().fit(x, y)
    rows = rows_at(splits_of(estimator), x, False)
    check(estimator, rows, estimator.predict_proba(rows))


def test_regressors_of_regressors() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble", reason=REASON)
    tree = pytest.importorskip("sklearn.tree", reason=REASON)
    x, target = table()
    bagged = ensemble.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=4), n_estimators=6, random_state=0)
    both = ensemble.VotingRegressor([("a", tree.DecisionTreeRegressor(max_depth=3)), ("b", bagged)])
    for estimator in (bagged, both):
        estimator.fit(x, target)
        rows = rows_at(splits_of(estimator), x, False)
        check(estimator, rows, estimator.predict(rows))


@pytest.mark.parametrize("classes", [2, 4])
def test_boosting_by_votes(classes: int) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble", reason=REASON)
    tree = pytest.importorskip("sklearn.tree", reason=REASON)
    x, target = table()
    y = np.digitize(target, [0.5, 1.0, 1.5][: classes - 1]) * 3
    estimator = ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=2), n_estimators=12).fit(x, y)
    rows = rows_at(splits_of(estimator), x, False)
    certain = estimator.predict_proba(rows)
    check(estimator, rows, estimator.decision_function(rows), certain if classes > 2 else certain[:, 1])


@pytest.mark.parametrize("kind", ["two", "three", "squared", "poisson", "absolute"])
@pytest.mark.parametrize("categories", [False, True])
def test_boosting_by_histograms(kind: str, categories: bool) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble", reason=REASON)
    x, target = table(missing=True, categories=categories)
    settings: dict[str, Any] = {"max_iter": 8, "max_depth": 4, "random_state": 0}
    settings |= {"categorical_features": [4, 1]} if categories else {}
    if kind in ("two", "three"):
        y = np.digitize(target, [0.5, 1.5][: 1 + (kind == "three")])
        estimator = ensemble.HistGradientBoostingClassifier(**settings).fit(x, y)
    else:
        loss = {"squared": "squared_error", "poisson": "poisson", "absolute": "absolute_error"}[kind]
        estimator = ensemble.HistGradientBoostingRegressor(loss=loss, **settings).fit(x, np.abs(target))
    rows = rows_at(splits_of(estimator), x, True)
    rows = np.concatenate([rows, np.float32([[0, 0, 0, 0, k] for k in (-1, 0, 0.5, 1, 1.5, 2, 3, 4, 256, 300)])])
    if kind in ("two", "three"):
        certain = estimator.predict_proba(rows)
        check(estimator, rows, estimator.decision_function(rows), certain if kind == "three" else certain[:, 1])
    elif kind == "poisson":
        check(estimator, rows, np.log(estimator.predict(rows)), estimator.predict(rows))
    else:
        check(estimator, rows, estimator.predict(rows))


@pytest.mark.parametrize("settings", [{}, {"max_samples": 32, "max_features": 3, "contamination": 0.1}])
def test_isolation_forests(settings: dict[str, Any]) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble", reason=REASON)
    x, _ = table()
    estimator = ensemble.IsolationForest(n_estimators=20, random_state=0, **settings).fit(x)
    rows = rows_at(splits_of(estimator), x, False)
    want = estimator.score_samples(rows)
    link = check_link(estimator)
    check(estimator, rows, -np.log2(-want) / link.scale, want)


def check_link(estimator: Any) -> Any:
    """The link of a compiled estimator."""
    return compile_object(estimator).link


def test_boosters_in_python() -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    x, target = table(missing=True)
    y = np.asarray(["low", "middle", "high"])[np.digitize(target, [0.5, 1.5])]
    settings = {"n_estimators": 40, "num_leaves": 7, "verbose": -1, "n_jobs": 1}
    stopping = lightgbm.early_stopping(2, verbose=False)
    estimator = lightgbm.LGBMClassifier(**settings)
    estimator.fit(x, y, eval_set=[(x[::3], np.roll(y[::3], 9))], callbacks=[stopping])
    rows = rows_at(np.unique(x[~np.isnan(x)]).astype(np.float64), x, True)
    model = check(estimator, rows, estimator.predict(rows, raw_score=True), estimator.predict_proba(rows))
    assert model.description["labels"] == ["high", "low", "middle"]
    linear = lightgbm.LGBMRegressor(**settings, linear_tree=True).fit(np.nan_to_num(x), target)
    with pytest.raises(UnsupportedError, match="linear_tree=false"):
        compile_object(linear)


def test_models_of_catboost_in_python() -> None:
    catboost = pytest.importorskip("catboost", reason="CatBoost is not installed")
    x, target = table(missing=True)
    quiet = {"iterations": 9, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    estimator = catboost.CatBoostClassifier(**quiet).fit(x, target > 1)
    rows = rows_at(np.unique(x[~np.isnan(x)]).astype(np.float64), x, True)
    raw = estimator.predict(rows, prediction_type="RawFormulaVal")
    check(estimator, rows, raw, estimator.predict_proba(rows)[:, 1])
    with pytest.raises(MisuseError, match="not fitted"):
        compile_object(catboost.CatBoostRegressor())


def test_early_stopping_of_xgboost(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    x, target = table(missing=True)
    estimator = xgboost.XGBRegressor(n_estimators=60, max_depth=3, early_stopping_rounds=2, n_jobs=1)
    with pytest.raises(UnsupportedError, match="missing=0"):
        compile_object(xgboost.XGBRegressor(n_estimators=2, missing=0.0).fit(x, target))
    estimator.fit(x, target, eval_set=[(x[::3], np.roll(target[::3], 9))], verbose=False)
    assert estimator.best_iteration < estimator.get_booster().num_boosted_rounds() - 1
    rows = rows_at(np.unique(x[~np.isnan(x)]).astype(np.float64), x, True)
    check(estimator, rows, estimator.predict(rows))
    for ending in ("json", "ubj"):
        estimator.save_model(tmp_path / f"model.{ending}")
        check(tmp_path / f"model.{ending}", rows, estimator.predict(rows))


def test_categories_of_data_frames_are_read(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    rng = np.random.default_rng(0)
    words, counts = rng.choice(["x", "yy", "zzz"], 300), rng.integers(10, 14, 300)
    frame = pandas.DataFrame({"a": rng.normal(size=300).astype(np.float32)})
    frame["word"], frame["count"] = pandas.Categorical(words), pandas.Categorical(counts)
    y = (words == "yy") * 2.0 + (counts == 12) + frame["a"].to_numpy()
    trained = xgboost.train({"max_depth": 3}, xgboost.DMatrix(frame, y, enable_categorical=True), 4)
    trained.save_model(tmp_path / "model.ubj")
    boosted = lightgbm.train({"verbose": -1, "min_data_per_group": 3}, lightgbm.Dataset(frame, y), 4)
    boosted.save_model(tmp_path / "model.txt")
    rows = np.stack([frame["a"], frame["word"].cat.codes, frame["count"].cat.codes], axis=1).astype(np.float32)
    for ensemble in (read(tmp_path / "model.ubj"), read(tmp_path / "model.txt")):
        assert ensemble.categories == ((), ("x", "yy", "zzz"), (10.0, 11.0, 12.0, 13.0))
        assert "word, count" in ensemble.notes[-1]
    check(tmp_path / "model.ubj", rows, trained.predict(xgboost.DMatrix(frame, enable_categorical=True)))
    check(tmp_path / "model.txt", rows, boosted.predict(frame))


def test_what_estimators_of_trees_do_not_run() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble", reason=REASON)
    neighbors = pytest.importorskip("sklearn.neighbors", reason=REASON)
    x, target = table()
    for estimator, what in [
        (ensemble.AdaBoostRegressor(n_estimators=3), "median"),
        (ensemble.BaggingRegressor(neighbors.KNeighborsRegressor(), n_estimators=2), "made of decision trees"),
        (ensemble.RandomForestRegressor(3), "several targets"),
    ]:
        y = np.stack([target, target], 1) if "targets" in what else target
        with pytest.raises(UnsupportedError, match=what):
            compile_object(estimator.fit(x, y))


def larger(seed: int) -> tuple[Rows, NDArray[np.float64], Rows]:
    """Features (3000, 12) with two of 9 categories and holes, a target, and hard rows (2000, 12)."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=(3000, 12)), 2).astype(np.float32)
    x[:, :2] = rng.integers(0, 9, (3000, 2))
    x[rng.random(x.shape) < 0.1] = 0.0
    y = x[:, 2] * x[:, 3] + (x[:, 0] % 3 == 1) - (x[:, 1] > 4) * x[:, 4] + 0.1 * rng.normal(size=3000)
    x[rng.random(x.shape) < 0.1] = np.nan
    values = np.unique(x[~np.isnan(x)])
    rows = hard_rows(rng, values, 12)
    rows = np.concatenate([rows, x[:1600]])
    for at in (0, 1):
        rows[:1200, at] = rng.choice(np.float32([-1, -0.5, 0, 0.5, 1, 2, 3, 5, 8, 9, 100, np.nan]), 1200)
    return x, y.astype(np.float64), np.clip(rows, np.float32(-3e38), np.float32(3e38))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_larger_models_of_xgboost(seed: int, tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    x, y, rows = larger(seed)
    kinds = ["c"] * 2 + ["q"] * 10
    settings = {"max_depth": 6, "nthread": 1, "max_cat_to_onehot": 2 * seed, "seed": seed}
    trained = xgboost.train(settings, xgboost.DMatrix(x, y, feature_types=kinds, enable_categorical=True), 80)
    trained.save_model(tmp_path / "model.ubj")
    wide = xgboost.DMatrix(rows, feature_types=kinds, enable_categorical=True)
    check(tmp_path / "model.ubj", rows, trained.predict(wide))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("settings", [{}, {"zero_as_missing": True}, {"use_missing": False}])
def test_larger_models_of_lightgbm(seed: int, settings: dict[str, Any], tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    x, y, rows = larger(seed)
    usual = {"num_leaves": 25, "max_depth": 7, "verbose": -1, "num_threads": 1, "seed": seed, "cat_smooth": 1}
    trained = lightgbm.train({**usual, **settings}, lightgbm.Dataset(x, y, categorical_feature=[0, 1]), 80)
    trained.save_model(tmp_path / "model.txt")
    check(tmp_path / "model.txt", rows, trained.predict(rows))


@pytest.mark.parametrize("settings", [{}, {"nan_mode": "Max"}, {"grow_policy": "Lossguide"}])
def test_larger_models_of_catboost(settings: dict[str, Any], tmp_path: Path) -> None:
    catboost = pytest.importorskip("catboost", reason="CatBoost is not installed")
    x, y, rows = larger(4)
    quiet = {"iterations": 80, "depth": 6, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    trained = catboost.CatBoostRegressor(**quiet, **settings).fit(x, y)
    trained.save_model(str(tmp_path / "model.json"), format="json")
    check(tmp_path / "model.json", rows, trained.predict(rows))
