"""Importers of tree libraries against what the libraries said of hard rows (scripts/tree_models.py recorded it)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frozen_objects import thaw
from numpy.typing import NDArray
from tacit import MisuseError, Model, compile_model
from tacit import compile as compile_object
from tacit.data.links import Link
from tacit.importers.trees import of_estimator
from tacit.importers.trees.files import read

FOLDER = Path(__file__).parents[1] / "data" / "trees"
NAMES = sorted(path.name.removesuffix(".expected.json") for path in FOLDER.glob("*.expected.json"))
FLOAT32 = 2.0**-24


def recorded(name: str) -> tuple[Path, NDArray[np.float32], dict[str, Any]]:
    """A model's file, the rows (N, features), and what its library said of them."""
    content = json.loads((FOLDER / f"{name}.expected.json").read_text())
    rows = np.asarray(content["rows"], np.uint32).view(np.float32)
    return FOLDER / content["model"], rows, content


def tolerance(model: Model, trees: int, want: NDArray[np.float64]) -> float:
    """The stated bound of sums, and what a library may lose that adds as many float32 numbers."""
    return (trees + 1) * model.output_scale / 2 + (trees + 2) * FLOAT32 * max(1.0, float(np.abs(want).max()))


def test_there_are_models_of_all_libraries() -> None:
    assert len(NAMES) >= 36
    assert {name.partition("-")[0] for name in NAMES} == {"xgboost", "lightgbm", "catboost", "onnx", "sklearn"}


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_library(name: str, tmp_path: Path) -> None:
    path, rows, content = recorded(name)
    if name.startswith("sklearn"):
        estimator = thaw(json.loads(path.read_text()))
        model, ensemble = compile_object(estimator, output=tmp_path / "model.tacit"), of_estimator(estimator)
    else:
        compile_model(path, tmp_path / "model.tacit")
        model, ensemble = Model(tmp_path / "model.tacit"), read(path)
    outputs = model.simulate(rows)
    scores = model.real(outputs)
    margins = np.asarray(content["margins"])
    bound = tolerance(model, len(ensemble.trees), scores)
    assert np.isnan(rows).mean() > 0.05 or name.startswith("sklearn")
    # Scores behind a link are not what onnxruntime and isolation forests give.
    if name != "sklearn-isolation" and not (name.startswith("onnx") and model.link):
        assert scores.shape == margins.shape
        assert np.abs(scores - margins).max() < bound
    if scores.shape[1] > 1:
        best = np.sort(margins, axis=1)
        clear = best[:, -1] - best[:, -2] > 2 * bound
        assert np.array_equal(scores.argmax(axis=1)[clear], margins.argmax(axis=1)[clear])
    estimates = model.estimates(outputs)
    if content["estimates"] is not None:
        want = np.asarray(content["estimates"])
        want = scores.argmax(axis=1)[:, None] if want.shape != scores.shape else want
        found = scores if estimates is None else estimates
        within_bound(found, want, scores, model.link, bound)


def within_bound(
    found: NDArray[np.float64],
    want: NDArray[np.float64],
    scores: NDArray[np.float64],
    link: Link | None,
    bound: float,
) -> None:
    """Check estimates: each is that of scores that are off by at most the bound, and right to float32's digits."""
    if link is not None and link.function == "step":
        clear = np.abs(scores) > bound
        assert np.array_equal(found[clear], want[clear])
        return
    steps = [found] if link is None else [link.estimates(scores + bound), link.estimates(scores - bound)]
    moved = max(float(np.abs(step - found).max()) for step in steps)
    assert np.abs(found - want).max() <= 2 * moved + bound + 8 * FLOAT32 * max(1.0, float(np.abs(want).max()))


def walked(content: Any, x: NDArray[np.float32]) -> float:
    """The sum of the leaves of a model of XGBoost, by its own rules for numbers and categories."""
    total = 0.0
    for tree in content["learner"]["gradient_booster"]["model"]["trees"]:
        parts = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
        sets = {node: set(tree["categories"][start : start + size]) for node, start, size in parts}
        node = 0
        while tree["left_children"][node] != -1:
            value = float(x[tree["split_indices"][node]])
            if np.isnan(value):
                left = bool(tree["default_left"][node])
            elif node in sets:
                left = not (0 <= value < 2**24 and int(value) in sets[node])
            else:
                left = value < float(np.float32(tree["split_conditions"][node]))
            node = tree["left_children" if left else "right_children"][node]
        total += float(np.float32(tree["split_conditions"][node]))
    return total


