"""Weights that are rounded with the inputs in view: what rounding one adds to a sum, those after it take back.

The core rounds each weight to the nearest point of a grid that it chooses for the output channel. Here weights are put
on points of that grid beforehand, one column after another, each time moving the columns that are left by what the
inputs' second moments say makes up best for the error so far: Frantar et al., "GPTQ: Accurate Post-Training
Quantization for Generative Pre-trained Transformers" (ICLR 2023). The largest weight of a channel stays what it is, so
that the core finds the same grid again.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tacit.compiler import metadata
from tacit.importers.source import Node, Seen, Source

Matrix = NDArray[np.float64]
Values = Mapping[str, NDArray[np.float32]]
MOST_INPUTS = 4608
"""Layers with more inputs to an output are rounded to the nearest: the matrix of their moments is large."""
POSITIONS = 64
"""Positions of an image that are looked at."""
DAMPING = 0.01
TOLERANCE = 1e-3


@dataclass
class Layer:
    """A linear layer whose weights lie on a known grid, and the moments of its inputs, group by group."""

    node: Node
    where: Seen
    rows: Matrix
    steps: Matrix
    largest: int
    shape: tuple[int, ...]
    count: int = 0
    sums: Matrix = field(default_factory=lambda: np.zeros(0))
    products: Matrix = field(default_factory=lambda: np.zeros(0))

    @property
    def groups(self) -> int:
        """Sets of channels that are multiplied apart."""
        return int(self.node.operation.get("groups", 1))

    def see(self, values: NDArray[np.float32], random: np.random.Generator) -> None:
        """Add a batch of the tensor that the layer reads to the moments."""
        inputs = columns(in_layout(values, self.where, self.shape), self.where.factor, self.node.operation, random)
        inputs = inputs[~np.isnan(inputs).any(axis=(1, 2))].transpose(1, 0, 2)
        if not self.count:
            self.sums = np.zeros((self.groups, inputs.shape[2]))
            self.products = np.zeros((self.groups, inputs.shape[2], inputs.shape[2]))
        self.count += inputs.shape[1]
        self.sums += inputs.sum(axis=1)
        self.products += inputs.transpose(0, 2, 1) @ inputs

    def round(self, centred: bool) -> tuple[Matrix, Matrix]:
        """Rows on the grid, and how far the mean of each output moved; where `centred` a bias takes that back."""
        means = self.sums / self.count
        parts = self.rows.reshape(self.groups, -1, self.rows.shape[1])
        steps = self.steps.reshape(self.groups, -1)
        found = []
        for rows, step, product, mean in zip(parts, steps, self.products, means, strict=True):
            moments = product / self.count - (np.outer(mean, mean) if centred else 0)
            found.append(fed_back(rows, step, self.largest, moments))
        moved = np.concatenate([(new - old) @ mean for new, old, mean in zip(found, parts, means, strict=True)])
        return np.concatenate(found), moved


def rounded(
    source: Source, compiled: Path, batches: Callable[[list[str]], Iterable[Values]], bits: int, centred: bool
) -> Source:
    """The source with weights on the grid of `compiled`, which was compiled from it with weights of `bits`.

    `batches` gives values of named tensors of the model. With `centred` biases make up for the means.
    """
    layers = on_grid(source, compiled, bits)
    random = np.random.default_rng(0)
    for values in batches(list(dict.fromkeys(layer.where.tensor for layer in layers))):
        for layer in layers:
            layer.see(values[layer.where.tensor], random)
    weights, nodes = dict(source.weights), {node.name: node for node in source.nodes}
    for layer in layers:
        operation = layer.node.operation
        rows, moved = layer.round(centred)
        weight = source.weights[operation["weight"]]
        changed = {"weight": f"{layer.node.name}.rounded.weight"}
        weights[changed["weight"]] = np.ascontiguousarray(rows.reshape(weight.shape), np.float32)
        if centred:
            before = 0.0 if operation["bias"] is None else source.weights[operation["bias"]]
            changed["bias"] = f"{layer.node.name}.rounded.bias"
            weights[changed["bias"]] = (before - moved).astype(np.float32)
        nodes[layer.node.name] = replace(layer.node, operation={**operation, **changed})
    return replace(source, weights=weights, nodes=tuple(nodes[node.name] for node in source.nodes))


def on_grid(source: Source, compiled: Path, bits: int) -> list[Layer]:
    """Layers whose integers in `compiled` are the weights of `source`, rounded; passes change the others."""
    graph, integers = stored(compiled)
    written = {node["name"]: node for node in graph["nodes"] if "linear" in node["op"]}
    observed, largest = source.observed(), (1 << (bits - 1)) - 1
    layers = []
    for node in source.nodes:
        where = observed.get(node.inputs[0])
        if node.operation["op"] not in ("Conv", "Gemm") or node.name not in written or where is None:
            continue
        step = written[node.name]
        scales = [graph["tensors"][index]["format"]["scale"] for index in (step["output"], step["inputs"][0])]
        unit = scales[0] / 2.0 ** step["op"]["linear"]["shift"] / scales[1]
        rows = source.weights[node.operation["weight"]].astype(np.float64)
        rows = rows.reshape(len(rows), -1)
        steps = np.maximum(np.ceil(np.abs(rows).max(axis=1) / largest / unit - 1e-9), 1) * unit
        values = integers.get(f"{node.name}.weight", np.zeros(0, np.int64)) * unit
        near = values.size == rows.size and is_near(values.reshape(rows.shape), rows, steps)
        shape = tuple(graph["tensors"][step["inputs"][0]]["shape"])
        if near and rows.shape[1] <= MOST_INPUTS and can_see(node.operation, where):
            layers.append(Layer(node, where, rows, steps, largest, shape))
    return layers


def is_near(values: Matrix, rows: Matrix, steps: Matrix) -> bool:
    """Whether values are rows, each rounded to a whole number of steps."""
    whole = values / steps[:, None]
    off = np.abs(values - rows) / steps[:, None]
    return bool((np.abs(whole - np.rint(whole)) < TOLERANCE).all() and (off < 0.5 + TOLERANCE).all())


def can_see(operation: Mapping[str, Any], where: Seen) -> bool:
    """Whether the inputs of each output can be told from what calibration sees of the tensor."""
    pointwise = operation["op"] == "Conv" and is_pointwise(operation)
    return where.channel is not None and (pointwise or where.channel == 0)


def is_pointwise(operation: Mapping[str, Any]) -> bool:
    """Whether a convolution multiplies each position by a matrix."""
    return (operation["kernel"], operation["padding"]) == ([1, 1], [0] * 4)


def stored(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[np.int64]]]:
    """The graph of a compiled file and the integers of its weights."""
    with path.open("rb") as file:
        header = metadata.header(path, file)
        data = file.read()
    graph: dict[str, Any] = json.loads(header.pop("__metadata__")["graph"])
    arrays = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        if entry["dtype"] == "I32":
            arrays[name] = np.frombuffer(data[start:end], np.int32).astype(np.int64)
    return graph, arrays


def in_layout(values: NDArray[np.float32], where: Seen, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Values (N, ...) of the model's tensor with the channels first, in the shape of the layer's input."""
    moved = np.moveaxis(values, (where.channel or 0) + 1, 1)
    if where.factors:
        moved = moved * np.array(where.factors, np.float32).reshape(-1, *(1,) * (moved.ndim - 2))
    return moved.reshape(len(values), *shape)


