"""ResNet-20 for CIFAR-10 (He et al. 2015; option-A shortcuts) in the integers that UFO computes (Figs. 3 and 10).

Every tensor between layers is integers: 8 signed bits of input, 6 unsigned bits where a convolution reads, 8 where
blocks add up. Batch norm makes the sums of a convolution a number of units of the tensor that follows, so that no range
is a parameter of its own: the learned scale of batch norm is it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tacit_lab.train.ufo import winograd
from tacit_lab.train.ufo.activations import rectified, requantised
from tacit_lab.train.ufo.grid import Rounded, fitted
from tacit_lab.train.ufo.integers import HIDDEN_BITS, RESIDUAL_BITS, Grid, plain

WIDTHS = (16, 32, 64)
CLASSES = 10
MULTIPLIER_BITS = 8


class Convolution(nn.Module):
    """Low-bit weights, of places when `winograd`, and batch norm; reads integers, gives real units."""

    def __init__(self, inputs: int, outputs: int, stride: int, winograd_: bool) -> None:
        super().__init__()
        self.stride, self.winograd = stride, winograd_
        self.weight = nn.Parameter(torch.zeros(outputs, inputs, 3, 3))
        self.g = nn.Parameter(torch.tensor(winograd.G), requires_grad=winograd_)
        self.detail = nn.Parameter(torch.zeros(outputs, inputs, 4, 4)) if winograd_ else None
        """What weights of places learn besides: 16 of them are rounded, of which `G w G^T` moves 9."""
        self.norm = nn.BatchNorm2d(outputs)
        self.settled = False
        """Whether statistics of batch norm stay as they are, and what it multiplies by is rounded."""
        self.assign(plain(3))

    def assign(self, grid: Grid) -> None:
        """Round to this grid."""
        self.grid = grid
        self.levels = torch.tensor(grid.levels(), dtype=torch.float32)

    def latent(self) -> Tensor:
        """Weights before rounding: of places (out, in, 4, 4), or ordinary (out, in, 3, 3)."""
        if self.detail is None:
            return self.weight
        return winograd.transformed(self.weight, self.g) + self.detail

    def fit(self) -> None:
        """Put each output channel into units of the scale that rounds it best, either sign, and batch norm with it."""
        with torch.no_grad():
            scale = fitted(self.latent(), self.grid.levels())
            for part in (self.weight, self.detail):
                if part is not None:
                    part.div_(scale[:, None, None, None])
            self.norm.weight *= scale.sign()
            self.norm.running_mean /= scale
            self.norm.running_var /= scale.square()

    def integers(self) -> Tensor:
        """The weights as they are exported."""
        found: Tensor = Rounded.apply(self.latent(), self.levels)
        return found

    def sums(self, x: Tensor) -> Tensor:
        """What the protocol accumulates."""
        weight = self.integers()
        if self.winograd:
            y = functional.conv2d(x, winograd.kernels(weight).to(x.dtype), stride=2, padding=1)
            return functional.pixel_shuffle(y, 2)
        return functional.conv2d(x, weight.to(x.dtype), stride=self.stride, padding=1)

    def gain(self) -> Tensor:
        """What batch norm multiplies by, as the integers of a common power of two that the protocol multiplies by."""
        exact = self.norm.weight / torch.sqrt(self.norm.running_var + self.norm.eps)
        return multipliers(exact)

    def forward(self, x: Tensor) -> Tensor:
        """Sums in units of the tensor that follows."""
        y = self.sums(x)
        if not self.settled:
            return self.norm(y)
        one = torch.ones_like(self.norm.running_var)
        return functional.batch_norm(y, self.norm.running_mean, one, self.gain(), self.norm.bias, eps=0.0)


def multipliers(gain: Tensor) -> Tensor:
    """Rounded to signed integers of 8 bits over the largest power of two that they allow."""
    most = (1 << (MULTIPLIER_BITS - 1)) - 0.5
    unit = torch.exp2(torch.floor(torch.log2(most / gain.detach().abs().max())))
    return gain + ((gain * unit).round() / unit - gain).detach()


class Block(nn.Module):
    """Two convolutions and what goes past them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.stride, self.added = stride, outputs - inputs
        self.first = Convolution(inputs, outputs, stride, stride == 1)
        self.second = Convolution(outputs, outputs, 1, True)
        self.ratio = nn.Parameter(torch.ones(()))

    def shortcut(self, x: Tensor) -> Tensor:
        """Every other pixel, and channels of zeros around."""
        if self.added == 0:
            return x
        x = x[:, :, :: self.stride, :: self.stride]
        return functional.pad(x, (0, 0, 0, 0, self.added // 2, self.added - self.added // 2))

    def forward(self, x: Tensor) -> Tensor:
        """Compute values of 8 bits from values of 8 bits."""
        y = rectified(self.first(requantised(x)), HIDDEN_BITS)
        z = self.second(y) + self.shortcut(x) * self.ratio.to(x.dtype)
        return rectified(z, RESIDUAL_BITS)


class Network(nn.Module):
    """ResNet of 6 n + 2 layers; reads inputs of 8 signed bits (N, 3, 32, 32)."""

    def __init__(self, blocks: int = 3) -> None:
        super().__init__()
        self.stem = Convolution(3, WIDTHS[0], 1, False)
        shapes: list[tuple[int, int, int]] = []
        before = WIDTHS[0]
        for width in WIDTHS:
            for _ in range(blocks):
                shapes.append((before, width, 1 if width == before else 2))
                before = width
        self.blocks = nn.ModuleList(Block(*shape) for shape in shapes)
        self.linear = nn.Linear(WIDTHS[-1], CLASSES)

    def settle(self) -> None:
        """Compute from now on as the exported network does."""
        for part in self.convolutions().values():
            part.settled = True

    def convolutions(self) -> dict[str, Convolution]:
        """The convolutions by name, in order."""
        return {name: part for name, part in self.named_modules() if isinstance(part, Convolution)}

    def forward(self, x: Tensor) -> Tensor:
        """Logits (N, 10) in float32."""
        x = rectified(self.stem(x), RESIDUAL_BITS)
        for block in self.blocks:
            x = block(x)
        found: Tensor = self.linear(x.float().mean(dim=(2, 3)))
        return found


def assign(network: Network, grids: Sequence[Grid]) -> None:
    """Give every convolution its grid, in order."""
    for convolution, grid in zip(network.convolutions().values(), grids, strict=True):
        convolution.assign(grid)


def parameters(network: Network) -> dict[str, list[Any]]:
    """The parameters, grouped by what learns alike."""
    groups: dict[str, list[Any]] = {"weight": [], "detail": [], "g": [], "norm": [], "ratio": [], "linear": []}
    for name, value in named(network):
        kind = name.split(".")[-2] if ".norm." in name or name.startswith("linear") else name.split(".")[-1]
        groups[kind].append(value)
    return groups


def named(network: Network) -> Iterator[tuple[str, Any]]:
    """Parameters that train."""
    return ((name, value) for name, value in network.named_parameters() if value.requires_grad)
