"""A model some of whose nodes are written anew, before anything is known of shapes."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tacit.errors import UnsupportedError

OWN = ("", "ai.onnx")
EXTRA = "com.microsoft"
CLIP_INPUTS = 11
"""The opset since which a Clip has its bounds as inputs."""


class Graph:
    """The nodes of a model, written one after another, and its constants by name."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.tensors: dict[str, TensorProto] = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in model.graph.node:
            tensor = stored(node)
            if tensor is not None:
                self.tensors[node.output[0]] = tensor
        self.nodes: list[onnx.NodeProto] = []
        self.opset = max((entry.version for entry in model.opset_import if entry.domain in OWN), default=1)

    def refuse(self, node: onnx.NodeProto, what: str, instead: str) -> NoReturn:
        """Raise `UnsupportedError` naming the node."""
        error = UnsupportedError(f"node `{node.name}`: {node.op_type} {what}; {instead}")
        error.node = node.name
        raise error

    def value(self, name: str) -> NDArray[Any] | None:
        """A constant; None for what is computed, or absent."""
        return numpy_helper.to_array(self.tensors[name]) if name in self.tensors else None

    def required(self, node: onnx.NodeProto, index: int, role: str) -> NDArray[Any]:
        """The constant at an input, which must be one."""
        name = given(node, index)
        value = self.value(name)
        if value is None:
            what = f"with a computed {role} `{name}`" if name else f"without a {role}"
            self.refuse(node, what, f"export the model with a constant {role}")
        return value

    def put(self, node: onnx.NodeProto, operator: str, inputs: Sequence[str], output: str = "", **settings: Any) -> str:
        """Write a node in the place of `node`; gives the name of its output, which is a new one unless named."""
        name = f"{node.name}.{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output or name], name, **settings))
        return output or name

    def put_all(
        self, node: onnx.NodeProto, operator: str, inputs: Sequence[str], outputs: int, **settings: Any
    ) -> list[str]:
        """Write a node of several outputs in the place of `node`; gives their names."""
        name = f"{node.name}.{operator.lower()}{len(self.nodes)}"
        names = [f"{name}.{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, name, **settings))
        return names

    def keep(self, node: onnx.NodeProto) -> None:
        """Write a node as it is."""
        self.nodes.append(node)

    def constant(self, node: onnx.NodeProto, value: NDArray[Any]) -> str:
        """Store a constant; gives its name."""
        name = f"{node.name}.constant{len(self.tensors)}"
        array = np.asarray(value)
        self.tensors[name] = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        self.model.graph.initializer.append(self.tensors[name])
        return name

    def floats(self, node: onnx.NodeProto, value: Any) -> str:
        """Store float32 numbers; gives the name."""
        return self.constant(node, np.asarray(value, np.float32))

    def numbers(self, node: onnx.NodeProto, *values: int) -> str:
        """Store a list of integers; gives the name."""
        return self.constant(node, np.array(values, np.int64))

    def clip(self, node: onnx.NodeProto, x: str, low: float, high: float, output: str = "") -> str:
        """Write `x` between two bounds."""
        if self.opset < CLIP_INPUTS:
            return self.put(node, "Clip", [x], output, min=low, max=high)
        return self.put(node, "Clip", [x, self.floats(node, low), self.floats(node, high)], output)


def stored(node: onnx.NodeProto) -> TensorProto | None:
    """What a Constant holds; None for other nodes, and for text."""
    if node.op_type != "Constant" or node.domain not in OWN or len(node.attribute) != 1:
        return None
    (entry,) = node.attribute
    if entry.name == "value":
        held: TensorProto = entry.t
        return held
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    if entry.name not in kinds:
        return None
    value = np.array(helper.get_attribute_value(entry), kinds[entry.name])
    tensor: TensorProto = numpy_helper.from_array(value, node.output[0])
    return tensor


def given(node: onnx.NodeProto, index: int) -> str:
    """The name of an input, or nothing where there is none."""
    return node.input[index] if index < len(node.input) else ""


def settings(node: onnx.NodeProto, *left_out: str) -> dict[str, Any]:
    """The attributes as plain values, but for some; strings as text."""
    values = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute if entry.name not in left_out}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}
