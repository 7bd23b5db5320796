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

FEW = 2
"""Inputs that are looked at: a look must not take long."""
FAR = 0.5
"""The relative error from which on something is said: the results have little to do with the float model's."""
SEED = 0


def looked_at(
    path: Path, graph: Source, output: Path, x: NDArray[np.float32], say: Callable[[str], None]
) -> dict[str, Any]:
    """`relative_error` of the model `output` on a few of the inputs `x` (N, *shape), `exact` and `stochastic`.

    It is the root of the mean square of differences over that of the float results. Large ones are said. Empty for
    models of text, whose results at padding mean nothing, and for results that are all zero.
    """
    if graph.reads_tokens or graph.masked:
        return {}
    few = x[:FEW]
    floats = FloatModel(path, (), length(graph), graph.masked, graph.selection)(few).astype(np.float64)
    size = float(np.sqrt(np.square(floats).mean()))
    if not np.isfinite(size) or size == 0:
        return {}
    model = Model(output)
    given = few.reshape(-1, *graph.example_shape)
    found = {"exact": model.simulate(given), "stochastic": model.simulate(given, seed=SEED)}
    errors = {kind: relative(model.real(integers), floats, size) for kind, integers in found.items()}
    if max(errors.values()) > FAR:
        say(
            f"results on {len(few)} calibration inputs are {errors['exact']:.0%} off the float model's, and "
            f"{errors['stochastic']:.0%} as protocols round: take more bits (--activation-bits, --weight-bits, "
            "--target-agreement), --rounding exact, or more calibration inputs"
        )
    return {"relative_error": errors}


def relative(found: NDArray[np.float64], floats: NDArray[np.float64], size: float) -> float:
    """Root of the mean square of differences over `size`."""
    return float(np.sqrt(np.square(found - floats).mean()) / size)
