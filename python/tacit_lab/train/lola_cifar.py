"""Train LoLa's network for CIFAR-10 and write it as ONNX.

Convolution 8x8 with 83 maps and stride 2 (one zero around), square, convolution 6x6 with 163 maps and stride 2, square,
fully connected 4075-10 (LoLa, arXiv 1812.10659, section 6): 544,000 parameters. Input: float32 (N, 3, 32, 32),
2 * pixel / 255 - 1. Batch norms in front of the squares keep them small while training; they are folded into the
convolutions at the end. After every epoch a checkpoint is written, from which the same command goes on.

    python -m tacit_lab.train.lola_cifar --data ../shared/data/cifar10 --output build/lola_cifar10.onnx.xz
"""

import argparse
import lzma
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.nn import functional

from tacit_lab.cifar import pixels
from tacit_lab.train.precision import multiplies_bfloat16

MAPS = (83, 163)
FEATURES = 4075
BATCH, RATE, DECAY, SMOOTHING, DROPOUT, CLIP, AVERAGED = 128, 3e-3, 0.05, 0.05, 0.2, 1.0, 0.998
REACH = 4
"""Pixels that images are moved by at most."""
HELD_OUT = 2000
"""Training images that the progress is measured on."""


class Network(nn.Module):  # type: ignore[misc,unused-ignore]
    """Images (N, 3, 32, 32) to logits (N, 10)."""

    def __init__(self) -> None:
        """Random weights, small behind the squares."""
        super().__init__()
        first, second = MAPS
        self.first = nn.Conv2d(3, first, 8, stride=2, padding=1, bias=False)
        self.second = nn.Conv2d(first, second, 6, stride=2, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(maps) for maps in MAPS])
        self.dense = nn.Linear(FEATURES, 10)
        nn.init.normal_(self.dense.weight, 0, 0.01)
        for norm in self.norms:
            nn.init.constant_(norm.weight, 0.7)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        x = self.norms[0](self.first(x)).square()
        x = self.norms[1](self.second(x)).square().flatten(1)
        return self.dense(functional.dropout(x, DROPOUT, self.training))  # type: ignore[no-any-return,unused-ignore]


def scaled(images: Tensor) -> Tensor:
    """Pixels to -1..1."""
    return images.float() / 127.5 - 1


def moved(images: Tensor) -> Tensor:
    """Each image mirrored or not, and moved by up to four pixels; its border is repeated."""
    wide = functional.pad(images.float(), (REACH,) * 4, mode="reflect")
    mirrored = torch.rand(len(images)) < 0.5
    wide[mirrored] = wide[mirrored].flip(3)
    corners = torch.randint(0, 2 * REACH + 1, (len(images), 2)).tolist()
    return torch.stack([image[:, i : i + 32, j : j + 32] for image, (i, j) in zip(wide, corners, strict=True)])


