"""Other systems beside this one: what they need on such a machine for single operations, and for whole networks.

Their numbers were measured on 2026-11-20 on two cores of a Zen 5 with AVX-512 and VAES, both parties on loopback,
one thread each, megabytes both ways: SecretFlow SPU 0.9.5 with protocol Cheetah (ring of 64 bits, 18 of them
fractions, at its best settings), OpenCheetah and EzPC's SCI, these built from source and their results verified. They
stand in the column `paper`. Their convolutions and products have 37 bits (SPU: 64), ours weights and activations of 8.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tacit.data.examples import load_all
from tacit.data.preprocess import PRESETS
from tacit.demo.digits import build_model, digits
from tacit.demo.texts import PATIENCE_SECONDS, SEQUENCE, minilm
from tacit.measure.operation import OperationPair, bench_operation
from tacit.model import Model
from tacit.session.pair import Pair

from tacit_lab.cifar import pixels
from tacit_lab.reproduce.paper import Rows, row

MB = 1e6
SPU, CHEETAH, SCI = "SPU", "OpenCheetah", "SCI"
MILLION, THOUSANDS = 1_000_000, 100_000
CALIBRATION = 300
"""Training images that calibrate."""
RUNS = 3
"""Sessions of a full measurement, the median of which counts."""
EIGHT = {"weight_bits": 8, "activation_bits": 8, "rounding": "stochastic"}
PREPARED = ("offline", "online")
"""The phases of a warm run; a cold one has the setup too."""


class Theirs(NamedTuple):
    """Megabytes (of operations `each`: bytes) of a system, and seconds, where they are known."""

    system: str
    size: float
    seconds: float | None = None


class Operator(NamedTuple):
    """An operation, and what others need; `each` counts bytes of a value in the place of megabytes of all."""

    name: str
    operation: dict[str, Any]
    others: tuple[Theirs, ...]
    each: bool = False


def relu(bits: int, *others: Theirs) -> Operator:
    """ReLU of a million values."""
    return Operator(f"ReLU of a million, {bits} bits", {"operation": "relu", "count": MILLION, "bits": bits}, others)


def conv(side: int, inputs: int, outputs: int, *others: Theirs) -> Operator:
    """A 3x3 convolution that keeps the side."""
    image = {"height": side, "width": side, "input": inputs, "output": outputs, "groups": 1}
    window = {"kernel": 3, "stride": 1, "padding": 1, "dilation": 1}
    operation = {"operation": "conv", **image, **window, **EIGHT}
    return Operator(f"convolution {side}x{side}, {inputs} to {outputs}, 3x3", operation, others)


def matmul(rows: int, inner: int, cols: int, *others: Theirs) -> Operator:
    """A matrix product."""
    operation = {"operation": "matmul", "rows": rows, "inner": inner, "cols": cols, **EIGHT}
    return Operator(f"product {rows}x{inner}x{cols}", operation, others)


def of_rows(title: str, rows: int, cols: int, widths: tuple[int, int, float], *others: Theirs) -> Operator:
    """A function of transformers on a matrix, with the widths (in, out) and the range of `tacit bench`."""
    bits, out_bits, bound = widths
    shape = {"operation": title.lower(), "rows": rows, "cols": cols}
    return Operator(f"{title} {rows}x{cols}", {**shape, "bits": bits, "out_bits": out_bits, "range": bound}, others)


def width(name: str, operation: str, bits: int, more: dict[str, Any], *others: Theirs) -> Operator:
    """A change of width of many values."""
    fields = {"operation": operation, "count": THOUSANDS, "bits": bits, "non_negative": False, **more}
    return Operator(name, fields, others, each=True)


def maxpool(title: str, windows: int, window: int, bits: int, *others: Theirs) -> Operator:
    """Maxima of windows."""
    operation = {"operation": "maxpool", "count": windows, "bits": bits, "window": window}
    return Operator(f"max-pool, {title}, {bits} bits", operation, others)


def argmax(classes: int, *others: Theirs) -> Operator:
    """The place of the largest value."""
    return Operator(f"argmax of {classes}", {"operation": "argmax", "count": classes, "bits": 16}, others)


OPERATORS = (
    relu(8, Theirs(CHEETAH, 11.75, 0.90), Theirs(SCI, 126, 1.2)),
    relu(16, Theirs(CHEETAH, 25.4, 2.5), Theirs(SCI, 255, 2.8)),
    relu(32, Theirs(SPU, 49.8, 4.9), Theirs(CHEETAH, 52.5, 4.8), Theirs(SCI, 533, 6.3)),
    conv(32, 16, 32, Theirs(SPU, 1.49, 0.87), Theirs(CHEETAH, 1.56, 0.044), Theirs("SCI-HE", 2.6)),
    conv(16, 32, 64, Theirs(SPU, 1.11, 0.55), Theirs(CHEETAH, 2.24, 0.065), Theirs("SCI-HE", 1.3)),
    conv(56, 64, 64, Theirs(SPU, 7.91, 7.4), Theirs(CHEETAH, 7.25, 0.39), Theirs("SCI-HE", 16.8)),
    conv(28, 128, 128, Theirs(SPU, 6.95, 4.4), Theirs(CHEETAH, 6.56, 0.41), Theirs("SCI-HE", 8.4)),
    matmul(128, 768, 768, Theirs(SPU, 5.6, 3.2)),
    matmul(128, 768, 3072, Theirs(SPU, 15.7, 12.6)),
    matmul(1, 2048, 1001, Theirs(SPU, 0.89, 1.25)),
    of_rows("GELU", 128, 3072, (12, 8, 8.0), Theirs("SPU, tanh", 1099, 31), Theirs("SPU, polynomial", 476, 17.6)),
    of_rows("softmax", 1536, 128, (9, 8, 16.0), Theirs(SPU, 294, 6.6)),
    of_rows("LayerNorm", 128, 768, (9, 19, 32.0), Theirs(SPU, 57.7, 0.90)),
    maxpool("2x2 of 64x56x56", 64 * 28 * 28, 4, 16, Theirs(SPU, 15.4, 2.15)),
    maxpool("100,000 windows of 4", THOUSANDS, 4, 32, Theirs(CHEETAH, 15.5, 1.4), Theirs(SCI, 164, 1.8)),
    maxpool("100,000 windows of 9", THOUSANDS, 9, 37, Theirs(CHEETAH, 47.6, 4.5)),
    argmax(10, Theirs(SPU, 0.006, 0.06)),
    argmax(1000, Theirs(SPU, 0.30, 0.25), Theirs(CHEETAH, 0.115), Theirs(SCI, 0.71)),
    width("truncate 32 by 12", "truncate", 32, {"drop": 12, "out_bits": 32}, Theirs(CHEETAH, 43.6), Theirs(SCI, 548)),
    width("truncate 16 to 8", "truncate", 16, {"drop": 8}, Theirs(CHEETAH, 10.6), Theirs(SCI, 119)),
    width("truncate 32 to 20", "truncate", 32, {"drop": 12}, Theirs(CHEETAH, 17.6), Theirs(SCI, 174)),
    width("extend 8 to 16", "extend", 8, {"out_bits": 16}, Theirs(CHEETAH, 10.6), Theirs(SCI, 119)),
    width("extend 16 to 32", "extend", 16, {"out_bits": 32}, Theirs(CHEETAH, 22.1), Theirs(SCI, 246)),
)


def spent(report: dict[str, Any], phases: tuple[str, ...]) -> tuple[float, float]:
    """Bytes both ways and seconds of some phases."""
    chosen = [report["phases"][phase] for phase in phases]
    return float(sum(sum(cost["bytes"].values()) for cost in chosen)), float(sum(cost["seconds"] for cost in chosen))


def operator_rows(operator: Operator, repeat: int) -> tuple[Rows, dict[str, Any]]:
    """Ours beside each of the others, and seconds."""
    report = bench_operation(OperationPair(operator.operation, threads=1), repeat)
    traffic, seconds = spent(report, PREPARED)
    size, unit = (traffic / operator.operation["count"], "B") if operator.each else (traffic / MB, "MB")
    named = f"{operator.name}, each" if operator.each else operator.name
    rows = [row(f"{named}, beside {other.system}", other.size, size, unit) for other in operator.others]
    times = {f"{other.system}_seconds": other.seconds for other in operator.others if other.seconds is not None}
    rounds = report["phases"]["online"]["rounds"]
    return rows, {"name": operator.name, "rounds": rounds, "seconds": seconds, **times}


def operators(full: bool, _data: Path) -> dict[str, Any]:
    """Single operations: traffic without what a session needs once. Seconds are in `measured`."""
    found = [operator_rows(operator, RUNS if full else 1) for operator in OPERATORS]
    note = "OpenCheetah's truncation by 12 is off by one in half of the results; ours and SCI's are exact"
    rows = [line for lines, _ in found for line in lines]
    return {"rows": rows, "measured": [times for _, times in found], "note": note}


Given = tuple[Model, NDArray[np.float32]]
"""A compiled network and one input."""


class Network(NamedTuple):
    """A network, how it is compiled into a folder, and what others need; cold runs include the setup."""

    name: str
    build: Callable[[Path, Path], Given]
    cold: Theirs
    warm: Theirs | None = None


def mnist(folder: Path, _data: Path) -> Given:
    """The shipped network of MiniONN's shape."""
    return build_model(folder / "mnist.tacit"), digits().x[:1]


