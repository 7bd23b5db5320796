"""Control flow that constants and shapes decide: branches are taken, loops are unrolled.

A condition may depend on sizes, which are fixed, and on inputs that someone has fixed by `--input-value`.
"""

from collections.abc import Iterator
from typing import NoReturn

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tacit.errors import TacitError, UnsupportedError
from tacit.importers.extents import computed
from tacit.importers.fold import fold_once, infer_sizes, keep, live, without_weights
from tacit.importers.forms.bodies import body_of, copied
from tacit.importers.forms.graph import OWN, settings

CONTROL = {"If", "Loop", "Scan"}
MOST_ITERATIONS = 256
MOST_NODES = 20_000
MOST_ROUNDS = 64
AXES_LISTED = 13
"""The opset since which Unsqueeze has its axes as an input."""
TRACE = "trace the model for one size, so that it has no control flow"
FIX = f"fix an input that it depends on (--input-value NAME=VALUE), or {TRACE}"


class Known:
    """What is known of a model before it runs: constants, and sizes for a batch of one."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.opset = max((entry.version for entry in model.opset_import if entry.domain in OWN), default=1)
        light = without_weights(model)
        for entry in light.graph.input:
            dimensions = entry.type.tensor_type.shape.dim
            if dimensions and not dimensions[0].dim_value:
                dimensions[0].dim_value = 1
        self.sizes: dict[str, tuple[int, ...]] = {}
        try:
            while fold_once(light, ""):
                keep(light, live(light))
            self.sizes = infer_sizes(light, "")
        except TacitError:
            pass
        self.tensors = {tensor.name: tensor for tensor in light.graph.initializer}

    def value(self, name: str) -> NDArray[np.generic] | None:
        """A constant, if it is one."""
        return numpy_helper.to_array(self.tensors[name]) if name in self.tensors else None


def resolve(model: onnx.ModelProto) -> None:
    """Take branches and unroll loops, in place.

    Raises `UnsupportedError` for a node whose condition or number of iterations depends on the input.
    """
    for _ in range(MOST_ROUNDS):
        flow = [node for node in model.graph.node if controls(node)]
        if not flow:
            return
        single(model)
        known = Known(model)
        node = next((node for node in flow if decided(node, known)), None)
        if node is None:
            refuse(flow[0], known)
        nodes: list[onnx.NodeProto] = []
        for each in model.graph.node:
            nodes.extend(instead(each, known) if decided(each, known) else [each])
        if len(nodes) > MOST_NODES:
            refuse(node, known, f"becomes {len(nodes)} nodes")
        keep(model, nodes)
        keep(model, live(model))
        del model.graph.value_info[:]
    refuse(next(node for node in model.graph.node if controls(node)), Known(model), "is nested too deep")


def controls(node: onnx.NodeProto) -> bool:
    """Whether a node has a graph that it runs or not."""
    return node.op_type in CONTROL and node.domain in OWN


def single(model: onnx.ModelProto) -> None:
    """Let the batch be one where shapes may decide."""
    if not any(node.op_type in ("Shape", "Size", "Scan") for node in model.graph.node):
        return
    for entry in computed(model):
        dimensions = entry.type.tensor_type.shape.dim
        if dimensions and not dimensions[0].dim_value:
            dimensions[0].dim_value = 1


def refuse(node: onnx.NodeProto, known: Known, what: str = "") -> NoReturn:
    """Raise `UnsupportedError` naming the node and what it depends on."""
    if not what and node.op_type == "If":
        what = f"whose condition `{node.input[0]}` depends on the input"
    elif not what and node.op_type == "Loop" and node.input[0] and known.value(node.input[0]) is not None:
        what = f"whose condition `{node.input[1]}` depends on the input, or that runs more than {MOST_ITERATIONS} times"
    elif not what:
        what = "whose number of iterations depends on the input"
    error = UnsupportedError(f"node `{node.name}`: {node.op_type} {what}; {FIX}")
    error.node = node.name
    raise error


def decided(node: onnx.NodeProto, known: Known) -> bool:
    """Whether it is known what a node runs, and how often."""
    if not controls(node):
        return False
    return known.value(node.input[0]) is not None if node.op_type == "If" else iterations(node, known) is not None


def iterations(node: onnx.NodeProto, known: Known) -> int | None:
    """How often a loop runs, if that is known and not too often."""
    count = loop_count(node, known) if node.op_type == "Loop" else scan_count(node, known)
    return count if count is not None and count <= MOST_ITERATIONS else None


def loop_count(node: onnx.NodeProto, known: Known) -> int | None:
    """The trip count of a Loop whose condition stays true."""
    trips = known.value(node.input[0]) if node.input[0] else None
    first = known.value(node.input[1]) if node.input[1] else np.array(True)
    if first is not None and not first.item():
        return 0
    body = body_of(node, "body")
    if trips is None or first is None or not stays(body, body.output[0].name):
        return None
    return max(int(np.asarray(trips).item()), 0)


def stays(body: onnx.GraphProto, name: str) -> bool:
    """Whether the condition that a body gives is the one that it got, or true."""
    makers = {output: node for node in body.node for output in node.output}
    while name in makers and makers[name].op_type in ("Cast", "Identity"):
        name = makers[name].input[0]
    if name == body.input[1].name:
        return True
    stored = {tensor.name: tensor for tensor in body.initializer}
    if name in makers and makers[name].op_type == "Constant":
        stored.update((name, entry.t) for entry in makers[name].attribute if entry.name == "value")
    return name in stored and bool(numpy_helper.to_array(stored[name]).all())


def scan_count(node: onnx.NodeProto, known: Known) -> int | None:
    """The length of what a Scan goes over."""
    count = int(settings(node)["num_scan_inputs"])
    first, axes = node.input[len(node.input) - count], settings(node).get("scan_input_axes", [0] * count)
    size = tuple(known.tensors[first].dims) if first in known.tensors else known.sizes.get(first)
    return None if size is None else int(size[axes[0]])


def instead(node: onnx.NodeProto, known: Known) -> Iterator[onnx.NodeProto]:
    """The nodes that take the place of one whose course is known."""
    if node.op_type == "If":
        condition = known.value(node.input[0])
        branch = body_of(node, "then_branch" if condition is not None and condition.all() else "else_branch")
        nodes, names = copied(branch, node.name, {})
        yield from nodes
        for entry, output in zip(branch.output, node.output, strict=False):
            yield same(names.get(entry.name, entry.name), output)
    elif node.op_type == "Loop":
        yield from unrolled_loop(node, iterations(node, known) or 0, known.opset)
    else:
        yield from unrolled_scan(node, iterations(node, known) or 0, known.opset)


def same(name: str, output: str) -> onnx.NodeProto:
    """A node that gives a tensor another name."""
    return helper.make_node("Identity", [name], [output], f"{output}.same")


def number(name: str, value: int) -> onnx.NodeProto:
    """A node that gives an integer."""
    return helper.make_node("Constant", [], [name], name, value=numpy_helper.from_array(np.array(value, np.int64)))


def unrolled_loop(node: onnx.NodeProto, count: int, opset: int) -> Iterator[onnx.NodeProto]:
    """The body of a Loop, so many times."""
    body, carried = body_of(node, "body"), list(node.input[2:])
    collected: list[list[str]] = [[] for _ in node.output[len(carried) :]]
    condition = f"{node.name}/goes_on"
    yield helper.make_node("Constant", [], [condition], condition, value=numpy_helper.from_array(np.array(True)))
    for index in range(count):
        prefix = f"{node.name}/{index}"
        yield number(f"{prefix}/index", index)
        given = [f"{prefix}/index", condition, *carried]
        nodes, names = copied(body, prefix, dict(zip((entry.name for entry in body.input), given, strict=True)))
        yield from nodes
        written = [names.get(entry.name, entry.name) for entry in body.output]
        condition, carried = written[0], written[1 : 1 + len(carried)]
        for part, name in zip(collected, written[1 + len(carried) :], strict=False):
            part.append(name)
    for name, output in zip(carried, node.output, strict=False):
        if output:
            yield same(name, output)
    for part, output in zip(collected, node.output[len(carried) :], strict=True):
        if output and part:
            yield from stacked(part, output, 0, opset)


def unrolled_scan(node: onnx.NodeProto, count: int, opset: int) -> Iterator[onnx.NodeProto]:
    """The body of a Scan, so many times."""
    body, attributes = body_of(node, "body"), settings(node, "body")
    inputs = int(attributes["num_scan_inputs"])
    states = len(node.input) - inputs
    carried, read = list(node.input[:states]), list(node.input[states:])
    outputs = len(node.output) - states
    collected: list[list[str]] = [[] for _ in range(outputs)]
    axes = attributes.get("scan_input_axes", [0] * inputs)
    backward = attributes.get("scan_input_directions", [0] * inputs)
    for index in range(count):
        prefix = f"{node.name}/{index}"
        given = list(carried)
        for place, name in enumerate(read):
            at = f"{prefix}/at{place}"
            yield number(at, count - 1 - index if backward[place] else index)
            given.append(f"{prefix}/read{place}")
            yield helper.make_node("Gather", [name, at], [given[-1]], given[-1], axis=axes[place])
        nodes, names = copied(body, prefix, dict(zip((entry.name for entry in body.input), given, strict=True)))
        yield from nodes
        written = [names.get(entry.name, entry.name) for entry in body.output]
        carried = written[:states]
        for part, name in zip(collected, written[states:], strict=True):
            part.append(name)
    for name, output in zip(carried, node.output, strict=False):
        if output:
            yield same(name, output)
    places = attributes.get("scan_output_axes", [0] * outputs)
    turned = attributes.get("scan_output_directions", [0] * outputs)
    for place, (part, output) in enumerate(zip(collected, node.output[states:], strict=True)):
        if output and part:
            yield from stacked(part[::-1] if turned[place] else part, output, places[place], opset)


def stacked(parts: list[str], output: str, axis: int, opset: int) -> Iterator[onnx.NodeProto]:
    """Nodes that put tensors beside one another along a new axis."""
    names, axes = [f"{output}.part{index}" for index in range(len(parts))], f"{output}.axes"
    if opset >= AXES_LISTED:
        value = numpy_helper.from_array(np.array([axis], np.int64))
        yield helper.make_node("Constant", [], [axes], axes, value=value)
    for part, name in zip(parts, names, strict=True):
        if opset >= AXES_LISTED:
            yield helper.make_node("Unsqueeze", [part, axes], [name], name)
        else:
            yield helper.make_node("Unsqueeze", [part], [name], name, axes=[axis])
    yield helper.make_node("Concat", names, [output], f"{output}.stacked", axis=axis)