def accuracy(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """Share of images whose largest logit is the label."""
    network.eval()
    with torch.no_grad():
        parts = zip(x.split(500), y.split(500), strict=True)
        hits = sum(int((network(scaled(part)).argmax(1) == labels).sum()) for part, labels in parts)
    network.train()
    return hits / len(y)


class Training:
    """A network, its average and what is left to do."""

    def __init__(self, epochs: int, steps: int, checkpoint: Path) -> None:
        """Starts, or goes on from `checkpoint`."""
        torch.manual_seed(1)
        self.network = Network().to(memory_format=torch.channels_last)
        self.average = torch.optim.swa_utils.AveragedModel(
            self.network,
            multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(AVERAGED),  # type: ignore[no-untyped-call,unused-ignore]
            use_buffers=True,
        )
        self.optimiser = torch.optim.AdamW(self.network.parameters(), lr=RATE, weight_decay=DECAY)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimiser, max_lr=RATE, total_steps=epochs * steps, pct_start=0.1
        )
        self.checkpoint, self.epoch = checkpoint, 0
        if checkpoint.exists():
            self.load(torch.load(checkpoint, weights_only=True))

    def parts(self) -> dict[str, "nn.Module | torch.optim.Optimizer | torch.optim.lr_scheduler.LRScheduler"]:
        """What a checkpoint holds."""
        return {
            "network": self.network,
            "average": self.average,
            "optimiser": self.optimiser,
            "schedule": self.schedule,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Goes on from a checkpoint."""
        for name, part in self.parts().items():
            part.load_state_dict(state[name])
        self.epoch = int(state["epoch"])

    def save(self) -> None:
        """Writes a checkpoint; a kill leaves the one before."""
        state = {name: part.state_dict() for name, part in self.parts().items()}
        partial = self.checkpoint.with_suffix(".partial")
        torch.save(state | {"epoch": self.epoch}, partial)
        partial.replace(self.checkpoint)

    def step(self, x: Tensor, y: Tensor) -> None:
        """One batch."""
        images = moved(x).div_(127.5).sub_(1).contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", torch.bfloat16, enabled=multiplies_bfloat16()):
            logits = self.network(images)
        loss = functional.cross_entropy(logits.float(), y, label_smoothing=SMOOTHING)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call,unused-ignore]
        nn.utils.clip_grad_norm_(self.network.parameters(), CLIP)
        self.optimiser.step()
        self.schedule.step()
        self.average.update_parameters(self.network)


def batches(count: int, epoch: int) -> Iterator[Tensor]:
    """Positions in an order of this epoch; what does not fill a batch is left out."""
    torch.manual_seed(1000 + epoch)
    yield from torch.randperm(count)[: count // BATCH * BATCH].split(BATCH)


def train(images: NDArray[np.uint8], labels: NDArray[np.int64], epochs: int, checkpoint: Path) -> Network:
    """The average of the weights after `epochs`; all but the last 2,000 images train."""
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    count = len(x) - HELD_OUT
    training = Training(epochs, count // BATCH, checkpoint)
    started = time.monotonic()
    while training.epoch < epochs:
        for chosen in batches(count, training.epoch):
            training.step(x[chosen], y[chosen])
        training.epoch += 1
        training.save()
        share = accuracy(training.average, x[count:], y[count:])
        minutes = (time.monotonic() - started) / 60
        print(f"epoch {training.epoch}/{epochs}: {share:.2%} of held-out images, {minutes:.1f} min", file=sys.stderr)
    return training.average.module  # type: ignore[no-any-return,unused-ignore]


def folded(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Kernel and bias that do what convolution and batch norm do."""
    if norm.running_var is None or norm.running_mean is None:
        raise ValueError("a batch norm without statistics")
    factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    kernel, bias = conv.weight * factor[:, None, None, None], norm.bias - norm.running_mean * factor
    return kernel.detach().numpy().astype(np.float32), bias.detach().numpy().astype(np.float32)


def coarse(array: NDArray[np.float32]) -> NDArray[np.float32]:
    """The nearest numbers of 8 significant bits, which compress well and are more than integers need."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)


def to_onnx(network: Network) -> onnx.ModelProto:
    """The network as ONNX, opset 13, batch norms folded, weights with 8 significant bits."""
    kernels = [folded(conv, norm) for conv, norm in zip((network.first, network.second), network.norms, strict=True)]
    (k1, b1), (k2, b2) = kernels
    dense = network.dense.weight.detach().numpy().T.copy(), network.dense.bias.detach().numpy()
    arrays = {"k1": k1, "b1": b1, "k2": k2, "b2": b2, "matrix": dense[0], "bias": dense[1]}
    nodes = [
        helper.make_node("Conv", ["input", "k1", "b1"], ["conv1"], "conv1", strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Mul", ["conv1", "conv1"], ["square1"], "square1"),
        helper.make_node("Conv", ["square1", "k2", "b2"], ["conv2"], "conv2", strides=[2, 2]),
        helper.make_node("Mul", ["conv2", "conv2"], ["square2"], "square2"),
        helper.make_node("Flatten", ["square2"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "matrix", "bias"], ["logits"], "dense"),
    ]
    shapes: dict[str, list[str | int | None]] = {"input": ["N", 3, 32, 32], "logits": ["N", 10]}
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items())
    constants = [numpy_helper.from_array(coarse(array), name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "lola-cifar10", [given], [made], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def main() -> None:
    """Train, print the accuracy on the test images, write the network."""
    parser = argparse.ArgumentParser(description="Train LoLa's network for CIFAR-10.")
    parser.add_argument("--data", type=Path, required=True, help="folder with cifar10_train_50k.npz")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--output", type=Path, required=True)
    chosen = parser.parse_args()
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    x, y = pixels(chosen.data / "cifar10_train_50k.npz")
    network = train(x, y, chosen.epochs, chosen.output.parent / "lola_cifar.checkpoint")
    packed = to_onnx(network.eval()).SerializeToString()
    chosen.output.write_bytes(lzma.compress(packed) if chosen.output.suffix == ".xz" else packed)
    x, y = pixels(chosen.data / "cifar10_test.npz")
    print(f"{accuracy(network, torch.from_numpy(x), torch.from_numpy(y)):.2%} of {len(y)} test images")


if __name__ == "__main__":
    main()
