"""Accuracy against bytes of ResNet-20 at several budgets: `bench/results/papers/ufo-tradeoff.json`.

    .venv/bin/python scripts/ufo_tradeoff.py build/ufo/second build/ufo/t2.5 build/ufo/t4.0 ..

Each directory is one that `tacit train ufo` wrote: the main run, and others that started `--from` it (epochs 0:
rounded anew with new statistics of batch norm, not trained) or that it started from. Accuracy is that of the integers
on all test images, from `result.json`; bytes are planned ones of one image, equal to those on the wire.
"""

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tacit import _core
from tacit.compiler import Options, compile_model
from tacit.measure.bench import commit
from tacit.model import Model

OUTPUT = Path("bench/results/papers/ufo-tradeoff.json")


def measured(folder: Path) -> dict[str, Any]:
    """One point of the curve."""
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    with TemporaryDirectory() as temporary:
        path = Path(temporary) / "model.tacit"
        compile_model(folder, path, options=Options(suite="ufo", rounding="exact"))
        phases = Model(path).plan()["phases"]
    sent = {name: sum(phase["bytes"].values()) for name, phase in phases.items()}
    return {
        "name": folder.name,
        "top1": result["top1"],
        "mean_bits": result["mean_bits"],
        "bits": result["bits"],
        "bytes": sum(sent.values()),
        "online_bytes": sent["online"],
        "bound": plan["bound"],
        "epochs": result["epochs"],
        "images_per_epoch": result["images"],
    }


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Accuracy against bytes of trained networks.")
    parser.add_argument("folders", type=Path, nargs="+", help="Directories of runs, the main one first.")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    points = sorted((measured(folder) for folder in options.folders), key=lambda point: int(point["bytes"]))
    start = options.folders[0].name
    about = {"commit": commit(), "protocol": _core.PROTOCOL, "network": "ResNet-20, CIFAR-10, 6-bit activations"}
    content = {**about, "others_start_from": start, "points": points}
    options.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    for point in points:
        print(f"{point['name']}: {point['bytes'] / 1e6:.1f} MB, {100 * point['top1']:.2f} %")


if __name__ == "__main__":
    main()
