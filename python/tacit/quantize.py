"""Calibration: the range every float tensor of a model takes on example inputs."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.importers.source import Source
from tacit.plain import FloatModel

Calibration = dict[str, tuple[float, float]]
SYNTHETIC_INPUTS = 64
UNIT = (0.0, 1.0)


def calibrate(
    path: Path,
    source: Source,
    x: NDArray[np.float32] | None,
    input_range: tuple[float, float] | None = None,
) -> Calibration:
    """Smallest and largest value of the input and of every tensor a node of `source` computes.

    `x` is (N, *shape). Without it, inputs are drawn uniformly from `input_range` (default 0 to 1)
    under a fixed seed, which bounds the input but only guesses at the activations. With it, a
    given `input_range` widens the range of the input, as examples need not reach its ends.
    """
    tensors = source.tensor_names()
    if x is None:
        input_range = input_range or UNIT
        x = synthetic(source, input_range)
    ranges: Calibration = dict.fromkeys(tensors, (np.inf, -np.inf))
    if input_range is not None:
        ranges[source.input_name] = input_range
    for values in FloatModel(path, tensors).batches(x):
        for name in tensors:
            low, high = ranges[name]
            ranges[name] = (min(low, float(values[name].min())), max(high, float(values[name].max())))
    return ranges


def synthetic(source: Source, input_range: tuple[float, float]) -> NDArray[np.float32]:
    """Uniform random inputs under a fixed seed."""
    shape = (SYNTHETIC_INPUTS, *source.input_shape)
    return np.random.default_rng(0).uniform(*input_range, shape).astype(np.float32)
