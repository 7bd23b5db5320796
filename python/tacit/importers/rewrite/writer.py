"""What a rewriting writes with: nodes and constants of ONNX at the opset of the model."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tacit.importers.call import Call, Shape

LISTED_SINCE = {"Pad": 11, "Slice": 10, "ReduceMean": 18, "Clip": 11}
"""The opset since which an operator has constant inputs where it had attributes."""


@dataclass
class Writer:
    """The node that is rewritten, and the nodes that take its place; axes and shapes leave the batch out.

    `sizes` are the shapes of all tensors with the batch of one, wherever that is, or without one.
    """

    call: Call
    opset: int
    writers: Mapping[str, Callable[[], Call]] = field(default_factory=dict)
    sizes: Mapping[str, Shape] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    @property
    def x(self) -> str:
        """The first input, which must be an activation."""
        return self.call.activation(0)

    @property
    def shape(self) -> Shape:
        """The shape of the first input."""
        return self.shape_of(self.x)

    def written(self, name: str) -> Call | None:
        """The node of the model that writes a tensor."""
        return self.writers[name]() if name in self.writers else None

    def shape_of(self, name: str) -> Shape:
        """The shape of an activation of the model; one without a batch is refused."""
        if name not in self.call.shapes:
            self.call.refuse(f"on `{name}`, which is no activation of shape (batch, ...)", "keep the batch apart")
        return self.call.shapes[name]

    def fronted(self, name: str, rank: int = 0) -> str:
        """Write an activation with a batch of one in front of at least `rank` axes."""
        size = self.sizes[name]
        ones = [1] * max(1, rank + 1 - len(size))
        return self.put("Reshape", name, self.numbers(*ones, *size))

    def put(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Write a node; gives the name of its output."""
        name = f"{self.call.name}.{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name, **attributes))
        return name

    def constant(self, value: NDArray[Any]) -> str:
        """Write a constant; gives its name."""
        name = f"{self.call.name}.constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name))
        return name

    def numbers(self, *values: int) -> str:
        """Write a constant list of integers."""
        return self.constant(np.array(values, np.int64))

    def number(self, value: float) -> str:
        """Write a constant float."""
        return self.constant(np.array(value, np.float32))

    def reshape(self, x: str, *shape: int) -> str:
        """Write `x` in another shape."""
        return self.put("Reshape", x, self.numbers(-1, *shape))

    def transpose(self, x: str, *order: int) -> str:
        """Write `x` with its axes in another order."""
        return self.put("Transpose", x, perm=[0, *(axis + 1 for axis in order)])

    def permute(self, x: str, lengths: Sequence[int], order: Sequence[int]) -> str:
        """Write `x`, seen as axes of `lengths`, with these in another order, as one axis.

        Each step moves one axis to the front, so that no tensor has more than three axes.
        """
        have = list(range(len(lengths)))
        for axis in reversed(order):
            place = have.index(axis)
            before, after = (math.prod(lengths[k] for k in part) for part in (have[:place], have[place + 1 :]))
            if before > 1 and lengths[axis] > 1:
                x = self.transpose(self.reshape(x, before, lengths[axis], after), 1, 0, 2)
            have = [axis, *have[:place], *have[place + 1 :]]
        return self.reshape(x, math.prod(lengths))

    def pad(self, x: str, before: Sequence[int], after: Sequence[int]) -> str:
        """Write `x` with zeros around it."""
        if not any((*before, *after)):
            return x
        pads = [0, *before, 0, *after]
        if self.opset < LISTED_SINCE["Pad"]:
            return self.put("Pad", x, pads=pads)
        return self.put("Pad", x, self.numbers(*pads))

    def slice(self, x: str, axis: int, start: int, end: int, step: int = 1) -> str:
        """Write the elements of `x` from `start` to before `end` along an axis."""
        if self.opset < LISTED_SINCE["Slice"]:
            if step != 1:
                self.call.refuse("with steps", "export the model at opset 10 or later")
            return self.put("Slice", x, starts=[start], ends=[end], axes=[axis + 1])
        return self.put("Slice", x, *(self.numbers(value) for value in (start, end, axis + 1, step)))

    def mean(self, x: str, *axes: int) -> str:
        """Write the mean over neighbouring axes, which keep the length of one."""
        listed = [axis + 1 for axis in axes]
        if self.opset < LISTED_SINCE["ReduceMean"]:
            return self.put("ReduceMean", x, axes=listed, keepdims=1)
        return self.put("ReduceMean", x, self.numbers(*listed), keepdims=1)

    def clip(self, x: str, low: float, high: float) -> str:
        """Write `x` between two bounds."""
        if self.opset < LISTED_SINCE["Clip"]:
            return self.put("Clip", x, min=low, max=high)
        return self.put("Clip", x, self.number(low), self.number(high))

    def scale(self, x: str, factor: float) -> str:
        """Write `x` times a number that is not zero."""
        return x if factor == 1 else self.put("Mul", x, self.number(factor))

    def along(self, x: str, shape: Shape, axis: int, matrix: NDArray[Any]) -> str:
        """Write `x` of `shape` times a matrix (outputs, inputs) along an axis."""
        outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        length, factors = len(matrix), self.constant(np.asarray(matrix.T, np.float32))
        if inner == 1:
            product = self.put("MatMul", self.reshape(x, outer, shape[axis]), factors)
        else:
            turned = self.transpose(self.reshape(x, outer, shape[axis], inner), 0, 2, 1)
            product = self.transpose(self.put("MatMul", turned, factors), 0, 2, 1)
        return self.reshape(product, *shape[:axis], length, *shape[axis + 1 :])
