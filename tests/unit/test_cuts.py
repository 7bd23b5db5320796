"""Tests of all kinds as cuts, against what libraries ask of a number, through the interpreter."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tacit import UnsupportedError
from tacit.compiler.trees import compile_ensemble
from tacit.importers.trees import lightgbm, onnx_nodes
from tacit.importers.trees.cuts import Cuts, at_most, below, categories, equal_to
from tacit.importers.trees.ensemble import Ensemble
from tacit.importers.trees.grower import Grower
from tacit.model import Model

Asked = Callable[[float], bool]
BASE = [0.0, 1.0, -1.0, 0.1, 2.5, 1e-35, -1e-35, 1e-45, 3.4028234e38, 7.0, 8.0, 9.0, 0.3, 255.0, 1e9, -0.5, np.inf]
TINY = float(np.float32(1e-35))


def numbers() -> np.ndarray:
    """Numbers with their neighbours and negatives, and NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(BASE, np.float32)
        near = [values, np.nextafter(values, np.float32(np.inf)), np.nextafter(values, np.float32(-np.inf))]
        found = np.concatenate([*near, *(-each for each in near), np.asarray([np.nan], np.float32)])
    return found.astype(np.float32)


def lightgbm_left(threshold: float, default_left: bool, missing: int) -> Asked:
    """What `Tree::NumericalDecision` says, of rows in which numbers next to zero are zeros."""

    def left(x: float) -> bool:
        x = 0.0 if abs(x) <= TINY or (np.isnan(x) and missing != lightgbm.NAN) else x
        if (missing == lightgbm.ZERO and x == 0.0) or np.isnan(x):
            return default_left
        return x <= threshold

    return left


def cases() -> list[tuple[Cuts, Asked]]:
    """Tests, and what they ask."""
    found: list[tuple[Cuts, Asked]] = []
    thresholds = [*BASE, -np.inf, 1e300, -1e300, 0.1 + 1e-12, 1e-60, -1e-60, np.pi]
    for t in thresholds:
        for nan in (False, True):
            found.append((at_most(t, nan), lambda x, t=t, nan=nan: nan if np.isnan(x) else x <= t))
            found.append((below(t, nan), lambda x, t=t, nan=nan: nan if np.isnan(x) else x < t))
            asked = {
                "BRANCH_LEQ": lambda x, t=t: x <= t,
                "BRANCH_LT": lambda x, t=t: x < t,
                "BRANCH_GTE": lambda x, t=t: x >= t,
                "BRANCH_GT": lambda x, t=t: x > t,
                "BRANCH_EQ": lambda x, t=t: x == t,
                "BRANCH_NEQ": lambda x, t=t: x != t,
                "BRANCH_MEMBER": lambda x, t=t: x in {t, 7.0, 8.0},
            }
            for mode, holds in asked.items():
                cuts = onnx_nodes.test(mode, t, nan, [t, 7.0, 8.0])
                found.append((cuts, lambda x, nan=nan, holds=holds: bool(holds(x)) or (nan and bool(np.isnan(x)))))
            for missing in (lightgbm.NONE, lightgbm.ZERO, lightgbm.NAN):
                found.append((lightgbm.numeric(t, nan, missing), lightgbm_left(t, nan, missing)))
    for codes in ([], [0], [7], [0, 1], [7, 8, 9], [1, 7, 9, 255], list(range(300)), [255, 256]):
        chosen = set(codes)
        found.append((lightgbm.category(codes), lambda x, chosen=chosen: -1 < x < 2**31 and int(x) in chosen))
        for nan in (False, True):
            right = categories(codes, nan, inside_left=False)
            found.append(
                (
                    right,
                    lambda x, chosen=chosen, nan=nan: nan if np.isnan(x) else not (0 <= x < 2**31 and int(x) in chosen),
                )
            )
            values = [float(code) for code in codes]
            found.append((equal_to(values, nan), lambda x, chosen=chosen, nan=nan: nan if np.isnan(x) else x in chosen))
    return found


def test_tests_of_all_kinds_send_every_number_where_libraries_do(tmp_path: Path) -> None:
    made = cases()
    trees = []
    for at, (cuts, _) in enumerate(made):
        grower = Grower(3, 1)
        grower.test(0, 0, cuts, (1, 2))
        grower.leaf(1, float(at % 7 + 1))
        trees.append(grower.tree())
    ensemble = Ensemble("cuts", 1, (0.0,) * len(trees), tuple(trees))
    compile_ensemble(ensemble, Path("cuts"), tmp_path / "cuts.tacit", None)
    model, x = Model(tmp_path / "cuts.tacit"), numbers()
    found = np.round(model.real(model.simulate(x[:, None])))
    want = [[(at % 7 + 1) * bool(left(float(value))) for at, (_, left) in enumerate(made)] for value in x]
    wrong = np.argwhere(found != np.asarray(want, np.float64))
    assert not len(wrong), [(float(x[row]), made[at][0]) for row, at in wrong[:5]]


def test_sets_of_too_many_runs_are_refused() -> None:
    cuts = categories(range(0, 10_000, 2), False, True)
    with pytest.raises(UnsupportedError, match="merge rare categories"):
        Grower(3).test(0, 0, cuts, (1, 2))


def test_runs_that_meet_are_one() -> None:
    assert len(categories([3, 4, 5, 9], False, True).cuts) == 4
    assert equal_to([], True).cuts == ()
