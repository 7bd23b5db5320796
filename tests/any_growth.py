"""A random network of tensors with one to four axes, at any opset, that grows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from growth import MOST_CHANNELS, Growth
from networks import Network
from onnx import TensorProto, helper

OPSETS = (9, 11, 13, 15, 17, 18, 21, 23)
SHAPES = {1: (16,), 2: (6, 12), 3: (4, 8, 8), 4: (3, 4, 4, 4)}
"""The longest that each axis of an input is, by how many there are."""
MOST = 1200
"""Most values of a tensor."""
AXES_ARE_INPUTS = {"Squeeze": 13, "Unsqueeze": 13, "ReduceSum": 13}
"""The opset from which axes are an input, which of other reductions is 18."""


class AnyGrowth(Growth):
    """A network that grows from one or two inputs; `shape` is that of its last tensor, batch excluded."""

    def __init__(self, seed: int):
        self.seed = seed
        self.random = np.random.default_rng([seed, 1])
        self.opset = self.pick(OPSETS)
        self.batch: str | int = "N" if self.maybe(0.7) else 1
        self.shape = self.some_shape(self.pick([1, 2, 2, 3, 3, 3, 4]))
        self.network = Network((self.batch, *self.shape), seed, self.opset)
        self.inputs = {"x": self.shape}
        self.run, self.linear = 99, 0
        self.earlier: list[tuple[str, tuple[int, ...]]] = []
        self.results: list[str] = []
        self.kinds: list[str] = []

    def some_shape(self, rank: int) -> tuple[int, ...]:
        """A shape of so many axes."""
        return tuple(self.upto(most, 2 if axis else 1) for axis, most in enumerate(SHAPES[rank]))

    @property
    def rank(self) -> int:
        """How many axes the last tensor has behind the batch."""
        return len(self.shape)

    def add(self, operator: str, *others: str, shape: tuple[int, ...] | None = None, **attributes: Any) -> None:
        """Append an operator, and give it a name that no other has."""
        self.earlier.append((self.last, self.shape))
        name = f"{operator.lower()}{len(self.network.nodes)}"
        self.network.add(operator, *others, name=name, **attributes)
        self.shape = self.shape if shape is None else shape

    def axes(self, operator: str, axes: Sequence[int], shape: tuple[int, ...], **attributes: Any) -> None:
        """Append an operator whose axes are an attribute or an input, by the opset."""
        given = [axis - self.rank - 1 if self.maybe(0.3) and self.opset >= 11 else axis for axis in axes]
        if operator == "Unsqueeze":
            given = [*axes]
        if self.opset >= AXES_ARE_INPUTS.get(operator, 18):
            self.add(operator, self.constant(np.array(given, np.int64)), shape=shape, **attributes)
        else:
            self.add(operator, axes=given, shape=shape, **attributes)

    def floats(self, *shape: int, around: float = 0.0, size: float = 0.5) -> np.ndarray:
        """Random constants."""
        return (around + size * self.random.standard_normal(shape)).astype(np.float32)

    def go_to(self, name: str, shape: tuple[int, ...]) -> None:
        """Let a tensor be the last."""
        self.network.last, self.shape = name, shape

    def other(self) -> tuple[str, tuple[int, ...]]:
        """Another activation of the shape of the last: an earlier one, an input, or a function of the last."""
        alike = [entry for entry in self.earlier if entry[1] == self.shape and entry[0] != self.last]
        if alike and self.maybe(0.7):
            return self.pick(alike)
        if len(self.inputs) == 1 and self.maybe(0.15):
            self.inputs["y"] = self.shape
            return "y", self.shape
        mine = self.last, self.shape
        self.add(self.pick(["Tanh", "Sigmoid", "Relu"]))
        other = self.last, self.shape
        self.go_to(*mine)
        return other

    def proto(self) -> onnx.ModelProto:
        """The model with all its inputs and results."""
        ends = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, (self.batch, *shape))
            for name, shape in self.inputs.items()
        ]
        shapes = dict(self.earlier) | {self.last: self.shape}
        results = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, (self.batch, *shapes[name]))
            for name in dict.fromkeys([*self.results, self.last])
        ]
        network = self.network
        graph = helper.make_graph(network.nodes, "random", ends, results, network.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def small(self, shape: Sequence[int]) -> bool:
        """Whether a tensor of a shape is no larger than they may be."""
        return bool(int(np.prod(shape)) <= MOST and min(shape, default=1) >= 1)


def window(growth: AnyGrowth, pool: bool = False) -> tuple[dict[str, Any], tuple[int, ...]] | None:
    """Attributes of a window that fits the axes behind the channels, and their lengths afterwards."""
    attributes: dict[str, Any] = {"kernel_shape": [], "strides": [], "dilations": []}
    before, after, sizes = [], [], []
    automatic = growth.pick(["SAME_UPPER", "SAME_LOWER", "VALID"]) if growth.maybe(0.2) else None
    for length in growth.shape[1:]:
        kernel, stride = growth.upto(4), growth.upto(3)
        dilation = 1 if pool or automatic else growth.upto(2)
        top, bottom = (0, 0) if automatic else (growth.upto(kernel - 1, 0), growth.upto(kernel - 1, 0))
        span = (kernel - 1) * dilation + 1
        if length + top + bottom < span:
            return None
        for name, value in zip(attributes, (kernel, stride, dilation), strict=True):
            attributes[name].append(value)
        before.append(top)
        after.append(bottom)
        same = -(-length // stride)
        sizes.append(same if automatic and automatic != "VALID" else (length + top + bottom - span) // stride + 1)
    if pool:
        del attributes["dilations"]
    if automatic:
        return {**attributes, "auto_pad": automatic}, tuple(sizes)
    return {**attributes, "pads": before + after}, tuple(sizes)


def channels(growth: AnyGrowth) -> int:
    """A number of channels."""
    return growth.upto(MOST_CHANNELS)
