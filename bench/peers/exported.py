"""A network for a peer that reads no ONNX: its nodes as JSON and its weights, in one .npz file without pickles."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper


class Network(NamedTuple):
    """Nodes in order, names of the input and the output, weights, and integer constants (shapes)."""

    nodes: list[dict[str, Any]]
    ends: tuple[str, str]
    weights: dict[str, NDArray[np.float32]]
    integers: dict[str, list[int]]


def read(model: onnx.ModelProto) -> Network:
    """What the peer needs of a model with one input and one output."""
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    floats = {name: np.asarray(value, np.float32) for name, value in constants.items() if value.dtype.kind == "f"}
    integers = {name: value.reshape(-1).tolist() for name, value in constants.items() if value.dtype.kind == "i"}
    nodes = [described(node) for node in model.graph.node]
    return Network(nodes, (model.graph.input[0].name, model.graph.output[0].name), floats, integers)


def described(node: onnx.NodeProto) -> dict[str, Any]:
    """A node as JSON."""
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    return {
        "operator": node.op_type,
        "inputs": [*node.input],
        "output": node.output[0],
        "attributes": plain(attributes),
    }


def plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes that JSON can say: numbers, their lists, and text."""
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in attributes.items()}


def write(path: Path, network: Network) -> None:
    """The file: `graph` is JSON, the other entries are weights."""
    graph = json.dumps({"nodes": network.nodes, "ends": network.ends, "integers": network.integers})
    entries: dict[str, Any] = {f"weight:{name}": value for name, value in network.weights.items()}
    np.savez(path, graph=np.array(graph), **entries)
