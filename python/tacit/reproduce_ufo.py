"""UFO's tables IV and V and figures 13, 16, 17 and 18: convolutions, ResNet-20, and what each optimisation is worth."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.cifar import pixels
from tacit.data import Examples
from tacit.demo import asset
from tacit.errors import MisuseError
from tacit.evaluation import simulated
from tacit.model import Model
from tacit.operation import OperationPair, bench_operation
from tacit.pair import Pair
from tacit.paper import Rows, row
from tacit.preprocess import PRESETS

MB, GB = 1e6, 1e9
TRAINED = "ufo_resnet20"
"""The directory of the trained network among the assets."""
CALIBRATION, IMAGES = 64, 300
"""Training images that calibrate, and test images of the quick accuracy."""
WEIGHT_BITS, ACTIVATION_BITS = 2, 6
"""Of figures 13, 16 and 17."""
UNKNOWN = 0.0
"""Where the paper's text has no number."""


class Shape(NamedTuple):
    """A 3x3 convolution of table IV and its megabytes: SiRNN's and UFO's columns, and SiRNN at UFO's widths.

    The table's SiRNN multiplies 16 by 16 bits into 32; the last number is SiRNN's own code at 2 bits of weights and
    4 of activations, which the paper does not have.
    """

    side: int
    inputs: int
    outputs: int
    sirnn: float
    ufo: tuple[float, float]
    sirnn_w2a4: float

    @property
    def name(self) -> str:
        """As in the table."""
        return f"{self.side}x{self.side}, {self.inputs} to {self.outputs}"


TABLE_4 = (
    Shape(32, 16, 32, 414.1, (25.75, 30.88), 53.0),
    Shape(16, 32, 64, 380.1, (17.77, 20.33), 44.0),
    Shape(56, 64, 64, 9336, (376.9, 440.6), 1057.0),
    Shape(28, 128, 128, 8598, (381.9, 438.9), 816.0),
)
WIDTHS = (4, 6)
"""Bits of activations in table IV; weights have 2."""


def convolution(shape: Shape, activation_bits: int, **more: Any) -> float:
    """Megabytes of one convolution between two processes, both ways and all phases."""
    image = {"height": shape.side, "width": shape.side, "input": shape.inputs, "output": shape.outputs}
    window = {"kernel": 3, "stride": 1, "padding": 1, "dilation": 1, "groups": 1}
    widths = {"weight_bits": WEIGHT_BITS, "activation_bits": activation_bits, "rounding": "stochastic"}
    run = bench_operation(OperationPair({"operation": "conv", **image, **window, **widths, **more}, threads=1), 1)
    return float(sum(run["bytes"].values())) / MB


def table_4(full: bool, _data: Path) -> dict[str, Any]:
    """Convolutions: this suite, SiRNN's way at the same widths, and homomorphic encryption."""
    rows: Rows = []
    for shape in TABLE_4:
        for bits, paper in zip(WIDTHS, shape.ufo, strict=True):
            if not full and bits > WIDTHS[0] and shape.side > 32:
                continue
            name = f"{shape.name}, W{WEIGHT_BITS}A{bits}"
            sirnn = shape.sirnn_w2a4 if bits == WIDTHS[0] else UNKNOWN
            uniform = convolution(shape, bits, suite="ufo", baseline="uniform")
            rows += [
                row(f"{name}, UFO", paper, convolution(shape, bits, suite="ufo"), "MB"),
                row(f"{name}, SiRNN at these widths", sirnn, uniform, "MB"),
            ]
        rows.append(row(f"{shape.name}, HE beside SiRNN 16x16 to 32 bits", shape.sirnn, convolution(shape, 8), "MB"))
    note = "the table's SiRNN is 16x16 to 32 bits; at equal widths it is 2 to 3 times UFO; HE is far below both"
    return {"rows": rows, "measured": [], "note": note}


@contextmanager
def compiled(source: Path, x: NDArray[np.float32] | None = None, **options: Any) -> Iterator[Model]:
    """A model for suite ufo."""
    from tacit.compile import Options, compile_model

    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.tacit"
        compile_model(source, path, x, options=Options(suite="ufo", rounding="exact", **options))
        yield Model(path)


