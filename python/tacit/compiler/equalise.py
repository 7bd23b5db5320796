"""Cross-layer equalisation: factors of channels move from the layers that write a tensor to those that read it.

One scale serves all channels of an activation, so that a channel of small values has few levels. A ReLU, a pool and a
sum commute with positive factors of channels: weights that write a channel may be multiplied by a factor and weights
that read it divided by it, and the network computes the same function. Nagel et al., "Data-Free Quantization Through
Weight Equalization and Bias Correction" (ICCV 2019), section 4.1. Which factors are best is estimated from the noise
that rounding activations and weights adds to what the readers compute.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tacit.importers.source import Node, Source

Vector = NDArray[np.float64]
LINEAR = ("Conv", "Gemm")
COMMUTING = ("MaxPool", "AveragePool", "Identity", "Add")
"""Operators beside ReLU and Reshape that give factors of channels of what they read to what they write."""
ONE: Vector = np.ones(1)
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
SWEEPS = 2
WORTH = {"auto": 0.25, "on": 0.9}
"""Factors must lower the noise to this part of what it was: without being asked for, only where much is to gain."""
ROLES = ("weight", "bias")
MOST = 64.0
"""The largest factor: inputs that calibration did not see may have larger values in a channel that it saw as small."""
HEADROOM = 2.0
"""Room above what calibration saw of a channel, for the same reason; the largest channel has none."""
MULTIPLIER = 12
"""The typical multiplier of the output channel with the largest weights, of which other channels' are whole parts."""
EXTRA_BITS = 3
"""Bits that a tensor that no ReLU writes has beyond the activations'."""


@dataclass(frozen=True)
class Statistics:
    """The largest magnitude and the mean square of each channel of a tensor."""

    peaks: Vector
    squares: Vector


@dataclass
class Group:
    """Tensors whose channels have one factor each; `repeats` says how often each channel stands in a flat one."""

    repeats: dict[str, int] = field(default_factory=dict)
    writers: list[Node] = field(default_factory=list)
    readers: list[Node] = field(default_factory=list)


@dataclass(frozen=True)
class Widths:
    """Bits of activations and of weights."""

    activations: int
    weights: int


def equalised(
    source: Source, statistics: Mapping[str, Statistics], widths: Widths, worth: float = WORTH["on"]
) -> Source:
    """The source with the same function and channels of more even ranges, wherever less noise is expected of it.

    `statistics` are of the tensors of `source` as it is. The noise must fall to the part `worth` of what it was. What
    calibration sees of scaled tensors is scaled too.
    """
    state = State(source, statistics, widths, worth)
    groups = eligible(source, statistics)
    for _ in range(SWEEPS):
        for group in groups:
            state.balance(group)
    return state.result()


def needed(source: Source) -> set[str]:
    """Tensors whose statistics equalisation asks for: none where no factors can move."""
    known = {name for name, where in source.observed().items() if where.channel is not None}
    groups = candidates(source, known)
    read = {node.inputs[0] for group, _ in groups for node in group.writers}
    return known & (read | {name for _, members in groups for name in members})


def eligible(source: Source, statistics: Mapping[str, Statistics]) -> list[Group]:
    """Groups of tensors that linear layers write and read, and nothing that factors do not commute with."""
    return [group for group, members in candidates(source, statistics) if fill(group, members, source, statistics)]


def candidates(source: Source, known: Container[str]) -> list[tuple[Group, list[str]]]:
    """Groups with the names of their tensors, all of which must be `known`; channels are still to be compared."""
    root = joined(source)
    groups: dict[str, Group] = {}
    barred = {root(source.input_name), root(source.output)}
    # What is kept from one input to the next must stay what it is.
    barred |= {root(name) for state in source.states for name in (state.name, state.after)}
    for node in source.nodes:
        if is_linear(node):
            groups.setdefault(root(node.output), Group()).writers.append(node)
            groups.setdefault(root(node.inputs[0]), Group()).readers.append(node)
        elif not commutes(node):
            barred |= {root(name) for name in (*node.inputs, node.output)}
    members: dict[str, list[str]] = {}
    for name in tensors(source):
        members.setdefault(root(name), []).append(name)
        if name not in known:
            barred.add(root(name))
            barred |= {root(node.output) for node in source.nodes if name in node.inputs and is_linear(node)}
    complete = {name: group for name, group in groups.items() if group.writers and group.readers}
    return [(group, members[name]) for name, group in complete.items() if name not in barred]


