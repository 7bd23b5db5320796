"""Accuracy and cost of real networks, as JSON: a row of the README per network.

`.venv/bin/python scripts/real_networks.py [--only NAME ...]` compiles each network of
../shared/data/models (those that say so: random weights) with calibration, evaluates the float
model and the integers on its whole test set, runs some images privately between two processes with
default settings, and writes bench/results/models/networks.json: entries by name, each with the machine, the
commit and the day. Entries of networks that are not named stay. One row again:
`.venv/bin/python scripts/real_networks.py --only resnet20`. Then `scripts/result_tables.py`.

With --skip-accuracy what the file says of accuracy stays too. Files go to build/networks; what needs
no private run takes one to ten minutes per network, mostly the integers in the clear.
"""

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import prepare_data
from tacit import _core
from tacit.data.preprocess import PRESETS, Preprocessing
from tacit.measure.bench import commit, machine
from tacit_lab import random_mobilenets, random_resnets

ROOT = Path(__file__).parent.parent
DATA = ROOT.parent / "shared" / "data"
RESULT = ROOT / "bench/results/models/networks.json"
FOLDER = ROOT / "build/networks"
UNLABELLED = -1
PHASES = ("setup", "offline", "online")


class Network(NamedTuple):
    """A model, its data, and how many images are evaluated in the clear (None: all) and privately."""

    title: str
    file: str
    data: str
    preprocessing: Preprocessing
    private: int = 50
    clear: int | None = None
    options: tuple[str, ...] = ()

    @property
    def trained(self) -> bool:
        """Whether accuracy means anything."""
        return not self.file.endswith("-random.onnx")


UNIT, MNIST = PRESETS["unit"], Preprocessing(28, 28, "L", scale=1 / 256)
CLIPPED = ("--clip-percentile", "99.9")
EIGHT = ("--activation-bits", "8", "--weight-bits", "8")
"""For networks of which `compile` would take more bits by itself."""
NETWORKS = {
    "resnet20": Network("ResNet-20, CIFAR-10", "resnet20_cifar10.onnx", "cifar10", PRESETS["cifar10"]),
    "resnet32": Network("ResNet-32, CIFAR-10", "resnet32_cifar10.onnx", "cifar10", PRESETS["cifar10"]),
    "resnet8": Network("ResNet-8, CIFAR-10", "mlperf_tiny_resnet8_cifar10.onnx", "cifar10", PRESETS["raw"]),
    "minionn": Network("MiniONN, CIFAR-10", "delphi_minionn_cifar10_relu.onnx", "cifar10", UNIT),
    "minionn-5": Network("the same, 5 of 7 ReLU squared", "delphi_minionn_cifar10_5_approx.onnx", "cifar10", UNIT),
    "minionn-7": Network(
        "the same, 7 of 7 ReLU squared", "delphi_minionn_cifar10_7_approx.onnx", "cifar10", UNIT, options=CLIPPED
    ),
    "resnet32-100": Network("ResNet-32, CIFAR-100", "delphi_resnet32_cifar100.onnx", "cifar100", UNIT),
    "cryptonets": Network("CryptoNets, MNIST", "cryptonets_mnist.onnx", "mnist", MNIST),
    "squeezenet": Network(
        "SqueezeNet, 227x227", "squeezenet_v1.0_deepcompressed.onnx", "imagenet227", PRESETS["caffe-squeezenet"], 10
    ),
    "mobilenet": Network("MobileNetV2, 224x224", "mobilenet_v2_1.0_224.onnx.xz", "imagenet", PRESETS["mobilenet"], 10),
    "resnet18": Network(
        "ResNet-18, 224x224, random weights", "resnet18-random.onnx", "imagenet", PRESETS["imagenet"], 1, 10
    ),
    "resnet50": Network(
        "ResNet-50, 224x224, random weights", "resnet50-random.onnx", "imagenet", PRESETS["imagenet"], 1, 10
    ),
    "efficientnet": Network(
        "EfficientNet-B0, 224x224, random weights",
        "efficientnet-b0-random.onnx",
        "imagenet",
        PRESETS["imagenet"],
        1,
        10,
        EIGHT,
    ),
    "mobilenetv3": Network(
        "MobileNetV3-small, 224x224, random weights",
        "mobilenetv3-small-random.onnx",
        "imagenet",
        PRESETS["imagenet"],
        1,
        10,
        EIGHT,
    ),
}


def say(message: str) -> None:
    """Progress, on standard error."""
    sys.stderr.write(f"{message}\n")


def tacit(*arguments: object) -> dict[str, Any]:
    """What `tacit ... --json` prints; it runs in a process of its own, so that memory is its own."""
    command = [sys.executable, "-m", "tacit", *map(str, arguments), "--json"]
    say("  tacit " + " ".join(command[3:]))
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"`{' '.join(command[2:])}` failed: {done.stdout.strip()}")
    content: dict[str, Any] = json.loads(done.stdout)
    return content


@cache
def images(name: str, data: Path) -> prepare_data.Sets:
    """A set of `prepare_data`; the 7 whole free photographs are tested too, without a label."""
    test, calibration = prepare_data.SETS[name](data)
    if name.startswith("imagenet"):
        free = calibration.x[:: prepare_data.CROPS]
        labels = np.full(len(free), UNLABELLED, test.y.dtype)
        test = prepare_data.Images(np.concatenate([test.x, free]), np.concatenate([test.y, labels]))
    return prepare_data.Sets(test, calibration)


