"""The trained network as a directory: batch norm folded into a scale and a bias per output channel."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tacit_lab.train.ufo.data import PREPROCESS, bounds, input_scale
from tacit_lab.train.ufo.directory import Quantised
from tacit_lab.train.ufo.emulate import observed
from tacit_lab.train.ufo.integers import DROP, HIDDEN_BITS, RESIDUAL_BITS, largest
from tacit_lab.train.ufo.network import Block, Convolution, Network

UNIT = 1 / 32
"""What one unit of a tensor is whose scale nothing else decides: every scale gives the same integers."""
LABELS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def exported(network: Network, x: NDArray[np.float32], name: str = "resnet20-ufo") -> Quantised:
    """The network; integers x (N, 3, 32, 32) show the ranges of what no ReLU bounds."""
    network.eval()
    found = Quantised(name, "input", (3, 32, 32), labels=LABELS, preprocess=PREPROCESS, activation_bits=HIDDEN_BITS)
    found.ranges["input"] = bounds()
    convolved(found, network.stem, "stem", ("input", input_scale()), UNIT)
    tensor, unit = rectified(found, "stem", "stem_relu", RESIDUAL_BITS, UNIT), UNIT
    for index, block in enumerate(network.blocks):
        tensor, unit = block_of(found, block, f"block{index}", tensor, unit)
    head(found, network.linear, tensor, unit)
    for tensor, (low, high) in observed(found, x).items():
        found.ranges.setdefault(tensor, (low, high))
    return found


def block_of(found: Quantised, block: Block, name: str, tensor: str, unit: float) -> tuple[str, float]:
    """A block's nodes; gives its output and what one unit of it is."""
    after = unit / block.ratio.item()
    narrow = found.put([tensor], f"{name}_narrow", {"op": "Requantize", "bits": HIDDEN_BITS})
    found.ranges[narrow] = (0.0, found.ranges[tensor][1])
    convolved(found, block.first, f"{name}_first", (narrow, unit * (1 << DROP)), UNIT)
    hidden = rectified(found, f"{name}_first", f"{name}_hidden", HIDDEN_BITS, UNIT)
    convolved(found, block.second, f"{name}_second", (hidden, UNIT), after)
    past = shortcut(found, block, f"{name}_past", tensor)
    found.put([f"{name}_second", past], f"{name}_sum", {"op": "Add"})
    return rectified(found, f"{name}_sum", f"{name}_relu", RESIDUAL_BITS, after), after


def convolved(found: Quantised, part: Convolution, name: str, read: tuple[str, float], unit: float) -> None:
    """A convolution of the tensor `read`, one unit of which is given; `unit` is that of what batch norm gives."""
    tensor, before = read
    with torch.no_grad():
        weight = part.integers().numpy()
        gain = part.gain().double().numpy()
        shift = part.norm.bias.double().numpy() - gain * part.norm.running_mean.double().numpy()
    found.store(f"{name}_weight", weight.astype(np.int8))
    found.store(f"{name}_scale", (gain * unit / before).astype(np.float32))
    found.store(f"{name}_bias", (shift * unit).astype(np.float32))
    padding, stride = [1, 1, 1, 1], [part.stride, part.stride]
    operation = node(name, (3, stride, padding), part.winograd, (list(part.grid.importance), part.grid.offset))
    found.put([tensor], name, operation)


def node(name: str, window: tuple[int, list[int], list[int]], winograd: bool, bits: tuple[list[int], int]) -> Any:
    """A QuantisedConv whose arrays are named after it."""
    kernel, stride, padding = window
    return {
        "op": "QuantisedConv",
        "kernel": [kernel, kernel],
        "stride": stride,
        "padding": padding,
        "dilation": [1, 1],
        "groups": 1,
        "winograd": winograd,
        "weight": f"{name}_weight",
        "importance": bits[0],
        "offset": bits[1],
        "scale": f"{name}_scale",
        "bias": f"{name}_bias",
    }


def rectified(found: Quantised, tensor: str, output: str, bits: int, unit: float) -> str:
    """A ReLU to so many bits, whose range makes one unit `unit`."""
    found.ranges[output] = (0.0, largest(bits) * unit)
    return found.put([tensor], output, {"op": "Relu", "maximum": None, "bits": bits})


def shortcut(found: Quantised, block: Block, name: str, tensor: str) -> str:
    """What goes past a block: the tensor, or a convolution by zeros and ones that takes every other pixel."""
    if block.added == 0:
        return tensor
    outputs, inputs = block.second.weight.shape[0], block.first.weight.shape[1]
    weight = np.zeros((outputs, inputs, 1, 1), np.int8)
    weight[np.arange(inputs) + block.added // 2, np.arange(inputs)] = 1
    found.store(f"{name}_weight", weight)
    found.store(f"{name}_scale", np.ones(outputs, np.float32))
    found.store(f"{name}_bias", np.zeros(outputs, np.float32))
    stride = [block.stride, block.stride]
    return found.put([tensor], name, node(name, (1, stride, [0, 0, 0, 0]), False, ([1], 0)))


def head(found: Quantised, linear: nn.Linear, tensor: str, unit: float) -> None:
    """The mean of every channel and the last layer."""
    window = {"kernel": [8, 8], "stride": [1, 1], "padding": [0, 0, 0, 0], "count_include_pad": True}
    pool = found.put([tensor], "pool", {"op": "AveragePool", **window})
    flat = found.put([pool], "flat", {"op": "Reshape", "shape": [linear.in_features]})
    found.ranges[pool] = found.ranges[flat] = found.ranges[tensor]
    found.store("linear_weight", (linear.weight.detach().double() / unit).numpy().astype(np.float32))
    found.store("linear_bias", linear.bias.detach().numpy())
    found.put([flat], "logits", {"op": "Gemm", "weight": "linear_weight", "bias": "linear_bias"})


def write(network: Network, x: NDArray[np.float32], folder: Path) -> Quantised:
    """Export to a folder."""
    found = exported(network, x)
    found.write(folder)
    return found
