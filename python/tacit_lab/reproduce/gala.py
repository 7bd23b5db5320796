"""GALA's tables IX to XIII and figure 9, and single layers: operations, times and accuracy."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tacit.measure.architectures import ARCHITECTURES, Layer
from tacit.measure.he_operations import count, plan_architecture
from tacit.measure.operation import OperationPair, bench_operation

from tacit_lab.he_operation_counts import timed
from tacit_lab.reproduce.cifar10 import Trained, scores
from tacit_lab.reproduce.paper import Rows, row

SLOTS = 2048
"""Slots of the paper's ciphertexts."""
RUNS = 5
TITLES = {
    "mlp": "MLP 784-128-128-10",
    "alexnet": "AlexNet",
    "vgg16": "VGG-16",
    "resnet18": "ResNet-18",
    "resnet50": "ResNet-50",
    "resnet101": "ResNet-101",
    "resnet152": "ResNet-152",
}
REDUCTIONS = {"alexnet": 34, "vgg16": 31, "resnet18": 30, "resnet50": 47, "resnet101": 39, "resnet152": 36}
SPEEDUPS = {
    "mlp": 1.0,
    "alexnet": 2.5,
    "vgg16": 2.7,
    "resnet18": 3.2,
    "resnet50": 8.3,
    "resnet101": 7.7,
    "resnet152": 7.5,
}
CHANNELS = 8
"""Channels in a ciphertext of the paper, whatever the size of a map."""


def rotations(name: str, suite: str) -> int:
    """The rotations of a whole network, in rows of the paper's length."""
    return int(plan_architecture(name, suite, SLOTS)["operations"]["rotations"])


def published(name: str) -> float:
    """GAZELLE/GALA by the count that gives the paper's ratios of the three bottleneck networks.

    8 channels in every ciphertext whatever the size of a map, rotations of kernels only, and
    max(c_i, c_o)/8 groups of them under GALA.
    """
    layers = [layer for layer in ARCHITECTURES[name]() if layer.name.startswith(("conv", "layer"))]
    pairs = sum(layer.inputs * layer.outputs for layer in layers) / CHANNELS
    return pairs / sum(max(layer.inputs, layer.outputs) for layer in layers)


def gala_operations(_full: bool, _data: Path) -> dict[str, Any]:
    """Table IX."""
    rows: Rows = [
        row(f"{TITLES['mlp']}, GAZELLE", 70, rotations("mlp", "gazelle"), "rotations"),
        row(f"{TITLES['mlp']}, GALA", 55, rotations("mlp", "gala"), "rotations"),
    ]
    measured: Rows = []
    for name, paper in REDUCTIONS.items():
        before, after = rotations(name, "gazelle"), rotations(name, "gala")
        rows.append(row(f"{TITLES[name]}, GAZELLE/GALA", paper, before / after, "x"))
        rows.append(row(f"{TITLES[name]}, GAZELLE/GALA by formula, 8 channels", paper, published(name), "x"))
        measured.append({"name": TITLES[name], "gazelle": before, "gala": after, "unit": "rotations"})
    return {"rows": rows, "measured": measured}


def compared(layer: Layer, slots: int | None = None, runs: int = RUNS) -> dict[str, Any]:
    """Both suites' operations and median seconds of one layer."""
    both = {suite: timed(layer, suite, slots, runs) for suite in ("gazelle", "gala")}
    typical = {suite: median(counted["seconds"]) for suite, counted in both.items()}
    costs = {suite: {**counted, "seconds": typical[suite]} for suite, counted in both.items()}
    return {"name": layer.name, **costs, "speedup": typical["gazelle"] / typical["gala"]}


def products(full: bool) -> Iterator[Layer]:
    """Matrix-vector products n_o x n_i that fill one ciphertext of the paper, and larger ones."""
    shapes = [(1, 2048), (16, 128), (128, 16)]
    if full:
        shapes += [(2, 1024), (4, 512), (8, 256), (32, 64), (64, 32), (128, 128), (128, 784), (256, 512)]
    for outputs, inputs in shapes:
        yield Layer(f"{outputs}x{inputs}", inputs, outputs)