def source(network: Network, data: Path, folder: Path) -> Path:
    """The float model, built if its weights are random."""
    if network.trained:
        return data / "models" / network.file
    path = folder / network.file
    if not path.exists():
        name = network.file.removesuffix("-random.onnx")
        onnx.save((random_mobilenets if name in random_mobilenets.NETWORKS else random_resnets).build(name), path)
    return path


def prepare(name: str, network: Network, data: Path, folder: Path) -> Path:
    """The compiled model, beside NAME-clear.npz and NAME-private.npz without labels."""
    folder.mkdir(parents=True, exist_ok=True)
    sets = images(network.data, data)
    parts = {
        "calibration": sets.calibration.x,
        "clear": sets.test.x[: network.clear],
        "private": sets.test.x[: network.private],
    }
    for part, x in parts.items():
        np.savez(folder / f"{name}-{part}.npz", x=x)
    pixels, compiled = folder / f"{name}.json", folder / f"{name}.tacit"
    pixels.write_text(network.preprocessing.to_json())
    options = ("--calibrate", folder / f"{name}-calibration.npz", "--preprocess", pixels, *network.options)
    tacit("compile", source(network, data, folder), "-o", compiled, *options)
    return compiled


def accuracy(name: str, network: Network, data: Path, folder: Path) -> dict[str, Any]:
    """Accuracy of the float model and of the integers, where images have labels, and how often both agree."""
    y = images(network.data, data).test.y[: network.clear]
    compiled, clear = folder / f"{name}.tacit", folder / f"{name}-clear.npz"
    model = source(network, data, folder)
    floats = np.array(tacit("evaluate", compiled, clear, "--mode", "plain", "--model", model)["output"])
    integers = np.array(tacit("evaluate", compiled, clear)["output"])
    known = y != UNLABELLED
    top1 = {
        mode: float((labels == y)[known].mean()) if network.trained else None
        for mode, labels in (("float", floats), ("integers", integers))
    }
    return {"images": len(y), "labelled": int(known.sum()), **top1, "agreement": float((floats == integers).mean())}


def private(name: str, folder: Path) -> dict[str, Any]:
    """A private session with default settings; costs are per image but for `setup`, which a session has once."""
    report = tacit("evaluate", folder / f"{name}.tacit", folder / f"{name}-private.npz", "--mode", "private")
    count = report["inputs"]
    phases = {phase: per_image(report["phases"][phase], 1 if phase == "setup" else count) for phase in PHASES}
    same = ("suite", "ot", "max_error", "peak_memory_bytes", "cpu_seconds")
    return {
        "images": count,
        "labels_equal": round(report["agreement"] * count),
        "phases": phases,
        **{field: report[field] for field in same},
    }


def per_image(cost: dict[str, Any], count: int) -> dict[str, Any]:
    """A phase's bytes in each direction, rounds and seconds, divided."""
    sent = {direction: round(size / count) for direction, size in cost["bytes"].items()}
    return {"bytes": sent, "rounds": round(cost["rounds"] / count, 1), "seconds": round(cost["seconds"] / count, 4)}


def measure(name: str, arguments: argparse.Namespace, before: dict[str, Any]) -> dict[str, Any]:
    """The entry of one network; `before` is what the file says of it."""
    network = NETWORKS[name]._replace(private=arguments.private_limit or NETWORKS[name].private)
    say(f"{name}: {network.title}")
    prepare(name, network, arguments.data, arguments.folder)
    conditions = {"machine": machine(), "version": _core.__version__, "commit": commit(), "protocol": _core.PROTOCOL}
    entry = {
        "title": network.title,
        "file": network.file,
        "options": list(network.options),
        "accuracy": before.get("accuracy"),
        **conditions,
        "date": datetime.now(UTC).date().isoformat(),
    }
    if not arguments.skip_accuracy:
        entry["accuracy"] = accuracy(name, network, arguments.data, arguments.folder)
    return {**entry, "private": private(name, arguments.folder)}


def read(path: Path) -> dict[str, Any]:
    """Entries by name; none where there is no file yet."""
    entries: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return entries


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of " + ", ".join(NETWORKS))
    parser.add_argument("--private-limit", type=int, metavar="N", help="images of a private run (default: 50, 10 or 1)")
    parser.add_argument("--skip-accuracy", action="store_true", help="only the private run")
    parser.add_argument("--output", type=Path, default=RESULT, help="default: %(default)s")
    parser.add_argument("--data", type=Path, default=DATA, help="default: %(default)s")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for compiled models (default: %(default)s)")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.only or () if name not in NETWORKS]
    if unknown:
        parser.error(f"no network is called {unknown[0]}; there are {', '.join(NETWORKS)}")
    if arguments.private_limit is not None and arguments.private_limit < 1:
        parser.error("--private-limit must be at least 1")
    return arguments


def main() -> None:
    """Entry point."""
    arguments = parsed()
    for name in arguments.only or NETWORKS:
        entries = read(arguments.output)
        entries[name] = measure(name, arguments, entries.get(name, {}))
        ordered = {known: entries[known] for known in NETWORKS if known in entries}
        arguments.output.write_text(json.dumps(ordered, indent=1) + "\n")
        say(f"{name}: written to {arguments.output}")


if __name__ == "__main__":
    main()
