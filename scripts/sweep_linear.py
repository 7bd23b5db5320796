"""Cost of the linear layers of ResNet-50 and MobileNetV2, one by one.

`.venv/bin/python scripts/sweep_linear.py [NAME ...]` runs `tacit bench conv` or `tacit bench matmul`
for each shape (or those named) with 8-bit weights and activations, and writes
bench/results/operations/linear-sweep.json: conditions, and per layer its name, shape, bytes both ways, seconds
(of the session of median time) and how it was packed. Layers not named keep what the file says of them.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent.parent / "bench/results/operations/linear-sweep.json"

Shape = dict[str, int]


def conv(side: int, inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> Shape:
    """A convolution on a square image whose padding keeps the size, up to the stride."""
    image = {"height": side, "width": side, "in": inputs, "out": outputs}
    return {**image, "kernel": kernel, "stride": stride, "padding": kernel // 2}


def depthwise(side: int, channels: int, stride: int = 1) -> Shape:
    """A 3x3 convolution of each channel by itself."""
    return {**conv(side, channels, channels, 3, stride), "groups": channels}


def fully_connected(inputs: int, outputs: int) -> Shape:
    """The product of a vector with a matrix."""
    return {"rows": 1, "inner": inputs, "cols": outputs}


LAYERS: dict[str, Shape] = {
    "resnet50-stem": conv(224, 3, 64, 7, 2),
    "resnet50-stage1-1x1-reduce": conv(56, 256, 64),
    "resnet50-stage1-3x3": conv(56, 64, 64, 3),
    "resnet50-stage1-1x1-expand": conv(56, 64, 256),
    "resnet50-stage2-1x1-reduce": conv(28, 512, 128),
    "resnet50-stage2-3x3": conv(28, 128, 128, 3),
    "resnet50-stage2-3x3-stride2": conv(56, 128, 128, 3, 2),
    "resnet50-stage2-1x1-expand": conv(28, 128, 512),
    "resnet50-stage2-downsample": conv(56, 256, 512, 1, 2),
    "resnet50-stage3-1x1-reduce": conv(14, 1024, 256),
    "resnet50-stage3-3x3": conv(14, 256, 256, 3),
    "resnet50-stage3-3x3-stride2": conv(28, 256, 256, 3, 2),
    "resnet50-stage3-1x1-expand": conv(14, 256, 1024),
    "resnet50-stage3-downsample": conv(28, 512, 1024, 1, 2),
    "resnet50-stage4-3x3": conv(7, 512, 512, 3),
    "resnet50-stage4-3x3-stride2": conv(14, 512, 512, 3, 2),
    "resnet50-stage4-1x1-expand": conv(7, 512, 2048),
    "resnet50-fc": fully_connected(2048, 1000),
    "mobilenetv2-stem": conv(224, 3, 32, 3, 2),
    "mobilenetv2-depthwise-112": depthwise(112, 32),
    "mobilenetv2-depthwise-112-stride2": depthwise(112, 96, 2),
    "mobilenetv2-depthwise-56": depthwise(56, 144),
    "mobilenetv2-depthwise-56-stride2": depthwise(56, 144, 2),
    "mobilenetv2-depthwise-28": depthwise(28, 192),
    "mobilenetv2-depthwise-28-stride2": depthwise(28, 192, 2),
    "mobilenetv2-depthwise-14": depthwise(14, 384),
    "mobilenetv2-depthwise-14-stride2": depthwise(14, 576, 2),
    "mobilenetv2-depthwise-7": depthwise(7, 960),
    "mobilenetv2-1x1-last": conv(7, 320, 1280),
    "mobilenetv2-fc": fully_connected(1280, 1000),
}


def measure(shape: Shape, repeat: int, threads: int) -> dict[str, Any]:
    """The report of `tacit bench` on a layer."""
    operation = "matmul" if "inner" in shape else "conv"
    options = {**shape, "weight-bits": 8, "activation-bits": 8, "repeat": repeat, "threads": threads}
    arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    tacit = Path(sys.executable).with_name("tacit")
    done = subprocess.run([tacit, "bench", operation, *arguments, "--json"], stdout=subprocess.PIPE, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def summary(shape: Shape, report: dict[str, Any]) -> dict[str, Any]:
    """What is kept: the layer's own bytes and seconds, without those of the session."""
    layer = report["layers"][-1]
    kept = {name: layer[name] for name in ("bytes", "seconds", "protocol")}
    return {"shape": shape, **kept, "session_seconds": report["seconds"], "all_seconds": report["all_seconds"]}


def main() -> None:
    """Measure and write after each layer."""
    parser = argparse.ArgumentParser(description="Cost of the linear layers of ResNet-50 and MobileNetV2.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(LAYERS)}")
    parser.add_argument("--repeat", type=int, default=3, help="sessions per layer; the median is kept")
    parser.add_argument("--threads", type=int, default=1, help="threads of each party")
    parser.add_argument("--output", type=Path, default=RESULT, help="file to write")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.names if name not in LAYERS]
    if unknown:
        parser.error(f"no layer is called {', '.join(unknown)}")
    kept = json.loads(chosen.output.read_text())["layers"] if chosen.output.exists() else {}
    for name in chosen.names or LAYERS:
        report = measure(LAYERS[name], chosen.repeat, chosen.threads)
        kept[name] = summary(LAYERS[name], report)
        conditions = {key: report[key] for key in ("machine", "version", "commit", "protocol", "threads", "repeat")}
        ordered = {layer: kept[layer] for layer in LAYERS if layer in kept}
        content = {"bench": "linear-sweep", **conditions, "layers": ordered}
        chosen.output.write_text(json.dumps(content, indent=1) + "\n")
        print(f"{name}: {sum(kept[name]['bytes'].values()):,} bytes, {kept[name]['protocol']}")


if __name__ == "__main__":
    main()
