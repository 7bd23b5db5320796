"""Decision trees: importers against independent walkers of files and, where they are installed, the libraries."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tacit import MisuseError, Model, UnsupportedError, compile_model
from tacit import compile as compile_object
from tacit.data import tables
from tacit.data.examples import load_one
from tacit.data.ranges import Bounds
from tacit.importers.trees import of_xgboost
from tacit.importers.trees.ensemble import below_or_equal

GOLDEN = Path(__file__).parents[1] / "golden"
SMALL = GOLDEN / "xgboost_small.json"


def small() -> Any:
    """The JSON of a model of XGBoost, which was trained on random numbers for these tests."""
    return json.loads(SMALL.read_text())


def rows_and_margins() -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Rows with ties, neighbours of thresholds, missing values and both zeros, and what XGBoost says of them."""
    stored = json.loads((GOLDEN / "xgboost_small_margins.json").read_text())
    return np.asarray(stored["rows"], np.uint32).view(np.float32), np.asarray(stored["margins"])


def walked(content: Any, x: NDArray[np.float32]) -> float:
    """The sum of the leaves of a model of XGBoost, without what is added to it."""
    total = 0.0
    for tree in content["learner"]["gradient_booster"]["model"]["trees"]:
        node = 0
        while tree["left_children"][node] != -1:
            value = x[tree["split_indices"][node]]
            left = tree["default_left"][node] if np.isnan(value) else value < np.float32(tree["split_conditions"][node])
            node = tree["left_children" if left else "right_children"][node]
        total += float(np.float32(tree["split_conditions"][node]))
    return total


def bound(model: Model, trees: int) -> float:
    """How far scores may be from real sums of leaves."""
    return (trees + 1) * model.output_scale / 2


def simulated(model: Model, x: NDArray[np.float32]) -> NDArray[np.float64]:
    """Scores (N, results) of the interpreter."""
    return model.real(model.simulate(np.ascontiguousarray(x, np.float32)))


def hard_rows(rng: np.random.Generator, thresholds: NDArray[np.float32], features: int) -> NDArray[np.float32]:
    """Rows whose values are thresholds, their neighbours, zeros, the largest numbers and NaN."""
    ends = np.float32(np.inf)
    near = [thresholds, np.nextafter(thresholds, ends), np.nextafter(thresholds, -ends)]
    largest = np.finfo(np.float32).max
    values = np.concatenate([*near, np.asarray([0.0, -0.0, largest, -largest, 1e-45], np.float32)])
    return rng.choice(values, (400, features)).astype(np.float32)


def test_scores_are_those_of_xgboost(tmp_path: Path) -> None:
    compile_model(SMALL, tmp_path / "small.tacit")
    model = Model(tmp_path / "small.tacit")
    x, margins = rows_and_margins()
    scores = simulated(model, x)[:, 0]
    assert np.abs(scores - margins).max() < bound(model, 12) + 1e-5
    content = small()
    base = margins[0] - walked(content, x[0])
    # XGBoost refuses infinities unless they stand for missing values; trees have no reason to.
    ends = np.float32([[np.inf] * 6, [-np.inf] * 6, [np.inf, -np.inf] * 3])
    x, scores = np.concatenate([x, ends]), np.concatenate([scores, simulated(model, ends)[:, 0]])
    walks = np.asarray([walked(content, row) for row in x]) + base
    assert np.abs(scores - walks).max() < bound(model, 12) + 1e-6
    assert model.columns == ("age", "income", "debt", "cards", "rate", "limit")
    assert model.reads_keys
    assert model.bounds == Bounds.everything()


