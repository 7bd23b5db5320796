"""An ONNX graph in the making, for architectures that are written from their weights."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tacit.importers.unified import DOMAIN, functions

Weights = Mapping[str, NDArray[np.float32]]

OPSET = 20
MASKS = "tacit.masks"
"""The entry of a model's metadata that says how many rows of its input are masks."""
EXTRA_BITS = "tacit.extra_bits"
"""The entry that says by name which tensors have more bits than activations, as JSON."""
IR_VERSION = 10


@dataclass
class Graph:
    """Nodes and constants as they are added."""

    weights: Weights
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)
    states: list[tuple[str, tuple[int, ...], str]] = field(default_factory=list)
    extra_bits: dict[str, int] = field(default_factory=dict)

    def add(self, operator: str, name: str, *inputs: str, **attributes: Any) -> str:
        """A node called like its output; gives that name."""
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, name: str, value: Any) -> str:
        """Store a constant and give its name."""
        self.constants[name] = numpy_helper.from_array(np.asarray(value, order="C"), name)
        return name

    def integers(self, name: str, values: Sequence[int]) -> str:
        """A constant list of integers."""
        return self.constant(name, np.array(values, np.int64))

    def dense(self, name: str, x: str, weight: str, biased: bool = True) -> str:
        """`x` times the transposed weight, plus its bias if it has one."""
        kernel = self.weights[f"{weight}.weight"]
        return self.linear(name, x, kernel, self.weights[f"{weight}.bias"] if biased else None)

    def linear(self, name: str, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32] | None) -> str:
        """`x` times the transposed `weight` (outputs, inputs), plus `bias`."""
        kernel = self.constant(f"{name}.weight", weight.T)
        if bias is None:
            return self.add("MatMul", name, x, kernel)
        product = self.add("MatMul", f"{name}.product", x, kernel)
        return self.add("Add", name, product, self.constant(f"{name}.bias", bias))

    def normalise(self, name: str, x: str, weight: str, epsilon: float, biased: bool = True) -> str:
        """Layer norm over the last axis."""
        roles = ("weight", "bias") if biased else ("weight",)
        stored = [self.constant(f"{name}.{role}", self.weights[f"{weight}.{role}"]) for role in roles]
        return self.add("LayerNormalization", name, x, *stored, axis=-1, epsilon=epsilon)

    def heads(self, name: str, x: str, shape: Sequence[int], order: Sequence[int]) -> str:
        """Reshape, then transpose."""
        split = self.add("Reshape", f"{name}.split", x, self.integers(f"{name}.shape", shape))
        return self.add("Transpose", f"{name}.heads", split, perm=list(order))

    def state(self, before: str, shape: tuple[int, ...], after: str) -> None:
        """Let `before`, of that shape, be an input that is kept, and the tensor `after` what it is next."""
        self.states.append((before, shape, after))

    def widened(self, name: str, bits: int) -> str:
        """The tensor, which shall have so many bits more than activations have."""
        self.extra_bits[name] = bits
        return name

    def first(self) -> str:
        """The number 0, as an index."""
        return self.constant("first", np.int64(0))

    def row(self, name: str, x: str, index: int) -> str:
        """The element `index` of the second axis, which is dropped."""
        at = self.first() if index == 0 else self.constant(f"{name}.row", np.int64(index))
        return self.add("Gather", name, x, at, axis=1)

    def model(self, name: str, shape: Sequence[int], output: str, rank: int, masks: int = 0) -> onnx.ModelProto:
        """The model of input `x` (N, *shape), of whose rows the last are `masks`, and one output of `rank` axes."""
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *shape])]
        given += [helper.make_tensor_value_info(before, TensorProto.FLOAT, at) for before, at, _ in self.states]
        results = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        results += [helper.make_tensor_value_info(after, TensorProto.FLOAT, at) for _, at, after in self.states]
        built = helper.make_graph(self.nodes, name, given, results, list(self.constants.values()))
        # A shape is obligatory for the checker.
        built.output[0].type.tensor_type.shape.dim.add().dim_param = "N"
        for _ in range(rank - 1):
            built.output[0].type.tensor_type.shape.dim.add()
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)]
        made = helper.make_model(built, opset_imports=versions, ir_version=IR_VERSION, functions=functions(OPSET))
        told = {MASKS: str(masks)} if masks else {}
        if self.extra_bits:
            told[EXTRA_BITS] = json.dumps(self.extra_bits)
        helper.set_model_props(made, told)
        return made
