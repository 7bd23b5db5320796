"""What the network computes between convolutions, on integers; gradients go straight through the rounding."""

from typing import Any

import torch
from torch import Tensor

from tacit_lab.train.ufo.integers import DROP, largest


class Rectified(torch.autograd.Function):
    """Rounded half up and cut to 0..top; the gradient passes where the value was within."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, top: int) -> Tensor:
        """Values in units of the result."""
        ctx.save_for_backward(values)
        ctx.top = top
        return (values + 0.5).floor_().clamp_(0, top)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """The gradient of the values; `top` has none."""
        (values,) = ctx.saved_tensors
        return torch.ops.aten.hardtanh_backward(gradients[0], values, 0, ctx.top), None


class Requantised(torch.autograd.Function):
    """`(x + 2^(drop-1)) >> drop`; the gradient is that of the division."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, drop: int) -> Tensor:
        """Divide integers by 2^drop and round."""
        ctx.drop = drop
        return (values * 0.5**drop + 0.5).floor_()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """The gradient of the integers; `drop` has none."""
        return gradients[0] * 0.5**ctx.drop, None


def rectified(values: Tensor, bits: int) -> Tensor:
    """ReLU, saturated to `bits` unsigned bits, of values in units of the result."""
    found: Tensor = Rectified.apply(values, largest(bits))
    return found


def requantised(values: Tensor, drop: int = DROP) -> Tensor:
    """Integers without their lowest bits, rounded half up: one more value than bits have."""
    found: Tensor = Requantised.apply(values, drop)
    return found