def gala_matvec(full: bool, _data: Path) -> dict[str, Any]:
    """Matrix times vector: rotations by the closed forms, and the time of both."""
    rows: Rows = []
    measured: Rows = []
    for layer in products(full):
        published = {suite: count(layer, suite, SLOTS) for suite in ("gazelle", "gala")}
        for suite, counted in published.items():
            formula = counted["published_rotations"]
            rows.append(row(f"{layer.name}, {suite.upper()}", formula, counted["rotations"], "rotations"))
        measured.append(compared(layer, SLOTS))
    return {"rows": rows, "measured": measured}


def convolutions(full: bool) -> Iterator[Layer]:
    """Convolutions of maps of 16x16 and others."""
    yield Layer("16x16, 128 to 128, 3x3", 128, 128, 16, 3)
    if full:
        yield Layer("16x16, 128 to 128, 1x1", 128, 128, 16, 1)
        yield Layer("16x16, 128 to 128, 5x5", 128, 128, 16, 5)
        yield Layer("32x32, 64 to 64, 3x3", 64, 64, 32, 3)
        yield Layer("8x8, 256 to 256, 3x3", 256, 256, 8, 3)
        yield Layer("16x16, 512 to 128, 1x1", 512, 128, 16, 1)


def gala_conv(full: bool, _data: Path) -> dict[str, Any]:
    """Convolutions: rotations by the closed forms, and the time of both."""
    rows: Rows = []
    measured: Rows = []
    for layer in convolutions(full):
        for suite in ("gazelle", "gala"):
            counted = count(layer, suite, SLOTS)
            formula = counted["published_rotations"]
            rows.append(row(f"{layer.name}, {suite.upper()}", formula, counted["rotations"], "rotations"))
        measured.append(compared(layer, SLOTS, RUNS if full else 3))
    if full:
        best = max(entry["speedup"] for entry in measured)
        rows.append(row("largest speedup of a convolution", 14, best, "x"))
    return {"rows": rows, "measured": measured}


class Prices(NamedTuple):
    """Seconds of a product, of a rotation by itself and of one of several of a ciphertext."""

    product: float
    rotation: float
    hoisted: float

    def layer(self, counted: dict[str, Any]) -> float:
        """The seconds of all operations of a layer."""
        alone = counted["rotations"] - counted["hoisted"]
        return float(
            counted["multiplications"] * self.product + alone * self.rotation + counted["hoisted"] * self.hoisted
        )


def prices() -> Prices:
    """Measured on layers that do almost nothing else."""
    pointwise = timed(Layer("products", 64, 64, 16, 1), "gala", None, RUNS)
    pairs = timed(Layer("rotations", 64, 64, 16, 1), "gazelle", None, RUNS)
    taps = timed(Layer("taps", 16, 1, 16, 7), "gala", None, RUNS)
    least = {name: min(entry["seconds"]) for name, entry in (("p", pointwise), ("r", pairs), ("t", taps))}
    saved = pairs["rotations"] - pointwise["rotations"]
    rotation = max(least["r"] - least["p"], 0.0) / max(saved, 1)
    product = max(least["p"] - pointwise["rotations"] * rotation, 0.0) / pointwise["multiplications"]
    left = least["t"] - taps["multiplications"] * product - (taps["rotations"] - taps["hoisted"]) * rotation
    return Prices(product, rotation, max(left, 0.0) / max(taps["hoisted"], 1))


def accumulated(name: str, price: Prices) -> dict[str, list[float]]:
    """Seconds of the linear layers up to each, by suite."""
    sums: dict[str, list[float]] = {}
    for suite in ("gazelle", "gala"):
        total, series = 0.0, []
        for layer in plan_architecture(name, suite, None)["layers"]:
            total += price.layer(layer)
            series.append(total)
        sums[suite] = series
    return sums


