"""FALCON's tables 3 to 6: garbled circuits, softmax, whole networks and their accuracy."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from tacit.data.examples import Examples, load
from tacit.data.preprocess import PRESETS
from tacit.demo.digits import asset, write_test_set
from tacit.errors import MisuseError
from tacit.measure.evaluation import Reference, simulated
from tacit.measure.operation import OperationPair, bench_operation
from tacit.model import Model
from tacit.session.pair import Pair

from tacit_lab.cifar import pixels
from tacit_lab.reproduce.paper import Rows, row

MB = 1e6
PRIME = 1316638721
"""The paper's plaintext modulus."""
REPEAT = 3
"""Sessions of a measurement; the one of median time counts."""
WINDOW = 4
"""Values in a pool."""
CALIBRATION, IMAGES = 300, 500
"""Training images that calibrate, and test images of the quick table of accuracies."""


class Cost(NamedTuple):
    """Megabytes and milliseconds before and after the input is there."""

    offline_mb: float
    online_mb: float
    offline_ms: float
    online_ms: float

    def minus(self, other: "Cost") -> "Cost":
        """What comes on top of `other`."""
        return Cost(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))

    def plus(self, other: "Cost") -> "Cost":
        """Both."""
        return Cost(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


UNITS = ("setup, MB", "online, MB", "setup, ms", "online, ms")
TABLE_3 = {
    "Data preprocessing": {1000: Cost(4.82, 1.45, 32.3, 14.5), 10000: Cost(48.2, 14.9, 265.5, 136.4)},
    "ReLU": {1000: Cost(1.95, 0.01, 9.82, 4.20), 10000: Cost(19.2, 0.11, 96.2, 43.2)},
    "MaxPooling": {1000: Cost(1.94, 0.01, 12.1, 5.6), 10000: Cost(20.0, 0.12, 100, 45.5)},
    "ReLU+MaxPooling": {1000: Cost(3.89, 0.02, 21.9, 9.8), 10000: Cost(39.2, 0.23, 196.3, 88.7)},
    "Optimized MaxPooling+ReLU": {1000: Cost(2.44, 0.02, 12.5, 5.2), 10000: Cost(24.4, 0.14, 134.3, 54.4)},
}
TABLE_4 = {
    2: {10: Cost(0.996, 0.0294, 8.56, 3.89), 100: Cost(9.96, 0.294, 58.7, 24.5), 1000: Cost(99.6, 29.4, 574.8, 254.6)},
    4: {10: Cost(0.996, 0.0294, 8.66, 4.02), 100: Cost(9.96, 0.294, 60.3, 26.7), 1000: Cost(99.6, 29.4, 588.0, 257.6)},
}


def traffic(name: str, paper: Cost, ours: Cost) -> Rows:
    """The lines of megabytes."""
    return rows_of(name, paper, ours)[:2]


def times(name: str, paper: Cost, ours: Cost) -> Rows:
    """The lines of milliseconds."""
    return rows_of(name, paper, ours)[2:]


def rows_of(name: str, paper: Cost, ours: Cost) -> Rows:
    """A line per unit."""
    numbers = zip(UNITS, paper, ours, strict=True)
    return [row(f"{name}, {what}", theirs, mine, what.split()[-1]) for what, theirs, mine in numbers]


def measured(operation: dict[str, Any]) -> Cost:
    """One operation between two processes; base transfers and hello left out."""
    report = bench_operation(OperationPair(operation, 1), REPEAT)
    offline, online = (report["phases"][phase] for phase in ("offline", "online"))
    megabytes = [sum(phase["bytes"].values()) / MB for phase in (offline, online)]
    milliseconds = [1000 * phase["seconds"] for phase in (offline, online)]
    return Cost(*megabytes, *milliseconds)


def circuit(count: int, window: int, relu: bool) -> Cost:
    """A circuit on `count` shares mod the prime: maxima of `window` values, a ReLU."""
    return measured({"operation": "circuit", "count": count, "modulus": PRIME, "window": window, "relu": relu})


def table_3(full: bool, _data: Path) -> dict[str, Any]:
    """ReLU and max pooling of 2x2 in garbled circuits; as in the paper, shares come in and go out once.

    Traffic is what comes on top of that, as in the paper; of times, which vary, only sums make sense.
    """
    rows: Rows = []
    for count in (1000, 10000) if full else (1000,):
        shares = circuit(count, 1, relu=False)
        relu, pool = circuit(count, 1, relu=True), circuit(count, WINDOW, relu=False)
        lines = {
            "Data preprocessing": shares,
            "ReLU": relu,
            "MaxPooling": pool,
            "ReLU+MaxPooling": relu.plus(pool).minus(shares),
            "Optimized MaxPooling+ReLU": circuit(count, WINDOW, relu=True),
        }
        first = TABLE_3["Data preprocessing"][count]
        for name, ours in lines.items():
            paper = TABLE_3[name][count]
            alone = name == "Data preprocessing"
            rows += traffic(f"{name}, {count}", paper, ours if alone else ours.minus(shares))
            title = name if alone else f"Data preprocessing and {name}"
            rows += times(f"{title}, {count}", paper if alone else paper.plus(first), ours)
    return {"rows": rows, "measured": []}


def table_4(full: bool, _data: Path) -> dict[str, Any]:
    """Label and probability of the top class."""
    rows: Rows = []
    for digits, papers in TABLE_4.items():
        for classes in (10, 100, 1000) if full else (10, 100):
            operation = {"operation": "probability", "count": classes, "digits": digits, "bits": 16}
            rows += rows_of(f"10^-{digits}, {classes} classes", papers[classes], measured(operation))
    return {"rows": rows, "measured": []}


class Network(NamedTuple):
    """A network of table 5 and what the paper says of it."""

    name: str
    setup_mb: float
    online_mb: float
    setup_s: float
    online_s: float
    accuracy: float
    plain: float


MNIST = Network("MNIST", 77.0, 15.5, 0.63, 0.21, 99.26, 99.31)
CIFAR = Network("CIFAR-10", 1194, 265, 7.20, 2.88, 81.61, 81.61)


def mnist(folder: Path, data: Path, images: int | None) -> tuple[Model, Examples, Path]:
    """The shipped network of MiniONN's shape, compiled; test digits; its float source."""
    from tacit.compiler.compiler import Options, compile_model

    source, path, tests = asset("mnist.onnx"), folder / "mnist.tacit", folder / "digits.npz"
    write_test_set(tests, data / "mnist" / "mnist.npz")
    seen = load(asset("mnist_calibration.npz")).x
    compile_model(source, path, seen, options=Options(suite="falcon-ntt", nonlinear="gc"))
    digits = load(tests)
    return (
        Model(path),
        Examples(digits.x[:images], None if digits.y is None else digits.y[:images]),
        asset("mnist.onnx"),
    )


def cifar(folder: Path, data: Path, images: int | None) -> tuple[Model, Examples, Path]:
    """MiniONN's CIFAR-10 network, compiled; test images; its float source."""
    from tacit.compiler.compiler import Options, compile_model

    archive = data / "cifar10" / "cifar10_test.npz"
    if not archive.exists():
        raise MisuseError(f"{archive} does not exist; --data names the folder with cifar10 and models")

    def examples(file: str, count: int | None) -> Examples:
        x, y = pixels(data / "cifar10" / file)
        return Examples(PRESETS["unit"].inputs(x[:count].transpose(0, 2, 3, 1)), y[:count])

    source = data / "models" / "delphi_minionn_cifar10_relu.onnx"
    path = folder / "cifar.tacit"
    seen = examples("cifar10_train_50k.npz", CALIBRATION).x
    compile_model(source, path, seen, options=Options(suite="falcon-ntt", nonlinear="gc"))
    return Model(path), examples("cifar10_test.npz", images), source


NETWORKS = ((MNIST, mnist), (CIFAR, cifar))


def table_5(_full: bool, data: Path) -> dict[str, Any]:
    """Whole networks: traffic as planned, seconds of one private prediction."""
    rows: Rows = []
    with TemporaryDirectory() as folder:
        for network, build in NETWORKS:
            model, examples, _ = build(Path(folder), data, 1)
            phases = model.plan()["phases"]
            offline, online = (sum(phases[phase]["bytes"].values()) / MB for phase in ("offline", "online"))
            rows += [
                line(network.name, "setup", network.setup_mb, offline, "MB"),
                line(network.name, "online", network.online_mb, online, "MB"),
            ]
            report = Pair(model, threads=1).run(examples.x, None).report["phases"]
            seconds = [report[phase]["seconds"] for phase in ("offline", "online")]
            rows += [
                line(network.name, "setup", network.setup_s, seconds[0], "s"),
                line(network.name, "online", network.online_s, seconds[1], "s"),
            ]
    return {"rows": rows, "measured": []}


def line(network: str, what: str, paper: float, ours: float, unit: str) -> dict[str, Any]:
    """One number of a network."""
    return row(f"{network}, {what}, {unit}", paper, ours, unit)


def table_6(full: bool, data: Path) -> dict[str, Any]:
    """Accuracy of the integers, which private runs equal, and of the float network."""
    rows: Rows = []
    with TemporaryDirectory() as folder:
        for network, build in NETWORKS:
            model, examples, source = build(Path(folder), data, None if full else IMAGES)
            scores = simulated(model, examples, Reference(source))
            for what, paper, key in (("FALCON", network.accuracy, "top1"), ("plaintext", network.plain, "float_top1")):
                rows.append(line(network.name, what, paper, 100 * float(np.float64(scores[key])), "%"))
    return {"rows": rows, "measured": []}
