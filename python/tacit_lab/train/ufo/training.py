"""The run: epochs of distillation, checkpoints, and what is written after each."""

import copy
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from tacit.report import terminal
from torch import Tensor, nn
from torch.nn import functional

from tacit_lab.train.ufo.data import Images, input_scale
from tacit_lab.train.ufo.integers import Grid
from tacit_lab.train.ufo.network import Network, assign, parameters
from tacit_lab.train.ufo.start import estimate
from tacit_lab.train.ufo.teacher import Folded

RATES = {"weight": 1.0, "detail": 1.0, "g": 0.05, "norm": 5.0, "ratio": 0.2, "linear": 0.5}
"""How fast each kind of parameter learns beside the weights, which are in units of a level."""
WARM_UP = 0.02
MEASURED = 250
WATCHED = 2500
"""Test images that an accuracy is printed of after every epoch."""
ESTIMATED = 40
"""Batches that the statistics of batch norm are taken from for the exported network."""


@dataclass(frozen=True)
class Settings:
    """Numbers of a run; `rate` is that of weights, in levels per step.

    In the last `settled` epochs statistics of batch norm stay as they are, and what it multiplies by is rounded.
    """

    epochs: int = 20
    settled: int = 1
    batch: int = 128
    rate: float = 3e-3
    temperature: float = 4.0
    label_weight: float = 0.1
    seed: int = 1
    bfloat16: bool = True

    @property
    def dtype(self) -> torch.dtype:
        """The type of what is computed in training; measuring is exact."""
        return torch.bfloat16 if self.bfloat16 else torch.float32


@dataclass
class Run:
    """What is trained, on what, and how far it is."""

    settings: Settings
    network: Network
    teachers: list[Folded]
    train: Images
    test: Images
    folder: Path
    epoch: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rate = self.settings.rate
        groups = [{"params": p, "lr": RATES[kind] * rate} for kind, p in parameters(self.network).items()]
        self.optimiser = torch.optim.Adam(groups, fused=True)
        total = self.settings.epochs * self.train.steps(self.settings.batch)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimiser, slope(total))
        kind = {"dtype": self.settings.dtype, "memory_format": torch.channels_last}
        copies = [copy.deepcopy(teacher).to(**kind) for teacher in self.teachers]
        self.teachers = [teacher.eval().requires_grad_(False) for teacher in copies]

    @property
    def checkpoint(self) -> Path:
        """What `resume` reads."""
        return self.folder / "checkpoint.pt"

    def resume(self) -> None:
        """Go on after the last whole epoch, if there was one."""
        if not self.checkpoint.is_file():
            return
        state = torch.load(self.checkpoint, weights_only=True)
        grids = [Grid(tuple(grid["importance"]), grid["offset"]) for grid in json.loads(state["grids"])]
        assign(self.network, grids)
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.epoch, self.history = state["epoch"], json.loads(state["history"])
        if self.epoch > self.unsettled:
            self.network.settle()

    @property
    def unsettled(self) -> int:
        """Epochs with statistics of each batch."""
        return self.settings.epochs - self.settings.settled

    def keep(self) -> None:
        """Write the checkpoint; a kill leaves the one before or this one."""
        state = {
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "epoch": self.epoch,
            "grids": json.dumps([asdict(part.grid) for part in self.network.convolutions().values()]),
            "history": json.dumps(self.history),
        }
        part = self.checkpoint.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.checkpoint)


def slope(total: int) -> Callable[[int], float]:
    """The factor of the learning rate at a step: up to 1, then down to 0 as a cosine."""
    total = max(1, total)
    warm = max(1, round(WARM_UP * total))
    return lambda step: min((step + 1) / warm, 0.5 + 0.5 * math.cos(math.pi * min(1.0, step / total)))


def loss_of(run: Run, x: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy with the labels and, softened, with the mean of the teachers."""
    settings = run.settings
    x = x.to(settings.dtype)
    logits = run.network(x)
    loss = settings.label_weight * functional.cross_entropy(logits, labels)
    if not run.teachers:
        return loss / settings.label_weight
    wanted = expected(run, x)
    soft = functional.log_softmax(logits / settings.temperature, dim=1)
    divergence = functional.kl_div(soft, wanted, reduction="batchmean")
    return loss + (1 - settings.label_weight) * settings.temperature**2 * divergence


def expected(run: Run, x: Tensor) -> Tensor:
    """Probabilities (N, 10) of the teachers at the temperature."""
    with torch.no_grad():
        x = (x * input_scale()).contiguous(memory_format=torch.channels_last)
        logits = [teacher(x).float() for teacher in run.teachers]
        return torch.stack([(z / run.settings.temperature).softmax(dim=1) for z in logits]).mean(dim=0)


def epoch(run: Run) -> float:
    """Train on every image once; gives the mean loss."""
    settings, total, steps = run.settings, 0.0, run.train.steps(run.settings.batch)
    run.network.train()
    with terminal.progress(f"epoch {run.epoch + 1} of {settings.epochs}") as advance:
        for done, (x, labels) in enumerate(run.train.shuffled(settings.batch, settings.seed * 1000 + run.epoch)):
            loss = loss_of(run, x, labels)
            run.optimiser.zero_grad()
            loss.backward()
            run.optimiser.step()
            run.schedule.step()
            total += loss.item()
            advance(done + 1, steps)
    return total / steps


def accuracy(network: nn.Module, images: Images) -> float:
    """Share of images whose largest logit is the right one, in float32: the integers are exact."""
    network.eval()
    with torch.no_grad():
        right = [(network(x).argmax(1) == labels).sum().item() for x, labels in images.ordered(MEASURED)]
    return float(sum(right)) / len(images.labels)


def settle(run: Run) -> None:
    """The network as it is exported: statistics of batch norm from float32, multipliers rounded."""
    estimated(run)
    run.network.settle()


def estimated(run: Run) -> None:
    """Statistics of batch norm anew, from float32."""
    batches = run.train.shuffled(run.settings.batch, run.settings.seed)
    estimate(run.network, (pair for pair, _ in zip(batches, range(ESTIMATED), strict=False)), torch.float32)


def train(run: Run) -> None:
    """All epochs that are left."""
    while run.epoch < run.settings.epochs:
        began = time.monotonic()
        if run.epoch == run.unsettled:
            settle(run)
        loss = epoch(run)
        seconds = time.monotonic() - began
        run.epoch += 1
        watched = accuracy(run.network, run.test.first(WATCHED))
        found = {"epoch": run.epoch, "loss": loss, "watched": watched, "seconds": seconds}
        run.history.append(found)
        print(json.dumps({name: round(value, 4) for name, value in found.items()}), flush=True)
        run.keep()