def gala_networks(_full: bool, _data: Path) -> dict[str, Any]:
    """Tables X and XI: linear layers from operation counts and measured prices of operations."""
    price = prices()
    rows: Rows = []
    figure: dict[str, Any] = {}
    for name, paper in SPEEDUPS.items():
        sums = accumulated(name, price)
        figure[TITLES[name]] = sums
        rows.append(row(f"{TITLES[name]}, time of GAZELLE/GALA", paper, sums["gazelle"][-1] / sums["gala"][-1], "x"))
    return {"rows": rows, "measured": [{"name": "seconds of an operation", **price._asdict()}], "accumulated": figure}


LINEAR = {"alexnet": 97.7, "vgg16": 98.2, "resnet18": 98.3, "resnet50": 98.5, "resnet101": 98.4, "resnet152": 98.0}
"""Percentages of the time of GAZELLE that linear layers take."""
ACTIVATIONS, WIDTH = 20_000, 20
"""Values whose ReLU is measured, and bits of their shares, as those of the paper."""


def activations(name: str) -> int:
    """Values that go through a ReLU: the results of all layers but shortcuts and the last."""
    *layers, _ = ARCHITECTURES[name]()
    inner = (layer for layer in layers if not layer.name.endswith("shortcut"))
    return sum(layer.outputs * (layer.side // layer.stride) ** 2 for layer in inner)


def relu_seconds(nonlinear: str) -> float:
    """The seconds of one ReLU among many, before and after its input is there."""
    operation = {"operation": "relu", "count": ACTIVATIONS, "bits": WIDTH, "nonlinear": nonlinear}
    phases = bench_operation(OperationPair(operation, threads=1), RUNS)["phases"]
    return float(sum(phases[phase]["seconds"] for phase in ("offline", "online"))) / ACTIVATIONS


def gala_percentages(_full: bool, _data: Path) -> dict[str, Any]:
    """Table XII: what part of the time of GAZELLE linear layers take, ReLUs in garbled circuits, pools left out.

    What it is under GALA, and with ReLUs by transfers, is in `measured`.
    """
    price = prices()
    relus = {nonlinear: relu_seconds(nonlinear) for nonlinear in ("gc", "ot")}
    rows: Rows = []
    measured: Rows = [{"name": "seconds of a ReLU", **relus}]
    for name, paper in LINEAR.items():
        sums, values = accumulated(name, price), activations(name)
        parts = {
            f"{suite}_{nonlinear}": 100 * sums[suite][-1] / (sums[suite][-1] + values * each)
            for suite in sums
            for nonlinear, each in relus.items()
        }
        rows.append(row(f"{TITLES[name]}, linear part of GAZELLE", paper, parts["gazelle_gc"], "%"))
        measured.append({"name": TITLES[name], "activations": values, "unit": "%", **parts})
    note = "a smaller part than in the paper: rotations have become faster since than garbled circuits have"
    return {"rows": rows, "measured": measured, "note": note}


FIXED = (
    ("ResNet-18 (ours: ResNet-20)", 93.33, 93.21, "resnet20_cifar10.onnx", "cifar10"),
    ("ResNet-50 (ours: ResNet-32)", 93.86, 93.86, "resnet32_cifar10.onnx", "cifar10"),
    ("AlexNet (ours: MiniONN's network)", 78.89, 78.43, "delphi_minionn_cifar10_relu.onnx", "unit"),
)
"""Networks of the paper with their accuracy in fixed and in floating point, and those that we have weights of."""
IMAGES = 200
"""Test images of the quick table."""


def gala_accuracy(full: bool, data: Path) -> dict[str, Any]:
    """Table XIII, with the networks that there are weights of: fixed against floating point."""
    rows: Rows = []
    with TemporaryDirectory() as folder:
        for name, fixed, floating, file, preset in FIXED:
            path = Path(folder) / "model.tacit"
            top1 = scores(data, Trained(file, preset, "gala"), path, None if full else IMAGES)
            rows.append(row(f"{name}, fixed point", fixed, 100 * top1["top1"], "%"))
            rows.append(row(f"{name}, floating point", floating, 100 * top1["float_top1"], "%"))
    return {"rows": rows, "measured": []}
