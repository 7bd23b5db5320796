"""Recurrent layers that read the first axis of the input as time, where every model must have the batch."""

from collections.abc import Iterator

import onnx
from onnx import helper, shape_inference

from tacit.errors import UnsupportedError
from tacit.importers.fold import without_weights

RECURRENT = {"GRU", "LSTM", "RNN"}
FIRST = "tacit.first"
"""What the first axis of an input is called while it is followed through the model."""


def time_in_front(model: onnx.ModelProto) -> list[UnsupportedError]:
    """One error for each recurrent layer whose steps of time are the first axis of an input.

    That axis becomes a batch of one, and such a layer would have a single step.
    """
    nodes = [node for node in model.graph.node if node.op_type in RECURRENT]
    return [refusal(node) for node in steps_in_front(model, nodes)] if nodes else []


def steps_in_front(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes whose steps of time are the first axis of an input, as far as its name can be followed."""
    light = without_weights(model)
    stored = {tensor.name for tensor in model.graph.initializer}
    for entry in light.graph.input:
        if entry.name not in stored and entry.type.tensor_type.shape.dim:
            entry.type.tensor_type.shape.dim[0].dim_param = FIRST
    for entry in light.graph.output:
        entry.type.tensor_type.ClearField("shape")
    try:
        graph = shape_inference.infer_shapes(light).graph
    except shape_inference.InferenceError:
        return
    entries = {entry.name: entry.type.tensor_type.shape.dim for entry in [*graph.input, *graph.value_info]}
    for node in nodes:
        layout = next((helper.get_attribute_value(entry) for entry in node.attribute if entry.name == "layout"), 0)
        axes = entries.get(node.input[0], ())
        if not layout and len(axes) and axes[0].dim_param == FIRST:
            yield node


def refusal(node: onnx.NodeProto) -> UnsupportedError:
    """What to say of such a layer."""
    what = f"node `{node.name}`: {node.op_type} reads the first axis of the input as time, where the batch must be"
    error = UnsupportedError(f"{what}; let the model read (batch, time, features): batch_first=True in PyTorch")
    error.node = node.name
    return error
