"""Lists of tensors and tensors that may be absent, where it is known what is in them."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tacit.importers.fold import keep
from tacit.importers.forms.graph import Graph, given, settings

OPERATORS = {
    *("ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct"),
    *("SequenceEmpty", "SequenceInsert", "SequenceLength", "SplitToSequence"),
}


class Lists(Graph):
    """A graph in which the tensors of each list are known by name."""

    def __init__(self, model: onnx.ModelProto) -> None:
        super().__init__(model)
        self.lists: dict[str, list[str]] = {}

    def list(self, node: onnx.NodeProto) -> list[str]:
        """The tensors of the list that a node reads."""
        if node.input[0] not in self.lists:
            self.refuse(node, "of a list that the model computes", "give it tensors in place of lists")
        return self.lists[node.input[0]]

    def place(self, node: onnx.NodeProto, index: int) -> int:
        """A constant place in a list."""
        return int(self.required(node, index, "place").item())


def unpack_lists(model: onnx.ModelProto) -> None:
    """Let nodes read the tensors of lists themselves, in place; raises `UnsupportedError` where these are not known."""
    if not any(node.op_type in OPERATORS and not node.domain for node in model.graph.node):
        return
    graph = Lists(model)
    for node in model.graph.node:
        if node.op_type in OPERATORS and not node.domain:
            convert(graph, node)
        elif node.op_type == "Identity" and node.input[0] in graph.lists:
            graph.lists[node.output[0]] = graph.lists[node.input[0]]
        else:
            graph.keep(node)
    keep(model, graph.nodes)


def convert(graph: Lists, node: onnx.NodeProto) -> None:
    """Write one node, or note what is in the list that it makes."""
    output, operator = node.output[0], node.op_type
    if operator in ("SequenceConstruct", "SequenceEmpty"):
        graph.lists[output] = list(node.input)
    elif operator == "SequenceInsert":
        parts = list(graph.list(node))
        parts.insert(graph.place(node, 2) % (len(parts) + 1) if given(node, 2) else len(parts), node.input[1])
        graph.lists[output] = parts
    elif operator == "SequenceAt":
        graph.put(node, "Identity", [graph.list(node)[graph.place(node, 1)]], output)
    elif operator == "SequenceLength":
        value = numpy_helper.from_array(np.array(len(graph.list(node)), np.int64))
        graph.nodes.append(helper.make_node("Constant", [], [output], node.name, value=value))
    elif operator == "ConcatFromSequence":
        joined(graph, node)
    elif operator == "SplitToSequence":
        split(graph, node)
    elif operator == "OptionalHasElement":
        value = numpy_helper.from_array(np.array(bool(given(node, 0))))
        graph.nodes.append(helper.make_node("Constant", [], [output], node.name, value=value))
    else:
        graph.put(node, "Identity", [node.input[0]], output)


def joined(graph: Lists, node: onnx.NodeProto) -> None:
    """The tensors of a list beside one another, along a new axis where the node says so."""
    parts, attributes = graph.list(node), settings(node)
    if attributes.get("new_axis", 0):
        axis = graph.numbers(node, attributes["axis"])
        since = 13
        listed = graph.opset >= since
        parts = [
            graph.put(node, "Unsqueeze", [part, axis])
            if listed
            else graph.put(node, "Unsqueeze", [part], axes=[attributes["axis"]])
            for part in parts
        ]
    graph.put(node, "Concat", parts, node.output[0], axis=attributes["axis"])


def split(graph: Lists, node: onnx.NodeProto) -> None:
    """Parts along an axis, of constant sizes."""
    sizes = graph.required(node, 1, "split")
    axis = int(settings(node).get("axis", 0))
    if sizes.ndim != 1:
        graph.refuse(node, "into parts of one size", "name the size of each part")
    if graph.opset >= 13:
        inputs, more = [node.input[0], graph.numbers(node, *sizes.tolist())], {}
    else:
        inputs, more = [node.input[0]], {"split": sizes.tolist()}
    graph.lists[node.output[0]] = graph.put_all(node, "Split", inputs, len(sizes), axis=axis, **more)
