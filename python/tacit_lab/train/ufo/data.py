"""CIFAR-10 as the integers that the network reads, and batches of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from tacit.errors import MisuseError
from torch import Tensor

from tacit_lab import cifar
from tacit_lab.train.ufo.integers import INPUT_SIDE

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
PREPROCESS = "cifar10"
PADDING = 4


def bounds() -> tuple[float, float]:
    """Smallest and largest value of a normalised pixel."""
    low = min(-mean / deviation for mean, deviation in zip(MEAN, DEVIATION, strict=True))
    return low, max((1 - mean) / deviation for mean, deviation in zip(MEAN, DEVIATION, strict=True))


def input_scale() -> float:
    """What one unit of the input is."""
    low, high = bounds()
    return max(high, -low) / INPUT_SIDE


def table() -> Tensor:
    """The integer of each channel's pixel: (3, 256)."""
    pixel = torch.arange(256, dtype=torch.float32) / 255
    mean, deviation = torch.tensor(MEAN)[:, None], torch.tensor(DEVIATION)[:, None]
    return ((pixel - mean) / deviation / input_scale()).round().clamp(-INPUT_SIDE, INPUT_SIDE)


@dataclass(frozen=True)
class Images:
    """Pixels (N, 3, 32, 32) in uint8 and classes (N,)."""

    pixels: Tensor
    labels: Tensor

    def integers(self, pixels: Tensor) -> Tensor:
        """Pixels as the network's inputs, in float32."""
        values = table()
        return torch.stack([values[c][pixels[:, c].long()] for c in range(3)], dim=1)

    def ordered(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """All of them in order."""
        for start in range(0, len(self.labels), size):
            yield self.integers(self.pixels[start : start + size]), self.labels[start : start + size]

    def shuffled(self, size: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Whole batches in an order, and with shifts and reflections, that the seed decides."""
        random = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(self.labels), generator=random)
        for start in range(0, len(order) - size + 1, size):
            chosen = order[start : start + size]
            yield self.integers(moved(self.pixels[chosen], random)), self.labels[chosen]

    def steps(self, size: int) -> int:
        """Batches of an epoch."""
        return len(self.labels) // size

    def first(self, count: int) -> "Images":
        """The first so many."""
        return Images(self.pixels[:count], self.labels[:count])


def moved(pixels: Tensor, random: torch.Generator) -> Tensor:
    """Images shifted by up to four pixels, black coming in, and every other one mirrored."""
    n, c, side, _ = pixels.shape
    padded = torch.nn.functional.pad(pixels, (PADDING,) * 4)
    shifts = torch.randint(0, 2 * PADDING + 1, (2, n), generator=random)
    mirrored = torch.rand(n, generator=random) < 0.5
    along = torch.arange(side)
    rows = shifts[0][:, None] + along
    columns = shifts[1][:, None] + torch.where(mirrored[:, None], side - 1 - along, along)
    index = torch.arange(n)[:, None, None, None]
    return padded[index, torch.arange(c)[:, None, None], rows[:, None, :, None], columns[:, None, None, :]]


def read(folder: Path, part: str) -> Images:
    """`train_50k` or `test` of a folder; else raises `MisuseError`."""
    path = folder / f"cifar10_{part}.npz"
    if not path.is_file():
        raise MisuseError(f"{path} does not exist; --data names the folder with CIFAR-10")
    pixels, labels = cifar.pixels(path)
    return Images(torch.from_numpy(pixels), torch.from_numpy(labels))
