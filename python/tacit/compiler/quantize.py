"""Calibration: what the float tensors of a model are like on example inputs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.clipping import MINMAX, SATURATING, Clip
from tacit.compiler.equalise import Statistics, needed
from tacit.compiler.float_model import FloatModel
from tacit.importers.source import Seen, Source

Ranges = dict[str, tuple[float, float]]
Means = dict[str, list[float]]
SYNTHETIC_INPUTS = 64
FEW = 256
"""Examples that equalisation looks at."""
BINS = 1 << 14
MOST_COUNTED = 1 << 17
"""Values of a batch of one tensor by which errors of clipping are estimated."""
UNIT = (0.0, 1.0)
LINEAR = ("Conv", "Gemm")
AFFINE = ("BatchNormalization", "AddConstant")
BEYOND = 0.1
"""Part of the range that a quantised model states by which examples may leave it unnoticed."""
SETTLED = 1e-5
"""A value that moves by less than this part of the largest one does not depend on what was changed."""
Tensors = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Calibration:
    """Smallest and largest value of tensors, and the mean of each channel of those that linear layers read.

    `beyond` are what was seen of tensors that a quantised model cuts to less, where this one does not.
    """

    ranges: Ranges
    means: Means = field(default_factory=dict)
    beyond: Ranges = field(default_factory=dict)


def calibrate(
    path: Path,
    source: Source,
    x: NDArray[np.float32] | None,
    input_range: tuple[float, float] | None = None,
    clip: Clip = MINMAX,
) -> Calibration:
    """Ranges of the input and of every tensor a node of `source` computes; means too when `x` is given.

    `x` is (N, *shape). Without it, inputs are drawn uniformly from `input_range` (default 0 to 1)
    under a fixed seed, which bounds the input but only guesses at the activations. With it, a
    given `input_range` widens the range of the input, as examples need not reach its ends. The ranges
    between input and output end where `clip` says. Ranges that the model itself states take the place of guesses, and
    are the most that others may be. What fills texts up does not count. A batch at a time is in memory.
    """
    seen = source.observed()
    tensors = list(dict.fromkeys(where.tensor for where in seen.values()))
    model = FloatModel(path, tensors, length(source), source.masked, source.selection)
    read = () if x is None else linear_inputs(source)
    guessed = x is None
    if x is None:
        input_range = input_range or source.bounds.get(source.input_name, UNIT)
        x = synthetic(source, input_range)
    observer = Observer(model, x, vocabulary(source), source.masked, source.masks)
    ranges, means = observed(observer, seen, read)
    for state in source.states:
        # What a state is after the last example, it might have been before another one.
        last = ranges.get(state.after, ranges[state.name])
        ranges[state.name] = (min(ranges[state.name][0], last[0]), max(ranges[state.name][1], last[1]))
    beyond = {} if guessed else uncut(source, ranges)
    ranges |= stated(ranges, seen, source.bounds, guessed)
    if clip.method != "minmax":
        ranges |= clipped(observer, {name: ranges[name] for name in to_clip(source, clip)}, seen, clip)
    given = ranges[source.input_name]
    ranges = {name: scaled(ends, clip.margin) for name, ends in ranges.items()} | {source.input_name: given}
    if input_range is not None:
        low, high = given
        least, most = source.bounds.get(source.input_name, (-np.inf, np.inf))
        wide = (min(low, input_range[0]), max(high, input_range[1]))
        ranges[source.input_name] = (max(wide[0], least), min(wide[1], most))
    return Calibration(ranges, means, beyond)


def statistics(path: Path, source: Source, x: NDArray[np.float32]) -> dict[str, Statistics]:
    """What equalisation asks of the channels of tensors that the model computes, on a few of the inputs."""
    wanted = needed(source)
    seen = {name: where for name, where in source.observed().items() if name in wanted}
    if not seen:
        return {}
    peaks: dict[str, NDArray[np.float64]] = {}
    squares: dict[str, NDArray[np.float64]] = {}
    count = 0
    for values in batches_of(path, source, x, list(dict.fromkeys(where.tensor for where in seen.values()))):
        count += len(next(iter(values.values())))
        for name, where in seen.items():
            rows = channel_rows(np.nan_to_num(values[where.tensor]), where.channel or 0)
            peaks[name] = np.maximum(peaks.get(name, 0), np.abs(rows).max(axis=(0, 2)) * abs(where.factor))
            power = np.square(rows, dtype=np.float64).mean(axis=2).sum(axis=0) * where.factor**2
            squares[name] = squares.get(name, np.float64(0)) + power
    return {name: Statistics(peaks[name].astype(np.float64), squares[name] / count) for name in seen}


def batches_of(path: Path, source: Source, x: NDArray[np.float32], tensors: list[str]) -> Iterator[Tensors]:
    """Values of some tensors on a few of the inputs, batch by batch; NaN where they depend on what fills texts up."""
    if not tensors:
        return
    model = FloatModel(path, tensors, length(source), source.masked, source.selection)
    yield from Observer(model, x[:: -(-len(x) // FEW)], vocabulary(source), source.masked, source.masks).batches()


def linear_inputs(source: Source) -> tuple[str, ...]:
    """Tensors of the model that convolutions and matrix products read, or may read when others are part of them."""
    names = {node.inputs[0] for node in source.nodes if node.operation["op"] in (*LINEAR, *AFFINE)}
    return tuple(name for name, where in source.observed().items() if name in names and where.channel is not None)


def length(source: Source) -> int | None:
    """How many tokens an input has, where it is one of tokens."""
    return source.input_shape[1] if source.reads_tokens or source.masked else None


def vocabulary(source: Source) -> int | None:
    """Rows of the table that tokens choose from."""
    tables = [node.operation["weight"] for node in source.nodes if node.operation["op"] == "Embedding"]
    return len(source.weights[tables[0]]) if tables else None


@dataclass(frozen=True)
class Observer:
    """A float model and its example inputs; of text, that which fills inputs up is not looked at.

    `tokens` is how many tokens there are, None where inputs are something else; `masked` inputs are hidden
    states above `masks` rows of a mask, the last of which has a 1 for each token that is read.
    """

    model: FloatModel
    x: NDArray[np.float32]
    tokens: int | None
    masked: bool = False
    masks: int = 1

    def batches(self) -> Iterator[Tensors]:
        """Values of the tensors, batch by batch; NaN where they depend on the token that fills inputs up."""
        if (self.tokens is None and not self.masked) or not self.filled().any():
            yield from self.model.batches(self.x)
            return
        for values, changed in zip(self.model.batches(self.x), self.model.batches(self.others()), strict=True):
            yield {name: settled(values[name], changed[name]) for name in values}

    def filled(self) -> NDArray[np.bool_]:
        """Which positions (N, 1, positions) of the inputs only fill them up."""
        filled: NDArray[np.bool_] = self.x[:, -1:] == 0
        return filled

    def others(self) -> NDArray[np.float32]:
        """The inputs with something else where they are filled up: another token, or states turned round."""
        other, filled = self.x.copy(), self.filled()
        read = self.x[:, : -self.masks]
        changed = read[:, ::-1] if self.tokens is None else (read + self.tokens // 2) % self.tokens
        other[:, : -self.masks] = np.where(filled, changed, read)
        return other


def settled(values: NDArray[np.float32], changed: NDArray[np.float32]) -> NDArray[np.float32]:
    """`values`, with NaN for those that are others in `changed`; if all are, as they are."""
    differ = np.abs(values - changed) > SETTLED * np.abs(values).max(initial=0)
    return values if differ.all() else np.where(differ, np.float32(np.nan), values)


def observed(observer: Observer, seen: Mapping[str, Seen], read: tuple[str, ...]) -> tuple[Ranges, Means]:
    """Smallest and largest value of every tensor in `seen`, and the means of the channels of those in `read`."""
    limits = dict.fromkeys(((where.tensor, where.channel, where.factors) for where in seen.values()), (np.inf, -np.inf))
    sums: dict[str, NDArray[np.float64]] = {}
    for values in observer.batches():
        for key, (low, high) in limits.items():
            tensor, channel, factors = key
            found = multiplied(values[tensor], channel, factors)
            limits[key] = (min(low, float(np.nanmin(found))), max(high, float(np.nanmax(found))))
        for name in read:
            where = seen[name]
            found = multiplied(values[where.tensor], where.channel, where.factors)
            total = channel_sums(found, where.channel or 0) * where.factor
            sums[name] = sums.get(name, np.float64(0)) + total
    ranges = {
        name: scaled(limits[where.tensor, where.channel, where.factors], where.factor) for name, where in seen.items()
    }
    return ranges, {name: (total / len(observer.x)).tolist() for name, total in sums.items()}


def stated(ranges: Ranges, seen: Mapping[str, Seen], bounds: Mapping[str, tuple[float, float]], guess: bool) -> Ranges:
    """The ranges of tensors whose bounds the model states: as stated where others are a guess, else what both have."""
    alike = {name: where for name, where in seen.items() if where.tensor in bounds and not where.factors}
    known = {name: scaled(bounds[where.tensor], where.factor) for name, where in alike.items()}
    if guess:
        return known
    both = {name: (max(ranges[name][0], low), min(ranges[name][1], high)) for name, (low, high) in known.items()}
    return {name: ends if ends[0] <= ends[1] else known[name] for name, ends in both.items()}


def uncut(source: Source, ranges: Ranges) -> Ranges:
    """The ranges of tensors that leave the bounds that the model states for them, and no activation cuts."""
    found = {}
    for node in source.nodes:
        low, high = ranges.get(node.output, (0.0, 0.0))
        least, most = source.bounds.get(node.output, (-np.inf, np.inf))
        room = BEYOND * (most - least)
        if node.operation["op"] not in ("Relu", "Clip") and (low < least - room or high > most + room):
            found[node.output] = (low, high)
    return found


def multiplied(values: NDArray[np.float32], channel: int | None, factors: tuple[float, ...]) -> NDArray[np.float32]:
    """Values (N, ...) with the channels along axis `channel`, batch left out, times `factors` if there are any."""
    if not factors or channel is None:
        return values
    shape = [1] * values.ndim
    shape[channel + 1] = len(factors)
    product: NDArray[np.float32] = values * np.array(factors, np.float32).reshape(shape)
    return product


def scaled(bounds: tuple[float, float], factor: float) -> tuple[float, float]:
    """An interval times a factor."""
    low, high = sorted(bound * factor for bound in bounds)
    return low, high


def channel_rows(values: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """Values (N, ...) as (N, channels, rest), the channels being those along `axis`, batch left out."""
    moved = np.moveaxis(values, axis + 1, 1) if values.ndim > 1 else values
    channels = moved.shape[1] if moved.ndim > 1 else 1
    return moved.reshape(len(values), channels, -1)


def channel_sums(values: NDArray[np.float32], axis: int = 0) -> NDArray[np.float64]:
    """Sum over examples of the mean of each channel, for values (N, ...) that have their channels along `axis`.

    Positions with NaN in any channel do not count.
    """
    rows = channel_rows(values, axis)
    present = ~np.isnan(rows).any(axis=1, keepdims=True)
    sums = np.where(present, rows, np.float32(0)).sum(axis=2, dtype=np.float64)
    total: NDArray[np.float64] = (sums / np.maximum(present.sum(axis=2), 1)).sum(axis=0)
    return total


def clipped(observer: Observer, ranges: Ranges, seen: Mapping[str, Seen], clip: Clip) -> Ranges:
    """The part of each range that `clip` chooses, by a histogram of it."""
    counts = {name: np.zeros(BINS, np.int64) for name, (low, high) in ranges.items() if low < high}
    if not counts:
        return {}
    for values in observer.batches():
        for name in counts:
            where = seen[name]
            present = multiplied(values[where.tensor], where.channel, where.factors)
            present = thinned(present, clip)
            present = present[~np.isnan(present)] * where.factor
            counts[name] += np.histogram(present, BINS, ranges[name])[0]
    return {name: clip.bounds(count, ranges[name]) for name, count in counts.items()}


def thinned(values: NDArray[np.float32], clip: Clip) -> NDArray[np.float32]:
    """Enough of the values for a method that weighs errors; a percentile counts all."""
    flat = values.reshape(-1)
    return flat[:: -(-flat.size // MOST_COUNTED) | 1] if clip.only_saturating else flat


def to_clip(source: Source, clip: Clip) -> list[str]:
    """Tensors between input and output whose ranges `clip` chooses."""
    inner = [node for node in source.nodes if node.output in source.observed() and node.output != source.output]
    return [node.output for node in inner if not clip.only_saturating or node.operation["op"] in SATURATING]


def synthetic(source: Source, input_range: tuple[float, float]) -> NDArray[np.float32]:
    """Uniform random inputs under a fixed seed."""
    shape = (SYNTHETIC_INPUTS, *source.input_shape)
    return np.random.default_rng(0).uniform(*input_range, shape).astype(np.float32)
