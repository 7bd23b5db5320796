"""UFO's table VI and figures 14 and 15, and few bits under suite `auto`: accuracy and bytes of whole networks.

Networks are rounded after training, but for the points of figure 14 that are called trained: there are no training
images of CIFAR-100 and ImageNet here. Bytes are those of the plan of one image, which a run costs exactly.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tacit.data.examples import Examples
from tacit.data.preprocess import PRESETS
from tacit.errors import MisuseError
from tacit.measure.evaluation import simulated
from tacit.model import Model
from tacit.session.pair import Pair

from tacit_lab.cifar import pixels
from tacit_lab.random_networks import Builder, Window
from tacit_lab.reproduce import cifar10
from tacit_lab.reproduce.paper import Rows, row
from tacit_lab.reproduce.ufo import PASSES, UNKNOWN, planned

GB_IN_MB = 1e3
TRADEOFF = Path("bench/results/papers/ufo-tradeoff.json")
"""Bytes and accuracy of the ResNet-20 that was trained at several budgets."""
RESNET18 = Path("bench/results/papers/ufo-figure15.json")
"""What the full table found of ResNet-18, which takes minutes to compile."""
HELD_OUT = 200
"""The last images of CIFAR-100's 2,000 calibrate; the others test."""
QUICK, QUICK_CURVE, CALIBRATION = 300, 200, 64
"""Test images of the quick tables and curves, and images that calibrate."""
MANY = 2000
"""Test images of tables with many networks, where all of them would take an hour."""


class Network(NamedTuple):
    """A network with weights: its file, the preset of its inputs, and whether its images are CIFAR-100's."""

    name: str
    file: str
    preset: str
    hundred: bool = False

    def sets(self, data: Path, count: int | None) -> tuple[NDArray[np.float32], Examples]:
        """Inputs that calibrate, and the first test images. Raises `MisuseError` without data."""
        if not self.hundred:
            seen = cifar10.examples(data, "cifar10_train_50k.npz", self.preset, CALIBRATION)
            return seen.x, cifar10.examples(data, "cifar10_test.npz", self.preset, count)
        path = data / "cifar100" / "cifar100_test2k.npz"
        if not path.exists():
            raise MisuseError(f"{path} does not exist; --data names the folder with cifar100 and models")
        images, y = pixels(path)
        x = PRESETS[self.preset].inputs(images.transpose(0, 2, 3, 1))
        return x[-HELD_OUT:], Examples(x[:-HELD_OUT][:count], y[:-HELD_OUT][:count])


RESNET20, RESNET32, HUNDRED = (
    Network("ResNet-20, CIFAR-10", "resnet20_cifar10.onnx", "cifar10"),
    Network("ResNet-32, CIFAR-10", "resnet32_cifar10.onnx", "cifar10"),
    Network("ResNet-32, CIFAR-100", "delphi_resnet32_cifar100.onnx", "unit", hundred=True),
)


class Widths(NamedTuple):
    """Bits of weights and of activations."""

    weights: int
    activations: int

    def __str__(self) -> str:
        """As the paper writes them."""
        return f"W{self.weights}A{self.activations}"


class Way(NamedTuple):
    """How linear layers are computed: a name, a suite, and passes that are left out."""

    name: str
    suite: str
    disabled: tuple[str, ...] = ()


UFO, SIRNN, ENCRYPTED = Way("UFO", "ufo"), Way("SiRNN's way", "ufo", PASSES), Way("encryption (auto)", "auto")


class Point(NamedTuple):
    """Megabytes of an image, in all and online, and the percentage of right labels."""

    total: float
    online: float
    top1: float


def made(folder: Path, source: Path, x: NDArray[np.float32], way: Way, widths: Widths) -> Model:
    """A network rounded to widths, for a way."""
    from tacit.compiler.compiler import Options, compile_model

    path = folder / "model.tacit"
    options = Options(
        suite=way.suite,
        weight_bits=widths.weights,
        activation_bits=widths.activations,
        rounding="exact" if way.suite == "ufo" else "stochastic",
        disabled=way.disabled,
    )
    compile_model(source, path, x, options=options)
    return Model(path)


def file(data: Path, network: Network) -> Path:
    """The float model; raises `MisuseError` without it."""
    path = data / "models" / network.file
    if not path.exists():
        raise MisuseError(f"{path} does not exist; --data names the folder with models")
    return path


def point(model: Model, test: Examples) -> Point:
    """What an image costs, and how often the integers give the right label."""
    total, online = planned(model)
    return Point(total * GB_IN_MB, online * GB_IN_MB, 100 * simulated(model, test)["top1"])


