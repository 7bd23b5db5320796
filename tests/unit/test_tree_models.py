"""Importers of tree libraries against what the libraries said of hard rows (scripts/tree_models.py recorded it)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tacit import Model, compile_model
from tacit.data.links import Link
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
    assert {name.partition("-")[0] for name in NAMES} == {"xgboost", "lightgbm", "catboost", "onnx"}


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_library(name: str, tmp_path: Path) -> None:
    path, rows, content = recorded(name)
    compile_model(path, tmp_path / "model.tacit")
    model, ensemble = Model(tmp_path / "model.tacit"), read(path)
    outputs = model.simulate(rows)
    scores = model.real(outputs)
    margins = np.asarray(content["margins"])
    bound = tolerance(model, len(ensemble.trees), scores)
    assert np.isnan(rows).mean() > 0.05
    if not (name.startswith("onnx") and model.link):
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