@pytest.mark.parametrize("name", ["xgboost-onehot", "xgboost-sets"])
def test_categories_are_walked_where_xgboost_refuses_rows(name: str, tmp_path: Path) -> None:
    path, rows, _ = recorded(name)
    content = json.loads(path.read_text())
    rng = np.random.default_rng(1)
    numbers = [np.inf, -np.inf, -1.0, -0.5, -0.0, 0.0, 0.99, 1.0, 3.7, 13.0, 14.0, 1e9, 2**24, np.nan]
    changed = rows.copy()
    changed[:, 4] = rng.choice(np.asarray(numbers, np.float32), len(rows))
    changed[::5, 0] = np.inf
    compile_model(path, tmp_path / "model.tacit")
    model = Model(tmp_path / "model.tacit")
    found = model.real(model.simulate(changed))[:, 0]
    base = read(path).base[0]
    want = np.asarray([walked(content, row) for row in changed]) + base
    assert np.abs(found - want).max() < tolerance(model, 5, want)


def test_categories_of_catboost_are_places_of_hashes(tmp_path: Path) -> None:
    content = json.loads((FOLDER / "catboost-regression.json").read_text())
    features = content["features_info"]
    features["categorical_features"] = [{"feature_index": 0, "flat_feature_index": 5, "values": [77, -5, 12]}]
    split = {"split_type": "OneHotFeature", "cat_feature_index": 0, "value": 12}
    content["oblivious_trees"] = [{"splits": [split], "leaf_values": [1.0, 2.0]}]
    content["scale_and_bias"] = [3.0, [0.5]]
    (tmp_path / "model.json").write_text(json.dumps(content))
    compile_model(tmp_path / "model.json", tmp_path / "model.tacit")
    model = Model(tmp_path / "model.tacit")
    rows = np.zeros((6, 6), np.float32)
    # The sorted hashes are -5, 12 and 77; all else is no category that the model knows.
    rows[:, 5] = [0, 1, 2, 3, np.nan, 1.5]
    assert np.allclose(model.real(model.simulate(rows))[:, 0], [3.5, 6.5, 3.5, 3.5, 3.5, 3.5])


def test_categories_of_data_frames_are_read_from_files(tmp_path: Path) -> None:
    text = (FOLDER / "lightgbm-binary.txt").read_text()
    words = [f"word {at}" for at in range(12)]
    (tmp_path / "model.txt").write_text(text.replace("pandas_categorical:null", f"pandas_categorical:{[words]}"))
    with pytest.raises(MisuseError, match="damaged"):
        read(tmp_path / "model.txt")
    (tmp_path / "model.txt").write_text(
        text.replace("pandas_categorical:null", f"pandas_categorical:{json.dumps([words])}")
    )
    found = read(tmp_path / "model.txt")
    assert found.categories == ((), (), (), (), tuple(words))
    assert found.columns[4] in found.notes[-1]
    compile_model(tmp_path / "model.txt", tmp_path / "model.tacit")
    schema = Model(tmp_path / "model.tacit").schema
    assert schema is not None
    numbers = {name: np.arange(3) / 4 for name in found.columns[:4]}
    rows = schema.encode({**numbers, found.columns[4]: ["word 7", None, "word 99"]})
    assert np.array_equal(rows[:, 4], np.float32([7, np.nan, np.nan]), equal_nan=True)
    assert np.array_equal(rows[:, 0], np.float32([0, 0.25, 0.5]))
    content = json.loads((FOLDER / "xgboost-onehot.json").read_text())
    encoded = [{}] * 4 + [{"offsets": [0, 1, 3], "values": [120, 121, 121]}]
    content["learner"]["gradient_booster"]["model"]["cats"] = {"enc": encoded}
    (tmp_path / "model.json").write_text(json.dumps(content))
    assert read(tmp_path / "model.json").categories == ((), (), (), (), ("x", "yy"))
    encoded[4]["values"] = [120, 121, -61]
    (tmp_path / "model.json").write_text(json.dumps(content))
    assert read(tmp_path / "model.json").categories == ()