def resnet(depth: int) -> Callable[[Path, Path], Given]:
    """A ResNet for CIFAR-10."""

    def build(folder: Path, data: Path) -> Given:
        from tacit.compiler.compiler import compile_model

        path = folder / f"resnet{depth}.tacit"
        images, _ = pixels(data / "cifar10" / "cifar10_train_50k.npz")
        seen = PRESETS["cifar10"].inputs(images[:CALIBRATION].transpose(0, 2, 3, 1))
        compile_model(data / "models" / f"resnet{depth}_cifar10.onnx", path, seen)
        return Model(path), seen[:1]

    return build


def squeezenet(folder: Path, data: Path) -> Given:
    """SqueezeNet at 227x227, calibrated with a few photographs: traffic does not depend on them."""
    from tacit.compiler.compiler import compile_model

    path, photographs = folder / "squeezenet.tacit", sorted((data / "imagenet" / "free_images").glob("*.jpg"))
    seen = load_all(photographs, (3, 227, 227), PRESETS["caffe-squeezenet"]).x
    compile_model(data / "models" / "squeezenet_v1.0_deepcompressed.onnx", path, seen)
    return Model(path), seen[:1]


def encoder(folder: Path, _data: Path) -> Given:
    """MiniLM with a public embedding, as the others had none."""
    from tacit.compiler.compiler import Options, compile_model
    from tacit.compiler.reading import Reading
    from tacit.measure.bench import random_examples

    path = folder / "minilm.tacit"
    compile_model(minilm(), path, options=Options(reading=Reading(SEQUENCE, public_embedding=True)))
    model = Model(path)
    return model, random_examples(model).x


