"""Pipelines of scikit-learn: what is compiled says what the library said of recorded rows."""

import json
from collections import namedtuple

import numpy as np
import pytest
import recorded
from tacit import MisuseError, Model, Options, UnsupportedError
from tacit import compile as compile_object
from tacit.data import schema
from tacit.data.links import Link
from tacit.data.schema import Column, Feature, Result, Schema
from tacit.importers.pipelines import read
from tacit.importers.pipelines.columns import Derived, Step
from tacit.importers.pipelines.moved import Search
from tacit.measure import tables

SKLEARN = "scikit-learn is not installed"


def compiled(name, folder, rows=None):
    """A recorded pipeline, compiled; and what was recorded."""
    said = recorded.read(name)
    model = compile_object(said["model"], rows or said["examples"], output=folder / f"{name}.tacit")
    return model, said


@pytest.mark.parametrize(("name", "bound"), [("logistic", 0.01), ("linear", 0.01), ("bayes", 0.2), ("kernel", 0.6)])
def test_scores_are_the_librarys_within_the_stated_bound(name, bound, tmp_path):
    model, said = compiled(name, tmp_path)
    found = model.real(model.simulate(said["rows"]))[:, 0]
    error = model.schema.result.error
    assert np.abs(found - np.array(said["scores"])).max() <= error < bound
    labels = model.schema.result.labels(found[:, None])
    if labels is not None:
        assert sum(label is None for label in labels) < 12
        pairs = zip(labels, said["predicted"], strict=True)
        assert all(label in (None, wanted) for label, wanted in pairs)


def test_forests_behind_scalers_and_imputers_reach_the_same_leaves(tmp_path):
    model, said = compiled("forest", tmp_path)
    found = model.real(model.simulate(said["rows"]))
    assert np.abs(found - np.array(said["scores"])).max() <= model.schema.result.error < 1e-6
    assert model.schema.result.labels(found) == said["predicted"]
    assert any(np.isnan(said["rows"]["income"]))


def test_clients_get_categories_and_no_statistics(tmp_path):
    model, said = compiled("logistic", tmp_path)
    text = (tmp_path / "logistic.schema").read_text()
    assert schema.parse(text) == model.schema
    steps = said["model"].steps[0][1].transformers_[0][1].steps
    learnt = [*steps[0][1].statistics_, *steps[1][1].mean_, *steps[1][1].scale_, *said["model"].steps[1][1].coef_[0]]
    numbers = {each for part in json.loads(text).values() for each in flattened(part) if isinstance(each, float)}
    assert not any(np.isclose(number, value) for number in numbers for value in learnt if value != 1.0)
    assert [each.name for each in model.schema.columns] == ["age", "income", "debt", "city", "owner"]
    assert model.schema.columns[3].categories == ("Lima", "Oslo", "Rome")


def flattened(content):
    if isinstance(content, dict | list):
        return [
            each for value in (content.values() if isinstance(content, dict) else content) for each in flattened(value)
        ]
    return [content]


def test_unknown_categories_follow_the_encoder(tmp_path):
    model, said = compiled("logistic", tmp_path)
    rows = {name: values[:2] for name, values in said["rows"].items()}
    rows["city"] = ["Paris", "Rome"]
    scores = model.real(model.simulate(rows))[:, 0]
    coefficients = said["model"].steps[1][1].coef_[0]
    rows["city"] = [said["rows"]["city"][0], "Rome"]
    known = model.real(model.simulate(rows))[:, 0]
    place = 3 + ["Lima", "Oslo", "Rome"].index(said["rows"]["city"][0])
    assert known[0] - scores[0] == pytest.approx(coefficients[place], abs=2 * model.schema.result.error)
    strict = Schema((Column("city", ("Lima", "Oslo")),), (Feature("lookup", 0, (1.0, 0.0, 0.0)),))
    with pytest.raises(MisuseError, match="column `city`, row 2 holds a category"):
        strict.encode({"city": ["Oslo", "Bern"]})


def test_models_without_examples_are_calibrated_by_their_scalers(tmp_path):
    said = recorded.read("logistic")
    said["model"].steps[0][1].transformers_[0] = ("numbers", *said["model"].steps[0][1].transformers_[0][1:])
    model = compile_object(said["model"], output=tmp_path / "x.tacit")
    found = model.real(model.simulate(said["rows"]))[:, 0]
    inside = np.abs(found - np.array(said["scores"])) <= model.schema.result.error
    assert inside.mean() > 0.9


class Cut:
    """A transformer that rounds as float64 does, and saturates."""

    def transform(self, x):
        return np.clip((x - 0.1) / 3, -1, 1)


