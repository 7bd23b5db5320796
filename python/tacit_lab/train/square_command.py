"""What `tacit train square` does."""

from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from tacit.cli.train import SquareOptions
from tacit.data.examples import load
from tacit.data.preprocess import parse
from tacit.errors import MisuseError
from tacit.report import terminal
from torch import nn

from tacit_lab.train.square import finetune, to_onnx


def square(options: SquareOptions, json: bool) -> None:
    """Train the network, write it, and say how many of the training inputs it gets right."""
    preprocessing = None if options.preprocess is None else parse(options.preprocess)
    examples = load(options.data, None, preprocessing)
    if examples.y is None:
        raise MisuseError(f"{options.data} has no class numbers `y`")
    trained = finetune(options.model, examples.x, examples.y, options.epochs, options.rate)
    onnx.save(to_onnx(trained), options.output)
    top1 = right(trained, examples.x, examples.y)
    content = {"output": str(options.output), "inputs": len(examples.y), "top1": top1}
    if json:
        terminal.emit_json(content)
    else:
        terminal.console.print(f"wrote {options.output}; {content['top1']:.2%} of the training data", highlight=False)


def right(trained: nn.Module, x: NDArray[np.float32], y: NDArray[np.int64]) -> float:
    """The share of inputs (N, *shape) whose largest logit is that of the class."""
    with torch.no_grad():
        parts = [trained(torch.from_numpy(part)).argmax(dim=1).numpy() for part in split(x)]
    return sum(int((part == of).sum()) for part, of in zip(parts, split(y), strict=True)) / len(y)


def split(array: NDArray[Any]) -> list[NDArray[Any]]:
    """Parts of 500."""
    return [array[start : start + 500] for start in range(0, len(array), 500)]