def joined(source: Source) -> Callable[[str], str]:
    """For each tensor the name that stands for all that have its factors."""
    parents: dict[str, str] = {}

    def root(name: str) -> str:
        while name in parents:
            name = parents[name]
        return name

    for node in source.nodes:
        for name in node.inputs if commutes(node) else ():
            if root(name) != root(node.output):
                parents[root(name)] = root(node.output)
    return root


def tensors(source: Source) -> list[str]:
    """Names of all tensors."""
    return list(dict.fromkeys((source.input_name, *(node.output for node in source.nodes))))


def is_linear(node: Node) -> bool:
    """Whether `node` is a layer with weights."""
    return node.operation["op"] in LINEAR


def commutes(node: Node) -> bool:
    """Whether positive factors of channels may move from what `node` reads to what it writes."""
    operation = node.operation
    match operation["op"]:
        case "Relu":
            return operation["maximum"] is None
        case "Reshape":
            return len(operation["shape"]) == 1
    return operation["op"] in COMMUTING


def fill(group: Group, members: Sequence[str], source: Source, statistics: Mapping[str, Statistics]) -> bool:
    """Set how often channels stand in each tensor; false where that or the weights of a layer is not what it seems."""
    channels = {len(source.weights[node.operation["weight"]]) for node in group.writers}
    if len(channels) != 1:
        return False
    (count,) = channels
    for name in members:
        repeat, rest = divmod(len(statistics[name].peaks), count)
        if rest or not repeat:
            return False
        group.repeats[name] = repeat
    used = [node.operation[role] for node in source.nodes if is_linear(node) for role in ROLES]
    own = [node.operation[role] for node in (*group.writers, *group.readers) for role in ROLES]
    shared = any(name is not None and used.count(name) > 1 for name in own)
    fits = all(
        reads(node, source) == len(statistics[node.inputs[0]].peaks) for node in (*group.writers, *group.readers)
    )
    return fits and not shared and all(group.repeats[node.output] == 1 for node in group.writers)


def reads(node: Node, source: Source) -> int:
    """Channels that a linear layer reads."""
    groups = int(node.operation.get("groups", 1))
    return int(source.weights[node.operation["weight"]].shape[1]) * groups