@np.errstate(over="ignore")
@pytest.mark.parametrize("ties_left", [True, False])
def test_thresholds_are_moved_to_the_last_float_that_goes_left(ties_left):
    column = Derived(None, 0.0, Feature("value", 0), (Step(Cut(), 0, 1, 0),))
    search = Search(column, ties_left, np.float64)
    given = np.float32([-0.9, -0.3, 0.0, 1e-7, 0.7, 1.0, -1.0, 2.0, -2.0])
    found = search.thresholds(given)
    largest = np.finfo(np.float32).max
    near = [found, np.nextafter(found, np.float32(np.inf)), np.nextafter(found, np.float32(-np.inf))]
    x = np.concatenate([*near, np.float32([0, -0.0, largest, -largest, 1e-45, -3, 3, 3.1])])
    x = x[np.isfinite(x)]
    values = search.values(x)
    for threshold, moved in zip(given, found, strict=True):
        left = values <= threshold if ties_left else values < threshold
        assert np.array_equal(x <= moved if ties_left else x < moved, left)


class Logarithm:
    """A transformer of positive numbers."""

    def transform(self, x):
        return np.log(x)


def test_thresholds_behind_logarithms_are_among_positive_numbers():
    column = Derived(None, 0.0, Feature("value", 0), (Step(Logarithm(), 0, 1, 0),))
    found = Search(column, True, np.float64).thresholds(np.float32([-3.0, 0.0, 5.0]))
    np.testing.assert_allclose(found, np.exp([-3.0, 0.0, 5.0]), rtol=1e-6)
    assert found[1] == 1.0


def test_what_does_not_run_is_refused_with_advice():
    said = recorded.read("forest")
    steps = said["model"].steps
    projection = recorded.kind("PCA")({"components_": np.ones((5, 5)), "mean_": np.zeros(5)})
    steps.insert(1, ("pca", projection))
    with pytest.raises(UnsupportedError, match="trees behind PCA"):
        read(said["model"])
    steps[1] = ("own", recorded.kind("OwnTransformer")({}))
    with pytest.raises(UnsupportedError, match="transformer OwnTransformer; apply it before the pipeline"):
        read(said["model"])
    del steps[1]
    steps[1] = ("nearest", recorded.kind("KNeighborsMixin")({}))
    with pytest.raises(UnsupportedError, match="whole training data; train gradient boosted trees"):
        read(said["model"])
    steps[1] = ("other", recorded.kind("GaussianProcessRegressor")({}))
    with pytest.raises(UnsupportedError, match="estimator GaussianProcessRegressor"):
        read(said["model"])
    with pytest.raises(MisuseError, match="not fitted"):
        read(recorded.kind("Pipeline")({"steps": [("scale", recorded.kind("StandardScaler")({}))]}))


def test_schemas_of_files_are_checked(tmp_path):
    good = Schema.plain(["a", "b"], Result("margin", ("no", "yes"), 0.5, Link("sigmoid")))
    assert schema.parse(good.to_json()) == good
    for change in (
        {"columns": [{"name": "a"}, {"name": "a"}]},
        {"features": [{"kind": "value", "column": 2}]},
        {"features": [{"kind": "lookup", "column": 0, "table": [1.0]}]},
        {"features": [{"kind": "own", "column": 0}]},
        {"features": [{"kind": "normalised", "column": 0, "norm": "l3", "together": [0]}]},
        {"features": []},
        {"result": {"kind": "own", "names": []}},
    ):
        with pytest.raises(MisuseError, match="no schema"):
            schema.parse(json.dumps({**json.loads(good.to_json()), **change}))
    for text in ("", "[]", "{}", "3"):
        with pytest.raises(MisuseError):
            schema.parse(text)
    with pytest.raises(MisuseError, match="no regular file"):
        schema.read(tmp_path)


def test_metrics_are_those_of_the_library():
    said = json.loads((recorded.TABLES / "metrics.json").read_text())
    margins, labels = np.array(said["margins"]), np.array(said["labels"])
    found = tables.of_classifier(margins[:, None], labels, Result("margin", ("0", "1"), link=Link("sigmoid")))
    assert len(np.unique(margins)) < len(margins)
    for name in ("auc", "ks", "log_loss"):
        assert found[name] == pytest.approx(said[name], rel=1e-12)
    assert found["accuracy"] == ((margins > 0) == labels).mean()
    three = tables.of_classifier(
        np.array(said["three"]), np.array(said["classes"]), Result("scores", link=Link("softmax"))
    )
    assert three["log_loss"] == pytest.approx(said["three_log_loss"], rel=1e-12)
    assert "auc" not in three
    errors = tables.of_regressor(np.array(said["found"]), np.array(said["wanted"]))
    for name in ("rmse", "mae", "r2"):
        assert errors[f"label_{name}"] == pytest.approx(said[name], rel=1e-12)
    same = np.zeros(3, np.int64)
    assert tables.auc(margins[:3], same == 1) is None
    assert tables.ks(margins[:3], same == 1) is None


