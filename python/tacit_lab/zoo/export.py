"""Modules of PyTorch as ONNX files, with weights that are random but sensible."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from tacit_lab.zoo.learn import average, learn

SEED = 0
OPSET = 17
EXAMPLES = 8
"""Random inputs over which batch norms take their statistics."""
SMALL = 1e-3
"""Factors below this, with which blocks begin training switched off, become `FACTOR`."""
FACTOR = 0.3


class Named(nn.Module):
    """The one result `key` of a module that gives several; without a key the first."""

    def __init__(self, module: nn.Module, key: str | None = None) -> None:
        super().__init__()
        self.module, self.key = module, key

    def forward(self, x: Tensor) -> Tensor:
        """The result."""
        found = self.module(x)
        result: Tensor = found[0] if self.key is None else found[self.key]
        return result


class Encoder(nn.Module):
    """The first result of a transformer that reads tokens and their mask."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The result."""
        result: Tensor = self.module(input_ids=input_ids, attention_mask=attention_mask)[0]
        return result


def settle(module: nn.Module, shape: Sequence[int]) -> None:
    """Give batch norms statistics, and parameters that are all (nearly) zero values that are not."""
    for parameter in module.parameters():
        if parameter.ndim > 1 and not parameter.any():
            nn.init.normal_(parameter, std=0.05)
        elif parameter.numel() > 1 and 0 < float(parameter.abs().max()) < SMALL:
            nn.init.constant_(parameter, FACTOR)
    average(module, torch.randn(EXAMPLES, *shape))


def image(build: Callable[[], nn.Module], shape: Sequence[int]) -> Callable[[Path], None]:
    """Write a module that reads one tensor."""

    def make(path: Path) -> None:
        torch.manual_seed(SEED)
        with torch.no_grad():
            module = build().eval()
            settle(module, shape)
            write(module, (torch.randn(1, *shape),), path, {"input": {0: "batch"}})

    return make


def pictures(build: Callable[[], nn.Module], side: int) -> Callable[[Path], None]:
    """Write a classifier of pictures that was trained for a few steps, and pictures that it has not seen beside it."""

    def make(path: Path) -> None:
        torch.manual_seed(SEED)
        with torch.no_grad():
            module = build()
            unseen = learn(module, side)
            np.save(path.with_suffix(".real.npy"), unseen)
            write(module, (torch.randn(1, 3, side, side),), path, {"input": {0: "batch"}})

    return make


def text(build: Callable[[], nn.Module], tokens: int) -> Callable[[Path], None]:
    """Write a transformer that reads `tokens` tokens."""

    def make(path: Path) -> None:
        torch.manual_seed(SEED)
        ids = torch.arange(3, 3 + tokens)[None]
        axes = {name: {0: "batch", 1: "sequence"} for name in ("input_ids", "attention_mask")}
        with torch.no_grad():
            write(Encoder(build().eval()), (ids, torch.ones_like(ids)), path, axes)

    return make


def write(module: nn.Module, example: tuple[Tensor, ...], path: Path, axes: dict[str, dict[int, str]]) -> None:
    """Write the ONNX file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            example,
            str(path),
            dynamo=False,
            input_names=list(axes),
            output_names=["logits"],
            dynamic_axes=axes,
            opset_version=OPSET,
        )