HE_ROW = (0.681, 99.03, 68.00)
UFO_ROW = (0.525, 20.33, 69.26)
"""Gigabytes, seconds and top-1 of table VI: CrypTFlow2 with encryption, and UFO."""
TABLE_6 = (
    ("UFO, rounded", UFO, Widths(4, 6), UFO_ROW),
    ("UFO, rounded", UFO, Widths(6, 8), UFO_ROW),
    ("auto, rounded, beside CrypTFlow2 (HE)", ENCRYPTED, Widths(8, 8), HE_ROW),
)


def table_6(full: bool, data: Path) -> dict[str, Any]:
    """ResNet-32 on CIFAR-100: not trained with few bits, as the paper's is, but rounded; `full`: to more bits too."""
    seen, test = HUNDRED.sets(data, None if full else QUICK)
    rows: Rows = []
    measured: Rows = []
    for title, way, widths, (gigabytes, seconds, accuracy) in TABLE_6 if full else TABLE_6[::2]:
        name = f"{title}, {widths}"
        with TemporaryDirectory() as folder:
            model = made(Path(folder), file(data, HUNDRED), seen, way, widths)
            found = point(model, test)
            report = Pair(model, threads=1).run(test.x[:1], None).report
        took = sum(report["phases"][phase]["seconds"] for phase in ("setup", "offline", "online"))
        rows += [
            row(f"{name}, communication", gigabytes, found.total / GB_IN_MB, "GB"),
            row(f"{name}, latency", seconds, took, "s"),
            row(f"{name}, top-1 of {len(test.x)} images", accuracy, found.top1, "%"),
        ]
        measured.append({"name": name, "online_mb": found.online, "max_error": report["max_error"]})
    note = "there are no training images of CIFAR-100 here, so that the network is rounded after training"
    return {"rows": rows, "measured": measured, "note": note}


CURVE = (Widths(2, 6), Widths(3, 6), Widths(4, 6), Widths(8, 8))
SIRNN_OVER_UFO = {RESNET20: 9.41, HUNDRED: 11.7}
"""The text on figure 14: how many times UFO's bytes SiRNN's are, of the network of each data set."""


def curve(data: Path, network: Network, count: int | None) -> Iterator[tuple[Way, Widths, Point]]:
    """Points of a network, by way and width."""
    seen, test = network.sets(data, count)
    for widths in CURVE:
        for way in (UFO, SIRNN, ENCRYPTED):
            with TemporaryDirectory() as folder:
                yield way, widths, point(made(Path(folder), file(data, network), seen, way, widths), test)


def trained_points() -> list[dict[str, Any]]:
    """What was found of networks that were trained with few bits. Raises `MisuseError` without the file."""
    try:
        found: list[dict[str, Any]] = json.loads(TRADEOFF.read_text(encoding="utf-8"))["points"]
    except (OSError, ValueError, KeyError) as error:
        raise MisuseError(f"{TRADEOFF} is not there; run this in the repository") from error
    return found


def figure_14(full: bool, data: Path) -> dict[str, Any]:
    """Accuracy against bytes: UFO's way, SiRNN's and encryption; with `full` of three networks and more images."""
    rows: Rows = []
    measured: Rows = []
    for network in (RESNET20, RESNET32, HUNDRED) if full else (RESNET20,):
        found = {(way, widths): at for way, widths, at in curve(data, network, MANY if full else QUICK_CURVE)}
        for (way, widths), at in found.items():
            name = f"{network.name}, {widths}, {way.name}"
            rows += [row(name, UNKNOWN, at.total, "MB"), row(f"{name}, top-1", UNKNOWN, at.top1, "%")]
            measured.append({"network": network.name, "way": way.name, "widths": str(widths), **at._asdict()})
        ratio = found[SIRNN, CURVE[0]].total / found[UFO, CURVE[0]].total
        paper = SIRNN_OVER_UFO.get(network, UNKNOWN)
        rows.append(row(f"{network.name}, SiRNN's way / UFO, both {CURVE[0]}", paper, ratio, "x"))
    for trained in trained_points():
        name = f"{RESNET20.name}, trained, {trained['mean_bits']:.1f} bits of weights on average"
        total, top1 = trained["bytes"] / 1e6, 100 * trained["top1"]
        rows += [row(name, UNKNOWN, total, "MB"), row(f"{name}, top-1", UNKNOWN, top1, "%")]
        kept = {"total": total, "online": trained["online_bytes"] / 1e6, "top1": top1}
        measured.append({"network": RESNET20.name, "way": "UFO, trained", "widths": name, **kept})
    return {
        "rows": rows,
        "measured": measured,
        "note": "of the paper's SiRNN the text does not say the widths; ours has the same as UFO beside it",
    }


