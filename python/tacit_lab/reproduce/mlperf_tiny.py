"""MLPerf Tiny: four networks for small devices, run privately.

Their tables have what a device takes that has both input and weights, which a private run cannot be compared with, so
only their quality stands in the column `paper`: 85 % of labels for the classifier of images, whose trained weights and
data there are. The other data sets cannot be had here, and random weights have a cost but no accuracy.
"""

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from tacit.model import Model
from tacit.session.pair import Pair

from tacit_lab.reproduce.cifar10 import Trained, examples, scores
from tacit_lab.reproduce.paper import Rows, row
from tacit_lab.tiny.networks import TASKS

TRAINED = Trained("mlperf_tiny_resnet8_cifar10.onnx", "raw", "auto")
QUALITY = 85.0
"""Percent of labels, of the closed division."""
IMAGES, SEEN, RUNS, MB = 200, 8, 3, 1e6


def cost(title: str, made: Path, x: NDArray[np.float32]) -> tuple[Rows, dict[str, Any]]:
    """Rows of a compiled network on one input (1, *shape), medians of some sessions; and what is measured besides."""
    pair = Pair(Model(made), threads=1)
    reports = [pair.run(x, None).report for _ in range(RUNS)]
    report = reports[0]
    lines = [
        row(f"{title}, seconds", 0, median(each["seconds"] for each in reports), "s"),
        row(f"{title}, traffic", 0, sum(report["bytes"].values()) / MB, "MB"),
        row(f"{title}, rounds", 0, report["rounds"], ""),
    ]
    kept = ("bytes", "phases", "max_error", "cpu_seconds", "peak_memory_bytes")
    return lines, {"name": title, **{name: report[name] for name in kept}}


def table(full: bool, data: Path) -> dict[str, Any]:
    """Costs of all four, and the accuracy of the one that has weights: on 200 images, or on all 10,000."""
    from tacit.compiler.compiler import compile_model

    lines: Rows = []
    measured: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        for name, task in TASKS.items():
            source, made = Path(folder) / f"{name}.onnx", Path(folder) / f"{name}.tacit"
            if name == "images":
                top1 = scores(data, TRAINED, made, None if full else IMAGES)
                lines.append(row(f"{task.title}, labels", QUALITY, 100 * top1["top1"], "%"))
                lines.append(row(f"{task.title}, labels in floating point", QUALITY, 100 * top1["float_top1"], "%"))
                x = examples(data, "cifar10_test.npz", TRAINED.preset, 1).x
            else:
                onnx.save(task.network(), source)
                given = np.random.default_rng(0).random((SEEN + 1, *task.shape), dtype=np.float32)
                compile_model(source, made, given[1:])
                x = given[:1]
            found, besides = cost(task.title, made, x)
            lines += found
            measured.append({**besides, "quality": task.quality, "trained": name == "images"})
    note = "one input, all phases, one thread each over loopback; weights of all but ResNet-8 are random"
    return {"rows": lines, "measured": measured, "note": note}
