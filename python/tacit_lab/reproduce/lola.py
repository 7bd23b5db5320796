"""LoLa's tables: latency and accuracy of its MNIST networks, predictions an hour in batches, and CIFAR-10."""

import json
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tacit.data.examples import Examples
from tacit.data.preprocess import PRESETS
from tacit.demo.digits import asset
from tacit.errors import MisuseError
from tacit.measure.evaluation import simulated
from tacit.model import Model
from tacit.session.pair import Pair

from tacit_lab.cifar import pixels
from tacit_lab.reproduce.paper import Rows, row

Packing = Literal["dense", "convolution", "sparse"]
CALIBRATION = 1000
"""Training images that the ranges come from."""
RUNS, IMAGES = 3, 5
"""Sessions of a measurement, the median of which counts, and images of each."""
THREADS = 2
QUICK = 1000
"""Test images of the accuracy in the quick table."""
BATCH = 8192
PER_HOUR = 3600


CIFAR_RESULTS = Path("bench/results/papers/lola-cifar10.json")
"""What the full table found of CIFAR-10, which takes longer than a quick one may."""
CIFAR_BITS = (5, 5, 4)
"""Bits of weights, chosen with the input's on training images that did not train."""


class Network(NamedTuple):
    """A network of the paper: its file, packing (None: the cheapest), bits of weights, seconds, accuracy."""

    name: str
    model: str | None
    packing: Packing | None
    layer_bits: tuple[int, ...]
    seconds: float
    accuracy: float


NETWORKS = (
    Network("LoLa", "cryptonets_mnist.onnx", "convolution", (4, 5, 4), 2.2, 98.95),
    Network("LoLa-Dense", "cryptonets_mnist.onnx", "dense", (4, 5, 4), 7.2, 98.95),
    Network("LoLa-Small", None, None, (5, 5), 0.29, 96.92),
)


def images(data: Path, part: str, count: int | None) -> Examples:
    """MNIST as the networks read it: pixel / 256, (N, 1, 28, 28)."""
    path = data / "mnist" / "mnist.npz"
    if not path.exists():
        raise MisuseError(f"{path} is missing; --data names the folder with mnist/mnist.npz")
    with np.load(path) as archive:
        x, y = archive[f"x_{part}"][:count], archive[f"y_{part}"][:count]
    return Examples((x.astype(np.float32) / 256)[:, None], y.astype(np.int64))


def compiled(network: Network, data: Path, folder: Path) -> Model:
    """The network for suite lola."""
    from tacit.compiler.compiler import Options, compile_model

    source = asset("lola_small.onnx") if network.model is None else data / "models" / network.model
    options = Options(suite="lola", layer_bits=network.layer_bits, packing=network.packing)
    path = folder / f"{network.name}.tacit"
    compile_model(source, path, images(data, "train", CALIBRATION).x, None, options)
    return Model(path)


def latency(model: Model, x: NDArray[np.float32]) -> tuple[float, dict[str, Any]]:
    """Median seconds of an image from the quantised input to the result, and the last session's report."""
    reports = [Pair(model, threads=THREADS).run(x, None).report for _ in range(RUNS)]
    seconds = [report["phases"]["online"]["seconds"] / report["inputs"] for report in reports]
    return median(seconds), reports[-1]


def measured(network: Network, data: Path, full: bool) -> tuple[Rows, dict[str, Any]]:
    """The lines of a network, and what it takes besides."""
    test = images(data, "test", None if full else QUICK)
    with TemporaryDirectory() as folder:
        model = compiled(network, data, Path(folder))
        seconds, report = latency(model, test.x[:IMAGES])
        accuracy = 100 * simulated(model, test)["top1"]
        plan = model.plan()
    rows = [
        row(network.name, network.seconds, seconds, "s"),
        row(f"{network.name}, accuracy", network.accuracy, accuracy, "%"),
    ]
    online, setup = report["phases"]["online"]["bytes"], report["phases"]["setup"]["bytes"]
    besides = {
        "name": network.name,
        "request_bytes": online["client_to_server"] // IMAGES,
        "answer_bytes": online["server_to_client"] // IMAGES,
        "keys_bytes": setup["client_to_server"],
        "equal_to_interpreter": report["max_error"] == 0,
        "peak_memory_bytes": report["peak_memory_bytes"],
        "parameters": plan["parameters"],
    }
    return rows, besides


def throughput(data: Path) -> tuple[Rows, dict[str, Any]]:
    """CryptoNets' packing: one pixel a message, an image in each slot."""
    test = images(data, "test", BATCH)
    with TemporaryDirectory() as folder:
        model = compiled(NETWORKS[0]._replace(packing="sparse"), data, Path(folder))
        report = Pair(model, threads=THREADS, timeout_seconds=600, batch=BATCH).run(test.x, None).report
    hourly = BATCH * PER_HOUR / report["phases"]["online"]["seconds"]
    besides = {
        "name": "CryptoNets",
        "batch": BATCH,
        "seconds": report["phases"]["online"]["seconds"],
        "equal_to_interpreter": report["max_error"] == 0,
        "peak_memory_bytes": report["peak_memory_bytes"],
        "bytes": report["phases"]["online"]["bytes"],
    }
    return [row("CryptoNets", 59_000, hourly, "predictions/h")], besides