STEM, STAGES = 64, (64, 128, 256, 512)
IMAGES = {64: ("Tiny-ImageNet", 200, 9.26), 224: ("ImageNet", 1000, 4.88)}
"""By side of an image: the data set, its classes, and how many times UFO's bytes SiRNN's are by the text."""


def resnet18(side: int, classes: int) -> Any:
    """ResNet-18 with random weights as an ONNX model: input `x` (N, 3, side, side)."""
    net = Builder(0)
    x = net.add("Relu", net.conv("x", (3, STEM), Window(7, 7, 2)))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    before = STEM
    for width in STAGES:
        for _ in range(2):
            stride = 2 if before != width else 1
            y = net.add("Relu", net.conv(x, (before, width), Window(3, 3, stride)))
            y = net.conv(y, (width, width), 3)
            skip = x if before == width else net.conv(x, (before, width), Window(1, 1, stride))
            x, before = net.add("Relu", net.add("Add", y, skip)), width
    x = net.dense(net.add("Flatten", net.add("GlobalAveragePool", x)), before, classes)
    return net.model("resnet18", (3, side, side), x, (classes,))


def figure_15(full: bool, _data: Path) -> dict[str, Any]:
    """ResNet-18 at the shapes of Tiny-ImageNet and ImageNet: bytes; without `full` those that are stored."""
    import onnx

    if not full:
        return stored_figure_15()
    rows: Rows = []
    for side, (name, classes, paper) in IMAGES.items():
        x = np.random.default_rng(1).normal(size=(2, 3, side, side)).astype(np.float32)
        title = f"ResNet-18, {name}, {side}x{side}"
        found: dict[str, float] = {}
        with TemporaryDirectory() as folder:
            source = Path(folder) / "resnet18.onnx"
            onnx.save(resnet18(side, classes), source)
            for way in (UFO, SIRNN, ENCRYPTED):
                total, online = planned(made(Path(folder), source, x, way, CURVE[0]))
                found[way.name] = total
                rows.append(row(f"{title}, {CURVE[0]}, {way.name}", UNKNOWN, total * GB_IN_MB, "MB"))
                rows.append(row(f"{title}, {CURVE[0]}, {way.name}, online", UNKNOWN, online * GB_IN_MB, "MB"))
        ratio = found[SIRNN.name] / found[UFO.name]
        rows.append(row(f"{title}, SiRNN's way / UFO, both {CURVE[0]}", paper, ratio, "x"))
    return {"rows": rows, "measured": [], "note": "weights are random: bytes do not depend on them"}


def stored_figure_15() -> dict[str, Any]:
    """What `--full` found. Raises `MisuseError` without the file."""
    try:
        found = json.loads(RESNET18.read_text(encoding="utf-8"))
        return {key: found[key] for key in ("rows", "measured", "note")}
    except (OSError, ValueError, KeyError) as error:
        raise MisuseError(f"{RESNET18} is not there; run this in the repository, or with --full") from error


AUTO = (Widths(8, 8), Widths(4, 8), Widths(8, 6), Widths(4, 6))
TABLE_5 = (366.0, 92.57)
"""Megabytes and top-1 of the paper's ResNet-20."""


def auto_bits(full: bool, data: Path) -> dict[str, Any]:
    """What few bits are worth where linear layers are encrypted: suite `auto`, rounded after training."""
    rows: Rows = []
    measured: Rows = []
    for network in (RESNET20, RESNET32):
        seen, test = network.sets(data, MANY if full else QUICK)
        megabytes, accuracy = TABLE_5 if network is RESNET20 else (UNKNOWN, UNKNOWN)
        for widths in AUTO:
            with TemporaryDirectory() as folder:
                found = point(made(Path(folder), file(data, network), seen, ENCRYPTED, widths), test)
            name = f"{network.name}, {widths} under auto"
            rows.append(row(f"{name}, communication", megabytes, found.total, "MB"))
            rows.append(row(f"{name}, top-1 of {len(test.x)} images", accuracy, found.top1, "%"))
            measured.append({"name": name, "online_mb": found.online})
    note = "of encrypted products the width of weights shows in accumulators alone; shares mind that of activations"
    return {"rows": rows, "measured": measured, "note": note}
