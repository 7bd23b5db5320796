"""From a network with ReLUs to one with polynomials of degree 2, which suite lola can evaluate.

Every ReLU becomes a*x^2 + b*x + c with three numbers of its own, first fitted to what it sees, then
trained with the weights; max pooling becomes average pooling. Convolutions, matrix products, pools,
reshapes and one branch after another are understood: what suite lola runs.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tacit.errors import MisuseError
from tacit.importers.onnx import import_onnx
from tacit.importers.source import Node, Source
from torch import Tensor, nn
from torch.nn import functional

OPSET = 13
FITTED = 512
"""Examples that polynomials are fitted to."""
BATCH, SMOOTHING, CLIP = 128, 0.05, 1.0


class Squares(nn.Module):  # type: ignore[misc,unused-ignore]
    """The network of a source graph with polynomials in place of comparisons."""

    def __init__(self, source: Source) -> None:
        """Take over the weights; raises `MisuseError` naming the first operator that is not understood."""
        super().__init__()
        self.source = source
        self.names = {name: f"w{index}" for index, name in enumerate(source.weights)}
        for name, own in self.names.items():
            self.register_parameter(own, nn.Parameter(torch.from_numpy(source.weights[name].copy())))
        for index, node in enumerate(source.nodes):
            operator = node.operation["op"]
            if operator not in ("Conv", "Gemm", "Relu", "MaxPool", "AveragePool", "Reshape"):
                raise MisuseError(f"node `{node.name}` is a {operator}, which suite lola does not evaluate")
            if operator == "Relu":
                self.register_parameter(f"p{index}", nn.Parameter(torch.tensor([0.0, 0.5, 0.2])))

    def weight(self, name: str | None) -> Tensor | None:
        """A weight by its name in the source."""
        return None if name is None else self.get_parameter(self.names[name])

    def forward(self, x: Tensor, fit: bool = False) -> Tensor:
        """Logits; with `fit` each polynomial first becomes the one nearest to its ReLU on `x`."""
        values = {self.source.input_name: x}
        for index, node in enumerate(self.source.nodes):
            values[node.output] = self.step(index, node, values[node.inputs[0]], fit)
        return values[self.source.output]

    def step(self, index: int, node: Node, x: Tensor, fit: bool) -> Tensor:
        """One operator."""
        operation = node.operation
        operator = operation["op"]
        if operator == "Relu":
            polynomial = self.get_parameter(f"p{index}")
            if fit:
                polynomial.data = fitted(x)
            c, b, a = polynomial
            return (a * x + b) * x + c
        if operator == "Gemm":
            return functional.linear(x, self.get_parameter(self.names[operation["weight"]]), self.bias(node))
        if operator == "Reshape":
            return x.reshape(len(x), *operation["shape"])
        top, left, bottom, right = operation["padding"]
        x = functional.pad(x, (left, right, top, bottom))
        if operator == "Conv":
            weight = self.get_parameter(self.names[operation["weight"]])
            geometry = (operation["stride"], 0, operation["dilation"], operation["groups"])
            return functional.conv2d(x, weight, self.bias(node), *geometry)
        return functional.avg_pool2d(x, operation["kernel"], operation["stride"])

    def bias(self, node: Node) -> Tensor | None:
        """The bias of a linear node, if it has one."""
        return self.weight(node.operation.get("bias"))


def fitted(x: Tensor) -> Tensor:
    """Coefficients c, b, a of the polynomial nearest to a ReLU on the values of `x`."""
    flat = x.detach().flatten().double()
    powers = torch.stack([torch.ones_like(flat), flat, flat**2], dim=1)
    solution = torch.linalg.lstsq(powers, flat.clamp(min=0)[:, None]).solution[:, 0]
    return solution.float()


def finetune(source: Path, x: NDArray[np.float32], y: NDArray[np.int64], epochs: int, rate: float) -> Squares:
    """Replace and train on inputs `x` (N, *shape) with class numbers `y` (N,)."""
    torch.manual_seed(1)
    model = Squares(import_onnx(source))
    inputs, labels = torch.from_numpy(x), torch.from_numpy(y)
    with torch.no_grad():
        model(inputs[:FITTED], fit=True)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    steps = max(1, epochs * (len(inputs) // BATCH))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=rate, total_steps=steps)
    for chosen in batches(len(inputs), epochs):
        loss = functional.cross_entropy(model(inputs[chosen]), labels[chosen], label_smoothing=SMOOTHING)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call,unused-ignore]
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        schedule.step()
    return model


def batches(count: int, epochs: int) -> Iterator[Tensor]:
    """Positions in a new order each time; what does not fill a batch is left out."""
    for _ in range(epochs):
        yield from torch.randperm(count)[: count // BATCH * BATCH].split(BATCH)


def to_onnx(model: Squares) -> onnx.ModelProto:
    """The network as ONNX."""
    source, nodes, constants = model.source, [], {}
    for name, own in model.names.items():
        constants[name] = model.get_parameter(own).detach().numpy()
    for index, node in enumerate(source.nodes):
        if node.operation["op"] == "Relu":
            polynomial = model.get_parameter(f"p{index}").detach().numpy()
            names = [f"{node.output}.{power}" for power in "cba"]
            constants.update({name: np.float32(value) for name, value in zip(names, polynomial, strict=True)})
            nodes += horner(node, names)
        else:
            made, shapes = operator(node)
            nodes.append(made)
            constants.update(shapes)
    given = helper.make_tensor_value_info(source.input_name, TensorProto.FLOAT, ["N", *source.input_shape])
    result = helper.make_tensor_value_info(source.output, TensorProto.FLOAT, None)
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, f"{source.name}-square", [given], [result], tensors)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    return onnx.shape_inference.infer_shapes(proto)


def horner(node: Node, names: list[str]) -> list[onnx.NodeProto]:
    """(a*x + b)*x + c."""
    x, y = node.inputs[0], node.output
    c, b, a = names
    between = [f"{y}.{step}" for step in ("scaled", "shifted", "times")]
    return [
        helper.make_node("Mul", [x, a], [between[0]], f"{node.name}.scale"),
        helper.make_node("Add", [between[0], b], [between[1]], f"{node.name}.shift"),
        helper.make_node("Mul", [between[1], x], [between[2]], f"{node.name}.times"),
        helper.make_node("Add", [between[2], c], [y], node.name),
    ]


def operator(node: Node) -> tuple[onnx.NodeProto, dict[str, NDArray[Any]]]:
    """A node that is no activation, and the constants that it needs besides weights."""
    operation, inputs = node.operation, [node.inputs[0]]
    inputs += [operation[key] for key in ("weight", "bias") if operation.get(key) is not None]
    kind = operation["op"]
    if kind == "Reshape":
        shape = f"{node.output}.shape"
        made = helper.make_node("Reshape", [node.inputs[0], shape], [node.output], node.name)
        return made, {shape: np.array([-1, *operation["shape"]], np.int64)}
    attributes: dict[str, Any] = {"transB": 1}
    if kind != "Gemm":
        attributes = {"strides": list(operation["stride"]), "pads": list(operation["padding"])}
    if kind == "Conv":
        attributes |= {"dilations": list(operation["dilation"]), "group": operation["groups"]}
    if kind.endswith("Pool"):
        kind = "AveragePool"
        attributes |= {"kernel_shape": list(operation["kernel"]), "count_include_pad": 1}
    return helper.make_node(kind, inputs, [node.output], node.name, **attributes), {}
