"""UFO's tables IV and V and figures 13, 16, 17 and 18: convolutions, ResNet-20, and what each optimisation is worth."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tacit.data.examples import Examples
from tacit.data.preprocess import PRESETS
from tacit.demo.digits import asset
from tacit.errors import MisuseError
from tacit.measure.evaluation import simulated
from tacit.measure.operation import OperationPair, bench_operation
from tacit.model import Model
from tacit.session.pair import Pair
from tacit.session.terms import Terms

from tacit_lab.cifar import pixels
from tacit_lab.reproduce.paper import Rows, row

MB, GB = 1e6, 1e9
TRAINED = "ufo_resnet20"
"""The directory of the trained network among the assets."""
CALIBRATION, IMAGES = 64, 300
"""Training images that calibrate, and test images of the quick accuracy."""
WEIGHT_BITS, ACTIVATION_BITS = 2, 6
"""Widths of weights and activations in figures 13, 16 and 17."""
UNKNOWN = 0.0
"""What stands where the paper's text has no number."""


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
        """The shape as the table of the paper writes it."""
        return f"{self.side}x{self.side}, {self.inputs} to {self.outputs}"


TABLE_4 = (
    Shape(32, 16, 32, 414.1, (25.75, 30.88), 53.0),
    Shape(16, 32, 64, 380.1, (17.77, 20.33), 44.0),
    Shape(56, 64, 64, 9336, (376.9, 440.6), 1057.0),
    Shape(28, 128, 128, 8598, (381.9, 438.9), 816.0),
)
WIDE, SMALL = 12, (16, 32)
"""The most bits that weights may have here, and sides of images whose convolution the quick table has at that width."""
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
            name = f"{shape.name}, W{WEIGHT_BITS}A{bits}"
            sirnn = shape.sirnn_w2a4 if bits == WIDTHS[0] else UNKNOWN
            uniform = convolution(shape, bits, suite="ufo", baseline="uniform")
            rows += [
                row(f"{name}, UFO", paper, convolution(shape, bits, suite="ufo"), "MB"),
                row(f"{name}, SiRNN at these widths", sirnn, uniform, "MB"),
            ]
        if full or shape.side in SMALL:
            wide = convolution(shape, WIDE, suite="ufo", baseline="uniform", weight_bits=WIDE)
            rows.append(row(f"{shape.name}, W{WIDE}A{WIDE}, SiRNN's way", UNKNOWN, wide, "MB"))
        rows.append(row(f"{shape.name}, HE beside SiRNN 16x16 to 32 bits", shape.sirnn, convolution(shape, 8), "MB"))
    note = "the table's SiRNN is 16x16 to 32 bits; at equal widths it is 2 to 3 times UFO; HE is far below both"
    return {"rows": rows, "measured": [], "note": note}


@contextmanager
def compiled(source: Path, x: NDArray[np.float32] | None = None, **options: Any) -> Iterator[Model]:
    """A model for suite ufo."""
    from tacit.compiler.compiler import Options, compile_model

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
PASSES: tuple[str, ...] = ("winograd", "residual", "fusion", "sign")
"""The passes in the order in which figure 16 adds them."""
FIGURE_13 = {"ResNet-20": 5.7, "ResNet-32": 5.8}
ADDED = {"ResNet-20": 3 * (16384 + 8192 + 4096), "ResNet-32": 5 * (16384 + 8192 + 4096)}
"""Elements that the blocks of a network add up."""
RESIDUAL_BITS, ACCUMULATOR_BITS, SHIFT = 9, 21, 8
"""Bits of a residual (with that of a known sign) and of an accumulator, and how many of the latter are dropped."""
WINOGRAD, FUSION = 0.37, 0.7
"""What is left of the communication, on average, by the text on figure 17."""
NAIVE = 0.8
"""What naive Winograd leaves of it (section III-2)."""


def float_path(data: Path, network: str) -> Path:
    """The file of a network; raises `MisuseError` without it."""
    path = data / "models" / NETWORKS[network]
    if not path.exists():
        raise MisuseError(f"{path} does not exist; --data names the folder with cifar10 and models")
    return path


def plans(data: Path, network: str, left_out: Iterable[tuple[str, ...]], *transfers: str) -> list[list[dict[str, Any]]]:
    """Plans of a float network rounded to the figures' widths, without some passes each, by kind of transfers."""
    source, x = float_path(data, network), examples(data, "train_50k", CALIBRATION).x
    found = []
    for disabled in left_out:
        with compiled(source, x, weight_bits=WEIGHT_BITS, activation_bits=ACTIVATION_BITS, disabled=disabled) as model:
            found.append([model.plan(Terms(ot=ot)) for ot in transfers])
    return found


def total(plan: dict[str, Any], phases: tuple[str, ...] = ("setup", "offline", "online")) -> float:
    """Megabytes of phases of a plan."""
    return float(sum(sum(plan["phases"][phase]["bytes"].values()) for phase in phases)) / MB


