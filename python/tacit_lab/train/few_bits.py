"""A network that learns to live with few bits: weights and activations are rounded while it is trained.

Weights are rounded as `tacit compile` rounds them, to a grid for each output channel whose largest point is the largest
weight. Activations are cut at a bound of their own and rounded below it; the bound is trained too, with the gradient of
Esser et al., "Learned Step Size Quantization" (ICLR 2020). Gradients go straight through the rounding. The float
network that it starts from teaches it.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import helper
from tacit.errors import MisuseError
from tacit.importers.onnx import import_onnx
from tacit.importers.source import Node, Source
from tacit.report import terminal
from torch import Tensor, nn
from torch.nn import functional

from tacit_lab.train.trainable import BATCH, Constants, Trainable, batches, operator, to_onnx
from tacit_lab.train.ufo.data import moved

SHOWN = 512
"""Examples that say how large activations are at the start."""
TEMPERATURE, LABEL_WEIGHT = 4.0, 0.2
BOUND_QUANTILE = 0.999
"""Share of activations that the first bounds let through."""


KEPT_EVERY = 100
"""Batches between two checkpoints."""


class Training(NamedTuple):
    """Passes over the data, the largest learning rate, and whether inputs are pictures, to be shifted and mirrored.

    The state of a training is kept in the file `checkpoint` until it is over, and training goes on with what is there.
    """

    epochs: int = 8
    rate: float = 5e-4
    images: bool = False
    checkpoint: Path | None = None


class FewBits(Trainable):
    """The network of a source graph with rounded weights and activations; `bits` of None rounds nothing."""

    understood = (*Trainable.understood, "Add")
    refusal = "which is not trained with few bits"

    def __init__(self, source: Source, bits: tuple[int, int] | None) -> None:
        """`bits` are those of weights and of activations. Raises `MisuseError` for other operators."""
        super().__init__(source)
        self.bits = bits
        self.seeing = False
        self.register_buffer("reach", torch.tensor(1.0))
        for index, node in enumerate(source.nodes):
            operation = node.operation
            if operation["op"] == "AveragePool" and any(operation["padding"]) and not operation["count_include_pad"]:
                raise MisuseError(f"node `{node.name}` leaves padding out of its means, {self.refusal}")
            if operation["op"] == "Relu":
                self.register_parameter(f"b{index}", nn.Parameter(torch.tensor(1.0)))

    def see(self, x: Tensor) -> None:
        """Take the first bounds of activations, and the reach of the input, from inputs (N, *shape)."""
        self.seeing = True
        with torch.no_grad():
            self(x)
        self.seeing = False

    def given(self, x: Tensor) -> Tensor:
        """The input, rounded to a sign and the other bits."""
        if self.bits is None:
            return x
        if self.seeing:
            self.reach.copy_(x.abs().max())
        largest = 2 ** (self.bits[1] - 1) - 1
        return rounded(x, self.reach / largest, -largest, largest)

    def kernel(self, name: str) -> Tensor:
        """A weight on its grid; biases are as they are."""
        weight = self.weight(name)
        if self.bits is None or weight.ndim < 2:
            return weight
        largest = 2 ** (self.bits[0] - 1) - 1
        step = weight.detach().abs().flatten(1).amax(1).clamp(min=1e-8) / largest
        return rounded(weight, step.view(-1, *[1] * (weight.ndim - 1)), -largest, largest)

    def activated(self, index: int, node: Node, x: Tensor) -> Tensor:
        """A ReLU with a bound, rounded."""
        most = node.operation["maximum"]
        x = functional.relu(x) if most is None else x.clamp(0, most)
        if self.bits is None:
            return x
        bound = self.get_parameter(f"b{index}")
        if self.seeing:
            bound.data = quantile(x)
        return stepped(x, bound, 2 ** self.bits[1] - 1)

    def around(self, node: Node) -> float:
        """Nothing that is the largest of a window, and zeros otherwise."""
        return -float("inf") if node.operation["op"] == "MaxPool" else 0.0

    def pooled(self, index: int, node: Node, x: Tensor) -> Tensor:
        """A pool; the integers of a mean are finer than those that it is of, so that nothing is rounded."""
        if node.operation["op"] == "MaxPool":
            return functional.max_pool2d(x, node.operation["kernel"], node.operation["stride"])
        return super().pooled(index, node, x)

    def written(self, index: int, node: Node) -> tuple[list[onnx.NodeProto], Constants]:
        """A node of the trained network: ReLUs are cut at their bounds, which so are what calibration sees."""
        if node.operation["op"] != "Relu":
            return operator(node)
        names = [f"{node.output}.{end}" for end in ("least", "bound")]
        bound = self.get_parameter(f"b{index}").item()
        most = node.operation["maximum"]
        ends = (0.0, bound if most is None else min(bound, most))
        made = helper.make_node("Clip", [node.inputs[0], *names], [node.output], node.name)
        return [made], {name: np.asarray(end, np.float32) for name, end in zip(names, ends, strict=True)}


def rounded(x: Tensor, step: Tensor, least: int, most: int) -> Tensor:
    """The nearest multiple of a step within bounds; the gradient is that of x."""
    near = (x.detach() / step).round().clamp(least, most) * step
    return x + (near - x.detach())


def stepped(x: Tensor, bound: Tensor, steps: int) -> Tensor:
    """Numbers from 0 to a bound in so many steps; x has a gradient below the bound, and the bound has its own."""
    step = bound.clamp(min=1e-6) / steps
    place = (x / step).clamp(0, steps)
    return (place + (place.round() - place).detach()) * step


def quantile(x: Tensor) -> Tensor:
    """What nearly all of the numbers are below."""
    flat = x.flatten()
    place = max(1, round(BOUND_QUANTILE * flat.numel()))
    return flat.kthvalue(place).values.clamp(min=1e-3)


def learn(
    source: Path,
    x: NDArray[np.float32],
    y: NDArray[np.int64],
    bits: tuple[int, int],
    how: Training,
) -> FewBits:
    """Train on inputs `x` (N, *shape) with class numbers `y` (N,); `bits` are those of weights and of activations.

    Raises `MisuseError` for a checkpoint of another training.
    """
    torch.manual_seed(1)
    graph = import_onnx(source)
    model, teacher = FewBits(graph, bits), FewBits(graph, None)
    inputs, labels = torch.from_numpy(x), torch.from_numpy(y)
    model.see(inputs[:SHOWN])
    optimiser = torch.optim.Adam(model.parameters(), lr=how.rate)
    steps = max(1, how.epochs * (len(inputs) // BATCH))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=how.rate, total_steps=steps, pct_start=0.1)
    random = torch.Generator().manual_seed(1)
    of = f"{source.name}, {bits} bits, {how.epochs} epochs of {len(inputs)}, rate {how.rate}, images {how.images}"
    state = State(model, optimiser, schedule, random, of)
    begun = state.read(how.checkpoint)
    model.train()
    with terminal.progress("train") as advance:
        for done, chosen in enumerate(batches(len(inputs), how.epochs)):
            if done < begun:
                continue
            seen = moved(inputs[chosen], random) if how.images else inputs[chosen]
            loss = distance(model(seen), teacher, seen, labels[chosen])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call,unused-ignore]
            optimiser.step()
            schedule.step()
            advance(done + 1, steps)
            if how.checkpoint is not None and (done + 1) % KEPT_EVERY == 0:
                state.write(how.checkpoint, done + 1)
    model.eval()
    return model


class State(NamedTuple):
    """What a training needs to go on as if it had not been stopped, and what it is a training of."""

    model: FewBits
    optimiser: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler
    random: torch.Generator
    of: str

    def write(self, path: Path, done: int) -> None:
        """Keep the state behind so many batches; a kill leaves the file before or this one."""
        content = {
            "of": self.of,
            "done": done,
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "random": self.random.get_state(),
        }
        part = path.with_name(f"{path.name}.part")
        torch.save(content, part)
        part.replace(path)

    def read(self, path: Path | None) -> int:
        """Go on with the state in a file, if it is there; gives the batches that are done."""
        if path is None or not path.is_file():
            return 0
        content = torch.load(path, weights_only=True)
        if content["of"] != self.of:
            raise MisuseError(f"{path} is of another training ({content['of']}); remove it")
        self.model.load_state_dict(content["model"])
        self.optimiser.load_state_dict(content["optimiser"])
        self.schedule.load_state_dict(content["schedule"])
        self.random.set_state(content["random"])
        done: int = content["done"]
        return done


def distance(logits: Tensor, teacher: FewBits, x: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy with the labels and, softened, with the teacher."""
    with torch.no_grad():
        wanted = (teacher(x) / TEMPERATURE).softmax(dim=1)
    soft = functional.log_softmax(logits / TEMPERATURE, dim=1)
    divergence = functional.kl_div(soft, wanted, reduction="batchmean")
    return LABEL_WEIGHT * functional.cross_entropy(logits, labels) + (1 - LABEL_WEIGHT) * TEMPERATURE**2 * divergence


def as_onnx(model: FewBits) -> onnx.ModelProto:
    """The network as ONNX: weights are on their grids, so that compiling it with the same bits rounds them no more."""
    return to_onnx(model, "few-bits")