def examples(data: Path, part: str, count: int | None) -> Examples:
    """Images of CIFAR-10 as ResNets read them."""
    archive = data / "cifar10" / f"cifar10_{part}.npz"
    if not archive.exists():
        raise MisuseError(f"{archive} does not exist; --data names the folder with cifar10 and models")
    x, y = pixels(archive)
    return Examples(PRESETS["cifar10"].inputs(x[:count].transpose(0, 2, 3, 1)), y[:count])


def planned(model: Model) -> tuple[float, float]:
    """Gigabytes of an image: all of them, and those after it is there."""
    phases = {name: sum(phase["bytes"].values()) / GB for name, phase in model.plan()["phases"].items()}
    return sum(phases.values()), phases["online"]


def table_5(full: bool, data: Path) -> dict[str, Any]:
    """ResNet-20 on CIFAR-10, as it was trained here."""
    test = examples(data, "test", None if full else IMAGES)
    with compiled(asset(TRAINED)) as model:
        total, online = planned(model)
        accuracy = 100 * simulated(model, test)["top1"]
        report = Pair(model, threads=1).run(test.x[:1], None).report
    seconds = sum(report["phases"][phase]["seconds"] for phase in ("setup", "offline", "online"))
    rows = [
        row("ResNet-20, communication", 0.366, total, "GB"),
        row("ResNet-20, latency", 13.82, seconds, "s"),
        row(f"ResNet-20, top-1 of {len(test.x)} images", 92.57, accuracy, "%"),
    ]
    equal = report["max_error"] == 0
    return {"rows": rows, "measured": [{"name": "online", "bytes": online * GB, "equal_to_interpreter": equal}]}


NETWORKS = {"ResNet-20": "resnet20_cifar10.onnx", "ResNet-32": "resnet32_cifar10.onnx"}
ALL = ("winograd", "residual", "fusion", "sign")
"""Passes in the order in which figure 16 adds them."""


def of_float(data: Path, network: str, without: Iterable[str]) -> Any:
    """A float network rounded to the figures' widths, without some passes."""
    source = data / "models" / NETWORKS[network]
    if not source.exists():
        raise MisuseError(f"{source} does not exist; --data names the folder with cifar10 and models")
    widths = {"weight_bits": WEIGHT_BITS, "activation_bits": ACTIVATION_BITS, "disabled": tuple(without)}
    return compiled(source, examples(data, "train_50k", CALIBRATION).x, **widths)


def figure_16(full: bool, data: Path) -> dict[str, Any]:
    """What is left as one optimisation after the other is added."""
    rows: Rows = []
    measured: Rows = []
    for network in NETWORKS if full else ("ResNet-32",):
        steps = {}
        for done in accumulate(((),) + tuple((name,) for name in ALL)):
            with of_float(data, network, (name for name in ALL if name not in done)) as model:
                steps[done[-1] if done else "quantised"] = planned(model)
        measured += [
            {"name": f"{network}, + {step}", "total_gb": total, "online_gb": online}
            for step, (total, online) in steps.items()
        ]
        rows += of_steps(network, steps)
    return {"rows": rows, "measured": measured}


def of_steps(network: str, steps: dict[str, tuple[float, float]]) -> Rows:
    """Quotients of steps that the paper's text has: sections III-2 and VI-F."""

    def quotient(after: str, before: str, part: int) -> float:
        return steps[after][part] / steps[before][part]

    return [
        row(f"{network}, total with Winograd / without", 0.8, quotient("winograd", "quantised", 0), "x"),
        row(f"{network}, total with fusion / without", 0.7, quotient("fusion", "residual", 0), "x"),
        row(f"{network}, total of naive Winograd / all", UNKNOWN, 1 / quotient("sign", "winograd", 0), "x"),
        row(f"{network}, online of naive Winograd / all", UNKNOWN, 1 / quotient("sign", "winograd", 1), "x"),
    ]


def figure_18(_full: bool, _data: Path) -> dict[str, Any]:
    """Bits of weights, layer by layer, of the network of table V. The paper has no numbers, only bars."""
    from tacit.importers.quantised import import_quantised

    layers = [node for node in import_quantised(asset(TRAINED)).source.nodes if node.operation["op"] == "QuantisedConv"]
    wide = [node for node in layers if node.operation["kernel"] == [3, 3]]
    rows = [row(node.name, UNKNOWN, len(node.operation["importance"]), "bits") for node in wide]
    mean = sum(entry["ours"] for entry in rows) / len(rows)
    return {"rows": rows, "measured": [{"name": "mean", "bits": mean}]}
