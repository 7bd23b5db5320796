"""Train a ResNet of CIFAR-10 for suite ufo: low-bit weights of the Winograd domain, 6-bit activations.

    tacit train ufo --out build/ufo/resnet20 --epochs 30

In the repository `tacit` is then `PYTHONPATH=python .venv-train/bin/python -m tacit`.

It starts from the float checkpoint; its teachers are float networks. Widths of weights are those of the integer program
(--average). At the end, or with --export at once from the checkpoint, the directory that `tacit compile --suite ufo`
reads is written. A run that was stopped goes on with --resume and ends as if it had not been. Test images are only ever
used to print an accuracy.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from tacit_lab.train import precision
from tacit_lab.train.ufo import data, export, plan, start, teacher
from tacit_lab.train.ufo.network import Network, assign
from tacit_lab.train.ufo.training import Run, Settings, accuracy, estimated, settle, train

STUDENT = "resnet20_cifar10"
SHOWN = 100
"""Images that show the ranges of what no ReLU bounds."""


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    usual = Settings()
    parser = argparse.ArgumentParser(prog="tacit train ufo", description="Train a quantised ResNet for suite ufo.")
    parser.add_argument("--out", type=Path, required=True, help="Directory to write.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data/cifar10"), help="Folder with CIFAR-10.")
    parser.add_argument(
        "--models", type=Path, default=Path("../shared/data/models"), help="Folder with float networks."
    )
    parser.add_argument("--teachers", default="resnet32_cifar10", help="Names of float networks.")
    parser.add_argument("--average", type=float, default=3.1, help="Bound: bytes of weights that all had so many bits.")
    parser.add_argument("--probes", type=int, default=4, help="Random directions for the trace of the Hessian.")
    parser.add_argument("--sensitivity-images", type=int, default=2048, help="Images the trace is taken over.")
    parser.add_argument("--plan", type=Path, help="Widths to take instead of the integer program's.")
    parser.add_argument("--from", dest="origin", type=Path, help="Directory of a run whose weights to start from.")
    parser.add_argument("--epochs", type=int, default=usual.epochs, help="0 rounds without training.")
    parser.add_argument("--settled", type=int, default=usual.settled, help="Last epochs with batch norm as exported.")
    parser.add_argument("--batch", type=int, default=usual.batch)
    parser.add_argument("--rate", type=float, default=usual.rate, help="Of weights, in levels per step.")
    parser.add_argument("--temperature", type=float, default=usual.temperature, help="Of distillation.")
    parser.add_argument("--label-weight", type=float, default=usual.label_weight, help="Of labels beside teachers.")
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--limit", type=int, help="Images to train on. Default: all.")
    parser.add_argument("--threads", type=int, default=1, help="More only help where cores are idle.")
    precision.add_option(parser)
    parser.add_argument("--resume", action="store_true", help="Go on with what is in --out.")
    parser.add_argument("--export", action="store_true", help="Only write the directory, from the checkpoint in --out.")
    options = parser.parse_args(words)
    options.resume = options.resume or options.export
    return options


def prepare(options: argparse.Namespace) -> Run:
    """The network and files of a run."""
    options.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    images, test = data.read(options.data, "train_50k"), data.read(options.data, "test")
    images = images.first(options.limit or len(images.labels))
    float_ = teacher.load(options.models / f"{STUDENT}.onnx")
    chosen = planned(options, float_, images)
    network = Network()
    assign(network, plan.grids(chosen))
    if options.origin is None:
        start.begin(network, start.parameters(options.models / f"{STUDENT}_params.npz"), float_, images)
    else:
        start.carry(network, options.origin)
    teachers = [teacher.load(options.models / f"{name}.onnx") for name in options.teachers.split(",") if name]
    names = ("epochs", "settled", "batch", "rate", "temperature", "label_weight", "seed", "bfloat16")
    settings = Settings(**{name: getattr(options, name) for name in names})
    return Run(settings, network, teachers, images, test, options.out)


def planned(options: argparse.Namespace, float_: teacher.Folded, images: data.Images) -> dict[str, object]:
    """The plan given, the one of a run that goes on, or a new one."""
    kept = options.out / "plan.json"
    if options.plan or (options.resume and kept.is_file()):
        return plan.read(options.plan or kept)
    if options.origin is None:
        few = images.first(options.sensitivity_images)
        found = plan.planned(float_, few, options.average, options.probes, options.seed)
    else:
        found = plan.replanned(float_, plan.traces_of(plan.read(options.origin / "plan.json")), options.average)
    plan.write(kept, found)
    return found


def main(words: Sequence[str] | None = None) -> None:
    """Train as the command line says, or as these words do."""
    options = parsed(words)
    torch.set_num_threads(options.threads)
    run = prepare(options)
    if options.resume:
        run.resume()
    if run.epoch == 0 and run.settings.epochs > 0:
        estimated(run)
        print(f"at the start {accuracy(run.network, run.test):.4f}", flush=True)
    if not options.export:
        train(run)
    finish(run)


def finish(run: Run) -> None:
    """Write the directory, and what it is good for."""
    if run.epoch <= run.unsettled:
        settle(run)
    x = run.train.integers(run.train.pixels[:SHOWN]).numpy()
    export.write(run.network, x, run.folder)
    found = result(run)
    (run.folder / "result.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {run.folder} after {run.epoch} epochs: test {found['top1']:.4f}", flush=True)


def result(run: Run) -> dict[str, Any]:
    """Accuracy on all test images, bits of weights, and how they came about."""
    grids = [part.grid for part in run.network.convolutions().values()]
    return {
        "top1": accuracy(run.network, run.test),
        "bits": [grid.bits for grid in grids],
        "mean_bits": sum(grid.bits for grid in grids) / len(grids),
        "epochs": run.epoch,
        "images": len(run.train.labels),
        "settings": asdict(run.settings),
        "history": run.history,
    }


if __name__ == "__main__":
    main()
