"""Graphs inside of nodes: the branches of an If, the body of a Loop or a Scan."""

from collections.abc import Iterable, Mapping

import onnx


def body_of(node: onnx.NodeProto, role: str) -> onnx.GraphProto:
    """The graph that a node has as an attribute."""
    graph: onnx.GraphProto
    (graph,) = [entry.g for entry in node.attribute if entry.name == role]
    return graph


def copied(
    graph: onnx.GraphProto, prefix: str, bound: Mapping[str, str]
) -> tuple[list[onnx.NodeProto], dict[str, str]]:
    """The nodes and constants of a graph, with a prefix before what it names itself, its inputs as `bound`.

    Constants become nodes. The second result has the new name of each tensor.
    """
    names = dict(bound)
    own = [tensor.name for tensor in graph.initializer] + [name for node in graph.node for name in node.output if name]
    names |= {name: f"{prefix}/{name}" for name in own if name not in bound}
    nodes = []
    for tensor in graph.initializer:
        if tensor.name not in bound:
            nodes.append(onnx.helper.make_node("Constant", [], [names[tensor.name]], names[tensor.name], value=tensor))
    for index, node in enumerate(graph.node):
        fresh = onnx.NodeProto()
        fresh.CopyFrom(node)
        fresh.name = f"{prefix}/{node.name or f'{node.op_type}_{index}'}"
        rename(fresh, names)
        nodes.append(fresh)
    return nodes, names


def rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Give the tensors of a node, and those that graphs inside it read from outside, other names, in place."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for graph in graphs(node):
        local = {tensor.name for tensor in graph.initializer} | {entry.name for entry in graph.input}
        local |= {name for inner in graph.node for name in inner.output}
        outer = {name: other for name, other in names.items() if name not in local}
        for inner in graph.node:
            rename(inner, outer)
        for entry in graph.output:
            entry.name = outer.get(entry.name, entry.name)


def graphs(node: onnx.NodeProto) -> Iterable[onnx.GraphProto]:
    """The graphs inside of a node."""
    return (entry.g for entry in node.attribute if entry.HasField("g"))
