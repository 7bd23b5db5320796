"""Types of numbers: casts that change nothing are none."""

import onnx
from onnx import TensorProto

from tacit.importers.selection import types


def identify(model: onnx.ModelProto) -> None:
    """Make an Identity of every Cast from float32 to float32, in place."""
    casts = [node for node in model.graph.node if node.op_type == "Cast" and not node.domain]
    kinds = types(model) if casts else {}
    for node in casts:
        wanted = next((entry.i for entry in node.attribute if entry.name == "to"), None)
        if wanted == kinds.get(node.input[0]) == TensorProto.FLOAT:
            node.op_type = "Identity"
            del node.attribute[:]