QUICK = (
    Network("MiniONN's network, MNIST", mnist, Theirs(SPU, 26.4, 3.16), Theirs(SPU, 4.06, 0.74)),
    Network("ResNet-20, CIFAR-10", resnet(20), Theirs(SPU, 37.5, 9.6)),
    Network("ResNet-32, CIFAR-10", resnet(32), Theirs(SPU, 82.3, 19.9)),
)
LARGE = (
    Network("SqueezeNet, ImageNet", squeezenet, Theirs(CHEETAH, 446.8, 26.7)),
    Network(f"MiniLM, {SEQUENCE} tokens", encoder, Theirs(SPU, 830, 76)),
)


def network_rows(network: Network, data: Path, repeat: int) -> tuple[Rows, dict[str, Any]]:
    """Traffic and seconds of one input, in a session of its own and, where it is known of others, without setup."""
    with TemporaryDirectory() as folder:
        model, x = network.build(Path(folder), data)
        pair = Pair(model, threads=1, timeout_seconds=PATIENCE_SECONDS)
        reports = [pair.run(x, None).report for _ in range(repeat)]
    report = sorted(reports, key=lambda one: spent(one, PREPARED)[1])[(repeat - 1) // 2]
    rows: Rows = []
    for kind, theirs, phases in (("cold", network.cold, ("setup", *PREPARED)), ("warm", network.warm, PREPARED)):
        if theirs is None:
            continue
        traffic, seconds = spent(report, phases)
        name = f"{network.name}, {kind}, beside {theirs.system}"
        rows.append(row(name, theirs.size, traffic / MB, "MB"))
        if theirs.seconds is not None:
            rows.append(row(f"{name}, time", theirs.seconds, seconds, "s"))
    memory = {"peak_memory_bytes": report["peak_memory_bytes"], "max_error": report["max_error"]}
    return rows, {"name": network.name, **memory}


def networks(full: bool, data: Path) -> dict[str, Any]:
    """Whole networks, one input each."""
    found = [network_rows(network, data, RUNS) for network in (QUICK + LARGE if full else QUICK)]
    return {"rows": [line for rows, _ in found for line in rows], "measured": [besides for _, besides in found]}
