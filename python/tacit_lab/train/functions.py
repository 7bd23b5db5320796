"""The unified functions of Comet in PyTorch: smooth maximum units and the softmax made of them.

Comet (2405.17485), 3.1 and appendix B. Both are what the operators `Smu` and `ReluSoftmax` of a source graph compute.
"""

from typing import Any

import torch
from torch import Tensor, nn

LEAST_SMOOTHNESS = 0.05
LARGEST_SLOPE = 0.5
EPSILON = 0.1
"""Added to the sum below a softmax, which so has an inverse whatever the scores are."""


class SmuFunction(torch.autograd.Function):
    """`((1 + slope) x + sqrt((1 - slope)^2 x^2 + smoothness^2)) / 2`, with derivatives by all three."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, slope: Tensor, smoothness: Tensor) -> Tensor:
        """Element by element."""
        narrow = 1 - slope.item()
        half = torch.addcmul(smoothness.square() / 4, x, x, value=narrow**2 / 4).sqrt_()
        ctx.save_for_backward(x, slope, smoothness, half)
        return torch.add(half, x, alpha=1 - narrow / 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of x, the slope and the smoothness."""
        x, slope, smoothness, half = ctx.saved_tensors
        above, narrow = gradients[0], 1 - slope.item()
        divided = above / half
        by_smoothness = divided.sum() * smoothness / 4
        shared = divided.mul_(x)
        by_slope = (above * x).sum() / 2 - (shared * x).sum() * narrow / 4
        by_x = torch.mul(above, 1 - narrow / 2).add_(shared, alpha=narrow**2 / 4)
        return by_x, by_slope, by_smoothness


def smu(x: Tensor, slope: Tensor, smoothness: Tensor) -> Tensor:
    """A leaky ReLU of `slope`, rounded near 0 by `smoothness`; x of any shape, both others single numbers."""
    found: Tensor = SmuFunction.apply(x, slope, smoothness)  # type: ignore[no-untyped-call,unused-ignore]
    return found


def relu_softmax(scores: Tensor, mask: Tensor, smoothness: Tensor) -> Tensor:
    """`s / (sum(s) + EPSILON)` along the last axis, s the smooth ReLU of scores; where the (0, 1) mask is 0 so is s."""
    kept = smu(scores, torch.zeros(()), smoothness) * mask
    return kept / (kept.sum(dim=-1, keepdim=True) + EPSILON)


class Smooth(nn.Module):
    """The trained numbers of one function."""

    def __init__(self, slope: float, smoothness: float) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(slope))
        self.smoothness = nn.Parameter(torch.tensor(smoothness))

    def bound(self) -> None:
        """Keep both where the formula is well behaved."""
        with torch.no_grad():
            self.slope.clamp_(0.0, LARGEST_SLOPE)
            self.smoothness.clamp_(min=LEAST_SMOOTHNESS)
