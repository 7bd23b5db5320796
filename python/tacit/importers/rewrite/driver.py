"""Rewrites a model until no node is left that a rewriting wants.

A rewriting is one function and one registration. It gets a `Writer`, writes nodes that the importer knows or that
another rewriting knows, and gives the name of their result, or of each output; None leaves the node to the importer.
All of it stays ONNX, so that calibration runs the same nodes as the import reads, and sees the range of every tensor.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tacit.errors import UnsupportedError
from tacit.importers.call import Call
from tacit.importers.fold import infer_sizes, keep, live
from tacit.importers.guard import guarded
from tacit.importers.rewrite.arrangements import ARRANGEMENTS
from tacit.importers.rewrite.defined import define
from tacit.importers.rewrite.formulas import FORMULAS
from tacit.importers.rewrite.gates import GATES
from tacit.importers.rewrite.lifting import LIFTED, lifted, lifts
from tacit.importers.rewrite.magnitude import MAGNITUDE
from tacit.importers.rewrite.norms import NORMS
from tacit.importers.rewrite.pointwise import POINTWISE
from tacit.importers.rewrite.products import PRODUCTS
from tacit.importers.rewrite.recurrent import RECURRENT
from tacit.importers.rewrite.reductions import REDUCTIONS, reduce_l2
from tacit.importers.rewrite.sampling import SAMPLING
from tacit.importers.rewrite.windows import WINDOWS
from tacit.importers.rewrite.writer import Writer

Rewriting = Callable[[Writer], str | tuple[str, ...] | None]


def either(first: Rewriting, second: Rewriting) -> Rewriting:
    """The first of two rewritings that wants a node."""

    def chosen(w: Writer) -> str | tuple[str, ...] | None:
        found = first(w)
        return second(w) if found is None else found

    chosen.__doc__ = second.__doc__
    return chosen


REWRITES: Mapping[str, Rewriting] = {
    **ARRANGEMENTS,
    **FORMULAS,
    **GATES,
    **MAGNITUDE,
    **NORMS,
    **POINTWISE,
    **PRODUCTS,
    **RECURRENT,
    **REDUCTIONS,
    **SAMPLING,
    **WINDOWS,
    "Mul": either(FORMULAS["Mul"], GATES["Mul"]),
}
LATE: Mapping[str, Rewriting] = {"ReduceL2": reduce_l2}
"""Rewritings of what no formula has taken in."""
MOST_ROUNDS = 8
"""Rounds after which rewritings of rewritings must have come to an end."""


def rewrites(node: onnx.NodeProto) -> bool:
    """Whether a node may be rewritten."""
    return (node.op_type in REWRITES or node.op_type in LIFTED) and node.domain in ("", "ai.onnx")


def rewrite(model: onnx.ModelProto, input_name: str, refused: list[UnsupportedError] | None = None) -> None:
    """Rewrite a model, whose constants are computed already, in place.

    Raises `UnsupportedError` naming the node for attributes that no rewriting expresses. With a list `refused` the
    error is appended to it instead, and the node stays as it is.
    """
    for _ in range(MOST_ROUNDS):
        if any(rewrites(node) for node in model.graph.node) and rewrite_once(model, input_name, refused):
            continue
        if not any(node.op_type in LATE for node in model.graph.node):
            return
        if not rewrite_once(model, input_name, refused, LATE):
            return


def rewrite_once(
    model: onnx.ModelProto,
    input_name: str,
    refused: list[UnsupportedError] | None,
    registry: Mapping[str, Rewriting] = REWRITES,
) -> bool:
    """Rewrite each node at most once, as `registry` says; tells whether any was."""
    sizes = infer_sizes(model, input_name)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    shapes = {name: size[1:] for name, size in sizes.items() if name not in constants and size[:1] == (1,)}
    opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    writers = {name: partial(called, node, shapes, constants) for node in model.graph.node for name in node.output}
    left = {error.node for error in refused or []}
    nodes: list[onnx.NodeProto] = []
    changed = False
    for node in model.graph.node:
        written = None
        wanted = rewrites(node) if registry is REWRITES else node.op_type in registry
        if wanted and node.name not in left and any(name not in constants for name in node.input if name):
            writer = Writer(called(node, shapes, constants), opset, writers, sizes)
            lifting = registry is REWRITES and lifts(writer.call, sizes)
            how = lifted if lifting else registry.get(node.op_type)
            try:
                written = written_instead(node, writer, model, how)
            except UnsupportedError as error:
                if refused is None:
                    raise
                refused.append(error)
        nodes.extend([node] if written is None else written)
        changed |= written is not None
    if not changed:
        return False
    keep(model, nodes)
    keep(model, live(model))
    define(model)
    return True


def called(node: onnx.NodeProto, shapes: Mapping[str, Any], constants: Mapping[str, NDArray[Any]]) -> Call:
    """The node without classes of ONNX."""
    values = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    attributes = {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}
    return Call(node.name, node.op_type, list(node.input), attributes, shapes, constants, list(node.output))


def written_instead(
    node: onnx.NodeProto, writer: Writer, model: onnx.ModelProto, how: Rewriting | None
) -> list[onnx.NodeProto] | None:
    """The nodes that take the place of `node`, which write its outputs; None if it stays."""
    if how is None:
        return None
    with guarded(node.name, node.op_type):
        results = how(writer)
    if results is None:
        return None
    for output, result in zip(node.output, (results,) if isinstance(results, str) else results, strict=False):
        if output:
            name_output(writer, result, output)
    model.graph.initializer.extend(writer.constants)
    return writer.nodes


def name_output(writer: Writer, result: str, output: str) -> None:
    """Let a node of the writer's write a result under the name `output`."""
    made = any(result in written.output for written in writer.nodes)
    if not made or any(result in written.input for written in writer.nodes):
        result = writer.put("Identity", result)
    for written in writer.nodes:
        if result in written.output:
            written.output[0] = output
