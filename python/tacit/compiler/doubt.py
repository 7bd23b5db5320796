"""A look at a compiled model: its integers on a few calibration inputs beside the float model's results."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.float_model import FloatModel
from tacit.compiler.quantize import length
from tacit.importers.source import Source
from tacit.model import Model

FEW = 4
"""Inputs whose integers are looked at: a look must not take long."""
MORE = 32
"""Inputs whose float results say how far results are apart."""
FAR = 0.5
"""The relative error from which on something is said: the results have little to do with the float model's."""
SEED = 0
ENTRY = "relative_error"


def looked_at(path: Path, graph: Source, output: Path, x: NDArray[np.float32]) -> dict[str, Any]:
    """`relative_error` of the model `output` on a few of the inputs `x` (N, *shape), `exact` and `stochastic`.

    It is the root of the mean square of differences over the deviation of the float results. Empty for models of
    text, whose results at padding mean nothing, and for results that are all the same.
    """
    if graph.reads_tokens or graph.masked:
        return {}
    floats = FloatModel(path, (), length(graph), graph.masked, graph.selection)(x[:MORE]).astype(np.float64)
    size = float(floats.std())
    if not np.isfinite(size) or size == 0:
        return {}
    model = Model(output)
    few = x[:FEW].reshape(-1, *graph.example_shape)
    found = {"exact": model.simulate(few), "stochastic": model.simulate(few, seed=SEED)}
    wanted = floats[: len(few)]
    return {ENTRY: {kind: relative(model.real(integers), wanted, size) for kind, integers in found.items()}}


def largest(summary: dict[str, Any]) -> float:
    """The larger of both errors that `looked_at` found; 0 where it found none."""
    errors: dict[str, float] = summary.get(ENTRY, {})
    return max(errors.values(), default=0.0)


def say_far(summary: dict[str, Any], say: Callable[[str], None]) -> None:
    """Say that results are far from the float model's, if they are."""
    if largest(summary) > FAR:
        errors = summary[ENTRY]
        say(
            f"results on up to {FEW} calibration inputs are {errors['exact']:.0%} off the float model's, and "
            f"{errors['stochastic']:.0%} as protocols round: take more bits (--activation-bits, --weight-bits, "
            "--target-agreement), --rounding exact, or more calibration inputs"
        )


def relative(found: NDArray[np.float64], floats: NDArray[np.float64], size: float) -> float:
    """Root of the mean square of differences over `size`."""
    return float(np.sqrt(np.square(found - floats).mean()) / size)
