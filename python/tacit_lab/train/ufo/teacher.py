"""The float networks that are learned from: CIFAR ResNets of ONNX files, their batch norm folded."""

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from tacit.errors import MisuseError
from torch import Tensor, nn
from torch.nn import functional


class Folded(nn.Module):
    """A CIFAR ResNet; reads normalised pixels (N, 3, 32, 32)."""

    def __init__(self, convolutions: list[tuple[Tensor, Tensor]], linear: tuple[Tensor, Tensor]) -> None:
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(weight) for weight, _ in convolutions)
        self.biases = nn.ParameterList(nn.Parameter(bias) for _, bias in convolutions)
        self.linear = nn.Linear(linear[0].shape[1], linear[0].shape[0])
        self.linear.weight, self.linear.bias = nn.Parameter(linear[0]), nn.Parameter(linear[1])

    def convolved(self, x: Tensor, index: int) -> Tensor:
        """Layer `index`; where it has more outputs than inputs, but for the first, it has a stride of two."""
        weight = self.weights[index]
        stride = 2 if index > 0 and weight.shape[0] != weight.shape[1] else 1
        return functional.conv2d(x, weight, self.biases[index], stride, 1)

    def tensors(self, x: Tensor) -> list[Tensor]:
        """What every ReLU gives, in order."""
        found = [functional.relu(self.convolved(x, 0))]
        for index in range(1, len(self.weights), 2):
            x = found[-1]
            hidden = functional.relu(self.convolved(x, index))
            y = self.convolved(hidden, index + 1)
            found += [hidden, functional.relu(y + shortcut(x, y.shape[1] - x.shape[1]))]
        return found

    def forward(self, x: Tensor) -> Tensor:
        """Logits (N, 10)."""
        found: Tensor = self.linear(self.tensors(x)[-1].mean(dim=(2, 3)))
        return found


def shortcut(x: Tensor, added: int) -> Tensor:
    """Where there are more channels to come, every other pixel and zeros around the channels."""
    if added == 0:
        return x
    return functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, added // 2, added // 2))


def load(path: Path) -> Folded:
    """The network of an ONNX file of Conv (3x3, and 1x1 for shortcuts) and one Gemm; else raises `MisuseError`."""
    if not path.is_file():
        raise MisuseError(f"{path} does not exist; --models names the folder with the float networks")
    graph = onnx.load(path).graph
    arrays = {entry.name: torch.from_numpy(np.array(numpy_helper.to_array(entry))) for entry in graph.initializer}
    nodes = [(node.op_type, [arrays[name] for name in node.input if name in arrays]) for node in graph.node]
    kernels = [(w[0], w[1]) for op, w in nodes if op == "Conv" and w[0].shape[2] == 3]
    (last,) = [(w[0], w[1]) for op, w in nodes if op == "Gemm"]
    return Folded(kernels, last if last[0].shape[0] == last[1].shape[0] else (last[0].T.contiguous(), last[1]))