def columns(
    values: NDArray[np.float32], factor: float, operation: Mapping[str, Any], random: np.random.Generator
) -> Matrix:
    """What single outputs are computed from: inputs `[outputs looked at, groups, in of a group]`."""
    groups = operation.get("groups", 1)
    if operation["op"] == "Gemm" or is_pointwise(operation):
        flat = values.reshape(len(values), values.shape[1], -1)
        chosen = some(flat.shape[2], random)
        seen = flat[:, :, chosen].transpose(0, 2, 1)
    else:
        top, left, bottom, right = operation["padding"]
        padded = np.pad(values, ((0, 0), (0, 0), (top, bottom), (left, right)))
        (rows, across), (down, right) = operation["kernel"], operation["dilation"]
        windows = sliding_window_view(padded, ((rows - 1) * down + 1, (across - 1) * right + 1), axis=(2, 3))
        windows = windows[:, :, :: operation["stride"][0], :: operation["stride"][1], ::down, ::right]
        y, x = np.divmod(some(windows.shape[2] * windows.shape[3], random), windows.shape[3])
        seen = windows[:, :, y, x].transpose(0, 2, 1, 3, 4)
    return seen.reshape(seen.shape[0] * seen.shape[1], groups, -1).astype(np.float64) * factor


def some(count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Positions out of `count`, all of them if they are few."""
    return np.arange(count) if count <= POSITIONS else random.choice(count, POSITIONS, replace=False)


def fed_back(rows: Matrix, steps: Matrix, largest: int, moments: Matrix) -> Matrix:
    """Rows `[out, in]` on points of their grids with the error fed back; those that are no better stay as they are."""
    count = len(moments)
    damped = moments + (DAMPING * np.trace(moments) / count + np.finfo(np.float64).tiny) * np.eye(count)
    order = np.argsort(-np.diag(damped), kind="stable")
    upper = np.linalg.cholesky(np.linalg.inv(damped[np.ix_(order, order)])).T
    left, found = rows[:, order].copy(), rows[:, order].copy()
    peaks = np.abs(found).argmax(axis=1)
    for column in range(count):
        whole = nearest(left[:, column], steps, largest)
        kept = peaks == column
        whole[kept] = nearest(found[kept, column], steps[kept], largest)
        error = (left[:, column] - whole) / upper[column, column]
        left[:, column + 1 :] -= error[:, None] * upper[column, column + 1 :]
        found[:, column] = np.where(kept, found[:, column], whole)
    found = found[:, np.argsort(order)]
    better = loss(found, rows, steps, largest, moments) < loss(rows, rows, steps, largest, moments)
    return np.where(better[:, None], found, rows)


def nearest(values: Matrix, steps: Matrix, largest: int) -> Matrix:
    """Values on the nearest points of their grids."""
    points: Matrix = np.clip(np.rint(values / steps), -largest, largest) * steps
    return points


def loss(found: Matrix, rows: Matrix, steps: Matrix, largest: int, moments: Matrix) -> Matrix:
    """Mean square of what the rows as the core rounds them add to each output."""
    errors = nearest(found.T, steps, largest).T - rows
    total: Matrix = ((errors @ moments) * errors).sum(axis=1)
    return total
