"""Rounding weights to a grid, with gradients, and the choice of grids and scales (UFO, section V-B).

Eq. 3 trains every bit b by the gradient of the weight times 2^b. As bits enter by their sum only (Eq. 2 rounds the
sum), this moves the sum by its own gradient times a constant of the layer. So the sums are trained here, as latent
weights, with straight-through rounding: the same steps with one number per weight instead of one per bit.

The latent weights of an output channel are in units of its scale. Batch norm follows and forgets the scale, so that its
training is that of the latent weights themselves.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tacit_lab.train.ufo.integers import Grid, plain, reweighted

SCALES = 60
"""Scales of an output channel that are tried."""
OUTLIER = 6.0
"""A z-score, (max - mean) / deviation of the sizes of a layer's weights, above which it has outliers."""


class Rounded(torch.autograd.Function):
    """The nearest level; the gradient goes straight through where a weight is within the levels."""

    @staticmethod
    def forward(ctx: Any, latent: Tensor, levels: Tensor) -> Tensor:
        """Latent weights in units of a level."""
        ctx.save_for_backward((latent >= levels[0] - 0.5) & (latent <= levels[-1] + 0.5))
        return nearest(latent, levels)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """The gradient of the latent weights alone."""
        (inside,) = ctx.saved_tensors
        return gradients[0] * inside, None


def nearest(values: Tensor, levels: Tensor) -> Tensor:
    """The nearest of ordered levels to each value."""
    between = (levels[1:] + levels[:-1]) / 2
    return levels[torch.bucketize(values.contiguous(), between)]


def fitted(weight: Tensor, levels: Sequence[int]) -> Tensor:
    """The scale of each output channel, of either sign, that rounds its weights (out, ..) best."""
    rows, grid = weight.detach().flatten(1).double(), torch.tensor(levels, dtype=torch.float64)
    largest = rows.abs().amax(dim=1).clamp(min=1e-12)
    best, found = torch.full((len(rows),), torch.inf, dtype=torch.float64), torch.ones(len(rows), dtype=torch.float64)
    for sign in (1.0, -1.0):
        for part in torch.linspace(0.2, 1.2, SCALES):
            scale = sign * part.double() * largest / grid.abs().max()
            error = error_of(rows, grid, scale)
            better = error < best
            best, found = torch.where(better, error, best), torch.where(better, scale, found)
    return found.to(weight.dtype)


def error_of(rows: Tensor, grid: Tensor, scale: Tensor) -> Tensor:
    """Sum of squares of what rounding rows at these scales changes."""
    return (nearest(rows / scale[:, None], grid) * scale[:, None] - rows).square().sum(dim=1)


def perturbation(weight: Tensor, grid: Grid) -> float:
    """`|Q(W) - W|^2` at fitted scales."""
    levels = grid.levels()
    rows = weight.detach().flatten(1).double()
    scale = fitted(weight, levels).double()
    return float(error_of(rows, torch.tensor(levels, dtype=torch.float64), scale).sum())


def z_score(weight: Tensor) -> float:
    """How many deviations the largest weight is above the mean size (UFO, Fig. 1d)."""
    sizes = weight.detach().abs().flatten()
    return float((sizes.max() - sizes.mean()) / sizes.std())


def chosen(weight: Tensor, bits: int, outlier: float = OUTLIER) -> Grid:
    """Two's complement, or for weights with outliers the grid that rounds them best."""
    candidates = [plain(bits)]
    if z_score(weight) >= outlier:
        candidates += reweighted(bits)
    return min(candidates, key=lambda grid: perturbation(weight, grid))