def last_layer(source: Path) -> tuple[str, Any]:
    """The tensor that the last node of an ONNX file reads, (N, length), and a model of that node alone."""
    import onnx
    from onnx import TensorProto, helper

    model = onnx.load(source)
    node = model.graph.node[-1]
    constants = [tensor for tensor in model.graph.initializer if tensor.name in node.input]
    outputs, inputs = constants[0].dims
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", int(length)])
        for name, length in ((node.input[0], inputs), (node.output[0], outputs))
    ]
    graph = helper.make_graph([node], "last-layer", infos[:1], infos[1:], constants)
    return node.input[0], helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def deep_features(data: Path, full: bool) -> tuple[Rows, dict[str, Any]]:
    """The last layer of ResNet-20 on what the layers before make of CIFAR-10, which the client computes."""
    import onnx
    from tacit.compiler.compiler import Options, compile_model
    from tacit.compiler.float_model import FloatModel

    source = data / "models" / "resnet20_cifar10.onnx"
    tensor, head = last_layer(source)
    backbone = FloatModel(source, (tensor,))

    def features(name: str, count: int | None) -> Examples:
        x, y = pixels(data / "cifar10" / name)
        parts = backbone.batches(PRESETS["cifar10"].inputs(x[:count].transpose(0, 2, 3, 1)))
        return Examples(np.concatenate([part[tensor] for part in parts]), y[:count])

    test = features("cifar10_test.npz", None if full else QUICK)
    with TemporaryDirectory() as folder:
        path, compiled_path = Path(folder) / "head.onnx", Path(folder) / "head.tacit"
        onnx.save(head, path)
        options = Options(suite="lola", activation_bits=6, layer_bits=(6,))
        compile_model(path, compiled_path, features("cifar10_train_50k.npz", CALIBRATION).x, None, options)
        classifier = Model(compiled_path)
        seconds, report = latency(classifier, test.x[:IMAGES])
        accuracy = 100 * simulated(classifier, test)["top1"]
    rows = [row("linear classifier on deep features", 0.16, seconds, "s")]
    besides = {
        "name": "ResNet-20 features of CIFAR-10",
        "accuracy": accuracy,
        "equal_to_interpreter": report["max_error"] == 0,
    }
    return rows, besides


def table_1(full: bool, data: Path) -> dict[str, Any]:
    """MNIST, a linear classifier, and with `full` batches."""
    rows, besides = measured(NETWORKS[0], data, full)
    others = [deep_features(data, full)] + ([throughput(data)] if full else [])
    return {
        "rows": rows + [line for lines, _ in others for line in lines],
        "measured": [besides, *(more for _, more in others)],
    }


def table_3(full: bool, data: Path) -> dict[str, Any]:
    """The three networks for MNIST."""
    lines = [measured(network, data, full) for network in NETWORKS]
    return {"rows": [line for rows, _ in lines for line in rows], "measured": [besides for _, besides in lines]}


def cifar(data: Path) -> tuple[Rows, dict[str, Any]]:
    """LoLa's network for CIFAR-10, trained by `tacit_lab.train.lola_cifar`."""
    from tacit.compiler.compiler import Options, compile_model

    def part(name: str, count: int | None) -> Examples:
        x, y = pixels(data / "cifar10" / name)
        return Examples(x[:count].astype(np.float32) / 127.5 - 1, y[:count])

    test = part("cifar10_test.npz", None)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "cifar10.tacit"
        options = Options(suite="lola", activation_bits=4, layer_bits=CIFAR_BITS)
        calibration = part("cifar10_train_50k.npz", CALIBRATION).x
        compile_model(asset("lola_cifar10.onnx.xz"), path, calibration, None, options)
        model = Model(path)
        reports = [Pair(model, threads=THREADS).run(test.x[:1], None).report for _ in range(RUNS)]
        accuracy = 100 * simulated(model, test)["top1"]
    seconds = median(report["phases"]["online"]["seconds"] for report in reports)
    rows = [
        row("LoLa, CIFAR-10", 730, seconds, "s"),
        row("LoLa, CIFAR-10, accuracy", 74.1, accuracy, "%"),
        row("LoLa, CIFAR-10, memory", 12, reports[-1]["peak_memory_bytes"]["server"] / 1e9, "GB"),
    ]
    last = reports[-1]
    besides = {
        "name": "LoLa, CIFAR-10",
        "images": len(test.x),
        "bytes": {phase: last["phases"][phase]["bytes"] for phase in ("setup", "online")},
        "equal_to_interpreter": all(report["max_error"] == 0 for report in reports),
        "peak_memory_bytes": last["peak_memory_bytes"],
        "parameters": last["parameters"],
    }
    return rows, besides


def table_4(full: bool, data: Path) -> dict[str, Any]:
    """MNIST beside CIFAR-10; without `full` the latter as it was last measured and stored."""
    rows, besides = measured(NETWORKS[0], data, full)
    if full:
        more, seen = cifar(data)
    else:
        try:
            stored = json.loads(CIFAR_RESULTS.read_text(encoding="utf-8"))
            more, seen = stored["rows"], stored["measured"]
        except (OSError, ValueError, KeyError) as error:
            why = f"{CIFAR_RESULTS} is not there; run this in the repository, or with --full"
            raise MisuseError(why) from error
    return {"rows": rows + more, "measured": [besides, seen]}
