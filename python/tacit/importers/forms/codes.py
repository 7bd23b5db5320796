"""Tensors of integers that stand for real numbers, and the real numbers that they stand for."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from tacit.importers.forms.graph import Graph, given

LIMITS = {
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int32": (-(2**31), 2**31 - 1),
}
"""The smallest and the largest integer of a type."""
NARROW = {"int4", "uint4", "int8", "uint8", "int16", "uint16"}
LEAST = {
    **dict.fromkeys(("Abs", "Exp", "HardSigmoid", "Relu", "Sigmoid", "Softmax", "Softplus", "Sqrt"), 0.0),
    **dict.fromkeys(("Erf", "Tanh"), -1.0),
}
"""Bounds that results of operators are never below."""
KEEPING = {
    *("AveragePool", "Concat", "Dropout", "Flatten", "GlobalAveragePool", "GlobalMaxPool", "Identity"),
    *("MaxPool", "ReduceMean", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"),
}
"""Operators whose results are not below the least of what they read, if that is above zero."""
Bounds = tuple[float, float]


@dataclass(frozen=True)
class Codes:
    """A tensor of integers that rounds the tensor `real`: `real = (integer - zero) * scale`.

    Where the model computes the scale, `symbol` is the name of the tensor with it and there is no constant one.
    """

    real: str
    scale: NDArray[np.float64] | None = None
    zero: NDArray[np.float64] | None = None
    symbol: str = ""
    limits: Bounds = (0.0, 255.0)

    def like(self, other: "Codes") -> bool:
        """Whether the same integers stand for the same numbers in both."""
        if self.symbol or other.symbol:
            return self.symbol == other.symbol
        pairs = ((self.scale, other.scale), (self.zero, other.zero))
        return all(a is not None and b is not None and np.array_equal(a.ravel(), b.ravel()) for a, b in pairs)

    def cuts(self) -> bool:
        """Whether numbers below zero become zero: how quantisers write a ReLU."""
        return self.zero is not None and bool((self.zero == self.limits[0]).all())

    def bounds(self) -> Bounds | None:
        """The smallest and the largest number that they can stand for."""
        if self.scale is None or self.zero is None:
            return None
        ends = [((limit - self.zero.ravel()) * self.scale.ravel()) for limit in self.limits]
        return float(ends[0].min()), float(ends[1].max())


@dataclass(frozen=True)
class Sum:
    """What a node on integers gives: `x` times `factors` over the scale that the tensor `symbol` has."""

    node: onnx.NodeProto
    x: str
    factors: NDArray[np.float32]
    symbol: str


class Reals(Graph):
    """A graph in which tensors of integers are followed by the real numbers that they stand for."""

    def __init__(self, model: onnx.ModelProto) -> None:
        super().__init__(model)
        self.codes: dict[str, Codes] = {}
        self.alias: dict[str, str] = {}
        self.bounds: dict[str, Bounds] = {}
        self.quantised: dict[str, list[Bounds]] = {}
        self.factors: dict[str, tuple[str, NDArray[np.float64]]] = {}
        self.sums: dict[str, Sum] = {}
        self.accumulated: set[str] = set()
        self.chosen: dict[str, onnx.NodeProto] = {}
        self.least: dict[str, float] = {}
        self.fixed = set(self.tensors)
        self.weights = 0
        self.entries = {entry.name for entry in model.graph.input} - self.fixed

    def real(self, name: str) -> str:
        """The tensor of floats behind a name."""
        return self.alias.get(name, name)

    def keep(self, node: onnx.NodeProto) -> None:
        """Write a node as it is, reading the floats behind what it read; a ReLU that changes nothing is none."""
        for index, name in enumerate(node.input):
            node.input[index] = self.real(name)
        if node.op_type == "Relu" and self.bound(node.input[0]) >= 0:
            node.op_type = "Identity"
        super().keep(node)
        self.follow_sign(node)

    def put(self, node: onnx.NodeProto, operator: str, inputs: Any, output: str = "", **settings: Any) -> str:
        """Write a node, and note whether its results are ever below zero."""
        name = super().put(node, operator, inputs, output, **settings)
        self.follow_sign(self.nodes[-1])
        return name

    def follow_sign(self, node: onnx.NodeProto) -> None:
        """Note what results are never below, and which results constants decide."""
        read = [name for name in node.input if name]
        if read and all(name in self.fixed for name in read):
            self.fixed.update(node.output)
        data = [name for name in read if name not in self.fixed]
        fused = any(entry.name == "activation" and entry.s == b"Relu" for entry in node.attribute)
        least = LEAST.get(node.op_type, 0.0 if fused else -np.inf)
        if node.op_type in ("Add", "Mul"):
            bounds = [self.bound(name) for name in read]
            least = sum(bounds) if node.op_type == "Add" else 0.0 if min(bounds) >= 0 else -np.inf
        elif node.op_type in KEEPING and data:
            least = min(self.bound(name) for name in (read if node.op_type == "Concat" else data))
        for name in node.output:
            self.least[name] = least

    def bound(self, name: str) -> float:
        """What a tensor is never below."""
        value = self.value(name)
        if value is not None and value.size and value.dtype.kind == "f":
            return float(value.min())
        return self.least.get(name, -np.inf)

    def form(self, node: onnx.NodeProto, scale: str, zero: str, kind: int = 0) -> Codes:
        """How integers stand for numbers, by the names of scale and zero point; `kind` is the type if nothing else."""
        factor, offset = self.value(scale), self.value(zero)
        if factor is None or (zero and offset is None):
            self.refuse(node, f"with a computed scale `{scale}`", "export the model with constant scales")
        name = "uint8" if offset is None else str(offset.dtype)
        if offset is None and kind:
            name = TensorProto.DataType.Name(kind).lower()
        if name not in LIMITS:
            self.refuse(node, f"to numbers of type {name}", "quantise to integers, or export the float model")
        wide = factor.astype(np.float64)
        if not (np.isfinite(wide).all() and (wide > 0).all()):
            self.refuse(node, "with a scale that is not above zero", "quantise the model again")
        zeros = np.zeros(1) if offset is None else offset.astype(np.float64)
        low, high = LIMITS[name]
        return Codes("", wide, zeros, "", (float(low), float(high)))

    def operand(self, node: onnx.NodeProto, index: int, scale: int, zero: int) -> str:
        """The floats that integers at an input stand for, by the places of their scale and zero point."""
        name, form = node.input[index], self.form(node, given(node, scale), given(node, zero))
        return self.meaning(node, name, form)

    def meaning(self, node: onnx.NodeProto, name: str, form: Codes, output: str = "") -> str:
        """The floats that the integers `name` stand for in a `form`."""
        known = self.codes.get(name)
        if known is not None and known.like(form):
            return known.real
        if known is None and name in self.tensors:
            assert form.scale is not None
            assert form.zero is not None
            value = self.tensors[name]
            return self.floats(node, dequantised(self.array(value), form.scale, form.zero, 0))
        if form.scale is None or form.zero is None or max(form.scale.size, form.zero.size) > 1:
            self.refuse(node, "on an activation with a scale for each channel", "quantise activations per tensor")
        integers = self.integers(node, name)
        if form.zero.any():
            integers = self.put(node, "Sub", [integers, self.floats(node, form.zero.item())])
        return self.put(node, "Mul", [integers, self.floats(node, form.scale.item())], output)

    def array(self, tensor: TensorProto) -> NDArray[np.float64]:
        """The values of a constant."""
        return onnx.numpy_helper.to_array(tensor).astype(np.float64)

    def integers(self, node: onnx.NodeProto, name: str) -> str:
        """The integers themselves, as floats and not rounded."""
        known = self.codes.get(name)
        if known is None:
            if name in self.entries:
                self.note_entry(name)
            return self.put(node, "Cast", [name], to=TensorProto.FLOAT)
        if known.scale is None or known.zero is None or max(known.scale.size, known.zero.size) > 1:
            self.refuse(node, f"computes with the integers `{name}`", "export the model before it was quantised")
        scaled = self.put(node, "Mul", [known.real, self.floats(node, 1 / known.scale.item())])
        return self.put(node, "Add", [scaled, self.floats(node, known.zero.item())]) if known.zero.any() else scaled

    def kind(self, name: str) -> int:
        """The type of an input of the model; 0 for anything else."""
        kinds = [entry.type.tensor_type.elem_type for entry in self.model.graph.input if entry.name == name]
        return int(kinds[0]) if kinds else 0

    def note_entry(self, name: str) -> None:
        """Note the range of an input of integers."""
        (entry,) = [entry for entry in self.model.graph.input if entry.name == name]
        kind = TensorProto.DataType.Name(entry.type.tensor_type.elem_type).lower()
        if kind in NARROW:
            low, high = LIMITS[kind]
            self.bounds[name] = (float(low), float(high))

    def finish(self, node: onnx.NodeProto, form: Codes, operator: str, inputs: list[str], **settings: Any) -> None:
        """Write what computes the only output of `node`, integers of a `form`, as floats of the same name."""
        output = node.output[0]
        ends = form.bounds()
        x = self.put(node, operator, inputs, **settings)
        if self.needs_cut(x, form) and ends is not None:
            self.least[self.clip(node, x, *ends, output)] = 0.0
        else:
            self.nodes[-1].output[0] = output
            self.least[output] = self.bound(x)
        self.became(output, output, form)
        if ends is not None:
            self.bounds[output] = ends

    def needs_cut(self, x: str, form: Codes) -> bool:
        """Whether a tensor may be below zero, by more than rounding hides, where integers of a form cut it there."""
        return form.cuts() and form.scale is not None and self.bound(x) < -form.scale.max() / 2

    def became(self, name: str, real: str, form: Codes) -> None:
        """Note that the integers `name` round `real`."""
        self.codes[name] = Codes(real, form.scale, form.zero, form.symbol, form.limits)
        if real != name:
            self.alias[name] = real


def dequantised(
    value: NDArray[np.float64], scale: NDArray[np.float64], zero: NDArray[np.float64], axis: int, block: int = 0
) -> NDArray[np.float32]:
    """The numbers that integers stand for; scales are one, one for each place of an axis, or one for each block."""
    if block:
        zero = np.broadcast_to(zero, scale.shape)
        scale, zero = (fit(np.repeat(part, block, axis), value.shape, axis) for part in (scale, zero))
    elif scale.size > 1 or zero.size > 1:
        shape = [1] * value.ndim
        shape[axis] = -1
        scale, zero = (part.ravel() if part.size == 1 else part.reshape(shape) for part in (scale, zero))
    else:
        scale, zero = scale.reshape(()), zero.reshape(())
    return ((value - zero) * scale).astype(np.float32)


def fit(value: NDArray[np.float64], shape: tuple[int, ...], axis: int) -> NDArray[np.float64]:
    """The first places along an axis, as many as a tensor of a shape has."""
    return value.take(range(shape[axis]), axis)