@pytest.mark.parametrize(
    "broken",
    [
        lambda tree: tree["left_children"].__setitem__(0, 0),
        lambda tree: tree["left_children"].__setitem__(0, 10**9),
        lambda tree: tree["left_children"].__setitem__(0, tree["right_children"][0]),
        lambda tree: tree["split_conditions"].__setitem__(0, float("nan")),
        lambda tree: tree["split_indices"].__setitem__(0, 6),
        lambda tree: tree["split_indices"].pop(),
        lambda tree: tree.pop("left_children"),
        lambda tree: tree["split_conditions"].__setitem__(-1, float("inf")),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, broken: Any) -> None:
    content = small()
    broken(content["learner"]["gradient_booster"]["model"]["trees"][0])
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(MisuseError):
        compile_model(tmp_path / "model.json", tmp_path / "model.tacit")
    for text in ("", "[]", "{}", '{"learner": 3}'):
        (tmp_path / "model.json").write_text(text)
        with pytest.raises(MisuseError):
            compile_model(tmp_path / "model.json", tmp_path / "model.tacit")


def test_what_does_not_run_is_refused_with_advice() -> None:
    def changed(change: Any) -> Any:
        content = small()
        change(content["learner"])
        return content

    for change, what in [
        (lambda learner: learner["gradient_booster"].update(name="gblinear"), "gblinear"),
        (lambda learner: learner["objective"].update(name="custom:mine"), "custom:mine"),
        (lambda learner: learner["gradient_booster"].update(name="unknown"), "unknown"),
    ]:
        with pytest.raises(UnsupportedError, match=what):
            of_xgboost(changed(change), "model")


def test_base_scores_are_read_in_all_their_forms() -> None:
    content = small()
    for text in ("5E-1", "[5E-1]", "0.5"):
        content["learner"]["learner_model_param"]["base_score"] = text
        assert of_xgboost(content, "model").base == (0.0,)
    content["learner"]["objective"]["name"] = "reg:squarederror"
    assert of_xgboost(content, "model").base == (0.5,)


@np.errstate(over="ignore")
def test_thresholds_of_64_bits_are_floored() -> None:
    rng = np.random.default_rng(3)
    thresholds = np.concatenate([rng.normal(size=500), rng.normal(size=500).astype(np.float32), [1e300, -1e300, 0.0]])
    floors = below_or_equal(thresholds)
    ends = np.float32(np.inf)
    for x in (floors, np.nextafter(floors, ends), np.nextafter(floors, -ends)):
        assert np.array_equal(x.astype(np.float64) <= thresholds, x <= floors)


def test_tables_are_read_by_the_names_of_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("b,extra,a\n1,x,2.5\n,y,NA\n")
    assert np.array_equal(tables.read(path, ["a", "b"]), np.float32([[2.5, 1], [np.nan, np.nan]]), equal_nan=True)
    with pytest.raises(MisuseError, match=r"lacks 1 of the model's columns: c"):
        tables.read(path, ["a", "c"])
    with pytest.raises(MisuseError, match="no number"):
        tables.read(path)
    path.write_text("1,2\n3,4\n")
    assert np.array_equal(tables.read(path, ["a", "b"]), [[1, 2], [3, 4]])
    path.write_text("a,b\n1\n")
    with pytest.raises(MisuseError, match="row 1 has 1 values"):
        tables.read(path)
    path.write_text("a,a\n1,2\n")
    with pytest.raises(MisuseError, match="one name"):
        tables.read(path, ["a"])
    path.write_text("")
    with pytest.raises(MisuseError, match="no rows"):
        tables.read(path)


def test_missing_values_are_for_models_that_know_them(tmp_path: Path) -> None:
    compile_model(SMALL, tmp_path / "small.tacit")
    wanted = Model(tmp_path / "small.tacit").wanted
    np.save(tmp_path / "rows.npy", np.full((2, 6), np.nan, np.float32))
    assert load_one(tmp_path / "rows.npy", wanted).x.shape == (2, 6)
    with pytest.raises(MisuseError, match="NaN"):
        load_one(tmp_path / "rows.npy", wanted._replace(missing=False))


SKLEARN = [
    ("tree", "DecisionTreeClassifier", {"max_depth": 4}),
    ("tree", "DecisionTreeRegressor", {"max_leaf_nodes": 6}),
    ("ensemble", "RandomForestClassifier", {"max_depth": 5, "n_estimators": 12}),
    ("ensemble", "RandomForestRegressor", {"max_depth": 3, "n_estimators": 7}),
    ("ensemble", "ExtraTreesClassifier", {"max_depth": 4, "n_estimators": 9}),
    ("ensemble", "GradientBoostingClassifier", {"n_estimators": 8}),
    ("ensemble", "GradientBoostingRegressor", {"n_estimators": 8, "max_depth": 2}),
]


@np.errstate(over="ignore", invalid="ignore")
@pytest.mark.parametrize(("module", "name", "settings"), SKLEARN)
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_those_of_scikit_learn(module: str, name: str, settings: dict[str, Any], classes: int) -> None:
    library = pytest.importorskip(f"sklearn.{module}", reason="scikit-learn is not installed")
    rng = np.random.default_rng(classes)
    x = np.round(rng.normal(size=(300, 5)), 1).astype(np.float32)
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(int) + (classes > 2) * (x[:, 3] > 1)
    estimator = getattr(library, name)(random_state=0, **settings).fit(x, y)
    model = compile_object(estimator)
    stages = np.asarray(getattr(estimator, "estimators_", [estimator])).ravel()
    splits = np.concatenate([stage.tree_.threshold[stage.tree_.feature >= 0] for stage in stages])
    rows = np.concatenate([x, hard_rows(rng, splits.astype(np.float32), 5)])
    if hasattr(estimator, "decision_function"):
        want = estimator.decision_function(rows)
    else:
        want = (estimator.predict_proba if hasattr(estimator, "classes_") else estimator.predict)(rows)
    want = np.asarray(want, np.float64).reshape(len(rows), -1)
    scores = simulated(model, rows)
    largest = np.abs(want).max()
    assert np.abs(scores - want).max() < bound(model, len(stages)) + 1e-12 * largest
    if want.shape[1] > 1:
        best = np.sort(want, axis=1)
        clear = best[:, -1] - best[:, -2] > 4 * bound(model, len(stages))
        assert np.array_equal(scores.argmax(axis=1)[clear], want.argmax(axis=1)[clear])


@np.errstate(over="ignore")
@pytest.mark.parametrize("objective", ["binary:logistic", "reg:squarederror", "multi:softprob", "count:poisson"])
@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_margins_are_those_of_the_library(objective: str, booster: str) -> None:
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    rng = np.random.default_rng(11)
    x = np.round(rng.normal(size=(500, 7)), 2).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    y = (np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1]) ** 2 > 1).astype(int) + np.isnan(x[:, 2])
    settings = {"objective": objective, "booster": booster, "max_depth": 5, "nthread": 1}
    settings |= {"rate_drop": 0.2} if booster == "dart" else {}
    settings |= {"num_class": 3} if objective.startswith("multi") else {}
    data = xgboost.DMatrix(x, np.minimum(y, 1) if objective == "binary:logistic" else y)
    trained = xgboost.train(settings, data, 10)
    model = compile_object(trained)
    content = json.loads(bytes(trained.save_raw("json")))["learner"]["gradient_booster"]
    trees = (content["gbtree"] if booster == "dart" else content)["model"]["trees"]
    splits = np.concatenate([np.asarray(tree["split_conditions"], np.float32) for tree in trees])
    rows = np.concatenate([x, hard_rows(rng, splits, 7)])
    want = trained.predict(xgboost.DMatrix(rows), output_margin=True).reshape(len(rows), -1)
    assert np.abs(simulated(model, rows) - want).max() < bound(model, len(trees)) + 1e-5