def test_scores_near_the_border_are_undecided():
    scores = np.array([[0.3], [-0.3], [0.05], [-0.05], [0.0]])
    assert Result("margin", ("no", "yes"), 0.1).labels(scores) == ["yes", "no", None, None, None]
    assert Result("margin", ("no", "yes")).labels(scores) == ["yes", "no", "yes", "no", "no"]
    three = np.array([[1.0, 0.0, 0.5], [1.0, 0.9, 0.0]])
    assert Result("scores", ("a", "b", "c"), 0.1).labels(three) == ["a", None]
    assert Result("value").labels(scores) is None


def test_normalisers_are_the_clients(tmp_path):
    scaler = recorded.kind("Normalizer")({"norm": "l2", "n_features_in_": 2})
    final = recorded.kind("LinearModel")({"coef_": np.array([1.0, -2.0]), "intercept_": 0.5})
    model = recorded.kind("Pipeline")({"steps": [("norm", scaler), ("sum", final)]})
    x = np.random.default_rng(0).normal(size=(50, 2))
    compiled = compile_object(model, x, output=tmp_path / "x.tacit")
    found = compiled.real(compiled.simulate({"x0": x[:, 0], "x1": x[:, 1]}))[:, 0]
    wanted = x / np.linalg.norm(x, axis=1, keepdims=True) @ [1.0, -2.0] + 0.5
    assert np.abs(found - wanted).max() <= compiled.schema.result.error < 1e-3


def test_data_frames_are_rows(tmp_path):
    Frame = namedtuple("Frame", ["columns", "cells"])
    Frame.__getitem__ = lambda self, name: self.cells[name]
    model, said = compiled("logistic", tmp_path)
    frame = Frame([*said["rows"], "more"], {**said["rows"], "more": [0] * 60})
    assert np.array_equal(model.simulate(frame), Model(model.path).simulate(said["rows"]))
    with pytest.raises(MisuseError, match="lacks 2 of the model's columns: income, city"):
        model.simulate({name: values for name, values in said["rows"].items() if name not in ("income", "city")})


PREPARED = [("StandardScaler", {}), ("MinMaxScaler", {"clip": True}), ("RobustScaler", {}), ("MaxAbsScaler", {})]


@pytest.mark.parametrize(("scaler", "settings"), PREPARED)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@np.errstate(over="ignore", invalid="ignore")
def test_trees_behind_scalers_of_the_library_are_exact(scaler, settings, kind):
    preprocessing = pytest.importorskip("sklearn.preprocessing", reason=SKLEARN)
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(5)
    x = (rng.normal(size=(400, 4)) * [1, 100, 1e-3, 7] + [0, 5, 1, -3]).astype(np.float32).astype(kind)
    x[rng.random(x.shape) < 0.1] = np.nan
    y = (np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1]) / 100 + rng.normal(size=400) > 0).astype(int)
    scale = getattr(preprocessing, scaler)(**settings)
    model = make_pipeline(SimpleImputer(), scale, GradientBoostingClassifier(n_estimators=15, random_state=0)).fit(x, y)
    compiled = compile_object(model, x)
    moved = read(model, x).ensemble
    limits = np.concatenate([tree.threshold[tree.feature >= 0] for tree in moved.trees])
    ends = np.float32(np.inf)
    values = np.concatenate(
        [limits, np.nextafter(limits, ends), np.nextafter(limits, -ends), [0.0, np.nan, 1e30, -1e30]]
    )
    rows = rng.choice(values[np.isnan(values) | (np.abs(values) < 1e31)], (3000, 4)).astype(np.float32)
    found = compiled.real(compiled.simulate(rows))[:, 0]
    wanted = model.decision_function(rows.astype(kind))
    assert np.abs(found - wanted).max() <= compiled.schema.result.error + 1e-12


def test_sums_take_as_many_bits_as_there_is_room_for(tmp_path):
    model, said = compiled("linear", tmp_path)
    noted = model.inspect()["options"]
    assert 12 < noted["weight_bits"] == noted["activation_bits"] <= 16
    few = Options(weight_bits=8, activation_bits=8)
    coarse = compile_object(said["model"], said["examples"], output=tmp_path / "coarse.tacit", options=few)
    assert coarse.schema.result.error > 20 * model.schema.result.error
    found = coarse.real(coarse.simulate(said["rows"]))[:, 0]
    assert np.abs(found - np.array(said["scores"])).max() <= coarse.schema.result.error
    with pytest.raises(MisuseError, match=r"weight_bits is 17, must be in 2\.\.=16"):
        compile_object(said["model"], said["examples"], options=Options(weight_bits=17))
