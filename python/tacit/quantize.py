"""Calibration: what the float tensors of a model are like on example inputs."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.importers.source import Source
from tacit.plain import FloatModel

Ranges = dict[str, tuple[float, float]]
Means = dict[str, list[float]]
SYNTHETIC_INPUTS = 64
BINS = 1 << 14
UNIT = (0.0, 1.0)
LINEAR = ("Conv", "Gemm")


@dataclass(frozen=True)
class Calibration:
    """Smallest and largest value of tensors, and the mean of each channel of those that linear layers read."""

    ranges: Ranges
    means: Means = field(default_factory=dict)


def calibrate(
    path: Path,
    source: Source,
    x: NDArray[np.float32] | None,
    input_range: tuple[float, float] | None = None,
    percentile: float | None = None,
) -> Calibration:
    """Ranges of the input and of every tensor a node of `source` computes; means too when `x` is given.

    `x` is (N, *shape). Without it, inputs are drawn uniformly from `input_range` (default 0 to 1)
    under a fixed seed, which bounds the input but only guesses at the activations. With it, a
    given `input_range` widens the range of the input, as examples need not reach its ends. With
    `percentile` (above 50, below 100) the ranges between input and output leave out what lies
    above it or below 100 less it. A batch at a time is in memory.
    """
    model = FloatModel(path, source.tensor_names())
    read = () if x is None else linear_inputs(source)
    if x is None:
        input_range = input_range or UNIT
        x = synthetic(source, input_range)
    ranges, means = observed(model, x, read)
    if percentile is not None:
        inner = [node.output for node in source.nodes if node.output != source.output]
        ranges |= clipped(model, x, {name: ranges[name] for name in inner}, percentile)
    if input_range is not None:
        low, high = ranges[source.input_name]
        ranges[source.input_name] = (min(low, input_range[0]), max(high, input_range[1]))
    return Calibration(ranges, means)


def linear_inputs(source: Source) -> tuple[str, ...]:
    """Tensors of the model that convolutions and matrix products read."""
    names = {node.inputs[0] for node in source.nodes if node.operation["op"] in LINEAR}
    return tuple(name for name in source.tensor_names() if name in names)


def observed(model: FloatModel, x: NDArray[np.float32], read: tuple[str, ...]) -> tuple[Ranges, Means]:
    """Smallest and largest value of every tensor, and the means of the channels of those in `read`."""
    ranges: Ranges = dict.fromkeys(model.tensors, (np.inf, -np.inf))
    sums: dict[str, NDArray[np.float64]] = {}
    for values in model.batches(x):
        for name in model.tensors:
            low, high = ranges[name]
            ranges[name] = (min(low, float(values[name].min())), max(high, float(values[name].max())))
        for name in read:
            sums[name] = sums.get(name, np.float64(0)) + channel_sums(values[name])
    return ranges, {name: (total / len(x)).tolist() for name, total in sums.items()}


def channel_sums(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Sum over examples of the mean of each channel, for values (N, channels, ...)."""
    channels = values.shape[1] if values.ndim > 1 else 1
    means = values.reshape(len(values), channels, -1).mean(axis=2, dtype=np.float64)
    total: NDArray[np.float64] = means.sum(axis=0)
    return total


def clipped(model: FloatModel, x: NDArray[np.float32], ranges: Ranges, percentile: float) -> Ranges:
    """The part of each range between `100 - percentile` and `percentile`, to a bin of a histogram of it."""
    counts = {name: np.zeros(BINS, np.int64) for name, (low, high) in ranges.items() if low < high}
    for values in model.batches(x):
        for name in counts:
            counts[name] += np.histogram(values[name], BINS, ranges[name])[0]
    return {name: central(count, ranges[name], percentile) for name, count in counts.items()}


def central(counts: NDArray[np.int64], bounds: tuple[float, float], percentile: float) -> tuple[float, float]:
    """The bins of a histogram over `bounds` from `100 - percentile` to `percentile`."""
    share = counts.cumsum() / counts.sum()
    edges = np.linspace(*bounds, len(counts) + 1)
    first = int(np.searchsorted(share, 1 - percentile / 100, side="right"))
    last = int(np.searchsorted(share, percentile / 100))
    return float(edges[first]), float(edges[min(last, len(counts) - 1) + 1])


def synthetic(source: Source, input_range: tuple[float, float]) -> NDArray[np.float32]:
    """Uniform random inputs under a fixed seed."""
    shape = (SYNTHETIC_INPUTS, *source.input_shape)
    return np.random.default_rng(0).uniform(*input_range, shape).astype(np.float32)
