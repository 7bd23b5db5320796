"""Every form of a model becomes the plain one: operators of ONNX itself, on floats."""

import onnx

from tacit.importers.casts import as_float32
from tacit.importers.extents import fix_sizes
from tacit.importers.forms.control import controls, resolve
from tacit.importers.forms.defuse import RULES, defuse
from tacit.importers.forms.dequantise import dequantise, is_quantised
from tacit.importers.forms.lists import unpack_lists
from tacit.importers.selection import drop_inputs
from tacit.importers.source import Remarks, Selection
from tacit.importers.tokens import reads_tokens


def plain(model: onnx.ModelProto, selection: Selection, remarks: Remarks) -> None:
    """Take branches and unroll loops, and write quantised and fused operators as those that they stand for, in place.

    Raises `UnsupportedError` naming the node.
    """
    if any(controls(node) for node in model.graph.node):
        if not reads_tokens(model):
            fix_sizes(model, selection.shapes, remarks.notes)
        resolve(model)
        drop_inputs(model)
    unpack_lists(model)
    dequantise(model, remarks)
    defuse(model)
    as_float32(model)


def has_plain_form(node: onnx.NodeProto) -> bool:
    """Whether a node is of a kind that is written as others; one that is still there was refused, or comes after it."""
    return is_quantised(node) or controls(node) or node.op_type in RULES.get(node.domain, ())
