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
        narrow = 1 - slope
        root = torch.sqrt((narrow * x).square_().add_(smoothness.square()))
        ctx.save_for_backward(x, slope, smoothness, root)
        return torch.add(root, x * (1 + slope)).mul_(0.5)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of x, the slope and the smoothness."""
        x, slope, smoothness, root = ctx.saved_tensors
        (above,) = gradients
        ratio = x / root
        by_x = ratio * ((1 - slope) ** 2 / 2) + (1 + slope) / 2
        by_slope = (above * x * (1 - (1 - slope) * ratio)).sum() / 2
        by_smoothness = (above / root).sum() * smoothness / 2
        return above * by_x, by_slope, by_smoothness


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