class State:
    """Weights on their way, and the factors of tensors so far."""

    def __init__(self, source: Source, statistics: Mapping[str, Statistics], widths: Widths, worth: float) -> None:
        """Start without factors."""
        self.source, self.statistics, self.widths, self.worth = source, statistics, widths, worth
        self.weights = dict(source.weights)
        self.factors: dict[str, Vector] = {}
        self.saturated = {node.output for node in source.nodes if node.operation["op"] == "Relu"}

    def balance(self, group: Group) -> None:
        """Multiply the channels of a group by the factors that promise least noise, if they are worth it."""
        peaks = np.max([self.peaks(name).reshape(-1, times).max(axis=1) for name, times in group.repeats.items()], 0)
        weights = np.max([self.largest(node) for node in group.writers], axis=0)
        if not peaks.max() or not weights.max():
            return
        room = peaks.max() / (HEADROOM * np.where(peaks > 0, peaks, peaks.max()))
        most = np.clip(room, 1.0, MOST)
        tried = [np.minimum(even(peaks, a) * even(weights, b), most) for a, b in product(POWERS, POWERS)]
        noises = [self.noise(group, factors) for factors in tried]
        best = int(np.argmin(noises))
        if noises[best] < self.worth * noises[0]:
            self.apply(group, tried[best])

    def peaks(self, name: str) -> Vector:
        """The largest magnitude of each channel of a tensor as it is now."""
        peaks: Vector = self.statistics[name].peaks * self.factors.get(name, ONE)
        return peaks

    def squares(self, name: str) -> Vector:
        """The mean square of each channel of a tensor as it is now."""
        squares: Vector = self.statistics[name].squares * self.factors.get(name, ONE) ** 2
        return squares

    def rows(self, node: Node) -> Vector:
        """Weights `[out, in of a group, taps]`."""
        weight = self.weights[node.operation["weight"]].astype(np.float64)
        rows: Vector = weight.reshape(*weight.shape[:2], -1)
        return rows

    def largest(self, node: Node) -> Vector:
        """The largest weight of each output channel."""
        largest: Vector = np.abs(self.rows(node)).max(axis=(1, 2))
        return largest

    def steps(self, largest: Vector) -> Vector:
        """Step of the weights of each output channel, which is a whole part of the coarsest one."""
        unit = largest.max() / MULTIPLIER
        whole = np.maximum(np.ceil(largest / unit - 1e-9), 1) if unit else largest
        steps: Vector = whole * unit / ((1 << (self.widths.weights - 1)) - 1)
        return steps

    def noise(self, group: Group, factors: Vector) -> float:
        """Variance that rounding adds to what the readers compute, summed over their channels."""
        total, gains = 0.0, np.zeros(len(factors))
        for node in group.readers:
            name = node.inputs[0]
            scale = np.repeat(factors, group.repeats[name])
            rows = self.rows(node) / shared_out(node, scale, len(self.rows(node)))
            power = (rows**2).sum(axis=2)
            bits = self.widths.activations + (0 if self.is_saturated(name) else EXTRA_BITS)
            step = (self.peaks(name) * scale).max() / ((1 << bits) - 1)
            squares = shared_out(node, self.squares(name) * scale**2, len(rows))[..., 0]
            steps = self.steps(np.abs(rows).max(axis=(1, 2)))
            total += step**2 * power.sum() + (steps**2 * (squares.sum(axis=1) * rows.shape[2])).sum()
            gains += gathered(node, power, len(scale)).reshape(len(factors), -1).sum(axis=1)
        for node in group.writers:
            steps = self.steps(self.largest(node) * factors)
            rows = self.rows(node)
            squares = shared_out(node, self.squares(node.inputs[0]), len(rows))[..., 0].sum(axis=1) * rows.shape[2]
            total += (steps**2 * squares * gains).sum()
        return total

    def is_saturated(self, name: str) -> bool:
        """Whether a ReLU, or a pool or reshape of one, wrote a tensor."""
        writers = {node.output: node for node in self.source.nodes}
        while name in writers and writers[name].operation["op"] in ("MaxPool", "AveragePool", "Identity", "Reshape"):
            name = writers[name].inputs[0]
        return name in self.saturated

    def apply(self, group: Group, factors: Vector) -> None:
        """Move factors from the layers that read a group to those that write it."""
        for node in group.writers:
            self.multiply(node.operation["weight"], factors)
            if node.operation["bias"] is not None:
                self.multiply(node.operation["bias"], factors)
        for node in group.readers:
            scale = np.repeat(factors, group.repeats[node.inputs[0]])
            rows = self.rows(node)
            divided = rows / shared_out(node, scale, len(rows))
            name = node.operation["weight"]
            self.weights[name] = divided.reshape(self.weights[name].shape).astype(np.float32)
        for name, times in group.repeats.items():
            self.factors[name] = self.factors.get(name, ONE) * np.repeat(factors, times)

    def multiply(self, name: str, factors: Vector) -> None:
        """Multiply an array along its first axis."""
        array = self.weights[name]
        self.weights[name] = (array * factors.reshape(-1, *(1,) * (array.ndim - 1))).astype(np.float32)

    def result(self) -> Source:
        """The source with the weights and the factors that calibration applies."""
        observed = self.source.observed()
        seen = {name: replace(observed[name], factors=tuple(f.tolist())) for name, f in self.factors.items()}
        return replace(self.source, weights=self.weights, seen={**self.source.seen, **seen})


def even(peaks: Vector, power: float) -> Vector:
    """Factors that bring channels nearer to the largest one: all the way for power 1, not at all for 0.

    A channel that was always zero keeps what it has.
    """
    factors: Vector = np.where(peaks > 0, peaks / peaks.max(), 1.0) ** -power
    return factors


def shared_out(node: Node, values: Vector, outputs: int) -> Vector:
    """Values of input channels, for each output channel those that its group reads: `[out, in of a group, 1]`."""
    groups = node.operation.get("groups", 1)
    return np.repeat(values.reshape(groups, -1), outputs // groups, axis=0)[..., None]


def gathered(node: Node, power: Vector, inputs: int) -> Vector:
    """Sums over output channels of values `[out, in of a group]`, for each input channel."""
    groups = node.operation.get("groups", 1)
    sums: Vector = power.reshape(groups, -1, power.shape[1]).sum(axis=1)
    return sums.reshape(inputs)
