"""What a model computes from constants and fixed shapes alone is computed before the import.

Exporters write arithmetic on shapes for a dynamic batch (Shape, Gather, Concat, Reshape and so
on). Here the batch is one example, every other size is fixed, so that all of it has a value.
Nodes that the output does not depend on are dropped.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, shape_inference

from tacit.errors import MisuseError

Tensors = dict[str, TensorProto]
Sizes = dict[str, tuple[int, ...]]

MOST_VALUES = 2**28
"""Largest constant that is computed, in values."""
LONGEST_SHAPE = 1024
"""Longest constant whose values matter to shapes."""
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}


def simplify(model: onnx.ModelProto, input_name: str) -> None:
    """Give nodes unique names, drop dead ones, and compute constants, in place.

    What was computed becomes an initializer. Raises `MisuseError` for shapes that do not fit together.
    """
    for name, node in named(model.graph.node):
        node.name = name
    keep(model, live(model))
    while fold_once(model, input_name):
        keep(model, live(model))


def named(nodes: Iterable[onnx.NodeProto]) -> Iterator[tuple[str, onnx.NodeProto]]:
    """Nodes with names that are present and unique."""
    nodes = list(nodes)
    taken = Counter(node.name for node in nodes)
    for index, node in enumerate(nodes):
        name = node.name if node.name and taken[node.name] == 1 else f"{node.name or node.op_type}_{index}"
        yield name, node


def live(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The nodes that the output depends on, in order."""
    needed = {entry.name for entry in model.graph.output}
    found = []
    for node in reversed(model.graph.node):
        if needed.intersection(name for name in node.output if name):
            needed.update(node.input)
            needed.update(outer(node))
            found.append(node)
    return found[::-1]


def outer(node: onnx.NodeProto) -> Iterator[str]:
    """The tensors that the graphs inside a node read, their own among them."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield from (entry.name for entry in attribute.g.output)
            for inner in attribute.g.node:
                yield from inner.input
                yield from outer(inner)


def keep(model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]) -> None:
    """Let `nodes` be the only ones."""
    chosen = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(chosen)


def fold_once(model: onnx.ModelProto, input_name: str) -> bool:
    """Compute the nodes that have only constants and known shapes; tells whether new shapes may be known now."""
    stored: Tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    sizes = infer_sizes(model, input_name)
    rest, shaped = [], False
    for node in model.graph.node:
        values = evaluate(node, stored, sizes, model.opset_import)
        if values is None:
            rest.append(node)
            continue
        shaped |= node.op_type != "Constant"
        for tensor in values:
            stored[tensor.name] = tensor
            model.graph.initializer.append(tensor)
    keep(model, rest)
    return shaped


def infer_sizes(model: onnx.ModelProto, input_name: str) -> Sizes:
    """Shapes of all tensors for a batch of one, where every size is known."""
    single = without_weights(model)
    for entry in single.graph.input:
        if entry.name == input_name:
            entry.type.tensor_type.shape.dim[0].dim_value = 1
    single.graph.output[0].type.tensor_type.ClearField("shape")
    try:
        inferred = shape_inference.infer_shapes(single, strict_mode=True, data_prop=True).graph
    except shape_inference.InferenceError as error:
        advice = "name the sizes it was made for (--input-shape), or export it again"
        raise MisuseError(f"shapes of the model do not fit together: {str(error).strip()}; {advice}") from error
    return known_sizes([*inferred.input, *inferred.value_info, *inferred.output])


UNINFERRED = ("GroupNormalization",)
"""Operators whose result has the shape of their first input, which ONNX does not infer."""


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with constants that are too large for a shape declared only: inference copies all it gets."""
    light = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph, listed = light.graph, {entry.name for entry in model.graph.input}
    graph.node.extend(model.graph.node)
    for node in graph.node:
        if node.op_type in UNINFERRED and node.domain in ("", "ai.onnx"):
            same_shape = helper.make_node("Identity", node.input[:1], node.output[:1], node.name)
            node.CopyFrom(same_shape)
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    for stored in model.graph.initializer:
        if np.prod(stored.dims, dtype=float) <= LONGEST_SHAPE:
            graph.initializer.append(stored)
        elif stored.name not in listed:
            graph.input.append(helper.make_tensor_value_info(stored.name, stored.data_type, stored.dims))
    return light


