"""A network of ONNX whose weights PyTorch trains: its source graph, run node by node, and written as ONNX again.

Networks with an activation of their own say what a node computes that is no linear layer, and how it is written.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tacit.errors import MisuseError
from tacit.importers.source import Node, Source
from torch import Tensor, nn
from torch.nn import functional

OPSET = 13
BATCH = 128
Constants = dict[str, NDArray[Any]]


class Trainable(nn.Module, ABC):  # type: ignore[misc,unused-ignore]
    """The weights of a source graph as parameters. `understood` names the operators that it may have."""

    understood: tuple[str, ...] = ("Conv", "Gemm", "Relu", "MaxPool", "AveragePool", "Reshape")
    refusal = "which is not trained"

    def __init__(self, source: Source) -> None:
        """Take over the weights; raises `MisuseError` naming the first operator that is not understood."""
        super().__init__()
        self.source = source
        self.names = {name: f"w{index}" for index, name in enumerate(source.weights)}
        for name, own in self.names.items():
            self.register_parameter(own, nn.Parameter(torch.from_numpy(source.weights[name].copy())))
        for node in source.nodes:
            if node.operation["op"] not in self.understood:
                raise MisuseError(f"node `{node.name}` is a {node.operation['op']}, {self.refusal}")

    def weight(self, name: str) -> Tensor:
        """A weight by its name in the source."""
        return self.get_parameter(self.names[name])

    def bias(self, node: Node) -> Tensor | None:
        """The bias of a linear node, if it has one."""
        name = node.operation.get("bias")
        return None if name is None else self.weight(name)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of inputs (N, *shape)."""
        values = {self.source.input_name: self.given(x)}
        for index, node in enumerate(self.source.nodes):
            values[node.output] = self.step(index, node, [values[name] for name in node.inputs])
        return values[self.source.output]

    def given(self, x: Tensor) -> Tensor:
        """What the first layer reads."""
        return x

    def step(self, index: int, node: Node, inputs: list[Tensor]) -> Tensor:
        """One operator."""
        operation, x = node.operation, inputs[0]
        operator = operation["op"]
        if operator == "Relu":
            return self.activated(index, node, x)
        if operator == "Add":
            return x + inputs[1]
        if operator == "Reshape":
            return x.reshape(len(x), *operation["shape"])
        if operator == "Gemm":
            return functional.linear(x, self.kernel(operation["weight"]), self.bias(node))
        top, left, bottom, right = operation["padding"]
        if any(operation["padding"]):
            x = functional.pad(x, (left, right, top, bottom), value=self.around(node))
        if operator == "Conv":
            geometry = (operation["stride"], 0, operation["dilation"], operation["groups"])
            return functional.conv2d(x, self.kernel(operation["weight"]), self.bias(node), *geometry)
        return self.pooled(index, node, x)

    def around(self, _node: Node) -> float:
        """What stands around an image that a node pads."""
        return 0.0

    def kernel(self, name: str) -> Tensor:
        """A weight as a linear layer multiplies by it."""
        return self.weight(name)

    @abstractmethod
    def activated(self, index: int, node: Node, x: Tensor) -> Tensor:
        """What stands at a ReLU."""

    def pooled(self, _index: int, node: Node, x: Tensor) -> Tensor:
        """What stands at a pool; `x` is padded."""
        return functional.avg_pool2d(x, node.operation["kernel"], node.operation["stride"])

    @abstractmethod
    def written(self, index: int, node: Node) -> tuple[list[onnx.NodeProto], Constants]:
        """A node of the trained network, and the constants that it needs besides weights."""


def batches(count: int, epochs: int) -> Iterator[Tensor]:
    """Positions in a new order each time; what does not fill a batch is left out."""
    for _ in range(epochs):
        yield from torch.randperm(count)[: count // BATCH * BATCH].split(BATCH)


def to_onnx(model: Trainable, suffix: str) -> onnx.ModelProto:
    """The network as ONNX; its name ends in `suffix`."""
    source, nodes, constants = model.source, [], {}
    for name in model.names:
        constants[name] = model.kernel(name).detach().numpy()
    for index, node in enumerate(source.nodes):
        made, more = model.written(index, node)
        nodes += made
        constants.update(more)
    given = helper.make_tensor_value_info(source.input_name, TensorProto.FLOAT, ["N", *source.input_shape])
    result = helper.make_tensor_value_info(source.output, TensorProto.FLOAT, None)
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, f"{source.name}-{suffix}", [given], [result], tensors)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    return onnx.shape_inference.infer_shapes(proto)


def operator(node: Node) -> tuple[list[onnx.NodeProto], Constants]:
    """A node that is no activation, and the constants that it needs besides weights."""
    operation, inputs = node.operation, [*node.inputs]
    inputs += [operation[key] for key in ("weight", "bias") if operation.get(key) is not None]
    kind = operation["op"]
    if kind == "Reshape":
        shape = f"{node.output}.shape"
        made = helper.make_node("Reshape", [node.inputs[0], shape], [node.output], node.name)
        return [made], {shape: np.array([-1, *operation["shape"]], np.int64)}
    attributes: dict[str, Any] = {"transB": 1} if kind == "Gemm" else {}
    if kind in ("Conv", "MaxPool", "AveragePool"):
        attributes = {"strides": list(operation["stride"]), "pads": list(operation["padding"])}
    if kind == "Conv":
        attributes |= {"dilations": list(operation["dilation"]), "group": operation["groups"]}
    if kind.endswith("Pool"):
        attributes |= {"kernel_shape": list(operation["kernel"])}
    if kind == "AveragePool":
        attributes |= {"count_include_pad": 1}
    return [helper.make_node(kind, inputs, [node.output], node.name, **attributes)], {}