def figure_13(full: bool, _data: Path) -> dict[str, Any]:
    """Conversions in front of the addition of residuals; the one behind it is the same in both.

    As in SiRNN (Fig. 12a) the accumulator is brought to the width and scale of the addition, and the residual too;
    simplified (Fig. 12b) the residual alone is extended to the accumulator, its scale by a local factor.
    """
    rows: Rows = []
    measured: Rows = []
    for network, paper in FIGURE_13.items() if full else (("ResNet-20", FIGURE_13["ResNet-20"]),):
        count = ADDED[network]
        main = conversion("truncate", count, ACCUMULATOR_BITS, drop=SHIFT, out_bits=ACCUMULATOR_BITS - SHIFT)
        narrow = conversion("extend", count, RESIDUAL_BITS, out_bits=ACCUMULATOR_BITS - SHIFT, non_negative=True)
        wide = conversion("extend", count, RESIDUAL_BITS, out_bits=ACCUMULATOR_BITS, non_negative=True)
        rows.append(row(f"{network}, baseline / simplified residual", paper, (main + narrow) / wide, "x"))
        measured.append({"name": network, "elements": count, "baseline_mb": main + narrow, "simplified_mb": wide})
    return {"rows": rows, "measured": measured}


def conversion(name: str, count: int, bits: int, **more: Any) -> float:
    """Megabytes of changes of width between two processes, session aside."""
    operation = {"operation": name, "count": count, "bits": bits, "non_negative": False, **more}
    phases = bench_operation(OperationPair(operation, threads=1), 1)["phases"]
    return float(sum(sum(phases[phase]["bytes"].values()) for phase in ("offline", "online"))) / MB


def steps(count: int = len(PASSES)) -> list[tuple[str, ...]]:
    """The passes that are left out before any, after one, after two .. of them is added."""
    return [PASSES[done:] for done in range(count + 1)]


TRANSFERS = {"silent": "auto", "SoftSpoken": "softspoken8"}
"""Correlations that cost next to nothing, and such that cost 16 bits each; the paper's cost 128 bits."""


def figure_16(full: bool, data: Path) -> dict[str, Any]:
    """What is left as one optimisation after the other is added to few bits alone."""
    rows: Rows = []
    measured: Rows = []
    for network in NETWORKS if full else ("ResNet-20",):
        every = plans(data, network, steps(), *TRANSFERS.values())
        for index, kind in enumerate(TRANSFERS):
            what = f"{network}, {kind} transfers"
            found = [kinds[index] for kinds in every]
            names = ("few bits", *(f"+ {name}" for name in PASSES))
            both = [(total(plan), total(plan, ("online",))) for plan in found]
            measured += [
                {"name": f"{what}, {name}", "total_mb": all_, "online_mb": online}
                for name, (all_, online) in zip(names, both, strict=True)
            ]
            rows += [
                row(f"{what}, naive Winograd / few bits, total", NAIVE, both[1][0] / both[0][0], "x"),
                row(f"{what}, fusion / without, total", FUSION, both[3][0] / both[2][0], "x"),
                row(f"{what}, naive Winograd / all, total", UNKNOWN, both[1][0] / both[-1][0], "x"),
                row(f"{what}, naive Winograd / all, online", UNKNOWN, both[1][1] / both[-1][1], "x"),
            ]
    return {"rows": rows, "measured": measured}


def figure_17(full: bool, data: Path) -> dict[str, Any]:
    """Megabytes of every block: few bits alone, with tiles as published and with fusion besides."""
    network = "ResNet-32" if full else "ResNet-20"
    ends = block_ends(float_path(data, network))
    few, tiles, fused = (blocks(plan, ends) for (plan,) in plans(data, network, (PASSES, ("fusion",), ()), "auto"))
    rows: Rows = []
    for index in range(1, len(few)):
        rows.append(row(f"{network}, block {index}, tiles / few bits", WINOGRAD, tiles[index] / few[index], "x"))
        rows.append(row(f"{network}, block {index}, fusion / tiles", FUSION, fused[index] / tiles[index], "x"))
    columns = zip(few, tiles, fused, strict=True)
    measured = [
        {"name": f"block {index}", "few_bits_mb": a, "tiles_mb": b, "fusion_mb": c}
        for index, (a, b, c) in enumerate(columns)
    ]
    return {"rows": rows, "measured": measured}


def block_ends(source: Path) -> list[list[str]]:
    """The names of the nodes of the start and of every block: a block ends with the ReLU of its sum."""
    from tacit.importers.onnx import import_onnx

    found: list[list[str]] = [[]]
    sums: set[str] = set()
    for node in import_onnx(source).nodes:
        found[-1] += [node.name, node.output]
        if node.operation["op"] == "Add":
            sums.add(node.output)
        if node.operation["op"] == "Relu" and (len(found) == 1 or node.inputs[0] in sums):
            found.append([])
    return found[:-1]


def blocks(plan: dict[str, Any], ends: list[list[str]]) -> list[float]:
    """Megabytes of the layers of every block; steps that a node is made of are named after it."""
    where = {name: index for index, names in enumerate(ends) for name in names}
    found = [0.0] * len(ends)
    for layer in plan["layers"]:
        index = where.get(layer["name"].split(".")[0])
        if index is not None:
            found[index] += sum(layer["bytes"].values()) / MB
    return found


def figure_18(_full: bool, _data: Path) -> dict[str, Any]:
    """Bits of weights, layer by layer, of the network of table V. The paper has no numbers, only bars."""
    from tacit.importers.quantised import import_quantised

    nodes = import_quantised(asset(TRAINED)).source.nodes
    kernels = [node for node in nodes if node.operation.get("kernel") == [3, 3]]
    rows = [row(node.name, UNKNOWN, len(node.operation["importance"]), "bits") for node in kernels]
    mean = sum(entry["ours"] for entry in rows) / len(rows)
    return {"rows": rows, "measured": [{"name": "mean", "bits": mean}]}
