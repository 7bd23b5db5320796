"""Small ONNX models, built operator by operator."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

OPSET = 13


class Network:
    """A chain of operators; `add` appends one that reads the last tensor unless told otherwise."""

    def __init__(self, shape: Sequence[int | str] = ("N", 3, 8, 8), seed: int = 0, opset: int = OPSET):
        self.shape = shape
        self.opset = opset
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.last = "x"

    def constant(self, name: str, value: Any) -> str:
        """Store an initializer and return its name."""
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(
        self,
        operator: str,
        *others: str,
        inputs: Sequence[str] | None = None,
        name: str | None = None,
        outputs: Sequence[str] = (),
        domain: str = "",
        **attributes: Any,
    ) -> "Network":
        """Append `operator`, named after itself and its position unless `name` is given."""
        name = name if name is not None else f"{operator.lower()}{len(self.nodes)}"
        read = [self.last, *others] if inputs is None else list(inputs)
        self.last = f"{name or len(self.nodes)}.out"
        node = helper.make_node(operator, read, [self.last, *outputs], name=name, domain=domain, **attributes)
        self.nodes.append(node)
        return self

    def normal(self, *shape: int) -> np.ndarray:
        """Random float32 weights of a sensible size."""
        fan = int(np.prod(shape[1:])) or 1
        return (self.random.standard_normal(shape) / np.sqrt(fan)).astype(np.float32)

    def conv(self, weight: tuple[int, ...], bias: bool = True, name: str | None = None, **attributes: Any) -> "Network":
        """A convolution with random weights of shape (out, in / groups, height, width)."""
        name = name or f"conv{len(self.nodes)}"
        names = [self.constant(f"{name}.w", self.normal(*weight))]
        if bias:
            names.append(self.constant(f"{name}.b", self.normal(weight[0], 4)[:, 0]))
        return self.add("Conv", *names, name=name, **attributes)

    def gemm(self, inputs: int, outputs: int, name: str | None = None) -> "Network":
        """A fully connected layer with random weights."""
        name = name or f"gemm{len(self.nodes)}"
        weight = self.constant(f"{name}.w", self.normal(outputs, inputs))
        bias = self.constant(f"{name}.b", self.normal(outputs, 4)[:, 0])
        return self.add("Gemm", weight, bias, name=name, transB=1)

    def proto(self) -> onnx.ModelProto:
        """The model, unchecked."""
        graph = helper.make_graph(
            self.nodes,
            "small",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)],
            self.constants,
        )
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.example", 1)]
        imports += (
            [helper.make_opsetid("com.microsoft", 1)]
            if any(node.domain == "com.microsoft" for node in self.nodes)
            else []
        )
        proto = helper.make_model(graph, opset_imports=imports, ir_version=8)
        inferred = shape_inference.infer_shapes(proto).graph.output[0]
        if inferred.type.tensor_type.HasField("shape"):
            graph.output[0].CopyFrom(inferred)
        else:
            graph.output[0].CopyFrom(helper.make_tensor_value_info(self.last, TensorProto.FLOAT, ["N"]))
        return helper.make_model(graph, opset_imports=imports, ir_version=8)

    def save(self, folder: Path) -> Path:
        """Write the model to `folder` and return its path."""
        path = folder / "small.onnx"
        onnx.save(self.proto(), path)
        return path