def known_sizes(entries: Iterable[onnx.ValueInfoProto]) -> Sizes:
    """Shapes of those entries all of whose sizes are known."""
    tensors = {entry.name: entry.type.tensor_type for entry in entries}
    shaped = {name: tensor.shape.dim for name, tensor in tensors.items() if tensor.HasField("shape")}
    return {
        name: tuple(size.dim_value for size in dimensions)
        for name, dimensions in shaped.items()
        if all(size.HasField("dim_value") for size in dimensions)
    }


def evaluate(
    node: onnx.NodeProto, stored: Tensors, sizes: Mapping[str, tuple[int, ...]], opsets: Iterable[Any]
) -> list[TensorProto] | None:
    """The outputs of a node that has the same for every input; None for any other."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.domain not in ("", "ai.onnx") or node.op_type in RANDOM or any(a.HasField("g") for a in node.attribute):
        return None
    if node.op_type == "Shape" and node.input[0] in sizes:
        start, end = (attributes[role].i if role in attributes else None for role in ("start", "end"))
        return [tensor(node, np.array(sizes[node.input[0]], np.int64)[start:end])]
    if node.op_type == "Size" and node.input[0] in sizes:
        return [tensor(node, np.array(np.prod(sizes[node.input[0]], dtype=np.int64)))]
    if any(name not in stored for name in node.input if name):
        return None
    if not node.output or (not node.input and node.op_type != "Constant"):
        return None
    single = alone(node, [stored[name] for name in dict.fromkeys(node.input) if name], opsets)
    return run(single, node) if bounded(single, node) else None


def tensor(node: onnx.NodeProto, value: NDArray[Any], index: int = 0) -> TensorProto:
    """`value` under the name of the node's output."""
    return numpy_helper.from_array(value, node.output[index])


def alone(node: onnx.NodeProto, inputs: list[TensorProto], opsets: Iterable[Any]) -> onnx.ModelProto:
    """A model of one node and its constants."""
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "constants", [], outputs, inputs)
    return helper.make_model(graph, opset_imports=list(opsets), ir_version=10)


def bounded(single: onnx.ModelProto, node: onnx.NodeProto) -> bool:
    """Whether all outputs are known to be of a sensible size: a small file can ask for a huge one."""
    if node.op_type == "Constant":
        return True
    try:
        inferred = shape_inference.infer_shapes(single, data_prop=True).graph
    except shape_inference.InferenceError:
        return False
    sizes = known_sizes([*inferred.value_info, *inferred.output])
    outputs = [name for name in node.output if name]
    return all(name in sizes and np.prod(sizes[name], dtype=float) <= MOST_VALUES for name in outputs)


def run(single: onnx.ModelProto, node: onnx.NodeProto) -> list[TensorProto] | None:
    """What the reference implementation of ONNX computes; None where it fails."""
    from onnx.reference import ReferenceEvaluator

    names = [name for name in node.output if name]
    if node.op_type == "GatherElements" and not node.domain:
        return gather_elements(single, node)
    try:
        values = ReferenceEvaluator(single).run(names, {})
    except Exception:  # noqa: BLE001 (operators raise whatever numpy does; the importer then refuses the node)
        return None
    return [numpy_helper.from_array(np.asarray(value), name) for name, value in zip(names, values, strict=True)]


def gather_elements(single: onnx.ModelProto, node: onnx.NodeProto) -> list[TensorProto] | None:
    """GatherElements, which the reference implementation has for equal lengths of the other axes only."""
    stored = {entry.name: numpy_helper.to_array(entry) for entry in single.graph.initializer}
    data, indices = (stored[name] for name in node.input)
    axis = next((entry.i for entry in node.attribute if entry.name == "axis"), 0) % max(data.ndim, 1)
    if data.ndim != indices.ndim or not data.ndim:
        return None
    kept = tuple(slice(None) if other == axis else slice(length) for other, length in enumerate(indices.shape))
    try:
        return [tensor(node, np.take_along_axis(data[kept], indices, axis))]
    except (IndexError, ValueError):
        return None


def compute(
    operator: str, attributes: Mapping[str, Any], inputs: Sequence[NDArray[Any] | None], outputs: int, opset: int
) -> list[NDArray[Any]] | None:
    """What one operator gives for `inputs`, where None is an absent one; None where it fails."""
    named_inputs = [f"i{index}" if value is not None else "" for index, value in enumerate(inputs)]
    node = helper.make_node(operator, named_inputs, [f"o{index}" for index in range(outputs)], **attributes)
    stored = [
        numpy_helper.from_array(value, name)
        for name, value in zip(named_inputs, inputs, strict=True)
        if name and value is not None
    ]
    values = run(alone(node, stored, [helper.make_opsetid("", opset)]), node)
    return None if values is None else [numpy_helper.to_array(value) for value in values]
